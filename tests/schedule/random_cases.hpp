// Whole random cases: a step, a system, tiles, and core costs that are as good as any.
#pragma once

#include "schedule/random_networks.hpp"
#include "schedule/random_systems.hpp"

#include "monet/core_cost/core_cost.hpp"
#include "monet/schedule/schedule.hpp"
#include "monet/tiling/tiling.hpp"

namespace monet::testing {

struct RandomCase {
  TrainingGraph step;
  Chip chip;
  MappingFile mapping;
  TilingOptions options; ///< without the mapping
  Priority priority = Priority::latency;
  TileGraph tiles;

  /// make_tiles() as the case has it.
  TileGraph tiled() const {
    TilingOptions all = options;
    all.mapping = &mapping;
    return make_tiles(step, chip, all);
  }
};

struct CaseShape {
  NetworkShape network;
  SystemShape system;
  bool fused = false; ///< random stacks, or those that the tool chooses; halos of both kinds
};

/// Same seed, same case.
RandomCase random_case(std::uint64_t seed, const CaseShape& shape);

/// Entries by node, operator type and default: cores, and factors along loops that the operators
/// have and some that they have not.
MappingFile random_mapping(Random& random, const Graph& graph, const Chip& chip);

/// Runs of operators, with some left out here and there; or any operators at all.
std::vector<std::vector<OpId>> random_stacks(Random& random, const Graph& graph);

/// Grids made without the choices of make_tiles(): every loop that may be cut is, now and then,
/// sums included; each tile anywhere. Layer by layer, in the order of operators.
TileGraph random_grids(Random& random, const TrainingGraph& step, const Chip& chip);

/// A latency that depends on everything in the problem and looks like chance, and working space of
/// streamed operands likewise.
CoreCost hashed_cost(const CoreProblem& problem, const Core& core);

} // namespace monet::testing
