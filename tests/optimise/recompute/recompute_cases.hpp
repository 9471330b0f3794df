// Small random recomputation problems and their optima by brute force.
#pragma once

#include "base/shared/rng.hpp"

#include "monet/optimise/recompute_problem.hpp"

#include <map>
#include <optional>
#include <queue>
#include <tuple>
#include <vector>

namespace monet {

/// At most seven operators with few inputs, some with two outputs, none, scratch, or no second run.
inline RecomputeProblem random_recompute_problem(std::uint64_t seed, std::uint32_t max_ops = 7) {
  std::uint64_t counter = 0;
  const auto draw = [&](std::uint64_t below) {
    return static_cast<std::uint32_t>(random_bits(seed, counter++) % below);
  };
  RecomputeProblem p;
  p.buffers.push_back({"given", draw(4), std::nullopt, false});
  const std::uint32_t ops = 2 + draw(max_ops - 1);
  for (std::uint32_t i = 0; i < ops; ++i) {
    RecomputeProblem::Op op;
    op.name = "op" + std::to_string(i);
    op.cost = draw(10);
    op.scratch = draw(5) == 0 ? draw(4) : 0;
    op.repeatable = draw(12) != 0;
    std::vector<bool> chosen(p.buffers.size());
    const std::uint32_t reads = 1 + draw(3);
    for (std::uint32_t k = 0; k < reads; ++k) // near ones more often
      chosen[p.buffers.size() - 1 -
             std::min(draw(static_cast<std::uint64_t>(p.buffers.size())),
                      draw(static_cast<std::uint64_t>(p.buffers.size())))] = true;
    for (std::uint32_t b = 0; b < chosen.size(); ++b)
      if (chosen[b])
        op.reads.push_back(b);
    const std::uint32_t kind = draw(8);
    const std::uint32_t writes = kind == 0 ? 0 : kind == 1 ? 2 : 1;
    for (std::uint32_t k = 0; k < writes; ++k) {
      op.writes.push_back(static_cast<std::uint32_t>(p.buffers.size()));
      p.buffers.push_back({"b" + std::to_string(p.buffers.size()), draw(10), i, draw(6) == 0});
    }
    p.ops.push_back(std::move(op));
  }
  verify(p);
  return p;
}

/// The least cost within the budget over all plans: shortest way over (operators run for the first
/// time, buffers there).
inline std::optional<std::int64_t> brute_force_cost(const RecomputeProblem& p,
                                                    std::int64_t budget) {
  using State = std::pair<std::uint32_t, std::uint32_t>; // first runs done, mask of buffers there
  std::uint32_t given = 0;
  std::uint32_t kept = 0;
  for (std::uint32_t b = 0; b < p.buffers.size(); ++b) {
    given |= p.buffers[b].producer ? 0 : 1U << b;
    kept |= p.buffers[b].kept ? 1U << b : 0;
  }
  const auto bytes = [&](std::uint32_t mask) {
    std::int64_t sum = 0;
    for (std::uint32_t b = 0; b < p.buffers.size(); ++b)
      sum += (mask >> b & 1U) != 0 ? p.buffers[b].bytes : 0;
    return sum;
  };
  std::map<State, std::int64_t> best;
  std::priority_queue<std::pair<std::int64_t, State>, std::vector<std::pair<std::int64_t, State>>,
                      std::greater<>>
      open;
  const auto reach = [&](std::int64_t cost, State state) {
    const auto [at, fresh] = best.emplace(state, cost);
    if (!fresh && at->second <= cost)
      return;
    at->second = cost;
    open.emplace(cost, state);
  };
  reach(0, {0, given});
  while (!open.empty()) {
    const auto [cost, state] = open.top();
    open.pop();
    const auto [done, there] = state;
    if (best.at(state) < cost)
      continue;
    if (done == p.ops.size() && (there & kept) == (kept & ~given))
      return cost;
    for (std::uint32_t b = 0; b < p.buffers.size(); ++b) // drop one
      if ((there >> b & 1U) != 0 && p.buffers[b].producer)
        reach(cost, {done, there & ~(1U << b)});
    for (std::uint32_t i = 0; i <= done && i < p.ops.size(); ++i) {
      std::uint32_t reads = 0;
      std::uint32_t after = there;
      for (const std::uint32_t b : p.ops[i].reads)
        reads |= 1U << b;
      for (const std::uint32_t b : p.ops[i].writes)
        after |= 1U << b;
      if ((reads & ~there) != 0 || (i < done && !p.ops[i].repeatable) ||
          bytes(after) + p.ops[i].scratch > budget)
        continue;
      reach(cost + p.ops[i].cost, {done + (i == done ? 1U : 0U), after});
    }
  }
  return std::nullopt;
}

} // namespace monet
