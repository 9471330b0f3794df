// A YAML tree with expressions in it: "${...}" in scalars, and items of sequences that appear
// several times (`for:`) or not always (`if:`).
#pragma once

#include "explore/space/expression.hpp"

#include "monet/base/yaml.hpp"

#include <cstddef>
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

} // namespace monet
