// Parallelism strategies: reads, prints and validates them, and derives the mesh that partitions a
// step. Read by the planner, the cost models and exploration.
#include "monet/cluster/strategy.hpp"

#include "base/shared/checked.hpp"

#include "monet/base/yaml.hpp"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

namespace monet {

namespace {

constexpr std::array<std::string_view, 3> kRecompute{"none", "selective", "full"};
constexpr std::array<std::string_view, 4> kOffload{"none", "states", "activations", "both"};
constexpr std::size_t kMaxValues = 1000; ///< maximum number of values per key

/// The product of the factors, or the maximum of int64 if it overflows.
std::int64_t bounded(std::initializer_list<std::int64_t> factors) {
  std::int64_t product = 1;
  for (const std::int64_t factor : factors) {
    if (__builtin_mul_overflow(product, factor, &product))
      return std::numeric_limits<std::int64_t>::max();
  }
  return product;
}

/// The index in `names` of the node's string. Otherwise reports a problem and returns nullopt.
std::optional<std::size_t> choice_of(const YamlNode& node, std::span<const std::string_view> names,
                                     ProblemList& problems) {
  const auto word = as_string(node, problems);
  if (!word)
    return std::nullopt;
  if (const auto found = std::ranges::find(names, *word); found != names.end())
    return static_cast<std::size_t>(found - names.begin());
  problems.add(node.where, fmt::format("'{}' is not one of {}", word->substr(0, 20),
                                       fmt::join(names.begin(), names.end(), ", ")));
  return std::nullopt;
}

std::optional<std::size_t> choice(YamlMap& map, std::string_view key,
                                  std::span<const std::string_view> names, ProblemList& problems) {
  const YamlNode* node = map.find(key);
  return node ? choice_of(*node, names, problems) : std::nullopt;
}

std::vector<std::int64_t> read_layers(const YamlNode& node, ProblemList& problems) {
  std::vector<std::int64_t> layers;
  for (const std::int64_t count : as_integers(node, problems)) {
    if (count < 0 || count > kMaxDegree)
      problems.add(node.where, fmt::format("a part has {} layers, not 0 to {}", count, kMaxDegree));
    layers.push_back(std::clamp<std::int64_t>(count, 0, kMaxDegree));
  }
  return layers;
}

/// The layers of parts as text, with runs of equal numbers abbreviated: "5-6x10-5".
std::string layers_to_string(const std::vector<std::int64_t>& layers) {
  std::string words;
  for (std::size_t i = 0; i < layers.size();) {
    std::size_t end = i + 1;
    while (end < layers.size() && layers[end] == layers[i])
      ++end;
    words += fmt::format("{}{}", words.empty() ? "" : "-", layers[i]);
    if (end - i > 1)
      words += fmt::format("x{}", end - i);
    i = end;
  }
  return words;
}

void check_divides(std::vector<std::string>& found, std::string_view what, std::int64_t whole,
                   std::string_view by, std::int64_t parts) {
  if (parts > 0 && whole % parts == 0)
    return;
  found.push_back(fmt::format("{} ({}) is not divisible by {} ({}): {} are left over", what, whole,
                              by, parts, whole % parts));
}

/// Reads the values of a key, which are one scalar or a list.
class ValueReader {
public:
  ValueReader(YamlMap& map, ProblemList& problems) : map_(map), problems_(problems) {}

  template <class T, class Read>
  void read(std::string_view key, std::vector<T>& values, Read one) {
    const YamlNode* node = map_.find(key);
    if (node == nullptr)
      return;
    if (node->kind != YamlNode::Kind::sequence) {
      add(*node, key, values, one);
      return;
    }
    if (node->items.empty() || node->items.size() > kMaxValues) {
      problems_.add(node->where, fmt::format("'{}' lists {} values, not 1 to {}", key,
                                             node->items.size(), kMaxValues));
      return;
    }
    for (const YamlNode& item : node->items)
      add(item, key, values, one);
  }

private:
  template <class T, class Read>
  void add(const YamlNode& node, std::string_view key, std::vector<T>& values, Read one) {
    const std::optional<T> value = one(node);
    if (!value)
      return;
    if (std::ranges::find(values, *value) != values.end())
      problems_.add(node.where, fmt::format("'{}' lists a value twice", key));
    else
      values.push_back(*value);
  }

  YamlMap& map_;
  ProblemList& problems_;
};

std::optional<std::int64_t> integer_in(const YamlNode& node, std::string_view key,
                                       std::int64_t least, std::int64_t most,
                                       ProblemList& problems) {
  const auto value = as_integer(node, problems);
  if (!value || (*value >= least && *value <= most))
    return value;
  problems.add(node.where, fmt::format("{} is {}, not {} to {}", key, *value, least, most));
  return std::nullopt;
}

std::int64_t read_stage(YamlMap& map, const AxisRoleRow& row, ProblemList& problems) {
  if (const std::int64_t value = map.integer_or(row.key, 0); value >= 0 && value <= row.maximum)
    return value;
  problems.add(map.find(row.key)->where,
               fmt::format("{} is a stage from 0 to {}", row.key, row.maximum));
  return 0;
}

/// Samples of all ranks in a micro-batch, or the maximum of int64 if they overflow.
std::int64_t samples_of(const ParallelStrategy& strategy) {
  return bounded({strategy.parts_of(Divided::samples), strategy.micro_batch});
}

/// Adds the axes that group or use the ranks of another axis, and cannot.
void check_inner_axes(const ParallelAxes& axes, std::vector<std::string>& found) {
  for (const AxisRoleRow& row : axis_roles()) {
    if (!row.within)
      continue;
    const AxisRoleRow& outer = row_of(*row.within);
    if (row.form == AxisForm::ranks)
      check_divides(found, outer.key, axes[outer.role], row.key, axes[row.role]);
    else if (axes.has(row.role) && !axes.has(outer.role))
      found.push_back(fmt::format("{} divides tokens over {} ranks, and {} is 1", row.key,
                                  outer.key, outer.key));
  }
}

template <class Kind>
std::optional<Kind> kind_of(std::optional<std::size_t> choice) {
  return choice ? std::optional(static_cast<Kind>(*choice)) : std::nullopt;
}

} // namespace

std::string_view name_of(RecomputeKind kind) {
  return kRecompute.at(static_cast<std::size_t>(kind));
}

std::string_view name_of(OffloadKind kind) {
  return kOffload.at(static_cast<std::size_t>(kind));
}

std::span<const std::string_view> offload_kind_names() {
  return kOffload;
}

bool offloads_states(OffloadKind kind) {
  return kind == OffloadKind::states || kind == OffloadKind::both;
}

bool offloads_activations(OffloadKind kind) {
  return kind == OffloadKind::activations || kind == OffloadKind::both;
}

ParallelStrategy read_strategy(const YamlNode& node, ProblemList& problems) {
  YamlMap map(node, problems);
  ParallelStrategy strategy;
  const auto number = [&](std::string_view key) {
    const std::int64_t value = map.integer_or(key, 1);
    if (value < 1 || value > kMaxDegree)
      problems.add(map.find(key)->where,
                   fmt::format("{} is {}, not 1 to {}", key, value, kMaxDegree));
    return std::clamp<std::int64_t>(value, 1, kMaxDegree);
  };
  for (const AxisRoleRow& row : axis_roles()) {
    if (row.form == AxisForm::ranks)
      strategy.axes[row.role] = number(row.key);
    else if (row.form == AxisForm::toggle)
      strategy.axes[row.role] = map.boolean_or(row.key, false) ? 1 : 0;
    else
      strategy.axes[row.role] = read_stage(map, row, problems);
  }
  strategy.micro_batch = number("micro_batch");
  strategy.global_batch = number("global_batch");
  strategy.overlap = map.boolean_or("overlap", true);
  if (const auto kind = choice(map, "schedule", pipeline_kind_names(), problems))
    strategy.schedule = static_cast<PipelineKind>(*kind);
  else if (strategy.parts_per_stage() > 1)
    strategy.schedule = PipelineKind::interleaved;
  if (const auto kind = choice(map, "recompute", kRecompute, problems))
    strategy.recompute = static_cast<RecomputeKind>(*kind);
  if (const auto kind = choice(map, "offload", kOffload, problems))
    strategy.offload = static_cast<OffloadKind>(*kind);
  if (const YamlNode* layers = map.find("layers"))
    strategy.layers = read_layers(*layers, problems);
  if (!map.has("global_batch"))
    strategy.global_batch = bounded({samples_of(strategy), strategy.stages()});
  map.finish();
  return strategy;
}

StrategySpace read_strategy_space(const YamlNode& node, ProblemList& problems) {
  YamlMap map(node, problems);
  ValueReader reader(map, problems);
  StrategySpace space;
  const auto numbers = [&](std::string_view key, std::int64_t minimum, std::int64_t maximum,
                           std::vector<std::int64_t>& values) {
    reader.read(key, values, [&](const YamlNode& value) {
      return integer_in(value, key, minimum, maximum, problems);
    });
  };
  for (const AxisRoleRow& row : axis_roles()) {
    if (row.form != AxisForm::toggle)
      numbers(row.key, row.form == AxisForm::ranks ? 1 : 0, row.maximum, space.axes[row.role]);
    else
      reader.read(row.key, space.axes[row.role], [&](const YamlNode& value) {
        const std::optional<bool> given = as_boolean(value, problems);
        return given ? std::optional<std::int64_t>(*given) : std::nullopt;
      });
  }
  numbers("micro_batch", 1, kMaxDegree, space.micro_batch);
  reader.read("schedule", space.schedule, [&](const YamlNode& value) {
    return kind_of<PipelineKind>(choice_of(value, pipeline_kind_names(), problems));
  });
  reader.read("recompute", space.recompute, [&](const YamlNode& value) {
    return kind_of<RecomputeKind>(choice_of(value, kRecompute, problems));
  });
  reader.read("offload", space.offload, [&](const YamlNode& value) {
    return kind_of<OffloadKind>(choice_of(value, kOffload, problems));
  });
  space.overlap = map.boolean_or("overlap", true);
  if (const YamlNode* batch = map.require("global_batch"))
    space.global_batch = integer_in(*batch, "global_batch", 1, kMaxDegree, problems).value_or(1);
  map.finish();
  return space;
}

std::string to_string(const ParallelStrategy& strategy) {
  std::string words;
  const auto add = [&](std::string_view text) {
    words += words.empty() ? "" : " ";
    words += text;
  };
  for (const AxisForm form : {AxisForm::ranks, AxisForm::toggle, AxisForm::stage}) {
    for (const AxisRoleRow& row : axis_roles()) {
      if (row.form != form || !strategy.axes.has(row.role))
        continue;
      add(form == AxisForm::toggle ? std::string(row.letter)
                                   : fmt::format("{}{}", row.letter, strategy.axes[row.role]));
    }
  }
  if (strategy.stages() > 1)
    add(name_of(strategy.schedule));
  add(fmt::format("mb{}", strategy.micro_batch));
  add(fmt::format("gb{}", strategy.global_batch));
  if (strategy.recompute != RecomputeKind::none)
    add(name_of(strategy.recompute));
  if (strategy.offload != OffloadKind::none)
    add(fmt::format("offload-{}", name_of(strategy.offload)));
  if (!strategy.overlap)
    add("no-overlap");
  if (!strategy.layers.empty())
    add("layers " + layers_to_string(strategy.layers));
  return words;
}

std::vector<std::string> find_misfits(const ParallelStrategy& strategy,
                                      std::int64_t cluster_devices) {
  std::vector<std::string> found;
  std::int64_t devices = 1;
  std::vector<std::string_view> keys;
  std::vector<std::int64_t> degrees;
  for (const AxisRole role : kDeviceRoles) {
    devices = bounded({devices, strategy.axes[role]});
    keys.push_back(row_of(role).key);
    degrees.push_back(strategy.axes[role]);
  }
  if (devices != cluster_devices)
    found.push_back(fmt::format("{} = {} = {}, but the cluster has {} devices",
                                fmt::join(keys, " * "), fmt::join(degrees, " * "), devices,
                                cluster_devices));
  check_inner_axes(strategy.axes, found);
  check_divides(found, "global_batch", strategy.global_batch, divisor_of(Divided::samples),
                samples_of(strategy));
  if (offloads_activations(strategy.offload) && splits_backward(strategy.schedule))
    found.push_back(fmt::format("offload is {}, and schedule {} keeps what weight gradients wait "
                                "for",
                                name_of(strategy.offload), name_of(strategy.schedule)));
  const std::int64_t parts = bounded({strategy.stages(), strategy.parts_per_stage()});
  if (!strategy.layers.empty() && static_cast<std::int64_t>(strategy.layers.size()) != parts)
    found.push_back(fmt::format("layers has {} numbers, but {} = {} * {} = {} parts",
                                strategy.layers.size(), divisor_of(Divided::layers),
                                strategy.stages(), strategy.parts_per_stage(), parts));
  for (std::size_t part = 1; part + 1 < strategy.layers.size(); ++part) {
    if (strategy.layers[part] == 0)
      found.push_back(fmt::format("part {} of the model has no layers", part));
  }
  if (found.empty()) {
    if (const auto why = why_not(strategy.schedule, strategy.stages(), strategy.parts_per_stage(),
                                 strategy.micro_batches()))
      found.push_back(fmt::format("schedule {} {}", name_of(strategy.schedule), *why));
  }
  return found;
}

std::int64_t ParallelStrategy::devices() const {
  std::int64_t devices = 1;
  for (const AxisRole role : kDeviceRoles)
    devices *= axes[role];
  return devices;
}

std::int64_t ParallelStrategy::parts_of(Divided what) const {
  std::int64_t parts = 1;
  for (const AxisRoleRow& row : axis_roles()) {
    if (row.divides != what)
      continue;
    if (row.form == AxisForm::ranks)
      parts *= axes[row.role];
    else if (row.form == AxisForm::toggle && axes[row.role] != 0)
      parts *= axes[*row.within];
  }
  return parts;
}

std::int64_t ParallelStrategy::ranks_with_copies(bool of_experts) const {
  std::int64_t ranks = 1;
  for (const AxisRole role : kMeshRoles) {
    if (row_of(role).has_copies(of_experts))
      ranks *= mesh_size(*this, role);
  }
  return ranks;
}

std::int64_t mesh_size(const ParallelStrategy& strategy, AxisRole role) {
  std::int64_t size = strategy.axes[role];
  for (const AxisRoleRow& row : axis_roles()) {
    if (row.within == role && row.form == AxisForm::ranks)
      size /= strategy.axes[row.role];
  }
  return size;
}

std::vector<MeshAxis> mesh_of(const ParallelStrategy& strategy) {
  std::vector<MeshAxis> mesh;
  for (const AxisRole role : kMeshRoles) {
    const AxisRoleRow& row = row_of(role);
    MeshAxis axis{.name = std::string(row.key),
                  .size = mesh_size(strategy, role),
                  .inputs = row.inputs,
                  .weights = row.weights,
                  .between = row.between,
                  .experts = row.experts,
                  .zero = row.copies == WeightCopies::none ? 0 : strategy.zero()};
    for (const AxisRoleRow& toggle : axis_roles()) {
      if (toggle.form != AxisForm::toggle || toggle.within != role ||
          !strategy.axes.has(toggle.role))
        continue;
      axis.inputs = toggle.inputs;
      axis.between = toggle.between;
    }
    mesh.push_back(std::move(axis));
  }
  return mesh;
}

std::vector<AxisRole> roles_with_whole_inputs(const ParallelStrategy& strategy) {
  std::vector<AxisRole> roles;
  const std::vector<MeshAxis> mesh = mesh_of(strategy);
  for (std::size_t i = 0; i < mesh.size(); ++i) {
    if (!mesh[i].inputs)
      roles.push_back(kMeshRoles[i]);
  }
  return roles;
}

} // namespace monet
