// Builds the cluster, workload and parallel strategy of a design from the sections of its space.
// The evaluator of clusters (evaluate/cluster_evaluator.cpp) and the file export use this.
#include "base/shared/checked.hpp"
#include "base/shared/yaml_overlay.hpp"
#include "explore/space/template.hpp"
#include "explore/space/yaml_template.hpp"

#include "monet/base/files.hpp"
#include "monet/explore/space.hpp"
#include "monet/explore/step_settings.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

namespace monet {

namespace {

YamlNode* find_in(YamlNode& node, std::string_view key) {
  const auto entry = std::ranges::find(node.entries, key, &YamlNode::Entry::key);
  return entry == node.entries.end() ? nullptr : &entry->value;
}

/// Removes a key from a map and returns its value; empty if the key is missing.
std::optional<YamlNode> take(YamlNode& node, std::string_view key) {
  const auto entry = std::ranges::find(node.entries, key, &YamlNode::Entry::key);
  if (entry == node.entries.end())
    return std::nullopt;
  YamlNode value = std::move(entry->value);
  node.entries.erase(entry);
  return value;
}

YamlNode text_node(std::string text, const SourceLoc& where) {
  YamlNode node;
  node.kind = YamlNode::Kind::scalar;
  node.where = where;
  node.scalar = std::move(text);
  return node;
}

void set(YamlNode& map, const std::string& key, YamlNode value) {
  map.kind = YamlNode::Kind::map;
  if (YamlNode* known = find_in(map, key))
    *known = std::move(value);
  else
    map.entries.push_back({key, map.where, std::move(value)});
}

FileText open_named(const std::string& name, const SourceLoc& where) {
  const std::string path = resolve_beside(where.origin, name);
  try {
    return {path, read_file(path)};
  } catch (const InputError& error) {
    throw InputError(where, fmt::format("cannot open the file that is named here: {}",
                                        error.problems().front().to_string()));
  }
}

const Space::Template::ClusterTemplate& clusters_of(const Space& space) {
  internal_check(is_of_clusters(space), "a space without clusters");
  return *space.made_of->clusters;
}

ClusterSettings cluster_settings(const Space& space, const Values& values) {
  ClusterSettings settings;
  ProblemList problems;
  read_cluster_workload(space.made_of->workload.of(values), space.origin, settings, problems);
  settings.training.emplace();
  const YamlNode training = space.made_of->training.of(values);
  if (training.kind != YamlNode::Kind::null)
    read_cluster_training(training, space.origin, settings, problems);
  problems.throw_if_any();
  return settings;
}

Chip chip_of_space(const Space& space, DesignId id) {
  Chip chip = space.chip(id);
  if (!(chip.frequency_hz > 0))
    throw InputError({space.origin},
                     "'chip:' has no frequency, so its cycles cannot be converted to time",
                     "add frequency_hz");
  return chip;
}

/// Replaces the degree `rest` by the number of devices divided by the other degrees. Throws
/// InfeasibleError if they do not divide it, and InputError if several degrees are `rest`.
void fill_rest(YamlNode& parallel, std::int64_t devices) {
  YamlNode* rest = nullptr;
  std::string_view of;
  std::int64_t others = 1;
  std::string product;
  for (const AxisRole role : kDeviceRoles) {
    const std::string_view key = row_of(role).key;
    YamlNode* degree = find_in(parallel, key);
    if (degree != nullptr && degree->scalar == "rest") {
      if (rest != nullptr)
        throw InputError(degree->where,
                         fmt::format("'{}' and '{}' cannot both be the rest", of, key));
      rest = degree;
      of = key;
      continue;
    }
    product += (product.empty() ? "" : " * ") + std::string(key);
    ProblemList ignored; // read_strategy() reports problems of the value
    if (degree != nullptr)
      others = checked_multiply(
          others, std::max<std::int64_t>(1, as_integer(*degree, ignored).value_or(1)));
  }
  if (rest == nullptr)
    return;
  if (devices % others != 0)
    throw InfeasibleError(fmt::format("{} cannot be the rest: {} = {} does not divide {} devices",
                                      of, product, others, devices));
  rest->scalar = std::to_string(devices / others);
  rest->quoted = false;
}

} // namespace

Space::Template::ClusterTemplate::ClusterSections
Space::Template::ClusterTemplate::said(const Space& space, const Values& values) const {
  ClusterSections said;
  if (YamlNode own = cluster.expand(values); own.kind == YamlNode::Kind::scalar) {
    said.file = files.at(own.scalar);
  } else {
    for (const TableFigure& figure : kTableFigures) {
      if (const std::optional<YamlNode> figure_said = take(own, figure.key))
        said.figures.emplace_back(figure, *figure_said);
    }
    if (const std::optional<YamlNode> path = take(own, "file")) {
      said.devices = take(own, "devices");
      said.file = files.at(path->scalar);
      if (find_in(own, "device") != nullptr) // replaced as a whole: a table excludes a chip
        take(said.file, "device");
      if (find_in(own, "tiers") != nullptr) // tiers determine the number of devices
        take(said.file, "devices");
      said.file = overlaid(said.file, own);
    } else {
      if (find_in(own, "name") == nullptr)
        set(own, "name", text_node(space.name, own.where));
      said.file = std::move(own);
    }
  }
  if (has_own_chip) {
    YamlNode device;
    device.where = {space.origin, 1, 1, {}};
    set(device, "chip",
        text_node(std::filesystem::path(space.origin).filename().string(), device.where));
    set(said.file, "device", std::move(device));
  }
  return said;
}

bool is_of_clusters(const Space& space) {
  return space.made_of != nullptr && space.made_of->clusters.has_value();
}

std::string cluster_key(const Space& space, DesignId id) {
  std::string key;
  const Values values = space.made_of->values(space, id);
  for (const std::size_t slot : clusters_of(space).slots)
    key += fmt::format("{}{}:{},", values[slot].is_number ? "" : "'", values[slot].text.size(),
                       values[slot].text);
  return key;
}

DesignedCluster cluster_of(const Space& space, DesignId id) {
  const Space::Template::ClusterTemplate& made = clusters_of(space);
  const Values values = space.made_of->values(space, id);
  const auto said = made.said(space, values);
  ProblemList problems;
  std::optional<std::int64_t> devices;
  if (said.devices)
    devices = as_integer(*said.devices, problems);
  if (devices && (*devices < 1 || *devices > kMaxDevices))
    problems.add(said.devices->where, fmt::format("'devices' must be 1 to {}", kMaxDevices));
  std::vector<GivenFigure> figures;
  for (const auto& [figure, node] : said.figures) {
    if (const auto given = read_figure(figure, node, problems))
      figures.push_back(*given);
  }
  problems.throw_if_any();
  DesignedCluster found;
  found.cluster = make_cluster(said.file, space.origin, open_named);
  if (made.has_own_chip)
    found.device.chip = chip_of_space(space, id);
  else
    found.device = read_cluster_device(found.cluster.device);
  if (devices)
    found.cluster = with_devices(found.cluster, *devices);
  for (const GivenFigure& given : figures) {
    if (found.device.table) // figures do not apply to chips of the space
      set_figure(found.device, given);
  }
  const ClusterSettings settings = cluster_settings(space, values);
  found.workload = workload_of(settings);
  found.network = settings.network;
  return found;
}

ParallelStrategy strategy_of(const Space& space, DesignId id, std::int64_t devices) {
  YamlNode parallel = clusters_of(space).parallel.of(space.made_of->values(space, id));
  fill_rest(parallel, devices);
  ProblemList problems;
  const ParallelStrategy strategy = read_strategy(parallel, problems);
  problems.throw_if_any();
  return strategy;
}

namespace {

/// Rewrites a file name relative to `folder`.
void see_from(YamlNode* name, const std::string& folder) {
  if (name == nullptr || name->kind != YamlNode::Kind::scalar)
    return;
  name->scalar =
      std::filesystem::proximate(resolve_beside(name->where.origin, name->scalar), folder)
          .generic_string();
  name->quoted = true;
}

void see_device_from(YamlNode& node, const std::string& folder) {
  if (YamlNode* device = find_in(node, "device")) {
    see_from(find_in(*device, "table"), folder);
    see_from(find_in(*device, "chip"), folder);
  }
}

} // namespace

std::vector<std::pair<std::string, std::string>> cluster_files(const Space& space, DesignId id,
                                                               const std::string& folder) {
  const Space::Template::ClusterTemplate& made = clusters_of(space);
  const Values values = space.made_of->values(space, id);
  auto said = made.said(space, values);
  std::vector<std::pair<std::string, std::string>> texts;
  if (made.has_own_chip) {
    texts = space.hardware_files(id);
    find_in(*find_in(said.file, "device"), "chip")->scalar = texts.front().first;
  } else {
    see_device_from(said.file, folder);
  }
  for (const char* list : {"tiers", "unequal"}) {
    YamlNode* found = find_in(said.file, list);
    if (found == nullptr)
      continue;
    for (YamlNode& item : found->items) {
      see_from(find_in(item, "table"), folder);
      see_device_from(item, folder);
    }
  }
  texts.emplace_back("cluster.yaml", yaml_text(said.file));

  YamlNode experiment;
  const SourceLoc& where = said.file.where;
  set(experiment, "name", text_node(fmt::format("{}, design {}", space.name, id), where));
  YamlNode cluster;
  set(cluster, "file", text_node("cluster.yaml", where));
  if (said.devices)
    set(cluster, "devices", *said.devices);
  for (const auto& [figure, node] : said.figures)
    set(cluster, std::string(figure.key), node);
  set(experiment, "cluster", std::move(cluster));
  YamlNode workload = space.made_of->workload.of(values);
  see_from(find_in(workload, "network"), folder);
  set(experiment, "workload", std::move(workload));
  if (YamlNode training = space.made_of->training.of(values); training.kind != YamlNode::Kind::null)
    set(experiment, "training", std::move(training));
  YamlNode parallel = made.parallel.of(values);
  fill_rest(parallel, cluster_of(space, id).cluster.devices);
  set(experiment, "parallel", std::move(parallel));
  texts.emplace_back("experiment.yaml", yaml_text(experiment));
  return texts;
}

} // namespace monet
