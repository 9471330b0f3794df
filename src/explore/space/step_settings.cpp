// Reads the sections of space files that configure steps: workload, training, mode, search and
// short-training settings. The reader of space files (reader.cpp) calls this.
#include "monet/explore/step_settings.hpp"

#include "base/shared/file_kind.hpp"
#include "base/shared/hints.hpp"
#include "base/shared/text.hpp"

#include "monet/base/files.hpp"
#include "monet/training_graph/training.hpp"
#include "monet/workload/imported_steps.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace monet {

std::string_view name_of(Priority priority) {
  constexpr std::array<std::string_view, 3> kNames{"latency", "memory", "order"};
  return kNames.at(static_cast<std::size_t>(priority));
}

std::size_t read_choice(YamlMap& map, std::string_view key, const std::vector<std::string>& names,
                        ProblemList& problems) {
  const YamlNode* node = map.find(key);
  const auto name = node ? as_string(*node, problems) : std::nullopt;
  if (!name)
    return 0;
  if (const auto known = std::ranges::find(names, *name); known != names.end())
    return static_cast<std::size_t>(known - names.begin());
  problems.add(node->where, fmt::format("unknown {} '{}'", key, *name),
               nearest_name_hint(*name, names));
  return 0;
}

namespace {

constexpr std::string_view kNotYet = "is not available yet";

/// Checks a key whose only supported value is `only`.
void read_fixed(YamlMap& map, std::string_view key, std::string_view only, ProblemList& problems) {
  const YamlNode* node = map.find(key);
  if (node == nullptr)
    return;
  const auto value = as_string(*node, problems);
  if (!value || *value == only)
    return;
  problems.add(node->where, fmt::format("{} '{}' {}", key, *value, kNotYet),
               fmt::format("leave it out or set it to '{}'", only));
}

} // namespace

void read_network_section(const YamlNode& node, const std::string& path, StepSettings& settings,
                          ProblemList& problems) {
  YamlMap map(node, problems);
  if (const std::string network = map.require_string("network"); !network.empty())
    settings.network = named_file(*map.find("network"), path, problems);
  if (const YamlNode* batch = map.find("batch")) {
    settings.network_options.batch = as_integer(*batch, problems);
    if (settings.network_options.batch.value_or(1) < 1)
      problems.add(batch->where, "the batch must be at least 1");
  }
  if (const YamlNode* dimensions = map.find("dimensions")) {
    YamlMap sizes(*dimensions, problems);
    for (const YamlNode::Entry& entry : dimensions->entries) {
      sizes.ignore(entry.key);
      const auto size = as_integer(entry.value, problems);
      if (size && *size < 1)
        problems.add(entry.value.where, "a dimension must be at least 1");
      settings.network_options.dimensions[entry.key] = size.value_or(1);
    }
    sizes.finish();
  }
  map.finish();
}

void read_training_section(const YamlNode& node, const std::string& path, StepSettings& settings,
                           ProblemList& problems) {
  settings.training_where = node.where;
  if (node.kind != YamlNode::Kind::scalar) {
    settings.training = read_training_options(node, problems);
    return;
  }
  const auto file = as_string(node, problems);
  if (!file)
    return;
  const std::size_t before = problems.size();
  const std::string resolved = named_file(node, path, problems);
  if (problems.size() > before)
    return;
  try {
    settings.files.push_back(resolved);
    settings.training_where = {resolved};
    const YamlNode root = load_yaml(resolved);
    require_kind(root, {FileKind::training});
    settings.training = read_training_options(root, problems);
  } catch (const InputError& error) {
    problems.add(error.problems());
  }
}

void StepSettings::set(const ScheduleKeys& keys) {
  mode = keys.mode;
  if (keys.has_stacks())
    stacks = keys.stacks;
  halo = keys.halo;
  priority = keys.priority;
  effort = keys.effort;
  for (const std::string& name : keys.stream_like) {
    if (bool TransferRules::*rule = transfer_rule_named(name))
      rules.*rule = false;
  }
}

Precision inference_precision(const StepSettings& settings) {
  const Precision trained = settings.training ? settings.training->precision : Precision{};
  return settings.precision.value_or(trained);
}

void read_mapping_key(YamlMap& map, const std::string& path, StepSettings& settings,
                      ProblemList& problems) {
  const std::string mapping = map.string_or("mapping", "auto");
  if (mapping != "auto")
    settings.mapping = named_file(*map.find("mapping"), path, problems);
}

void read_schedule_section(const YamlNode& node, const std::string& path, StepSettings& settings,
                           ProblemList& problems) {
  YamlMap map(node, problems);
  ScheduleKeys keys;
  read_options(map, bind(kScheduleKeys, keys), problems);
  read_options(map, bind(kEffortKeys, keys), problems);
  if (keys.has_stacks() && keys.mode == StepMode::layer_by_layer)
    problems.add(map.find("stacks")->where, "stacks have no effect layer by layer",
                 "leave out 'mode: layer-by-layer'");
  if (keys.has_stacks())
    keys.stacks = named_file(*map.find("stacks"), path, problems);
  settings.set(keys);
  if (const YamlNode* model = map.find("model")) {
    if (as_string(*model, problems) == "stream-coala") {
      problems.add(model->where, "the reference's model has a result of another form",
                   "use monet schedule --model stream-coala");
    } else {
      read_fixed(map, "model", "monet", problems);
    }
  }
  read_options(map, bind(kCoreCostKeys, settings.core_cost), problems);
  map.finish();
}

namespace {

bool has_key(const YamlNode& node, std::string_view key) {
  return std::ranges::find(node.entries, key, &YamlNode::Entry::key) != node.entries.end();
}

void refuse_batch(const YamlNode& node, ProblemList& problems) {
  for (const YamlNode::Entry& entry : node.entries) {
    if (entry.key == "batch")
      problems.add(entry.key_where, "'batch' follows from micro_batch and data of 'parallel'",
                   "leave it out");
  }
}

/// Reads the network for a number of samples, on each call. Requires `settings.training`.
Graph cluster_network(const StepSettings& settings, std::int64_t samples) {
  OnnxReadOptions reading = settings.network_options;
  reading.batch = samples;
  reading.max_elements = std::int64_t{1} << 54; // samples of all data ranks together
  read_for(reading, *settings.training);
  Graph network = read_onnx(settings.network, reading);
  const bool open = std::ranges::any_of(network.inputs, [&](TensorId id) {
    const auto& shape = network.tensor(id).shape;
    return !shape.empty() && shape.front() == samples;
  });
  if (!open)
    throw InputError(
        {settings.network},
        fmt::format("a batch of {} was requested, but the inputs' first axes are fixed", samples),
        "export the network with a symbolic batch");
  ForeignReport report;
  return recognise(std::move(network), true, report);
}

} // namespace

void read_cluster_workload(const YamlNode& node, const std::string& path, ClusterSettings& settings,
                           ProblemList& problems) {
  refuse_batch(node, problems);
  if (!has_key(node, "transformer")) {
    if (node.kind == YamlNode::Kind::map && !has_key(node, "network"))
      problems.add(node.where, "'workload' names neither a 'network' nor a 'transformer'");
    else
      read_network_section(node, path, settings, problems);
    return;
  }
  YamlMap map(node, problems);
  const YamlNode* shape = map.find("transformer");
  refuse_batch(*shape, problems);
  settings.transformer = read_transformer_shape(*shape, problems);
  settings.in_place_loss = map.boolean_or("in_place_loss", true);
  if (const YamlNode* network = map.find("network"))
    problems.add(network->where, "there is a 'transformer' already");
  map.finish();
}

void read_cluster_training(const YamlNode& node, const std::string& path, ClusterSettings& settings,
                           ProblemList& problems) {
  read_training_section(node, path, settings, problems);
  if (!settings.training) // its problems have been reported
    settings.training.emplace();
  if (settings.training->micro_batches != 1)
    problems.add(node.where, "'micro_batches' follows from 'parallel'",
                 "leave it out: it is global_batch over data times micro_batch");
}

ClusterWorkload workload_of(const ClusterSettings& settings) {
  ClusterWorkload workload;
  workload.training = *settings.training;
  workload.transformer = settings.transformer;
  workload.in_place_loss = settings.in_place_loss;
  if (!settings.transformer)
    workload.network = [of = StepSettings(settings)](std::int64_t samples) {
      return cluster_network(of, samples);
    };
  return workload;
}

} // namespace monet
