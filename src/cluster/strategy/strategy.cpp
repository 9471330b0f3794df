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
constexpr std::int64_t kMax = std::int64_t{1} << 30; ///< maximum degree or batch
constexpr std::size_t kMaxValues = 1000;             ///< maximum number of values per key

/// The product of the factors, or the maximum of int64 if it overflows.
std::int64_t bounded(std::initializer_list<std::int64_t> factors) {
  std::int64_t product = 1;
  for (const std::int64_t factor : factors) {
    if (__builtin_mul_overflow(product, factor, &product))
      return std::numeric_limits<std::int64_t>::max();
  }
  return product;
}

struct DegreeKey {
  std::string_view key;
  std::int64_t ParallelStrategy::*field;
  std::vector<std::int64_t> StrategySpace::*values; ///< null: one value
};
constexpr DegreeKey kDegrees[]{
    {"data", &ParallelStrategy::data, &StrategySpace::data},
    {"tensor", &ParallelStrategy::tensor, &StrategySpace::tensor},
    {"pipeline", &ParallelStrategy::pipeline, &StrategySpace::pipeline},
    {"virtual", &ParallelStrategy::virtual_stages, &StrategySpace::virtual_stages},
    {"context", &ParallelStrategy::context, &StrategySpace::context},
    {"expert", &ParallelStrategy::expert, &StrategySpace::expert},
    {"micro_batch", &ParallelStrategy::micro_batch, &StrategySpace::micro_batch},
    {"global_batch", &ParallelStrategy::global_batch, nullptr},
};

/// The index in `names` of the node's string. Otherwise reports a problem and returns nullopt.
std::optional<std::size_t> choice_of(const YamlNode& node, std::span<const std::string_view> names,
                                     ProblemList& problems) {
  const auto word = as_string(node, problems);
  if (!word)
    return std::nullopt;
  const auto found = std::ranges::find(names, *word);
  if (found != names.end())
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
    if (count < 0 || count > kMax)
      problems.add(node.where, fmt::format("a part has {} layers, not 0 to {}", count, kMax));
    layers.push_back(std::clamp<std::int64_t>(count, 0, kMax));
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
  for (const DegreeKey& degree : kDegrees) {
    const std::int64_t value = map.integer_or(degree.key, 1);
    if (value < 1 || value > kMax)
      problems.add(map.find(degree.key)->where,
                   fmt::format("{} is {}, not 1 to {}", degree.key, value, kMax));
    strategy.*degree.field = std::clamp<std::int64_t>(value, 1, kMax);
  }
  strategy.sequence = map.boolean_or("sequence", false);
  strategy.overlap = map.boolean_or("overlap", true);
  strategy.zero = static_cast<int>(map.integer_or("zero", 0));
  if (strategy.zero < 0 || strategy.zero > 3) {
    problems.add(map.find("zero")->where, "zero is a stage from 0 to 3");
    strategy.zero = 0;
  }
  if (const auto kind = choice(map, "schedule", pipeline_kind_names(), problems))
    strategy.schedule = static_cast<PipelineKind>(*kind);
  else if (strategy.virtual_stages > 1)
    strategy.schedule = PipelineKind::interleaved;
  if (const auto kind = choice(map, "recompute", kRecompute, problems))
    strategy.recompute = static_cast<RecomputeKind>(*kind);
  if (const auto kind = choice(map, "offload", kOffload, problems))
    strategy.offload = static_cast<OffloadKind>(*kind);
  if (const YamlNode* layers = map.find("layers"))
    strategy.layers = read_layers(*layers, problems);
  if (!map.has("global_batch"))
    strategy.global_batch = bounded({strategy.data, strategy.micro_batch, strategy.pipeline});
  map.finish();
  return strategy;
}

StrategySpace read_strategy_space(const YamlNode& node, ProblemList& problems) {
  YamlMap map(node, problems);
  ValueReader reader(map, problems);
  StrategySpace space;
  for (const auto& [key, field, values] : kDegrees) {
    if (values != nullptr)
      reader.read(key, space.*values, [&, key = key](const YamlNode& value) {
        return integer_in(value, key, 1, kMax, problems);
      });
  }
  reader.read("zero", space.zero,
              [&](const YamlNode& value) { return integer_in(value, "zero", 0, 3, problems); });
  reader.read("sequence", space.sequence,
              [&](const YamlNode& value) { return as_boolean(value, problems); });
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
    space.global_batch = integer_in(*batch, "global_batch", 1, kMax, problems).value_or(1);
  map.finish();
  return space;
}

std::string to_string(const ParallelStrategy& strategy) {
  std::string words;
  const auto add = [&](std::string_view text) {
    words += words.empty() ? "" : " ";
    words += text;
  };
  const auto degree = [&](std::string_view letter, std::int64_t value) {
    if (value != 1)
      add(fmt::format("{}{}", letter, value));
  };
  degree("d", strategy.data);
  degree("t", strategy.tensor);
  degree("p", strategy.pipeline);
  degree("v", strategy.virtual_stages);
  degree("c", strategy.context);
  degree("e", strategy.expert);
  if (strategy.sequence)
    add("seq");
  if (strategy.zero > 0)
    add(fmt::format("zero{}", strategy.zero));
  if (strategy.pipeline > 1)
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
  const std::int64_t wanted =
      bounded({strategy.data, strategy.context, strategy.tensor, strategy.pipeline});
  if (wanted != cluster_devices)
    found.push_back(fmt::format("data * context * tensor * pipeline = {} * {} * {} * {} = {}, but "
                                "the cluster has {} devices",
                                strategy.data, strategy.context, strategy.tensor, strategy.pipeline,
                                wanted, cluster_devices));
  check_divides(found, "data", strategy.data, "expert", strategy.expert);
  const std::int64_t samples = bounded({strategy.data, strategy.micro_batch});
  check_divides(found, "global_batch", strategy.global_batch, "data * micro_batch", samples);
  if (strategy.sequence && strategy.tensor == 1)
    found.emplace_back("sequence divides tokens over tensor ranks, and tensor is 1");
  if (offloads_activations(strategy.offload) && splits_backward(strategy.schedule))
    found.push_back(fmt::format("offload is {}, and schedule {} keeps what weight gradients wait "
                                "for",
                                name_of(strategy.offload), name_of(strategy.schedule)));
  const std::int64_t parts = bounded({strategy.pipeline, strategy.virtual_stages});
  if (!strategy.layers.empty() && static_cast<std::int64_t>(strategy.layers.size()) != parts)
    found.push_back(
        fmt::format("layers has {} numbers, but pipeline * virtual = {} * {} = {} parts",
                    strategy.layers.size(), strategy.pipeline, strategy.virtual_stages, parts));
  for (std::size_t part = 1; part + 1 < strategy.layers.size(); ++part) {
    if (strategy.layers[part] == 0)
      found.push_back(fmt::format("part {} of the model has no layers", part));
  }
  if (found.empty()) {
    if (const auto why = why_not(strategy.schedule, strategy.pipeline, strategy.virtual_stages,
                                 strategy.micro_batches()))
      found.push_back(fmt::format("schedule {} {}", name_of(strategy.schedule), *why));
  }
  return found;
}

std::vector<MeshAxis> mesh_of(const ParallelStrategy& strategy) {
  return {
      {.name = "data", .size = strategy.data / strategy.expert, .inputs = 0, .zero = strategy.zero},
      {.name = "expert",
       .size = strategy.expert,
       .inputs = 0,
       .experts = true,
       .zero = strategy.zero},
      {.name = "context", .size = strategy.context, .inputs = 1, .zero = strategy.zero},
      {.name = "tensor",
       .size = strategy.tensor,
       .inputs = strategy.sequence ? std::optional<std::size_t>(1) : std::nullopt,
       .weights = true,
       .between = strategy.sequence}};
}

} // namespace monet
