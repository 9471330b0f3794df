// Compiles and expands YAML trees with expressions, and writes YAML text. The readers of space
// files and Space use this.
#include "explore/space/yaml_template.hpp"

#include "base/shared/text.hpp"
#include "base/shared/yaml_overlay.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace monet {

namespace {

constexpr std::int64_t kMaxNodes = 1'000'000;

} // namespace

struct YamlTemplate::Compiler {
  std::vector<std::string> names;
  ProblemList& problems;

  Expression expression(const YamlNode& node) {
    if (node.kind != YamlNode::Kind::scalar) {
      problems.add(node.where, "expected an expression");
      return Expression::parse("0", node.where, names, problems);
    }
    return Expression::parse(node.scalar, node.where, names, problems);
  }

  Text text(const YamlNode& node) {
    Text text;
    std::string_view rest = node.scalar;
    for (std::size_t open = rest.find("${"); open != std::string_view::npos;
         open = rest.find("${")) {
      const std::size_t close = rest.find('}', open);
      if (close == std::string_view::npos) {
        problems.add(node.where, "'${' without '}'");
        break;
      }
      text.pieces.emplace_back(rest.substr(0, open));
      text.expressions.push_back(
          Expression::parse(rest.substr(open + 2, close - open - 2), node.where, names, problems));
      rest.remove_prefix(close + 1);
    }
    text.pieces.emplace_back(rest);
    return text;
  }

  void counter(const YamlNode::Entry& entry, Node& out) {
    if (!is_name(entry.key))
      problems.add(entry.key_where, fmt::format("'{}' is not a name for a counter", entry.key));
    if (const YamlNode& node = entry.value; node.kind == YamlNode::Kind::sequence) {
      if (node.items.size() != 2) {
        problems.add(node.where, "expected a count, or [first, end]");
        return;
      }
      out.counters.push_back({entry.key, expression(node.items[0]), expression(node.items[1])});
    } else {
      out.counters.push_back({entry.key, std::nullopt, expression(node)});
    }
    names.push_back(entry.key);
  }

  /// Compiles an item of a sequence, in which the keys `for`, `if` and `value` are directives.
  Node item(const YamlNode& node) {
    if (node.kind != YamlNode::Kind::map)
      return compile(node, false);
    const std::size_t known = names.size();
    Node out;
    const YamlNode* value = nullptr;
    for (const YamlNode::Entry& entry : node.entries) {
      if (entry.key != "for")
        continue;
      if (entry.value.kind != YamlNode::Kind::map || entry.value.entries.empty())
        problems.add(entry.value.where, "expected counters, like {i: 4}");
      for (const YamlNode::Entry& one : entry.value.entries)
        counter(one, out);
    }
    for (const YamlNode::Entry& entry : node.entries) {
      if (entry.key == "if")
        out.condition = expression(entry.value);
      else if (entry.key == "value")
        value = &entry.value;
    }
    Node body = value != nullptr ? compile(*value, false) : compile(node, true);
    if (value != nullptr &&
        node.entries.size() > 1 + (out.condition ? 1U : 0U) + (out.counters.empty() ? 0U : 1U))
      problems.add(node.where, "an item with 'value' may only have 'for' and 'if' in addition");
    std::erase_if(body.entries, [&](const auto& entry) {
      return value == nullptr && (entry.key == "for" || entry.key == "if");
    });
    body.counters = std::move(out.counters);
    body.condition = std::move(out.condition);
    names.resize(known);
    return body;
  }

  Node compile(const YamlNode& node, bool is_item) { // recursion: YAML depth is limited
    Node out;
    out.kind = node.kind;
    out.quoted = node.quoted;
    out.where = node.where;
    if (node.kind == YamlNode::Kind::scalar)
      out.text = text(node);
    for (const YamlNode& one : node.items)
      out.items.push_back(item(one));
    for (const YamlNode::Entry& entry : node.entries) {
      const bool ours = entry.key == "for" || entry.key == "if";
      if (ours && !is_item)
        problems.add(entry.key_where,
                     fmt::format("'{}' belongs into an item of a list", entry.key));
      out.entries.push_back(
          {entry.key, entry.key_where, ours ? Node{} : compile(entry.value, false)});
    }
    return out;
  }
};

struct YamlTemplate::Expander {
  Values values;
  std::int64_t nodes = 0;

  void count(const Node& node) {
    if (++nodes > kMaxNodes)
      throw InputError(node.where, fmt::format("expands to more than {} nodes", kMaxNodes));
  }

  YamlNode expand(const Node& node) {
    count(node);
    YamlNode out;
    out.kind = node.kind;
    // Quotes around an expression only protect its braces from YAML.
    out.quoted = node.quoted && node.text.expressions.empty();
    out.where = node.where;
    if (node.kind == YamlNode::Kind::scalar) {
      out.scalar = node.text.pieces.front();
      for (std::size_t i = 0; i < node.text.expressions.size(); ++i)
        out.scalar += node.text.expressions[i].evaluate(values).text + node.text.pieces[i + 1];
    }
    out.items.reserve(node.items.size());
    for (const Node& item : node.items)
      repeat(item, 0, out.items);
    out.entries.reserve(node.entries.size());
    for (const auto& [key, key_where, value] : node.entries)
      out.entries.push_back({key, key_where, expand(value)});
    return out;
  }

  void repeat(const Node& item, std::size_t counter, std::vector<YamlNode>& out) {
    if (counter == item.counters.size()) {
      if (!item.condition || item.condition->truth(values))
        out.push_back(expand(item));
      return;
    }
    const Counter& range = item.counters[counter];
    const std::int64_t first = range.first ? range.first->count(values, kMaxNodes) : 0;
    const std::int64_t end = range.end.count(values, kMaxNodes);
    values.push_back(number_value(0));
    for (std::int64_t i = first; i < end; ++i) {
      count(item);
      values.back() = number_value(static_cast<double>(i));
      repeat(item, counter + 1, out);
    }
    values.pop_back();
  }
};

YamlTemplate::YamlTemplate(const YamlNode& node, const std::vector<std::string>& names,
                           ProblemList& problems)
    : root_(Compiler{names, problems}.compile(node, false)) {}

YamlNode YamlTemplate::expand(const Values& values) const {
  return Expander{values}.expand(root_);
}

void YamlTemplate::add_slots(const Node& node, std::set<std::size_t>& slots) { // depth as YAML
  for (const Expression& expression : node.text.expressions)
    expression.add_slots(slots);
  for (const Counter& counter : node.counters) {
    if (counter.first)
      counter.first->add_slots(slots);
    counter.end.add_slots(slots);
  }
  if (node.condition)
    node.condition->add_slots(slots);
  for (const Node& item : node.items)
    add_slots(item, slots);
  for (const Entry& entry : node.entries)
    add_slots(entry.value, slots);
}

namespace {

std::string scalar_text(const std::string& text, bool quoted) {
  const bool negative = text.size() > 1 && text.front() == '-' && text[1] >= '0' && text[1] <= '9';
  const bool plain =
      !quoted && !text.empty() && text.front() != ' ' && text.back() != ' ' &&
      std::ranges::all_of(text,
                          [](char c) {
                            return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                                   (c >= '0' && c <= '9') ||
                                   std::string_view("_./+, ").find(c) != std::string_view::npos ||
                                   c == '-';
                          }) &&
      (negative || text.front() != '-') && text.front() != ',' && text != "null" &&
      text != "Null" && text != "NULL";
  if (plain)
    return text;
  return yaml_quoted(text);
}

constexpr std::size_t kLineWidth = 100;

/// A node as flow-style YAML on one line. The text is cut off once it exceeds kLineWidth.
std::string flow(const YamlNode& node) { // recursion: YAML depth is limited
  if (node.kind == YamlNode::Kind::null)
    return "null";
  const auto part = [](const std::string& text, bool quoted) { // an unquoted comma would split it
    return scalar_text(text, quoted || text.find(',') != std::string::npos);
  };
  if (node.kind == YamlNode::Kind::scalar)
    return part(node.scalar, node.quoted);
  const bool list = node.kind == YamlNode::Kind::sequence;
  std::string out(1, list ? '[' : '{');
  for (const YamlNode& item : node.items) {
    out += (out.size() > 1 ? ", " : "") + flow(item);
    if (out.size() > kLineWidth)
      break; // already too long
  }
  for (const YamlNode::Entry& entry : node.entries) {
    out += (out.size() > 1 ? ", " : "") + part(entry.key, false) + ": " + flow(entry.value);
    if (out.size() > kLineWidth)
      break;
  }
  return out + (list ? ']' : '}');
}

void append(const YamlNode& node, std::size_t indent, std::string& out) { // depth as YAML
  const std::string margin(indent, ' ');
  const auto child = [&](const YamlNode& value) {
    const std::string line = flow(value);
    if (value.kind == YamlNode::Kind::scalar || line.size() <= kLineWidth) {
      out += ' ' + line + '\n';
    } else {
      out += '\n';
      append(value, indent + 2, out);
    }
  };
  switch (node.kind) {
  case YamlNode::Kind::null:
    out += "null";
    return;
  case YamlNode::Kind::scalar:
    out += scalar_text(node.scalar, node.quoted);
    return;
  case YamlNode::Kind::sequence:
    if (node.items.empty())
      out += "[]";
    for (const YamlNode& item : node.items) {
      out += margin + "-";
      child(item);
    }
    return;
  case YamlNode::Kind::map:
    if (node.entries.empty())
      out += "{}";
    for (const YamlNode::Entry& entry : node.entries) {
      out += margin + scalar_text(entry.key, false) + ":";
      child(entry.value);
    }
    return;
  }
}

} // namespace

std::string yaml_text(const YamlNode& node) {
  std::string out;
  append(node, 0, out);
  return out;
}

namespace {

constexpr std::string_view kVariants = "variants";

bool has_expression(const YamlNode& node) { // recursion: YAML depth is limited
  return (node.kind == YamlNode::Kind::scalar && node.scalar.find("${") != std::string::npos) ||
         std::ranges::any_of(node.items, has_expression) ||
         std::ranges::any_of(node.entries, [](const YamlNode::Entry& entry) {
           return has_expression(entry.value);
         });
}

} // namespace

bool is_varied(const YamlNode& section) {
  const auto variants = std::ranges::find(section.entries, kVariants, &YamlNode::Entry::key);
  return variants != section.entries.end() || has_expression(section);
}

SectionTemplate::SectionTemplate(const YamlNode& node, const std::vector<std::string>& names,
                                 const std::vector<Parameter>& parameters, ProblemList& problems) {
  YamlMap map(node, problems); // reports duplicate keys
  if (const YamlNode* variants = map.find(kVariants)) {
    const YamlMap twice(*variants, problems);
    for (const YamlNode::Entry& entry : variants->entries)
      choices_.push_back(choice(entry, names, parameters, problems));
  }
  YamlNode base = node;
  std::erase_if(base.entries, [](const YamlNode::Entry& entry) { return entry.key == kVariants; });
  base_ = YamlTemplate(base, names, problems);
}

SectionTemplate::Choice SectionTemplate::choice(const YamlNode::Entry& entry,
                                                const std::vector<std::string>& names,
                                                const std::vector<Parameter>& parameters,
                                                ProblemList& problems) const {
  Choice found;
  const auto parameter = std::ranges::find(parameters, entry.key, &Parameter::name);
  if (parameter == parameters.end()) {
    problems.add(entry.key_where, fmt::format("'{}' is not a parameter", entry.key),
                 nearest_name_hint(entry.key, names_of(parameters)));
    return found;
  }
  found.slot = static_cast<std::size_t>(parameter - parameters.begin());
  std::vector<std::string> values;
  for (const ParameterValue& value : parameter->values)
    values.push_back(value.text);
  const YamlMap twice(entry.value, problems);
  for (const YamlNode::Entry& one : entry.value.entries) {
    if (std::ranges::find(values, one.key) == values.end())
      problems.add(one.key_where, fmt::format("'{}' is not a value of '{}'", one.key, entry.key),
                   nearest_name_hint(one.key, values));
    if (one.value.kind != YamlNode::Kind::map && one.value.kind != YamlNode::Kind::null)
      problems.add(one.value.where, "expected the keys in which it differs");
    else
      found.by_value.emplace(one.key, YamlTemplate(one.value, names, problems));
  }
  for (const std::string& value : values) {
    if (entry.value.kind == YamlNode::Kind::map && !found.by_value.contains(value))
      problems.add(entry.key_where,
                   fmt::format("there is nothing for the value '{}' of '{}'", value, entry.key),
                   "use {} if nothing differs");
  }
  return found;
}

YamlNode SectionTemplate::expand(const Values& values) const {
  YamlNode section = base_.expand(values);
  for (const Choice& choice : choices_) {
    const auto over = choice.by_value.find(values.at(choice.slot).text);
    internal_check(over != choice.by_value.end(), "a value without its variant");
    section = overlaid(section, over->second.expand(values));
  }
  return section;
}

void SectionTemplate::add_slots(std::set<std::size_t>& slots) const {
  base_.add_slots(slots);
  for (const Choice& choice : choices_) {
    slots.insert(choice.slot);
    for (const auto& [value, over] : choice.by_value)
      over.add_slots(slots);
  }
}

} // namespace monet
