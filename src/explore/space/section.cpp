#include "explore/space/section.hpp"

#include "base/shared/yaml_overlay.hpp"

#include "monet/base/text.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace monet {

namespace {

constexpr std::string_view kVariants = "variants";

bool has_expression(const YamlNode& node) { // as deep as YAML nests
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
  YamlMap map(node, problems); // tells what is there twice
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
    problems.add(entry.key_where, fmt::format("'{}' is no parameter", entry.key),
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
      problems.add(one.key_where, fmt::format("'{}' is no value of '{}'", one.key, entry.key),
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
                   "say {} where nothing differs");
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
