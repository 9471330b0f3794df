// Loops along which an operator normalises are never cut: a tile would normalise over its part
// only.
#include "tiling/partition/split.hpp"

#include "monet/training_graph/training.hpp"
#include "monet/workload/onnx_reader.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace monet {
namespace {

Graph read(const std::string& network, std::int64_t batch) {
  OnnxReadOptions options;
  options.batch = batch;
  return read_onnx(std::string(MONET_SOURCE_DIR) + "/data/workload/" + network + ".onnx", options);
}

/// Sizes of the loops along which the nest may be cut.
std::vector<std::int64_t> cuttable(const LoopNest& nest) {
  std::vector<std::int64_t> sizes;
  for (std::size_t d = 0; d < nest.dims.size(); ++d) {
    if (may_split(nest, d))
      sizes.push_back(nest.dims[d].size);
  }
  return sizes;
}

using Sizes = std::vector<std::int64_t>;

TEST(CoupledLoops, softmax_and_layer_norm_of_gpt2_nano_keep_their_rows_whole) {
  // batch 3, 2 heads, 64 positions, 64 wide: scores are [3, 2, 64, 64], activations [3, 64, 64].
  const TrainingGraph step = make_training_graph(read("gpt2_nano", 3), {});
  int softmax = 0;
  int norms = 0;
  for (const Operator& op : step.graph.operators()) {
    if (op.op_type == "Softmax" || op.op_type == "SoftmaxGrad") {
      EXPECT_EQ(cuttable(op.nest), (Sizes{3, 2, 64})) << op.name;
      ++softmax;
    } else if (op.op_type == "LayerNormalization" || op.op_type == "LayerNormGrad") {
      EXPECT_EQ(cuttable(op.nest), (Sizes{3, 64})) << op.name;
      ++norms;
    }
  }
  EXPECT_EQ(softmax, 2 * 2); // two layers, forward and backward
  EXPECT_EQ(norms, 2 * 5);
}

TEST(CoupledLoops, layer_norm_without_saved_statistics_keeps_its_rows_whole) {
  const TrainingGraph step = make_inference_graph(read("gpt2_nano", 3));
  for (const Operator& op : step.graph.operators()) {
    if (op.op_type == "LayerNormalization") {
      EXPECT_EQ(cuttable(op.nest), (Sizes{3, 64})) << op.name;
    }
  }
}

TEST(CoupledLoops, batch_norm_is_cut_by_channel_in_training_and_anywhere_at_inference) {
  const Graph network = read("resnet18_cifar", 4);
  const TrainingGraph training = make_training_graph(network, {});
  const TrainingGraph inference = make_inference_graph(network);
  int seen = 0;
  for (const Operator& op : training.graph.operators()) {
    if (op.op_type != "BatchNormalization" && op.op_type != "BatchNormGrad")
      continue;
    ASSERT_EQ(op.nest.dims.size(), 4U);
    EXPECT_EQ(cuttable(op.nest), (Sizes{op.nest.dims[1].size})) << op.name;
    ++seen;
  }
  EXPECT_EQ(seen, 40);
  for (const Operator& op : inference.graph.operators()) {
    if (op.op_type == "BatchNormalization") {
      EXPECT_EQ(cuttable(op.nest).size(), 4U) << op.name;
    }
  }
}

} // namespace
} // namespace monet
