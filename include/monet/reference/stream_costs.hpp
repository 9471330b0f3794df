// Core costs of `--model stream-coala`: from files in our own format or the reference's
// (cost_lut.json, schedule.json, comm_events.json), or from our own core model. Format:
// docs/explanation/stream-coala-costs.md.
#pragma once

#include "monet/base/errors.hpp"
#include "monet/reference/stream_coala.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace monet::stream {

/// What a file says of the tiles of a layer on a core. Figures that it does not give are empty.
struct CostRow {
  std::optional<int> layer; ///< id; else the node's name counts
  std::string node;
  std::int64_t core = 0;
  std::vector<std::pair<std::string, std::int64_t>> dims; ///< of a tile; empty = any
  std::optional<double> runtime;                          ///< cycles
  std::optional<double> other_runtime;                    ///< latency_total1 beside latency_total2
  std::optional<double> onchip_pj;
  std::optional<double> offchip_pj;
  std::optional<std::vector<MemoryOperand>> streamed;
  std::array<std::optional<std::int64_t>, kMemoryOperands> offchip_bandwidth;
  SourceLoc where;
};

/// A tile as the reference ran it (schedule.json).
struct TileRow {
  int layer = 0;
  std::int64_t sub = 0;
  std::int64_t core = 0;
  double runtime = 0; ///< truncated
  double onchip_pj = 0;
  double offchip_pj = 0;
  SourceLoc where;
};

/// Bandwidth that a streamed operand took (a `block` of comm_events.json).
struct StreamRow {
  int layer = 0;
  MemoryOperand operand = MemoryOperand::O;
  std::int64_t core = 0;
  std::int64_t bandwidth = 0; ///< bits per cycle
};

struct CostTable {
  std::vector<CostRow> costs;
  std::vector<TileRow> tiles;
  std::vector<StreamRow> streams;
  bool has_events = false; ///< a comm_events.json was among the files
};

/// One file of any of these kinds; InputError with every problem found. `origin` names it.
CostTable parse_core_costs(std::string_view text, const std::string& origin);

/// Files, and folders of which cost_lut.json, schedule.json, comm_events.json and core_costs.json
/// are read where present.
CostTable read_core_costs(const std::vector<std::string>& paths);

/// The cost of every tile of the workload. Where files disagree, schedule.json decides over
/// cost_lut.json, but latency_total2 (or latency_total1) keeps its fraction. What cost_lut.json
/// alone does not say of streams (bandwidths, off-chip energy) comes from our own core model, with
/// a note. InputError naming layers and cores without cost, or with costs of other tiles.
Costs core_costs(const CostTable& table, const Workload& workload, const Chip& chip);

/// The cost of every tile from our own model of ZigZag 3.8, as the reference asks it (see
/// monet/core_cost/streamed_cost.hpp). InputError without an off-chip memory; InfeasibleError
/// naming the layer when no mapping fits.
Costs core_costs(const Workload& workload, const Chip& chip);

/// Different elements that a tile of the layer uses of an operand, times `bits`.
std::int64_t operand_bits(const Layer& layer, Operand operand, int bits);

/// Operands of a tile that do not fit into their outermost memories and therefore stream, in the
/// order of the equation: all of a layer that is alone in its stack; else the largest of a memory
/// until the rest fits, with room left for the innermost memories of what streams. Outputs count at
/// the precision of partial sums.
std::vector<MemoryOperand> streamed_operands(const Workload& workload, std::uint32_t tile,
                                             const Chip& chip);

} // namespace monet::stream
