#include "monet/explore/cluster_settings.hpp"

#include "monet/training/training.hpp"
#include "monet/workload/foreign.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace monet {

namespace {

bool has_key(const YamlNode& node, std::string_view key) {
  return std::ranges::find(node.entries, key, &YamlNode::Entry::key) != node.entries.end();
}

void refuse_batch(const YamlNode& node, ProblemList& problems) {
  for (const YamlNode::Entry& entry : node.entries) {
    if (entry.key == "batch")
      problems.add(entry.key_where, "'batch' is given by micro_batch and data of 'parallel'",
                   "leave it out");
  }
}

/// The network, read each time that it is asked for; `training` is there.
Graph cluster_network(const StepSettings& settings, std::int64_t samples) {
  OnnxReadOptions reading = settings.network_options;
  reading.batch = samples;
  read_for(reading, *settings.training);
  Graph network = read_onnx(settings.network, reading);
  const bool open = std::ranges::any_of(network.inputs, [&](TensorId id) {
    const auto& shape = network.tensor(id).shape;
    return !shape.empty() && shape.front() == samples;
  });
  if (!open)
    throw InputError(
        {settings.network},
        fmt::format("a batch of {} was asked for, but the inputs' first axes are fixed", samples),
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
  if (!settings.training) // what is wrong with it has been said
    settings.training.emplace();
  if (settings.training->micro_batches != 1)
    problems.add(node.where, "'micro_batches' is given by 'parallel'",
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
