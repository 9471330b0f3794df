// Expressions and counted items in YAML, as space files have them: what expands is written as YAML
// that reads back to the same tree.
#include "explore/space/yaml_template.hpp"
#include "readers/readers.hpp"

#include <cstdlib>
#include <string_view>

namespace monet::fuzz {

namespace {

bool equal(const YamlNode& a, const YamlNode& b) {
  if (a.kind != b.kind || a.scalar != b.scalar || a.items.size() != b.items.size() ||
      a.entries.size() != b.entries.size())
    return false;
  for (std::size_t i = 0; i < a.items.size(); ++i) {
    if (!equal(a.items[i], b.items[i]))
      return false;
  }
  for (std::size_t i = 0; i < a.entries.size(); ++i) {
    if (a.entries[i].key != b.entries[i].key || !equal(a.entries[i].value, b.entries[i].value))
      return false;
  }
  return true;
}

/// Trees without a text of their own: a scalar that is empty reads back as null.
bool printable(const YamlNode& node) {
  const auto plain = [](std::string_view text) {
    for (const char c : text) {
      if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f)
        return false;
    }
    return true;
  };
  if (!plain(node.scalar))
    return false;
  for (const YamlNode& item : node.items) {
    if (!printable(item))
      return false;
  }
  for (const YamlNode::Entry& entry : node.entries) {
    if (!plain(entry.key) || entry.key.empty() || !printable(entry.value))
      return false;
  }
  return true;
}

} // namespace

void read_space(std::string_view text) {
  if (text.size() > 4096) // long inputs find nothing new, slowly
    return;
  ProblemList problems;
  const YamlNode root = parse_yaml(text, "space.yaml");
  const YamlTemplate made(root, {"x", "y", "kind"}, problems);
  problems.throw_if_any();
  const YamlNode tree = made.expand({number_value(3), number_value(0.5), {false, 0, "big"}});
  if (printable(tree) && !equal(tree, parse_yaml(yaml_text(tree), "again.yaml")))
    std::abort();
}

} // namespace monet::fuzz
