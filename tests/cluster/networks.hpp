// Small networks, and strategies drawn at random.
#pragma once

#include "monet/cluster/partition.hpp"
#include "monet/cluster/pipeline.hpp"
#include "monet/training_graph/training.hpp"
#include "monet/workload/transformer.hpp"

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

/// A small transformer: 2 layers, hidden 16, 4 heads, 8 tokens; with groups of heads, gated or
/// plain products, either normalisation, tied or not, as drawn.
TransformerShape some_transformer(Random& random, std::int64_t batch);
/// The same with 4 experts in one layer or in both, of which a token chooses 1 or 2; some have so
/// little room that they drop tokens.
TransformerShape some_mixture(Random& random, std::int64_t batch);
/// Patterns of what runs again: what attention makes between its products, or all of each layer.
std::vector<std::string> some_recomputation(Random& random);

struct Sizes {
  bool tokens = false;   ///< inputs have a second axis of tokens
  bool experts = false;  ///< an axis for experts
  std::int64_t most = 4; ///< ranks along an axis
  std::int64_t samples = 16;
  std::int64_t ranks = 16; ///< of all axes together
};
std::vector<MeshAxis> some_mesh(Random& random, const Sizes& sizes);
std::string words(const std::vector<MeshAxis>& mesh);

/// Four micro-batches suffice for each.
struct PipelineCase {
  PipelineKind kind = PipelineKind::gpipe;
  std::int64_t stages = 1;
  std::int64_t chunks = 1;
};
PipelineCase some_pipeline(Random& random);
std::string words(const PipelineCase& pipeline);

} // namespace monet::test
