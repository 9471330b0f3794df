#include "explore/space/hardware_choice.hpp"

#include "monet/base/files.hpp"
#include "monet/hardware/read_hardware.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <set>

namespace monet {

namespace {

constexpr std::size_t kMostFiles = 1000;

void collect(const InputError& error, ProblemList& problems) {
  problems.add(error.problems());
}

/// What a path may come to, each text once.
std::set<std::string> texts_of(const YamlTemplate& path, const Space& space,
                               const Space::Template& made_of, const SourceLoc& where,
                               ProblemList& problems) {
  std::set<std::size_t> slots;
  path.add_slots(slots);
  std::set<std::string> texts;
  try {
    for (const Values& values : made_of.ways(space, slots, kMostFiles))
      texts.insert(path.expand(values).scalar);
    if (texts.empty())
      problems.add(where, fmt::format("the path may name more than {} files", kMostFiles));
  } catch (const InputError& error) {
    collect(error, problems);
  }
  return texts;
}

void add_file(const std::string& file, std::vector<std::string>& files) {
  if (std::ranges::find(files, file) == files.end())
    files.push_back(file);
}

/// Opens the core files that a system file names.
void read_cores_of(Space::Template::SystemFile& system, std::vector<std::string>& files) {
  const auto add = [&](const YamlNode& name) {
    if (name.kind != YamlNode::Kind::scalar || system.cores.contains(name.scalar))
      return; // what is wrong with it, the chip's reader says
    const std::string file = find_core_file(system.path, name.scalar, name.where);
    system.cores.emplace(name.scalar, load_yaml(file));
    add_file(file, files);
  };
  for (const YamlNode::Entry& entry : system.root.entries) {
    if (entry.key == "offchip_core")
      add(entry.value);
    if (entry.key != "cores")
      continue;
    for (const YamlNode::Entry& core : entry.value.entries)
      add(core.value);
  }
}

} // namespace

void read_core_files(const HalfReadSpace& of, Space::Template::CoreTemplate& core,
                     const SourceLoc& where, std::vector<std::string>& files,
                     ProblemList& problems) {
  for (const std::string& text : texts_of(core.core, of.space, of.made_of, where, problems)) {
    const std::string file = resolve_beside(of.space.origin, text);
    files.push_back(file);
    try {
      core.files.emplace(text, YamlTemplate(load_yaml(file), of.names, problems));
    } catch (const InputError& error) {
      collect(error, problems);
    }
  }
}

void read_systems(const Space& space, Space::Template& made_of, const SourceLoc& where,
                  std::vector<std::string>& files, ProblemList& problems) {
  for (const std::string& text : texts_of(made_of.system, space, made_of, where, problems)) {
    try {
      Space::Template::SystemFile system{resolve_beside(space.origin, text), {}};
      add_file(system.path, files);
      system.root = load_yaml(system.path);
      read_cores_of(system, files);
      made_of.systems.emplace(text, std::move(system));
    } catch (const InputError& error) {
      collect(error, problems);
    }
  }
}

} // namespace monet
