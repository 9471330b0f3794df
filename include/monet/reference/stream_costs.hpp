// Core costs of `--model stream-coala`. They are read from files in our own format or the
// reference's (cost_lut.json, schedule.json, comm_events.json), or computed by our own core model.
// Format: docs/explanation/stream-coala-costs.md.
// Example:
//   Result schedule_network(const Graph& network, const Chip& chip, const MappingFile& mapping) {
//     const Workload workload = make_stream_workload(network, chip, mapping);
//     return schedule(workload, chip, core_costs(workload, chip));
//   }
#pragma once

#include "monet/base/errors.hpp"
#include "monet/reference/stream_tiles.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace monet::stream {

/// Costs of a layer's tiles on a core, as in a file. Figures that the file lacks are empty.
struct CostRow {
  std::optional<int> layer; ///< id of the layer; nullopt: `node` names it
  std::string node;
  std::int64_t core = 0;
  std::vector<std::pair<std::string, std::int64_t>> dims; ///< sizes of a tile; empty: any
  std::optional<double> runtime;                          ///< in cycles
  std::optional<double> other_runtime; ///< latency_total1 if `runtime` is latency_total2, in cycles
  std::optional<double> onchip_pj;
  std::optional<double> offchip_pj;
  std::optional<std::vector<MemoryOperand>> streamed;
  std::array<std::optional<std::int64_t>, kMemoryOperands> offchip_bandwidth;
  SourceLoc where;
};

/// Execution of one tile in the reference's schedule.json.
struct TileRow {
  int layer = 0;
  std::int64_t sub = 0;
  std::int64_t core = 0;
  double runtime = 0; ///< in cycles, truncated to an integer
  double onchip_pj = 0;
  double offchip_pj = 0;
  SourceLoc where;
};

/// Bandwidth of a streamed operand (a `block` of comm_events.json).
struct StreamRow {
  int layer = 0;
  MemoryOperand operand = MemoryOperand::O;
  std::int64_t core = 0;
  std::int64_t bandwidth = 0; ///< in bits per cycle
};

/// Content of core-cost files.
struct CostTable {
  std::vector<CostRow> costs;
  std::vector<TileRow> tiles;
  std::vector<StreamRow> streams;
  bool has_events = false; ///< whether a comm_events.json was among the files
};

/// Parses one file of any of these kinds; `origin` names it in messages. Throws InputError with all
/// problems found.
CostTable parse_core_costs(std::string_view text, const std::string& origin);

/// Reads files, and folders with any of cost_lut.json, schedule.json, comm_events.json and
/// core_costs.json.
CostTable read_core_costs(const std::vector<std::string>& paths);

/// Finds the cost of every tile of a workload in a table. If files disagree, schedule.json has
/// precedence over cost_lut.json, but latency_total2 (or latency_total1) keeps its fraction.
/// Figures of streams that cost_lut.json lacks (bandwidths, off-chip energy) are from our own core
/// model, with a note. Throws InputError that names layers and cores without cost, or with costs of
/// other tiles.
Costs core_costs(const CostTable& table, const Workload& workload, const Chip& chip);

/// Computes the cost of every tile with our own model of ZigZag 3.8, called as the reference calls
/// it (see core_cost/shared/streamed_cost.hpp). Throws InputError without an off-chip memory, and
/// InfeasibleError naming the layer if no mapping fits.
Costs core_costs(const Workload& workload, const Chip& chip);

/// Size of an operand in a tile of the layer: its number of distinct elements times `bits`.
std::int64_t operand_bits(const Layer& layer, Operand operand, int bits);

/// Operands of a tile that stream because they do not fit into their outermost memories, in the
/// order of the equation. If the layer is alone in its stack, all operands stream. Otherwise, the
/// largest operands of a memory stream until the rest fits, with room left for the innermost
/// memories of streamed operands. Outputs count at the precision of partial sums.
std::vector<MemoryOperand> streamed_operands(const Workload& workload, std::uint32_t tile,
                                             const Chip& chip);

} // namespace monet::stream
