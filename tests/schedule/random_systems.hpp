// Random systems: cores, memories, links.
#pragma once

#include "schedule/random.hpp"
#include "schedule/small_steps.hpp"

namespace monet::testing {

struct SystemShape {
  int cores = 8;                   ///< at most
  std::int64_t min_bits = 1 << 13; ///< of a core's memory
  std::int64_t max_bits = 1 << 19;
  bool latency = false; ///< links have some, most of them
  bool rows = false;    ///< the off-chip memory has banks and rows
};

/// Cores 0..n-1 of one to 32 lanes, at least one of which runs everything; links as a mesh, a
/// chain, a ring, a bus, from each to each, or none; some cores share a memory; one or two ports of
/// the off-chip memory, on one link or on one each way.
Chip random_chip(Random& random, const SystemShape& shape = {});

} // namespace monet::testing
