// Bounds of any schedule, by the argument of docs/explanation/backward-dataflow.md#bounds.
#include "core_cost/joint_mapping/problem.hpp"

#include "monet/core_cost/backward.hpp"

#include <algorithm>
#include <cmath>

namespace monet {
namespace {

using namespace joint_mapping;

/// Lower bound on words between a memory of `words` and DRAM for `macs` products of two factors
/// into one sum: 2 macs / sqrt(words) - 2 words, in words of the narrowest operand.
double pebble_words(double macs, double words) {
  return 2 * macs / std::sqrt(words) - 2 * words;
}

} // namespace

BackwardBound backward_bound(const GemmPair& pair, const NpuMachine& machine,
                             const BackwardOptions& options) {
  const PairProblem problem = make_problem(pair, machine, options, false);
  const auto once = [&](BackwardOperand operand) {
    return static_cast<Wide>(problem.elements(operand)) * problem.moved[at(operand)];
  };
  Wide fine = once(BackwardOperand::dy) + once(BackwardOperand::x) + once(BackwardOperand::dw);
  if (pair.has_dx)
    fine += once(BackwardOperand::w) + once(BackwardOperand::dx);
  BackwardBound bound;
  bound.compulsory_bits = static_cast<std::int64_t>(fine * pair.repeats / kFine);

  // A raw feature map yields several matrix elements per moved element, so the bound does not
  // apply.
  const bool raw = options.im2col == Im2col::raw && pair.raw_elements > 0;
  const std::int64_t word = std::min(options.element_bits, options.partial_bits);
  const auto words = static_cast<double>(machine.buffer_bits / word);
  if (!raw && words >= 1) {
    const double macs = static_cast<double>(pair.m) * static_cast<double>(pair.k) *
                        static_cast<double>(pair.n) * (pair.has_dx ? 2 : 1);
    const double bits =
        pebble_words(macs, words) * static_cast<double>(word) * static_cast<double>(pair.repeats);
    // Corrects rounding: the last digits of a double may be too large.
    bound.pebble_bits = std::max<std::int64_t>(0, static_cast<std::int64_t>(bits * (1 - 1e-12)));
  }
  bound.dram_bits = std::max(bound.compulsory_bits, bound.pebble_bits);

  Wide cycles = 0;
  if (options.timing == TileTiming::core) {
    const std::int64_t lanes = machine.rows * machine.columns;
    const std::int64_t macs = pair.m * pair.k * pair.n * (pair.has_dx ? 2 : 1);
    cycles = macs / lanes;
  } else {
    cycles = problem.cycles(kDw, problem.size);
    if (pair.has_dx)
      cycles += problem.cycles(kDx, problem.size);
  }
  const std::int64_t transfer = transfer_cycles(bound.dram_bits, machine);
  // The parts of a pair take no fewer cycles in total, and some core takes at least the mean.
  bound.latency_cycles = std::max(cycles_of(cycles * pair.repeats, machine.cores), transfer);
  return bound;
}

} // namespace monet
