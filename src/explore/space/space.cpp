// Derives the values, chip, settings and files of a design from its space. Evaluators and the
// export of designs call this.
#include "monet/explore/space.hpp"

#include "base/shared/text.hpp"
#include "base/shared/yaml_overlay.hpp"
#include "explore/space/mixed_radix.hpp"
#include "explore/space/template.hpp"

#include "monet/hardware/read_hardware.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <list>

namespace monet {

std::uint64_t Space::size() const {
  std::uint64_t size = 1; // cannot overflow: the reader limits the size
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

DesignId Space::first_design() const {
  constexpr DesignId kTries = 4096;
  for (DesignId id = 0; id < std::min<DesignId>(size(), kTries); ++id) {
    if (broken_constraint(id).empty())
      return id;
  }
  return 0;
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

std::vector<Values> Space::Template::ways(const Space& space, std::set<std::size_t> slots,
                                          std::size_t most) const {
  const std::size_t parameters = space.parameters.size();
  for (std::size_t d = derived.size(); d-- > 0;) { // later ones may use earlier ones
    if (slots.contains(parameters + d))
      derived[d].value.add_slots(slots);
  }
  std::vector<Values> ways{Values(parameters + derived.size(), number_value(0))};
  for (std::size_t p = 0; p < parameters; ++p) {
    if (!slots.contains(p))
      continue;
    const std::vector<ParameterValue>& own = space.parameters[p].values;
    if (ways.size() * own.size() > most)
      return {};
    std::vector<Values> more;
    for (const Values& way : ways) {
      for (const ParameterValue& value : own)
        more.emplace_back(way)[p] = value;
    }
    ways = std::move(more);
  }
  for (Values& way : ways) {
    for (std::size_t d = 0; d < derived.size(); ++d) {
      if (slots.contains(parameters + d))
        way[parameters + d] = derived[d].value.evaluate(way);
    }
  }
  return ways;
}

YamlNode Space::Template::recipe(const Values& values) const {
  YamlNode recipe = accuracy->of(values);
  const auto entry = [&](std::string_view key) {
    return std::ranges::find(recipe.entries, key, &YamlNode::Entry::key);
  };
  const auto add = [&](const char* key, YamlNode value) {
    recipe.entries.push_back({key, recipe.where, std::move(value)});
  };
  YamlNode trained = training.of(values);
  if (const auto own = entry("training"); own == recipe.entries.end())
    add("training", std::move(trained));
  else
    own->value = overlaid(trained, own->value);
  const YamlNode studied = workload.of(values);
  const bool has_network = entry("network") != recipe.entries.end();
  for (const YamlNode::Entry& one : studied.entries) {
    const bool is_batch = one.key == "batch" && entry("batch") == recipe.entries.end();
    if (!has_network && (one.key == "network" || is_batch))
      recipe.entries.push_back(one);
  }
  YamlNode scalar;
  scalar.kind = YamlNode::Kind::scalar;
  scalar.where = recipe.where;
  scalar.scalar = "formats";
  add("arithmetic", scalar);
  scalar.scalar = "0";
  add("evaluate_every", scalar);
  return recipe;
}

YamlNode Space::Template::system_file(const Space& space, DesignId id, const Values& values) const {
  YamlNode root = system.expand(values);
  for (YamlNode::Entry& entry : root.entries) {
    if (entry.key != "cores" || entry.value.kind != YamlNode::Kind::sequence)
      continue;
    YamlNode by_id{.kind = YamlNode::Kind::map, .where = entry.value.where};
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

YamlNode core_named(const Space::Template& made_of, const std::string& name, const SourceLoc& where,
                    const Values& values) {
  if (const auto found = made_of.cores.find(name); found != made_of.cores.end()) {
    const Space::Template::CoreTemplate& core = found->second;
    const YamlNode written = core.core.expand(values);
    return core.is_path ? core.files.at(written.scalar).expand(values) : written;
  }
  std::vector<std::string> names;
  for (const auto& [known, core] : made_of.cores)
    names.push_back(known);
  throw InputError(where, fmt::format("no core '{}' under 'cores:'", name),
                   nearest_name_hint(name, names));
}

using Texts = std::vector<std::pair<std::string, std::string>>;

/// Calls `name` with the node of every core file's name in a system file.
template <class Name>
void each_core_name(YamlNode& system, const Name& name) {
  for (YamlNode::Entry& entry : system.entries) {
    if (entry.key == "offchip_core" && entry.value.kind == YamlNode::Kind::scalar)
      name(entry.value);
    if (entry.key != "cores")
      continue;
    for (YamlNode::Entry& core : entry.value.entries)
      name(core.value);
  }
}

/// Names and texts of a system file and its core files, renamed to lie in one folder.
Texts files_of(const Space::Template::SystemFile& system) {
  Texts texts;
  std::map<std::string, std::string> file_of; // by the name in the system file
  YamlNode root = system.root;
  each_core_name(root, [&](YamlNode& name) {
    const auto [known, is_new] = file_of.emplace(name.scalar, "");
    if (is_new) {
      std::string& file = known->second;
      file = std::filesystem::path(name.scalar).filename().string();
      while (std::ranges::any_of(texts, [&](const auto& text) { return text.first == file; }))
        file.insert(0, "other_");
      texts.emplace_back(file, yaml_text(system.cores.at(name.scalar)));
    }
    name.scalar = known->second;
  });
  texts.insert(texts.begin(), {"system.yaml", yaml_text(root)});
  return texts;
}

} // namespace

const Space::Template::SystemFile& Space::Template::chosen_system(const Values& values) const {
  return systems.at(system.expand(values).scalar);
}

Chip Space::chip(DesignId id) const {
  internal_check(made_of != nullptr, "a space without a template");
  const Values values = made_of->values(*this, id);
  if (made_of->system_is_path) {
    const Template::SystemFile& system = made_of->chosen_system(values);
    return make_chip(system.root, system.path,
                     [&](const std::string& core, const SourceLoc&) -> const YamlNode& {
                       return system.cores.at(core);
                     });
  }
  std::list<YamlNode> core_files;
  const NodeOpener open = [&](const std::string& core, const SourceLoc& where) -> const YamlNode& {
    return core_files.emplace_back(core_named(*made_of, core, where, values));
  };
  return make_chip(made_of->system_file(*this, id, values), origin, open);
}

std::vector<std::pair<std::string, std::string>> Space::hardware_files(DesignId id) const {
  internal_check(made_of != nullptr, "a space without a template");
  const Values values = made_of->values(*this, id);
  if (made_of->system_is_path)
    return files_of(made_of->chosen_system(values));
  YamlNode system = made_of->system_file(*this, id, values);
  Texts texts;
  each_core_name(system, [&](YamlNode& core_name) {
    const std::string file = core_name.scalar + ".yaml";
    const YamlNode core = core_named(*made_of, core_name.scalar, core_name.where, values);
    core_name.scalar = file;
    const auto same = [&](const auto& known) { return known.first == file; };
    if (std::ranges::none_of(texts, same))
      texts.emplace_back(file, yaml_text(core));
  });
  texts.insert(texts.begin(), {"system.yaml", yaml_text(system)});
  return texts;
}

StepSettings Space::settings(DesignId id) const {
  StepSettings settings = workload;
  if (made_of == nullptr || (!made_of->workload.varied && !made_of->training.varied))
    return settings;
  const Values values = made_of->values(*this, id);
  ProblemList problems;
  if (made_of->workload.varied) {
    settings.network_options = {};
    read_network_section(made_of->workload.of(values), origin, settings, problems);
  }
  if (made_of->training.varied)
    settings.training = read_training_options(made_of->training.of(values), problems);
  problems.throw_if_any();
  return settings;
}

std::string Space::settings_key(DesignId id) const {
  std::string key;
  if (made_of == nullptr)
    return key;
  for (const Template::VariedSection* section : {&made_of->workload, &made_of->training}) {
    if (section->varied)
      key += canonical_text(section->of(made_of->values(*this, id)));
  }
  return key;
}

std::optional<TrainStudy> Space::short_training(DesignId id) const {
  if (made_of == nullptr || !made_of->accuracy)
    return std::nullopt;
  return train_study_of(made_of->recipe(made_of->values(*this, id)), origin);
}

} // namespace monet
