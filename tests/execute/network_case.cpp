#include "execute/network_case.hpp"

#include "execute/shared/generator.hpp"

#include "monet/base/yaml.hpp"
#include "monet/workload/onnx_reader.hpp"

#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <fstream>
#include <set>
#include <stdexcept>

namespace monet::test {

using nlohmann::json;

json read_network_fixture(const std::string& network) {
  std::ifstream file(kNetworkFixtures + network + ".json");
  return json::parse(file);
}

namespace {

/// Dropout keeps everything: PyTorch's random masks are its own.
void keep_everything(onnx::GraphProto& graph) {
  std::set<std::string> ratios;
  for (const onnx::NodeProto& node : graph.node()) {
    if (node.op_type() == "Dropout" && node.input_size() > 1)
      ratios.insert(node.input(1));
  }
  for (onnx::NodeProto& node : *graph.mutable_node()) {
    if (node.op_type() != "Constant" || ratios.count(node.output(0)) == 0)
      continue;
    onnx::TensorProto& ratio = *node.mutable_attribute(0)->mutable_t();
    ratio.clear_raw_data();
    ratio.clear_float_data();
    ratio.add_float_data(0.0F);
  }
}

void resize_input(onnx::GraphProto& graph, const json& input) {
  const auto sizes = input.at("shape").get<std::vector<std::int64_t>>();
  for (onnx::ValueInfoProto& value : *graph.mutable_input()) {
    if (value.name() != input.at("name"))
      continue;
    auto& shape = *value.mutable_type()->mutable_tensor_type()->mutable_shape();
    for (int i = 1; i < shape.dim_size(); ++i)
      shape.mutable_dim(i)->set_dim_value(sizes.at(static_cast<std::size_t>(i) - 1));
  }
  for (onnx::ValueInfoProto& value : *graph.mutable_output())
    value.mutable_type()->mutable_tensor_type()->clear_shape();
}

} // namespace

Graph read_recorded_network(const json& fixture) {
  const std::string path = fixture.at("model");
  std::ifstream file(std::string(MONET_SOURCE_DIR "/") + path, std::ios::binary);
  onnx::ModelProto model;
  if (!model.ParseFromIstream(&file))
    throw std::runtime_error("cannot read " + path);
  keep_everything(*model.mutable_graph());
  resize_input(*model.mutable_graph(), fixture.at("input"));
  OnnxReadOptions options;
  options.batch = fixture.at("batch").get<std::int64_t>();
  return read_onnx_bytes(model.SerializeAsString(), path, options);
}

TrainingOptions options_of(const std::string& loss, const json& optimizer, const json& more) {
  json text = more;
  text["loss"] = loss;
  text["optimizer"] = optimizer;
  if (optimizer.contains("clip_global_norm")) {
    text["clip_global_norm"] = optimizer.at("clip_global_norm");
    text["optimizer"].erase("clip_global_norm");
  }
  ProblemList problems;
  const TrainingOptions options =
      read_training_options(parse_yaml(text.dump(), "fixture.json"), problems);
  problems.throw_if_any();
  return options;
}

namespace {

void set(Execution& execution, const Graph& graph, const std::string& name, const FillRule& rule,
         std::uint64_t seed) {
  const auto id = graph.find_tensor(name);
  if (id && !graph.tensor(*id).producer)
    execution.set(*id, generate(graph.tensor(*id), rule, seed));
}

} // namespace

void feed(Execution& execution, const TrainingGraph& step, const json& fixture) {
  const std::uint64_t seed = fixture.at("seed");
  for (const json& numbers : fixture.at("numbers"))
    set(execution, step.graph, numbers.at("name"), {numbers.at("offset"), numbers.at("scale"), 0},
        seed);
  const json& input = fixture.at("input");
  set(execution, step.graph, input.at("name"), {0.0, 1.0, input.value("range", std::int64_t{0})},
      seed);
  if (fixture.at("loss_kind") == "cross_entropy")
    set(execution, step.graph, "labels", {0.0, 0.0, fixture.at("classes")}, seed);
  else if (fixture.at("loss_kind") == "mse")
    set(execution, step.graph, "targets", {0.0, 1.0, 0}, seed);
  else
    set(execution, step.graph, "targets", {0.5, 0.5, 0}, seed);
  fill(execution, step, seed);
}

} // namespace monet::test
