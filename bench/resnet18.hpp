// The array layers of ResNet-18 at 224 x 224, batch 1, as ZigZag reads them from ONNX.
#pragma once

#include "core_cost/cores.hpp"

#include <vector>

namespace monet::bench {

/// A square convolution; `in` and `out` are its image sizes.
inline CoreProblem square_convolution(std::int64_t c, std::int64_t k, std::int64_t in,
                                      std::int64_t out, std::int64_t kernel) {
  return test::convolution({.k = k,
                            .ox = out,
                            .oy = out,
                            .c = c,
                            .fx = kernel,
                            .fy = kernel,
                            .stride = in / out,
                            .padding = kernel / 2,
                            .ix = in,
                            .iy = in},
                           test::ConvProduct::forward);
}

/// 20 convolutions and the classifier, in the network's order.
inline std::vector<CoreProblem> resnet18_layers() {
  std::vector<CoreProblem> layers{square_convolution(3, 64, 224, 112, 7)};
  for (int i = 0; i < 4; ++i)
    layers.push_back(square_convolution(64, 64, 56, 56, 3));
  for (std::int64_t k = 128; k <= 512; k *= 2) {
    const std::int64_t out = 56 * 64 / k;
    layers.push_back(square_convolution(k / 2, k, 2 * out, out, 3));
    layers.push_back(square_convolution(k, k, out, out, 3));
    layers.push_back(square_convolution(k / 2, k, 2 * out, out, 1));
    layers.push_back(square_convolution(k, k, out, out, 3));
    layers.push_back(square_convolution(k, k, out, out, 3));
  }
  layers.push_back(test::product(512, 1, 1000));
  return layers;
}

} // namespace monet::bench
