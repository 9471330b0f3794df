// Builds a YamlNode tree from text through yaml-cpp's events. A separate tree keeps duplicate keys
// and exact locations. Limits on depth and size stop the parser while it reads: it recurses once
// per nested collection, after calling the handler.
#include "base/shared/file_kind.hpp"

#include "monet/base/files.hpp"
#include "monet/base/yaml.hpp"

#include <fmt/core.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <map>
#include <sstream>

namespace monet {

namespace {

constexpr std::size_t kMaxDepth = 64;
constexpr std::size_t kMaxNodes = 1'000'000;
constexpr std::size_t kMaxBytes = std::size_t{1} << 26;

std::size_t count_nodes(const YamlNode& node) {
  std::size_t count = 1;
  for (const YamlNode& item : node.items)
    count += count_nodes(item);
  for (const YamlNode::Entry& entry : node.entries)
    count += count_nodes(entry.value);
  return count;
}

std::size_t depth_of(const YamlNode& node) {
  std::size_t deepest = 0;
  for (const YamlNode& item : node.items)
    deepest = std::max(deepest, depth_of(item));
  for (const YamlNode::Entry& entry : node.entries) {
    deepest = std::max(deepest, depth_of(entry.value));
  }
  const bool nests = node.kind == YamlNode::Kind::sequence || node.kind == YamlNode::Kind::map;
  return deepest + (nests ? 1 : 0);
}

class TreeBuilder : public YAML::EventHandler {
public:
  TreeBuilder(std::string_view text, const std::string& origin) : text_(text), origin_(origin) {}

  YamlNode take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ == 1)
      return;
    if (line_at(mark).starts_with("---")) {
      throw InputError(at(mark), "a second document starts here; a file holds one");
    }
    throw InputError(at(mark), "this line does not continue the previous lines",
                     "check the indentation");
  }
  void OnDocumentEnd() override {}
  void OnAnchor(const YAML::Mark&, const std::string&) override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(new_node(YamlNode::Kind::null, mark), anchor);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    check_tag(mark, tag);
    YamlNode node = new_node(YamlNode::Kind::scalar, mark);
    node.scalar = value;
    node.quoted = tag == "!" || tag == "tag:yaml.org,2002:str";
    add(std::move(node), anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto known = anchors_.find(anchor);
    if (known == anchors_.end()) {
      throw InputError(at(mark), "this alias is inside the value that it refers to");
    }
    charge(known->second.nodes, mark);
    check_depth(open_.size() + known->second.depth, mark);
    add(YamlNode(known->second.node), 0);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(YamlNode::Kind::sequence, mark, tag, anchor);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(YamlNode::Kind::map, mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

private:
  struct Open {
    YamlNode node;
    YAML::anchor_t anchor = 0;
    bool has_key = false;
    std::string key;
    SourceLoc key_where;
  };
  struct Anchored {
    YamlNode node;
    std::size_t nodes = 0;
    std::size_t depth = 0;
  };

  SourceLoc at(const YAML::Mark& mark) const {
    return {origin_, mark.line + 1, mark.column + 1, {}};
  }

  std::string_view line_at(const YAML::Mark& mark) const {
    std::string_view rest = text_;
    for (int line = 0; line < mark.line; ++line) {
      const std::size_t end = rest.find('\n');
      if (end == std::string_view::npos)
        return {};
      rest.remove_prefix(end + 1);
    }
    return rest;
  }

  void charge(std::size_t nodes, const YAML::Mark& mark) {
    nodes_ += nodes;
    if (nodes_ > kMaxNodes) {
      throw InputError(
          at(mark), fmt::format("more than {} values, aliases expanded", kMaxNodes),
          begins_as_result(text_) ? "this is a result; give the file that it was made from" : "");
    }
  }
  void check_depth(std::size_t depth, const YAML::Mark& mark) const {
    if (depth > kMaxDepth) {
      throw InputError(at(mark), fmt::format("nested deeper than {} levels", kMaxDepth));
    }
  }
  void check_tag(const YAML::Mark& mark, const std::string& tag) const {
    if (tag.empty() || tag == "?" || tag == "!" || tag.starts_with("tag:yaml.org,2002:"))
      return;
    throw InputError(at(mark), fmt::format("the tag '{}' is not supported", tag));
  }

  YamlNode new_node(YamlNode::Kind kind, const YAML::Mark& mark) {
    charge(1, mark);
    YamlNode node;
    node.kind = kind;
    node.where = at(mark);
    return node;
  }

  void open(YamlNode::Kind kind, const YAML::Mark& mark, const std::string& tag,
            YAML::anchor_t anchor) {
    check_tag(mark, tag);
    check_depth(open_.size() + 1, mark);
    open_.push_back({new_node(kind, mark), anchor, false, {}, {}});
  }
  void close() {
    Open closed = std::move(open_.back());
    open_.pop_back();
    add(std::move(closed.node), closed.anchor);
  }

  void add(YamlNode node, YAML::anchor_t anchor) {
    if (anchor != 0) {
      const std::size_t nodes = count_nodes(node);
      nodes_ += nodes; // the copy kept for aliases
      anchors_[anchor] = {node, nodes, depth_of(node)};
    }
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = open_.back();
    if (parent.node.kind == YamlNode::Kind::sequence) {
      parent.node.items.push_back(std::move(node));
    } else if (!parent.has_key) {
      if (node.kind != YamlNode::Kind::scalar) {
        throw InputError(node.where, "the key of a map must be a name or a number");
      }
      parent.has_key = true;
      parent.key = std::move(node.scalar);
      parent.key_where = std::move(node.where);
    } else {
      parent.has_key = false;
      parent.node.entries.push_back(
          {std::move(parent.key), std::move(parent.key_where), std::move(node)});
    }
  }

  std::string_view text_;
  const std::string& origin_;
  int documents_ = 0;
  std::size_t nodes_ = 0;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Anchored> anchors_;
  YamlNode root_;
};

/// Length of the well-formed UTF-8 character at the start of the text; 0 if it is malformed.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80)
    return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length)
    return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80)
      return 0;
  }
  if ((lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xED && byte(1) > 0x9F))
    return 0;
  if ((lead == 0xF0 && byte(1) < 0x90) || (lead == 0xF4 && byte(1) > 0x8F))
    return 0;
  return length;
}

void check_bytes(std::string_view text, const std::string& origin) {
  SourceLoc where{origin, 1, 1, {}};
  if (const auto format = binary_format(text))
    throw InputError({origin}, fmt::format("this is {}, not a text file", format->name),
                     format->hint);
  if (text.size() > kMaxBytes)
    throw InputError({origin, 0, 0, {}}, "larger than 64 MiB");
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text.substr(i));
    if (length == 0)
      throw InputError(where, "not UTF-8 text");
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') || byte == 0x7F) {
      throw InputError(where, fmt::format("control byte 0x{:02x}: this is not a text file", byte));
    }
    where.column = byte == '\n' ? 1 : where.column + 1;
    where.line += byte == '\n' ? 1 : 0;
    i += length;
  }
}

/// Place of the first tab in the indentation of the lines up to `last`; nullopt without a tab.
std::optional<SourceLoc> tab_before(std::string_view text, int last, const std::string& origin) {
  for (int line = 1; line <= last && !text.empty(); ++line) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view whole = text.substr(0, end);
    const std::string_view space = whole.substr(0, whole.find_first_not_of(" \t\r"));
    if (const std::size_t tab = space.find('\t'); tab != space.npos && space.size() < whole.size())
      return SourceLoc{origin, line, static_cast<int>(tab) + 1, {}};
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return std::nullopt;
}

[[noreturn]] void report_syntax(const YAML::Exception& error, std::string_view text,
                                const std::string& origin) {
  if (const auto tab = tab_before(text, error.mark.line + 1, origin))
    throw InputError(*tab, "not valid YAML: this line is indented with a tab",
                     "YAML forbids tabs for indentation; use spaces");
  throw InputError({origin, error.mark.line + 1, error.mark.column + 1, {}},
                   fmt::format("not valid YAML: {}", error.msg));
}

} // namespace

YamlNode parse_yaml(std::string_view text, const std::string& origin) {
  check_bytes(text, origin);
  TreeBuilder builder(text, origin);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    report_syntax(error, text, origin);
  }
  YamlNode root = builder.take();
  if (root.where.origin.empty())
    root.where = {origin, 1, 1, {}};
  return root;
}

YamlNode load_yaml(const std::string& path) {
  return parse_yaml(read_file(path, kMaxBytes), path);
}

} // namespace monet
