// Divides the slices of an operator over its cores, for the prices of price.cpp.
#include "hardware/shared/array_modes.hpp"
#include "tiling/fusion_estimate/price.hpp"
#include "tiling/partition/split.hpp"
#include "tiling/shared/grid.hpp"

#include <cmath>
#include <limits>
#include <tuple>

namespace monet {

namespace {

/// Cycles of a tile on a core whose lanes are all busy. Mappings of single layers come close: other
/// loops may be unrolled where those of the core's dataflow are short.
double cycles_of(std::span<const Interval> tile, const Core& core) {
  double iterations = 1;
  for (const Interval range : tile)
    iterations *= static_cast<double>(range.size());
  return std::ceil(iterations * static_cast<double>(cycles_per_product(core)) /
                   static_cast<double>(std::max<std::int64_t>(1, core.lanes())));
}

double port_width(const Core& core, MemoryOperand operand, Direction direction) {
  const Memory* memory = core.top(operand);
  const MemoryPort* port = memory != nullptr ? port_of(*memory, operand, direction) : nullptr;
  return port != nullptr && port->bandwidth_max > 0
             ? static_cast<double>(port->bandwidth_max) *
                   static_cast<double>(std::max<std::int64_t>(1, instances(core, *memory)))
             : std::numeric_limits<double>::infinity();
}

} // namespace

PortWidths ports_of(const Core& core) {
  const Memory* inputs = core.top(MemoryOperand::I1);
  const Memory* outputs = core.top(MemoryOperand::O);
  const bool shared = inputs != nullptr && inputs == outputs &&
                      port_of(*inputs, MemoryOperand::I1, Direction::tl) ==
                          port_of(*outputs, MemoryOperand::O, Direction::fl);
  return {port_width(core, MemoryOperand::I1, Direction::tl),
          port_width(core, MemoryOperand::O, Direction::fl), shared};
}

/// Data that one slice of an operator moves, per operand.
struct GroupPricer::SliceTraffic {
  struct Operand {
    const Access* access;
    double touched;    ///< bits
    double brought;    ///< bits from off-chip
    bool adds = false; ///< to the sums of earlier slices
  };
  std::vector<Operand> operands;

  /// Criteria of choose_split() if the slice takes `cycles` in `count` parts along the loop.
  /// `width`: bits per cycle from off-chip.
  std::tuple<double, double, double> key(double cycles, std::uint32_t dim, std::int64_t count,
                                         double width) const {
    double moving = 0;
    double all = 0;
    for (const Operand& operand : operands) {
      const double times =
          count > 1 && !moved_by(*operand.access, dim) ? static_cast<double>(count) : 1.0;
      moving += operand.brought * times;
      all += operand.touched * times;
    }
    return {std::max(cycles, moving / width), cycles, all};
  }

  /// Minimum cycles to move the data of one of `count` parts along the loop through the ports.
  double min_cycles(const PortWidths& ports, std::optional<std::uint32_t> dim,
                    std::int64_t count) const {
    double read = 0;
    double written = 0;
    for (const Operand& operand : operands) {
      const double bits = dim && moved_by(*operand.access, *dim)
                              ? operand.touched / static_cast<double>(count)
                              : operand.touched;
      (operand.access->mode == AccessMode::read ? read : written) += bits;
      read += operand.adds ? bits : 0.0;
    }
    return ports.cycles(read, written);
  }
};

/// `slice`: its ranges; `parts`: its loops that are not whole.
GroupPricer::SliceTraffic GroupPricer::traffic_of(const LoopNest& nest,
                                                  std::span<const Interval> slice,
                                                  const GroupSlices::Parts& parts) const {
  SliceTraffic traffic;
  for (const Access& access : nest.operands) {
    const Tensor& tensor = graph_.tensor(access.tensor);
    const auto touched = static_cast<double>(
        storage_of(tensor.type, volume(region(access, slice, tensor.shape))).value);
    double sharing = 1;
    bool adds = false;
    for (const auto& [dim, size] : parts) {
      if (moved_by(access, dim))
        continue;
      sharing *= static_cast<double>(nest.dims[dim].size) / static_cast<double>(size);
      adds = access.mode != AccessMode::read;
    }
    const bool comes = !tensor.producer || (parts.empty() && bits_[access.tensor.index()] >
                                                                 static_cast<double>(onchip_));
    traffic.operands.push_back({&access, touched, comes ? touched / sharing : 0.0, adds});
  }
  return traffic;
}

/// The division of slices of these sizes, computed once.
const GroupPricer::Share& GroupPricer::share(OpId op, const GroupSlices::Parts& parts) {
  const std::vector<Share>& known = known_[op.index()];
  const auto found = std::ranges::find(known, parts, &Share::parts);
  return found != known.end() ? *found : add_share(op, parts);
}

/// Divides slices of these sizes over all cores, half of them, a quarter and so on, by the criteria
/// of choose_split(). Stores the best.
const GroupPricer::Share& GroupPricer::add_share(OpId op, const GroupSlices::Parts& parts) {
  const LoopNest& nest = graph_.op(op).nest;
  const auto& list = cores_[op.index()];
  const Core& core = weakest(op.index());
  const PortWidths ports = ports_of(core);
  std::vector<Interval> tile = full_tile(nest);
  for (const auto& [dim, size] : parts)
    tile[dim] = {0, size};
  const SliceTraffic traffic = traffic_of(nest, tile, parts);
  Share best{parts, cycles_of(tile, core), traffic.min_cycles(ports, std::nullopt, 1), std::nullopt,
             1};
  const auto alone = static_cast<double>(estimated_cycles(nest, tile, core));
  auto best_key = traffic.key(alone, 0, 1, offchip_.read);
  for (std::uint32_t d = 0; list.size() > 1 && d < tile.size(); ++d) {
    const Interval whole = tile[d];
    if (whole.size() < 2 || alone < kSmallestSplitCycles || !may_split(nest, d))
      continue;
    for (std::int64_t count = std::ssize(list); count > 1; count /= 2) {
      const std::int64_t used = ceil_div(whole.size(), ceil_div(whole.size(), count));
      tile[d] = {0, ceil_div(whole.size(), used)};
      const auto cycles = static_cast<double>(estimated_cycles(nest, tile, core));
      const auto key = traffic.key(cycles, d, used, offchip_.read);
      if (key < best_key) {
        best_key = key;
        best = {parts, cycles_of(tile, core), traffic.min_cycles(ports, d, used), d, used};
      }
    }
    tile[d] = whole;
  }
  return known_[op.index()].emplace_back(std::move(best));
}

} // namespace monet
