#include "monet/cluster/strategy_space.hpp"

#include "cluster/strategy/choice.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/yaml.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace monet {

namespace {

constexpr std::int64_t kMostValue = std::int64_t{1} << 30;
constexpr std::size_t kMostValues = 1000; ///< of one key

/// Values of one key: one or a list.
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
    if (node->items.empty() || node->items.size() > kMostValues) {
      problems_.add(node->where, fmt::format("'{}' lists {} values, not 1 to {}", key,
                                             node->items.size(), kMostValues));
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

StrategySpace read_strategy_space(const YamlNode& node, ProblemList& problems) {
  YamlMap map(node, problems);
  ValueReader reader(map, problems);
  StrategySpace space;
  const auto degree = [&](std::string_view key, std::vector<std::int64_t>& values) {
    reader.read(key, values, [&, key](const YamlNode& value) {
      return integer_in(value, key, 1, kMostValue, problems);
    });
  };
  degree("data", space.data);
  degree("tensor", space.tensor);
  degree("pipeline", space.pipeline);
  degree("virtual", space.virtual_stages);
  degree("context", space.context);
  degree("expert", space.expert);
  degree("micro_batch", space.micro_batch);
  reader.read("zero", space.zero,
              [&](const YamlNode& value) { return integer_in(value, "zero", 0, 3, problems); });
  reader.read("sequence", space.sequence,
              [&](const YamlNode& value) { return as_boolean(value, problems); });
  reader.read("schedule", space.schedule, [&](const YamlNode& value) {
    return kind_of<PipelineKind>(choice_of(value, pipeline_kind_names(), problems));
  });
  reader.read("recompute", space.recompute, [&](const YamlNode& value) {
    return kind_of<RecomputeKind>(choice_of(value, recompute_kind_names(), problems));
  });
  reader.read("offload", space.offload, [&](const YamlNode& value) {
    return kind_of<OffloadKind>(choice_of(value, offload_kind_names(), problems));
  });
  space.overlap = map.boolean_or("overlap", true);
  if (const YamlNode* batch = map.require("global_batch"))
    space.global_batch = integer_in(*batch, "global_batch", 1, kMostValue, problems).value_or(1);
  map.finish();
  return space;
}

} // namespace monet
