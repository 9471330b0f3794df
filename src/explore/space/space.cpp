#include "monet/explore/space.hpp"

#include "explore/space/mixed_radix.hpp"
#include "explore/space/template.hpp"

#include "monet/base/text.hpp"
#include "monet/hardware/read_hardware.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <list>

namespace monet {

std::uint64_t Space::size() const {
  std::uint64_t size = 1; // fits: the reader saw to it
  for (const Parameter& parameter : parameters)
    size *= parameter.values.size();
  return size;
}

std::vector<std::uint32_t> Space::choices(DesignId id) const {
  std::vector<std::uint32_t> choices = mixed_radix_digits(
      id, parameters.size(), [&](std::size_t i) { return parameters[i].values.size(); });
  internal_check(id == 0, "a design beyond the space");
  return choices;
}

DesignId Space::id_of(const std::vector<std::uint32_t>& choices) const {
  internal_check(choices.size() == parameters.size(), "choices of another space");
  for (std::size_t i = 0; i < parameters.size(); ++i)
    internal_check(choices[i] < parameters[i].values.size(),
                   "a choice beyond a parameter's values");
  return mixed_radix_number(choices, [&](std::size_t i) { return parameters[i].values.size(); });
}

std::string Space::broken_constraint(DesignId id) const {
  if (made_of == nullptr || made_of->constraints.empty())
    return {};
  const Values values = made_of->values(*this, id);
  for (const Expression& constraint : made_of->constraints) {
    if (!constraint.truth(values))
      return constraint.text();
  }
  return {};
}

Values Space::Template::values(const Space& space, DesignId id) const {
  Values values;
  values.reserve(space.parameters.size() + derived.size() + 4);
  const std::vector<std::uint32_t> choices = space.choices(id);
  for (std::size_t i = 0; i < choices.size(); ++i)
    values.push_back(space.parameters[i].values[choices[i]]);
  for (const Derived& one : derived)
    values.push_back(one.value.evaluate(values));
  return values;
}

YamlNode Space::Template::system_file(const Space& space, DesignId id, const Values& values) const {
  YamlNode root = system.expand(values);
  for (YamlNode::Entry& entry : root.entries) {
    if (entry.key != "cores" || entry.value.kind != YamlNode::Kind::sequence)
      continue;
    YamlNode by_id;
    by_id.kind = YamlNode::Kind::map;
    by_id.where = entry.value.where;
    for (YamlNode& core : entry.value.items) {
      if (core.kind != YamlNode::Kind::scalar)
        throw InputError(core.where, "expected the name of a core, or {for: ..., value: name}");
      const SourceLoc where = core.where;
      by_id.entries.push_back({std::to_string(by_id.entries.size()), where, std::move(core)});
    }
    entry.value = std::move(by_id);
  }
  YamlNode name;
  name.kind = YamlNode::Kind::scalar;
  name.quoted = true;
  name.scalar = fmt::format("{} {}", space.name, id);
  name.where = root.where;
  root.entries.insert(root.entries.begin(), {"name", root.where, std::move(name)});
  return root;
}

namespace {

const YamlTemplate& core_named(const Space::Template& made_of, const std::string& name,
                               const SourceLoc& where) {
  const auto found = made_of.cores.find(name);
  if (found != made_of.cores.end())
    return found->second;
  std::vector<std::string> names;
  for (const auto& [known, core] : made_of.cores)
    names.push_back(known);
  throw InputError(where, fmt::format("no core '{}' under 'cores:'", name),
                   nearest_name_hint(name, names));
}

} // namespace

Chip Space::chip(DesignId id) const {
  internal_check(made_of != nullptr, "a space without a template");
  const Values values = made_of->values(*this, id);
  std::list<YamlNode> core_files;
  const NodeOpener open = [&](const std::string& core, const SourceLoc& where) -> const YamlNode& {
    return core_files.emplace_back(core_named(*made_of, core, where).expand(values));
  };
  return make_chip(made_of->system_file(*this, id, values), origin, open);
}

std::vector<std::pair<std::string, std::string>> Space::hardware_files(DesignId id) const {
  internal_check(made_of != nullptr, "a space without a template");
  const Values values = made_of->values(*this, id);
  YamlNode system = made_of->system_file(*this, id, values);
  std::vector<std::pair<std::string, std::string>> texts;
  const auto add = [&](YamlNode& core_name) {
    const std::string file = core_name.scalar + ".yaml";
    const YamlTemplate& core = core_named(*made_of, core_name.scalar, core_name.where);
    core_name.scalar = file;
    const auto same = [&](const auto& known) { return known.first == file; };
    if (std::ranges::none_of(texts, same))
      texts.emplace_back(file, yaml_text(core.expand(values)));
  };
  for (YamlNode::Entry& entry : system.entries) {
    if (entry.key == "offchip_core" && entry.value.kind == YamlNode::Kind::scalar)
      add(entry.value);
    if (entry.key != "cores")
      continue;
    for (YamlNode::Entry& core : entry.value.entries)
      add(core.value);
  }
  texts.insert(texts.begin(), {"system.yaml", yaml_text(system)});
  return texts;
}

} // namespace monet
