// What each operator of a step moves through the off-chip port when operators run whole, one after
// the other: tensors stay on the chip as long as there is room, those go first that are read last.
#pragma once

#include "monet/hardware/chip.hpp"
#include "monet/workload/graph.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace monet {

struct StepTraffic {
  enum class Source : std::uint8_t {
    chip,    ///< it is there already
    fetched, ///< it comes from the off-chip memory, to stay
    streamed ///< it comes from there as often as the operator goes over it
  };
  std::vector<std::vector<Source>> reads; ///< per operator and operand
  std::vector<bool> stored;               ///< per tensor: it is written to the off-chip memory
};

/// How an operator is shared out over the memories of several cores.
struct OperatorSpread {
  std::int64_t room = 0;           ///< bits that the cores hold that run it
  std::vector<std::int64_t> cores; ///< per operand, that each have the whole of it
};

/// `pool` says per operator which memory its operands lie in, `room` how many bits that holds, and
/// `spread`, where it is given, how much of it each operator has.
StepTraffic step_traffic(const Graph& graph, std::span<const std::uint32_t> pool,
                         std::span<const std::int64_t> room,
                         std::span<const OperatorSpread> spread = {});

} // namespace monet
