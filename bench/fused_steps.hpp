// Steps, systems and mappings of given numbers of tiles.
#pragma once

#include "schedule/small_steps.hpp"
#include "training/tiny_network.hpp"

#include "monet/core_cost/mapping_file.hpp"
#include "monet/tiling/tiling.hpp"

#include <vector>

namespace monet::bench {

struct FusedStep {
  TrainingGraph step;
  Chip chip;
  MappingFile mapping;
  TileGraph tiles() const {
    TilingOptions options;
    options.mapping = &mapping;
    return make_tiles(step, chip, options);
  }
};

inline MappingEntry entry(const std::string& name, std::vector<std::int64_t> cores,
                          TilingFactor inter, TilingFactor intra) {
  MappingEntry entry;
  entry.name = name;
  entry.core_allocation = std::move(cores);
  entry.inter_core_tiling = {std::move(inter), std::move(intra)};
  return entry;
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
  options.loss = LossKind::mse;
  made.step = fold_views(training ? make_training_graph(net.graph, options)
                                  : make_inference_graph(net.graph));
  made.chip = testing::make_chip({.cores = kCores,
                                  .core_bits = 1 << 21,
                                  .link_bandwidth = 64,
                                  .bus = true,
                                  .dram_bandwidth = 128});
  const TilingFactor channels{"K", TilingFactor::Amount::number, kCores};
  const TilingFactor planes{"C", TilingFactor::Amount::number, kCores};
  const TilingFactor lines{"OY", TilingFactor::Amount::all, 1};
  const TilingFactor image_lines{"H", TilingFactor::Amount::all, 1};
  made.mapping.entries = {entry("Conv", {0, 1, 2, 3}, channels, lines),
                          entry("Relu", {0, 1, 2, 3}, planes, image_lines),
                          entry("ReluGrad", {0, 1, 2, 3}, planes, image_lines),
                          entry("ConvGradInput", {0, 1, 2, 3}, planes, lines),
                          entry("ConvGradWeight", {0, 1, 2, 3}, channels, lines)};
  return made;
}

} // namespace monet::bench
