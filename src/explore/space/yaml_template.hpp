// YAML trees with expressions: "${...}" in scalars, and items of sequences that are repeated
// (`for:`) or conditional (`if:`).
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
  /// Compiles a tree. `names` are the names of the slots; counters of `for:` follow them. Adds
  /// errors to `problems`.
  YamlTemplate(const YamlNode& node, const std::vector<std::string>& names, ProblemList& problems);

  /// The tree for these values. Throws InputError if an expression has no value, or the tree would
  /// have more than a million nodes.
  YamlNode expand(const Values& values) const;
  /// Adds the slots that the tree depends on, including the slots of its counters.
  void add_slots(std::set<std::size_t>& slots) const { add_slots(root_, slots); }

private:
  struct Text { ///< pieces[0] expressions[0] pieces[1] ...
    std::vector<std::string> pieces;
    std::vector<Expression> expressions;
  };
  struct Counter {
    std::string name;
    std::optional<Expression> first; ///< empty: 0
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

/// The tree as YAML text that parses to the same tree.
std::string yaml_text(const YamlNode& node);

/// Whether a section contains an expression or `variants:`.
bool is_varied(const YamlNode& section);

/// A section of a space file that differs between designs. It may contain expressions, and
/// `variants:`, which replaces keys of the section depending on the value of a parameter.
class SectionTemplate {
public:
  SectionTemplate() = default;
  /// Compiles a section, which must be a map. `names` are the names of the slots, `parameters`
  /// first. Adds errors to `problems`: variants must name a parameter and all of its values.
  SectionTemplate(const YamlNode& node, const std::vector<std::string>& names,
                  const std::vector<Parameter>& parameters, ProblemList& problems);

  /// The section's keys overlaid with those of the variants (see overlaid()), in file order. Throws
  /// InputError if an expression has no value.
  YamlNode expand(const Values& values) const;
  void add_slots(std::set<std::size_t>& slots) const;

private:
  struct Choice {
    std::size_t slot = 0;                           ///< of the parameter
    std::map<std::string, YamlTemplate> by_value{}; ///< by the value's text
  };
  Choice choice(const YamlNode::Entry& entry, const std::vector<std::string>& names,
                const std::vector<Parameter>& parameters, ProblemList& problems) const;

  YamlTemplate base_;
  std::vector<Choice> choices_;
};

} // namespace monet
