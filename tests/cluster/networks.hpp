// Small networks, and strategies drawn at random.
#pragma once

#include "monet/cluster/partition.hpp"
#include "monet/training/training.hpp"

#include <initializer_list>
#include <random>
#include <string>
#include <vector>

namespace monet::test {

using Random = std::mt19937_64;

std::int64_t pick(Random& random, std::initializer_list<std::int64_t> from);

/// Of data/workload.
Graph read_network(const std::string& name, std::int64_t batch);
/// x [B, 24] -> three products -> 8 classes; with biases and activations unless linear.
Graph small_mlp(std::int64_t batch, bool linear = false);

TrainingOptions some_options(Random& random);

struct Sizes {
  bool tokens = false;   ///< inputs have a second axis of tokens
  std::int64_t most = 4; ///< ranks along an axis
};
std::vector<MeshAxis> some_mesh(Random& random, const Sizes& sizes);
std::string words(const std::vector<MeshAxis>& mesh);

} // namespace monet::test
