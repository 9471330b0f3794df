// What equal tiles have in common: what they read and write, how much of it, and what flows by.
#pragma once

#include "monet/schedule/tile_costs.hpp"

#include <optional>
#include <vector>

namespace monet {

/// A tensor that tiles of a kind read, however many operands read it.
struct KindRead {
  TensorId tensor;
  MemoryOperand memory = MemoryOperand::I1; ///< as what it is kept
  std::uint32_t operand = 0;                ///< the first that reads it
  bool kept = false;                        ///< an operand has it in the core's memory
  bool streamed = false;                    ///< an operand has it flow by
};

struct KindOutput {
  TensorId tensor;
  std::uint32_t operand = 0;
  Bits bits;    ///< of the finished piece
  Bits partial; ///< while later tiles add to it
  bool streamed = false;
};

/// Tiles of one row of the costs.
struct TileKind {
  OpId op;
  const CoreProblem* problem = nullptr;
  const CoreCost* cost = nullptr;
  std::uint32_t row = 0; ///< of Timeline::costs
  std::vector<KindRead> reads;
  std::vector<KindOutput> outputs;
  bool streams_reads = false;
  Bits working_space; ///< of streamed operands, as the core cost asks for it
  Bits most_bits;     ///< that a tile may want in its core's memory at once

  const KindRead* read_of(TensorId tensor) const {
    for (const KindRead& read : reads) {
      if (read.tensor == tensor)
        return &read;
    }
    return nullptr;
  }
  /// Which output the tensor is, if any.
  std::optional<std::uint32_t> output_of(TensorId tensor) const {
    for (std::uint32_t k = 0; k < outputs.size(); ++k) {
      if (outputs[k].tensor == tensor)
        return k;
    }
    return std::nullopt;
  }
};

/// One per row of the costs; their `row` is the caller's to fill in. A row without tiles has no
/// reads and outputs.
std::vector<TileKind> make_kinds(const TileGraph& tiles, const Graph& graph,
                                 const TileCosts& costs);

} // namespace monet
