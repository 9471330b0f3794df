// A section of a space file that differs from design to design: expressions in it, and `variants:`,
// keys that values of a parameter put in place of the section's.
#pragma once

#include "explore/space/yaml_template.hpp"

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace monet {

/// Whether there is an expression or `variants:` in it.
bool is_varied(const YamlNode& section);

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
