// Reads the system and core files that designs of a space may choose, and lists their paths. The
// reader of space files (reader.cpp) calls this.
#include "explore/space/sections.hpp"

#include "monet/base/files.hpp"
#include "monet/hardware/read_hardware.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <set>

namespace monet {

namespace {

constexpr std::size_t kMaxFiles = 1000;

/// The distinct values of a path expression over all designs.
std::set<std::string> texts_of(const SpaceFile& file, const YamlTemplate& path,
                               const SourceLoc& where) {
  std::set<std::string> texts;
  each_path(file, path, where, [&](const std::string& text) { texts.insert(text); });
  return texts;
}

/// Loads the core files that a system file names.
void read_cores_of(Space::Template::SystemFile& system, std::vector<std::string>& files) {
  const auto add = [&](const YamlNode& name) {
    if (name.kind != YamlNode::Kind::scalar || system.cores.contains(name.scalar))
      return; // the chip's reader reports a node that is not a name
    const std::string file = find_core_file(system.path, name.scalar, name.where);
    system.cores.emplace(name.scalar, load_yaml(file));
    add_once(file, files);
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

void each_path(const SpaceFile& file, const YamlTemplate& path, const SourceLoc& where,
               const std::function<void(const std::string& text)>& use) {
  std::set<std::size_t> slots;
  path.add_slots(slots);
  try {
    const std::vector<Values> ways = file.made_of.ways(file.space, slots, kMaxFiles);
    if (ways.empty())
      file.problems.add(where, fmt::format("the path may name more than {} files", kMaxFiles));
    for (const Values& values : ways)
      use(path.expand(values).scalar);
  } catch (const InputError& error) {
    file.problems.add(error.problems());
  }
}

void add_once(const std::string& path, std::vector<std::string>& files) {
  if (std::ranges::find(files, path) == files.end())
    files.push_back(path);
}

void read_core_files(const SpaceFile& file, Space::Template::CoreTemplate& core,
                     const SourceLoc& where, std::vector<std::string>& files) {
  for (const std::string& text : texts_of(file, core.core, where)) {
    const std::string path = resolve_beside(file.space.origin, text);
    files.push_back(path);
    try {
      core.files.emplace(text, YamlTemplate(load_yaml(path), file.names, file.problems));
    } catch (const InputError& error) {
      file.problems.add(error.problems());
    }
  }
}

void read_systems(const SpaceFile& file, const SourceLoc& where, std::vector<std::string>& files) {
  for (const std::string& text : texts_of(file, file.made_of.system, where)) {
    try {
      Space::Template::SystemFile system{resolve_beside(file.space.origin, text), {}};
      add_once(system.path, files);
      system.root = load_yaml(system.path);
      read_cores_of(system, files);
      file.made_of.systems.emplace(text, std::move(system));
    } catch (const InputError& error) {
      file.problems.add(error.problems());
    }
  }
}

} // namespace monet
