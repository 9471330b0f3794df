#include "monet/core_cost/front.hpp"

#include "base/shared/pareto.hpp"
#include "core_cost/scatter/input_gradient.hpp"
#include "core_cost/search/mapping_search.hpp"

#include "monet/base/checked.hpp"
#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <exception>
#include <numeric>
#include <utility>

namespace monet {

namespace {

/// All sets of operands to stream: the marked ones always, fewer others first.
std::vector<CoreProblem> streaming_sets(const CoreProblem& problem, const FrontOptions& front) {
  std::vector<std::size_t> choices;
  for (const std::size_t i : front.may_stream) {
    internal_check(i < problem.operands.size(), "an operand of the problem may stream");
    const bool known = std::ranges::find(choices, i) != choices.end();
    if (!problem.operands[i].offchip && !known)
      choices.push_back(i);
  }
  if (choices.size() > kMostStreamed) {
    throw InfeasibleError(
        fmt::format("{} operands may be streamed or not; at most {} are supported", choices.size(),
                    kMostStreamed));
  }
  std::vector<std::uint32_t> sets(std::size_t{1} << choices.size());
  std::iota(sets.begin(), sets.end(), 0U);
  std::ranges::stable_sort(sets, {}, [](std::uint32_t set) { return std::popcount(set); });
  std::vector<CoreProblem> problems;
  for (const std::uint32_t set : sets) {
    CoreProblem chosen = problem;
    for (std::size_t c = 0; c < choices.size(); ++c)
      chosen.operands[choices[c]].offchip = (set >> c & 1U) != 0;
    problems.push_back(std::move(chosen));
  }
  return problems;
}

/// The core with the room for slices halved `halvings` times in every top memory of a streamed
/// operand.
Core with_less_room(const CoreProblem& problem, const Core& core, int halvings) {
  Core smaller = core;
  for (Memory& memory : smaller.memories) {
    std::int64_t kept = 0;
    bool slices = false;
    for (const ProblemOperand& operand : problem.operands) {
      if (smaller.top(operand.memory) != &memory)
        continue;
      slices = slices || operand.offchip;
      if (!operand.offchip)
        kept = checked_add(kept, footprint(operand));
    }
    const std::int64_t whole = ceil_div(kept, instances(core, memory));
    if (slices && whole < memory.size.value)
      memory.size.value = whole + ((memory.size.value - whole) >> halvings);
  }
  return smaller;
}

void add_points(const CoreProblem& problem, const Core& core, const CoreCostOptions& options,
                std::vector<FrontPoint>& points) {
  for (CoreCost& cost : core_cost_detail::mappings(problem, core, options)) {
    FrontPoint point;
    for (const ProblemOperand& operand : problem.operands)
      point.streamed.push_back(operand.offchip);
    const core_cost_detail::Priced p = core_cost_detail::priced(cost, options.offchip);
    point.latency = p.latency;
    point.energy = p.energy;
    for (const Bits bits : cost.resident)
      point.footprint += bits;
    point.cost = std::move(cost);
    points.push_back(std::move(point));
  }
}

} // namespace

std::vector<FrontPoint> core_cost_front(const CoreProblem& problem, const Core& core,
                                        const CoreCostOptions& options, const FrontOptions& front) {
  std::vector<FrontPoint> points;
  std::exception_ptr failure;
  for (const CoreProblem& chosen : streaming_sets(problem, front)) {
    // Slices of a vector nest have one size.
    const bool sized = chosen.compute == ComputeKind::mac && streams(chosen);
    const int rooms = sized ? std::clamp(front.halvings, 0, 62) : 0;
    for (int halvings = 0; halvings <= rooms; ++halvings) {
      try {
        add_points(chosen, with_less_room(chosen, core, halvings), options, points);
      } catch (const InfeasibleError&) {
        if (!failure)
          failure = std::current_exception();
        break; // with less room nothing fits either
      }
    }
  }
  if (points.empty())
    std::rethrow_exception(failure);
  std::vector<Objectives> figures;
  for (const FrontPoint& point : points)
    figures.push_back({point.latency, point.energy, static_cast<double>(point.footprint.value)});
  std::vector<FrontPoint> kept;
  for (const std::size_t i : non_dominated(figures))
    kept.push_back(std::move(points[i]));
  return kept;
}

} // namespace monet
