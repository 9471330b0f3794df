#include "schedule/check/row_invariants.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace monet {

namespace {

/// Cycles that equal parts of a transfer's bits in so many rows take: every bank opens its next row
/// as soon as the one before has passed, one row after the other passes the port.
std::int64_t simulated(const DramRows& dram, std::int64_t rows, std::int64_t streaming) {
  // In units of 1/rows cycles, so that the time in which a row passes is whole.
  std::vector<std::int64_t> open(static_cast<std::size_t>(std::min(dram.banks, rows)),
                                 dram.t_row * rows);
  std::int64_t port = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t& bank = open[static_cast<std::size_t>(row) % open.size()];
    port = std::max(port, bank) + streaming;
    bank = port + dram.t_row * rows;
  }
  return ceil_div(port, rows);
}

/// Rows that a box touches, run by run in the order of addresses.
std::int64_t touched_rows(const Box& box, std::span<const std::int64_t> shape,
                          std::int64_t element_bits, std::int64_t row_bits) {
  if (volume(box) == 0)
    return 0;
  std::vector<std::int64_t> at; // of the run: all axes but the last
  for (std::size_t a = 0; a + 1 < box.size(); ++a)
    at.push_back(box[a].begin);
  const Interval run = box.empty() ? Interval{0, 1} : box.back();
  std::int64_t rows = 0;
  std::int64_t last = -1;
  for (;;) {
    std::int64_t line = 0;
    for (std::size_t a = 0; a < at.size(); ++a)
      line = line * shape[a] + at[a];
    const std::int64_t begin = line * (box.empty() ? 1 : shape.back());
    const std::int64_t first = (begin + run.begin) * element_bits / row_bits;
    const std::int64_t end = ((begin + run.end) * element_bits - 1) / row_bits;
    rows += end - std::max(first, last + 1) + 1;
    last = end;
    std::size_t axis = at.size();
    while (axis > 0 && ++at[axis - 1] == box[axis - 1].end) {
      --axis;
      at[axis] = box[axis].begin;
    }
    if (axis == 0)
      return rows;
  }
}

class RowChecker {
public:
  RowChecker(const Timeline& timeline, const TileGraph& tiles, const Graph& graph, const Chip& chip)
      : timeline_(timeline), tiles_(tiles), graph_(graph), chip_(chip), port_(offchip_port(chip)) {}

  void check() const {
    check_times();
    if (port_.rows)
      check_boxes();
  }

private:
  bool passes_port(const Route& route) const {
    return route.from == chip_.offchip ||
           std::ranges::find(route.to, chip_.offchip) != route.to.end();
  }

  /// Bits per cycle of the narrowest link or port.
  std::int64_t width_of(const Route& route) const {
    std::int64_t width =
        route.from == chip_.offchip ? port_.read_bits_per_cycle : port_.write_bits_per_cycle;
    for (const LinkId link : route.links)
      width = std::min(width, chip_.links[link.index()].bandwidth_bits_per_cycle);
    return width;
  }

  void check_times() const {
    std::vector<std::int64_t> least(timeline_.transfer_costs.size(), 0); // cycles
    for (std::size_t i = 0; i < least.size(); ++i) {
      const TransferCost& cost = timeline_.transfer_costs[i];
      const Route& route = timeline_.routes.at(cost.route);
      if (!port_.rows || !passes_port(route)) {
        internal_check(cost.rows == 0, "a transfer opens rows that there are not");
        continue;
      }
      internal_check(cost.rows >= ceil_div(cost.bits.value, port_.rows->row_bits),
                     "a transfer opens fewer rows than its bits fill");
      least[i] = simulated(*port_.rows, cost.rows, ceil_div(cost.bits.value, width_of(route)));
    }
    for (const Transfer& t : timeline_.transfers) {
      if ((t.end - t.start).value < least[t.cost])
        throw InternalError(fmt::format("transfer of '{}' is faster than the rows that it opens",
                                        graph_.tensor(t.tensor).name));
    }
  }

  /// What an operator's tiles read of a tensor that nobody makes, where all read as much of it.
  struct Boxes {
    std::int64_t bits = 0; ///< of each; 0 = they differ
    std::int64_t least_rows = INT64_MAX;
    std::int64_t most_rows = 0;
  };

  Boxes boxes_of(OpId op, TensorId id) const {
    const Tensor& tensor = graph_.tensor(id);
    const auto [first, last] = tiles_.tiles_of(op);
    Boxes boxes;
    const Access* seen = nullptr;
    for (const Access& access : graph_.op(op).nest.operands) {
      if (access.tensor != id || access.mode != AccessMode::read)
        continue;
      if (seen != nullptr)
        return {};
      seen = &access;
      for (std::uint32_t t = first; t < last; ++t) {
        const Box box = region(access, tiles_.ranges(TileId(t)), tensor.shape);
        const std::int64_t bits = storage_of(tensor.type, volume(box)).value;
        if (bits == 0 || (boxes.bits != 0 && bits != boxes.bits))
          return {};
        boxes.bits = bits;
        const std::int64_t rows =
            touched_rows(box, tensor.shape, bits_of(tensor.type), port_.rows->row_bits);
        boxes.least_rows = std::min(boxes.least_rows, rows);
        boxes.most_rows = std::max(boxes.most_rows, rows);
      }
    }
    return boxes;
  }

  /// What is fetched for a tile is its box or some of it. A transfer of as many bits as the boxes
  /// of all tiles have is a whole one, and opens the rows that it touches.
  void check_boxes() const {
    std::map<std::pair<OpId, TensorId>, Boxes> known;
    for (const Transfer& t : timeline_.transfers) {
      if (t.kind != TransferKind::fetch || timeline_.route_of(t).from != chip_.offchip ||
          graph_.tensor(t.tensor).producer || block_of(graph_.tensor(t.tensor).type).size > 1)
        continue;
      const auto [found, added] = known.try_emplace({t.op, t.tensor});
      if (added)
        found->second = boxes_of(t.op, t.tensor);
      const Boxes& boxes = found->second;
      const TransferCost& cost = timeline_.cost_of(t);
      if (boxes.bits == cost.bits.value &&
          (cost.rows < boxes.least_rows || cost.rows > boxes.most_rows))
        throw InternalError(fmt::format("a transfer of '{}' opens {} rows, not {} to {}",
                                        graph_.tensor(t.tensor).name, cost.rows, boxes.least_rows,
                                        boxes.most_rows));
    }
  }

  const Timeline& timeline_;
  const TileGraph& tiles_;
  const Graph& graph_;
  const Chip& chip_;
  OffchipPort port_;
};

} // namespace

void verify_rows(const Timeline& timeline, const TileGraph& tiles, const Graph& graph,
                 const Chip& chip) {
  RowChecker(timeline, tiles, graph, chip).check();
}

} // namespace monet
