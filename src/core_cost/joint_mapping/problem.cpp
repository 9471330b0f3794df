// Converts a pair of products to the integer problem of the joint search and computes tile cycles.
#include "core_cost/joint_mapping/problem.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/units.hpp"

#include <fmt/format.h>

namespace monet::joint_mapping {

std::array<int, 3> array_roles(int product, TileTiming timing) {
  switch (timing) {
  case TileTiming::systolic_ws: // the right factor: its summed dimension on the rows
    return product == kDx ? std::array<int, 3>{2, 1, 0} : std::array<int, 3>{0, 2, 1};
  case TileTiming::systolic_is: // the left factor
    return product == kDx ? std::array<int, 3>{2, 0, 1} : std::array<int, 3>{0, 1, 2};
  default: // the result
    return product == kDx ? std::array<int, 3>{0, 1, 2} : std::array<int, 3>{1, 2, 0};
  }
}

std::int64_t PairProblem::cycles(int product, const std::array<std::int64_t, kDims>& tile) const {
  const auto [r, c, t] = array_roles(product, timing);
  const std::int64_t in_rows = tile[at(r)];
  const std::int64_t in_columns = tile[at(c)];
  const std::int64_t streams = tile[at(t)];
  switch (timing) {
  case TileTiming::none:
    return 0;
  case TileTiming::core:
    return tile_cycles(in_rows, in_columns, streams);
  default:
    return ceil_div(in_rows, rows) * ceil_div(in_columns, columns) * (streams + fill);
  }
}

namespace {

void check_question(const GemmPair& pair, const NpuMachine& machine,
                    const BackwardOptions& options) {
  for (const std::int64_t size : {pair.m, pair.k, pair.n})
    internal_check(size >= 1 && size <= kMaxGemmDimension, "a dimension of a GEMM");
  internal_check(pair.repeats >= 1 && pair.raw_elements >= 0, "repeats of a GEMM");
  constexpr std::int64_t kMaxRate = std::int64_t{1} << 20;
  internal_check(machine.rows >= 1 && machine.columns >= 1 && machine.rows <= kMaxRate &&
                     machine.columns <= kMaxRate && machine.buffer_bits >= 0 &&
                     machine.bandwidth_bits >= 1 && machine.bandwidth_bits <= kMaxRate &&
                     machine.bandwidth_cycles >= 1 && machine.bandwidth_cycles <= kMaxRate,
                 "an NPU has an array, a memory and a bandwidth");
  internal_check(options.element_bits >= 1 && options.element_bits <= 64 &&
                     options.partial_bits >= 1 && options.partial_bits <= 64 &&
                     options.state_bits >= 0 && options.state_bits <= 128,
                 "widths of elements");
  internal_check(options.timing != TileTiming::core || options.tile_cycles != nullptr,
                 "cycles of tiles by core need a function");
  if (static_cast<double>(pair.m) * static_cast<double>(pair.k) * static_cast<double>(pair.n) *
          static_cast<double>(pair.repeats) >
      static_cast<double>(kMaxGemmMacs))
    throw InfeasibleError(fmt::format("{} x {} x {}{} products are more than 2^45", pair.m, pair.k,
                                      pair.n,
                                      pair.repeats > 1 ? fmt::format(" x {}", pair.repeats) : ""));
}

/// 1/256 bit per element of an expanded matrix of which `raw` elements are moved, rounded up.
std::int64_t share(std::int64_t bits, std::int64_t raw, std::int64_t elements) {
  const Wide product = static_cast<Wide>(bits) * kFine * raw;
  return static_cast<std::int64_t>((product + elements - 1) / elements);
}

} // namespace

PairProblem make_problem(const GemmPair& pair, const NpuMachine& machine,
                         const BackwardOptions& options, bool update) {
  check_question(pair, machine, options);
  PairProblem p;
  p.size = {pair.m, pair.k, pair.n};
  p.has_dx = pair.has_dx;
  p.room = machine.double_buffered ? machine.buffer_bits / 2 : machine.buffer_bits;
  p.held.fill(options.element_bits);
  p.held[at(BackwardOperand::dx)] = p.held[at(BackwardOperand::dw)] = options.partial_bits;
  p.moved.fill(options.element_bits * kFine);
  p.moved_partial.fill(options.partial_bits * kFine);
  const std::int64_t expanded = pair.m * pair.k;
  if (options.im2col == Im2col::raw && pair.raw_elements > 0 && pair.raw_elements < expanded) {
    for (const BackwardOperand operand : {BackwardOperand::x, BackwardOperand::dx}) {
      p.moved[at(operand)] = share(options.element_bits, pair.raw_elements, expanded);
      p.moved_partial[at(operand)] = share(options.partial_bits, pair.raw_elements, expanded);
    }
  }
  p.update = update;
  if (update) {
    p.update_held = options.element_bits + options.state_bits;
    p.update_read = p.update_write = p.update_held * kFine;
  }
  p.cycle_units = machine.bandwidth_bits * kFine;
  p.move_units = machine.bandwidth_cycles;
  p.hide_writes = options.hide_writes;
  p.timing = options.timing;
  p.rows = machine.rows;
  p.columns = machine.columns;
  p.fill = options.fill_and_drain ? fill_and_drain(machine.rows, machine.columns) : 0;
  p.tile_cycles = options.tile_cycles;
  return p;
}

} // namespace monet::joint_mapping
