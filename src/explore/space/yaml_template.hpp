// A YAML tree with expressions in it: "${...}" in scalars, and items of sequences that appear
// several times (`for:`) or not always (`if:`).
#pragma once

#include "explore/space/expression.hpp"

#include "monet/base/yaml.hpp"

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace monet {

class YamlTemplate {
public:
  YamlTemplate() = default;
  /// `names` are the values' slots; counters of `for:` follow them. Problems are collected.
  YamlTemplate(const YamlNode& node, const std::vector<std::string>& names, ProblemList& problems);

  /// The tree with these values; InputError where an expression has none, or more than a million
  /// nodes would come of it.
  YamlNode expand(const Values& values) const;
  /// Adds those that the tree depends on; of counters the slots that they are given.
  void add_slots(std::set<std::size_t>& slots) const { add_slots(root_, slots); }

private:
  struct Text { ///< pieces[0] expressions[0] pieces[1] ...
    std::vector<std::string> pieces;
    std::vector<Expression> expressions;
  };
  struct Counter {
    std::string name;
    std::optional<Expression> first; ///< none: 0
    Expression end;
  };
  struct Entry;
  struct Node {
    YamlNode::Kind kind = YamlNode::Kind::null;
    bool quoted = false;
    SourceLoc where;
    Text text;
    std::vector<Counter> counters;
    std::optional<Expression> condition;
    std::vector<Node> items;
    std::vector<Entry> entries;
  };
  struct Entry {
    std::string key;
    SourceLoc key_where;
    Node value;
  };
  struct Compiler;
  struct Expander;

  static void add_slots(const Node& node, std::set<std::size_t>& slots);

  Node root_;
};

/// The tree as YAML text that parses to the same.
std::string yaml_text(const YamlNode& node);

/// Whether there is an expression or `variants:` in it.
bool is_varied(const YamlNode& section);

/// A section of a space file that differs from design to design: expressions in it, and
/// `variants:`, keys that values of a parameter put in place of the section's.
class SectionTemplate {
public:
  SectionTemplate() = default;
  /// A map. `names` are the values' slots, those of `parameters` first. Problems are collected:
  /// variants must name a parameter, and every one of its values.
  SectionTemplate(const YamlNode& node, const std::vector<std::string>& names,
                  const std::vector<Parameter>& parameters, ProblemList& problems);

  /// The section's keys with those of the variants over them, as overlaid() joins them, in the
  /// file's order. InputError where an expression has no value.
  YamlNode expand(const Values& values) const;
  void add_slots(std::set<std::size_t>& slots) const;

private:
  struct Choice {
    std::size_t slot = 0;                           ///< of the parameter
    std::map<std::string, YamlTemplate> by_value{}; ///< the value's text
  };
  Choice choice(const YamlNode::Entry& entry, const std::vector<std::string>& names,
                const std::vector<Parameter>& parameters, ProblemList& problems) const;

  YamlTemplate base_;
  std::vector<Choice> choices_;
};

} // namespace monet
