// Random small networks as ONNX files, of every family of operators that the reader knows.
#pragma once

#include "schedule/random.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace monet::testing {

/// What a network is grown from: the same recipe, the same network. Smaller recipes (fewer layers,
/// smaller sizes) are of smaller networks, so that failures can be shrunk.
struct NetworkRecipe {
  std::uint64_t seed = 1;            ///< of its inputs and outputs
  std::vector<std::uint64_t> layers; ///< a seed each
  bool begins_with_weight = false;   ///< so that there is something to train
  std::int64_t largest = 7;          ///< size of an axis of an input or weight
};

struct RandomNetwork {
  std::string onnx;                ///< bytes
  std::vector<std::string> layers; ///< family of each layer of the recipe; "" = refused
};

/// Nodes that the reader refuses are left out.
RandomNetwork grow(const NetworkRecipe& recipe);

/// Names of all families.
std::vector<std::string> layer_families();

/// Nodes, inputs and initialisers of a network, a line each.
std::string in_words(const std::string& onnx);

} // namespace monet::testing
