// Steps, systems and mappings of given numbers of tiles.
#pragma once

#include "schedule/small_steps.hpp"
#include "training_graph/tiny_network.hpp"

#include "monet/core_cost/mapping_file.hpp"
#include "monet/hardware/read_hardware.hpp"
#include "monet/tiling/tiling.hpp"
#include "monet/workload/onnx_reader.hpp"

#include <vector>

namespace monet::bench {

struct FusedStep {
  TrainingGraph step;
  Chip chip;
  MappingFile mapping;
  /// All operators in one stack.
  TileGraph tiles() const {
    TilingOptions options;
    options.mapping = &mapping;
    options.mode = TilingMode::fused;
    options.stacks.emplace(1);
    for (std::size_t i = 0; i < step.graph.operators().size(); ++i)
      options.stacks->front().emplace_back(i);
    return make_tiles(step, chip, options);
  }
};

inline MappingEntry entry(const std::string& name, std::vector<std::int64_t> cores,
                          TilingFactor inter, TilingFactor intra) {
  MappingEntry entry;
  entry.name = name;
  entry.core_allocation = std::move(cores);
  entry.inter_core_tiling = {std::move(inter)};
  entry.intra_core_tiling = {std::move(intra)};
  return entry;
}

inline TilingFactor times(const std::string& dim, std::int64_t count) {
  return {dim, TilingFactor::Amount::number, count};
}
inline TilingFactor every(const std::string& dim) {
  return {dim, TilingFactor::Amount::all, 1};
}

/// Inference of ResNet-18 at 224 x 224 on the quad core, tiled as the reference scheduler's mapping
/// of it does: rows times quarters of the channels, pooling and sums on cores of their own.
inline FusedStep resnet18_rows(const std::string& data) {
  OnnxReadOptions reading;
  reading.batch = 1;
  FusedStep made;
  made.step =
      fold_views(make_inference_graph(read_onnx(data + "/workload/resnet18.onnx", reading)));
  made.chip = read_chip(data + "/hardware/tpu_like_quad_core.yaml");
  made.mapping.entries = {entry("Conv", {0, 1, 2, 3}, times("K", 4), every("OY")),
                          entry("Gemm", {0, 1, 2, 3}, times("K", 4), every("D")),
                          entry("MaxPool", {4}, times("K", 1), every("OY")),
                          entry("GlobalAveragePool", {4}, times("K", 1), every("OY")),
                          entry("Add", {5}, times("K", 1), every("D")),
                          entry("Relu", {5}, times("K", 1), every("D")),
                          entry("BatchNormalization", {5}, times("K", 1), every("H"))};
  return made;
}

/// 3 x 3 convolutions of 16 channels and ReLUs in turn, `layers` of each, on images of 4 columns.
/// A tile is one row of a quarter of the channels: four cores, halos of one row on each side.
inline FusedStep conv_chain(std::int64_t tiles, bool training) {
  constexpr std::int64_t kChannels = 16;
  constexpr std::int64_t kCores = 4;
  const std::int64_t layers = training ? 4 : 8;
  const std::int64_t operators = layers * (training ? 5 : 2); // dX, dW and the ReLU's gradient too
  const std::int64_t rows = std::max<std::int64_t>(4, tiles / (kCores * operators));
  TinyNetwork net;
  TensorId x = net.input("x", {1, kChannels, rows, 4});
  Attributes geometry = with("kernel_shape", std::vector<std::int64_t>{3, 3});
  geometry.set("pads", std::vector<std::int64_t>{1, 1, 1, 1});
  for (std::int64_t i = 0; i < layers; ++i) {
    const TensorId w = net.parameter(fmt::format("w{}", i), {kChannels, kChannels, 3, 3});
    x = net.op("Conv", {x, w}, {1, kChannels, rows, 4}, geometry);
    x = net.op("Relu", {x}, {1, kChannels, rows, 4});
  }
  net.output(x);
  FusedStep made;
  TrainingOptions options;
  options.loss = Mse{};
  made.step = fold_views(training ? make_training_graph(net.graph, options)
                                  : make_inference_graph(net.graph));
  made.chip = testing::make_chip({.cores = kCores,
                                  .core_bits = 1 << 21,
                                  .link_bandwidth = 64,
                                  .bus = true,
                                  .dram_bandwidth = 128});
  made.mapping.entries = {entry("Conv", {0, 1, 2, 3}, times("K", kCores), every("OY")),
                          entry("Relu", {0, 1, 2, 3}, times("C", kCores), every("H")),
                          entry("ReluGrad", {0, 1, 2, 3}, times("C", kCores), every("H")),
                          entry("ConvGradInput", {0, 1, 2, 3}, times("C", kCores), every("OY")),
                          entry("ConvGradWeight", {0, 1, 2, 3}, times("K", kCores), every("OY"))};
  return made;
}

} // namespace monet::bench
