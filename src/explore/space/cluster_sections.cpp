// Reads and checks the sections `cluster:` and `parallel:` of a space file. The reader of space
// files (reader.cpp) calls this.
#include "explore/space/sections.hpp"

#include "monet/base/files.hpp"
#include "monet/cluster/kernel_table.hpp"
#include "monet/explore/space.hpp"
#include "monet/explore/step_settings.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <set>

namespace monet {

namespace {

constexpr std::size_t kMaxClusters = 10'000;    ///< checked for the files that they name
constexpr std::size_t kMaxCheckedValues = 1000; ///< of a parameter

const YamlNode* value_of(const YamlNode& node, std::string_view key) {
  const auto entry = std::ranges::find(node.entries, key, &YamlNode::Entry::key);
  return entry == node.entries.end() ? nullptr : &entry->value;
}

/// Reads the cluster files that a path may name.
void read_cluster_files(const SpaceFile& file, const YamlNode& path) {
  ProblemList said; // reported with the whole section
  each_path(file, YamlTemplate(path, file.names, said), path.where, [&](const std::string& name) {
    if (auto& files = file.made_of.clusters->files; !files.contains(name))
      files.emplace(name, load_yaml(resolve_beside(file.space.origin, name)));
  });
}

void read_cluster(const SpaceFile& file, const YamlNode& node) {
  Space::Template::ClusterTemplate& made = *file.made_of.clusters;
  if (node.kind == YamlNode::Kind::scalar) {
    read_cluster_files(file, node);
  } else if (node.kind != YamlNode::Kind::map) {
    file.problems.add(node.where, "expected a cluster file's path, or its keys");
    return;
  } else if (const YamlNode* path = value_of(node, "file")) {
    if (path->kind == YamlNode::Kind::scalar)
      read_cluster_files(file, *path);
    else
      file.problems.add(path->where, "expected a cluster file's path");
  }
  if (const YamlNode* device = value_of(node, "device"); device != nullptr && made.has_own_chip)
    file.problems.add(device->where, "'chip:' defines the devices", "leave out one of them");
  made.cluster = YamlTemplate(node, file.names, file.problems);
}

/// Checks values of `parallel:` that are constant or depend on one parameter, so that their errors
/// are reported before any design is built. Other values are checked with their designs.
void check_keys(const SpaceFile& file, const YamlNode& keys) {
  std::set<std::string> said;
  for (const YamlNode::Entry& entry : keys.entries) {
    ProblemList ignored; // the section's reader reports problems of expressions
    const YamlTemplate value(entry.value, file.names, ignored);
    std::set<std::size_t> slots;
    value.add_slots(slots);
    const bool of_parameter = slots.size() == 1 && *slots.begin() < file.space.parameters.size();
    if (entry.key == "variants" || !(slots.empty() || of_parameter) || !ignored.empty())
      continue;
    const std::size_t count =
        of_parameter ? file.space.parameters[*slots.begin()].values.size() : 1;
    for (std::size_t v = 0; v < std::min(count, kMaxCheckedValues); ++v) {
      Values values(file.names.size(), number_value(0));
      if (of_parameter)
        values[*slots.begin()] = file.space.parameters[*slots.begin()].values[v];
      ProblemList problems;
      try {
        YamlNode one = keys;
        one.entries = {{entry.key, entry.key_where, value.expand(values)}};
        if (one.entries.front().value.scalar != "rest")
          read_strategy(one, problems);
      } catch (const InputError&) { // an expression has no value; constraints may exclude the case
      }
      for (const InputProblem& problem : problems.problems()) {
        if (said.insert(problem.to_string()).second)
          file.problems.add(problem.where, problem.what, problem.hint);
      }
    }
  }
}

void read_parallel(const SpaceFile& file, const YamlNode& node) {
  if (node.kind != YamlNode::Kind::map) {
    file.problems.add(node.where, "expected how a step is divided, like 'data: rest'");
    return;
  }
  file.made_of.clusters->parallel = varied_section(file, node);
  check_keys(file, node);
  const YamlNode* variants = value_of(node, "variants");
  for (const YamlNode::Entry& parameter :
       variants != nullptr ? variants->entries : std::vector<YamlNode::Entry>{}) {
    for (const YamlNode::Entry& variant : parameter.value.entries)
      check_keys(file, variant.value);
  }
}

/// Slots on which a design's sections depend, except `parallel:`. Slots from `values` on are
/// counters of `for:` and are left out.
std::set<std::size_t> slots_of(const Space::Template& made_of, std::size_t values) {
  std::set<std::size_t> slots;
  made_of.clusters->cluster.add_slots(slots);
  made_of.workload.add_slots(slots);
  made_of.training.add_slots(slots);
  made_of.system.add_slots(slots);
  for (const auto& [name, core] : made_of.cores) {
    core.core.add_slots(slots);
    for (const auto& [path, file] : core.files)
      file.add_slots(slots);
  }
  slots.erase(slots.lower_bound(values), slots.end());
  return slots;
}

/// Collects the files that the clusters of a space name.
class NamedFiles {
public:
  explicit NamedFiles(const Space& space) : space_(space) {
    for (const auto& [name, root] : space.made_of->clusters->files)
      add_once(root.where.origin, files);
    std::set<std::size_t> slots;
    space.made_of->clusters->cluster.add_slots(slots);
    const std::vector<Values> ways = space.made_of->ways(space, slots, kMaxClusters);
    if (ways.empty())
      throw InputError({space.origin},
                       fmt::format("designs have more than {} different clusters", kMaxClusters));
    for (const Values& values : ways)
      read(values);
  }

  std::vector<std::string> files;
  bool has_tables = false; ///< whether any device is a kernel table

private:
  /// Adds the files of one cluster. Errors are ignored here: they are reported with its design.
  void read(const Values& values) {
    const FileOpener open = [&](const std::string& name, const SourceLoc& where) {
      FileText file{resolve_beside(where.origin, name), {}};
      file.text = read_file(file.path);
      add_once(file.path, files);
      return file;
    };
    try {
      const Cluster cluster =
          make_cluster(space_.made_of->clusters->said(space_, values).file, space_.origin, open);
      if (space_.made_of->clusters->has_own_chip)
        return;
      const std::string& path = cluster.device.path;
      has_tables = has_tables || cluster.device.kind == DeviceFile::Kind::table;
      if (!devices_.insert(path).second)
        return;
      if (cluster.device.kind == DeviceFile::Kind::table) {
        add_once(path, files);
        parse_kernel_table(read_file(path), path, open);
        return;
      }
      const Chip chip = read_cluster_device(cluster.device).chip.value();
      add_once(chip.origin, files);
      for (const Core& core : chip.cores)
        add_once(core.origin, files);
    } catch (const InputError&) {
    }
  }

  const Space& space_;
  std::set<std::string> devices_; ///< read so far
};

void check_first_design(const Space& space) {
  const DesignId id = space.first_design();
  if (!space.broken_constraint(id).empty())
    return;
  try {
    const DesignedCluster first = cluster_of(space, id);
    const ParallelStrategy strategy = strategy_of(space, id, first.cluster.devices);
    static_cast<void>(strategy);
  } catch (const InfeasibleError&) { // an infeasible design is a result, not an error
  }
  const Space::Template& made_of = *space.made_of;
  const YamlNode parallel = made_of.clusters->parallel.of(made_of.values(space, id));
  if (value_of(parallel, "global_batch") == nullptr)
    throw InputError(parallel.where, "'parallel' of a space needs 'global_batch'",
                     "only steps with the same number of samples can be compared");
}

} // namespace

void read_cluster_sections(const SpaceFile& file) {
  file.made_of.clusters = Space::Template::ClusterTemplate{};
  file.made_of.clusters->has_own_chip = file.map.has("chip");
  if (const YamlNode* cluster = file.map.require("cluster"))
    read_cluster(file, *cluster);
  if (const YamlNode* parallel = file.map.require("parallel"))
    read_parallel(file, *parallel);
  ClusterSettings settings;
  const YamlNode* workload = file.map.require("workload");
  if (workload != nullptr && !is_varied(*workload))
    read_cluster_workload(*workload, file.space.origin, settings, file.problems);
  const YamlNode* training = file.map.find("training");
  settings.training.emplace();
  if (training != nullptr && !is_varied(*training))
    read_cluster_training(*training, file.space.origin, settings, file.problems);
  static_cast<StepSettings&>(file.space.workload) = settings;
  read_trained_sections(file);
  if (const YamlNode* accuracy = file.map.find("accuracy"))
    file.problems.add(accuracy->where, "short trainings are of spaces of chips alone");
  file.space.workload.runs = {"training"};
  file.space.workload.metrics.assign(std::begin(kClusterMetrics), std::end(kClusterMetrics));
}

std::vector<std::string> check_cluster_sections(Space& space, Space::Template& made_of,
                                                const YamlNode* fronts) {
  made_of.clusters->slots = slots_of(made_of, space.parameters.size() + made_of.derived.size());
  check_first_design(space);
  NamedFiles named(space);
  using enum Objective;
  if (fronts == nullptr) {
    space.fronts = {{0, {latency, memory}}};
    if (!named.has_tables)
      space.fronts.insert(space.fronts.begin(),
                          {{0, {latency, energy}}, {0, {latency, energy, area}}});
  }
  for (const FrontRequest& front : space.fronts) {
    for (const Objective objective : front.objectives) {
      if (named.has_tables && (objective == energy || objective == area || objective == power))
        throw InputError(
            fronts->where,
            fmt::format("kernel tables have no {}: use latency or memory", name_of(objective)));
    }
  }
  return std::move(named.files);
}

} // namespace monet
