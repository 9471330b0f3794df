// A bound on the cost of recomputation from the data live at one moment.
//
// At the first run of operator `at`, each tensor made before and read later is either live or
// recomputed afterwards. In the latter case its inputs are live at that moment or recomputed as
// well. Live tensors must fit in the budget. Runs before the moment are not counted.
#include "optimise/milp/milp_model.hpp"
#include "optimise/shared/window_bound.hpp"

#include "monet/base/errors.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace monet {

namespace {

constexpr std::int64_t kNodes = 200;
constexpr double kEnough = 1e-3; // accepted gap

class MomentModel {
public:
  MomentModel(const RecomputeProblem& problem, std::uint32_t at)
      : problem_(problem), at_(at), later_(problem.buffers.size(), 0),
        there_(problem.buffers.size(), kNone), again_(at, kNone) {}

  MomentBound solve(std::int64_t budget, const SearchControl& control) {
    MomentBound bound{static_cast<double>(problem_.base_cost()), false};
    std::int64_t room = budget - problem_.ops[at_].scratch;
    build(room);
    if (room < 0) {
      bound.infeasible = true;
      return bound;
    }
    limit(room);
    if (model_.variables() == 0)
      return bound;
    MilpOptions options{.nodes = kNodes, .gap = kEnough};
    const MilpResult found = model_.solve(control, options);
    bound.infeasible = found.status == MilpStatus::infeasible;
    if (!bound.infeasible)
      bound.cost += std::max(0.0, found.bound - 1e-6 * std::abs(found.bound));
    return bound;
  }

private:
  bool before(std::uint32_t buffer) const {
    const auto producer = problem_.buffers[buffer].producer;
    return producer && *producer < at_;
  }

  /// Subtracts the bytes that are always live from `room`, and makes the remaining tensors
  /// variables.
  void build(std::int64_t& room) {
    std::vector<std::uint8_t> read_now(problem_.buffers.size(), 0);
    for (const std::uint32_t b : problem_.ops[at_].reads)
      read_now[b] = 1;
    for (std::uint32_t i = at_; i < problem_.ops.size(); ++i) {
      for (const std::uint32_t b : problem_.ops[i].reads)
        later_[b] = 1;
    }
    for (const std::uint32_t b : problem_.ops[at_].writes)
      room -= problem_.buffers[b].bytes;
    std::vector<std::uint32_t> wanted;
    for (std::uint32_t b = 0; b < problem_.buffers.size(); ++b) {
      const RecomputeProblem::Buffer& buffer = problem_.buffers[b];
      if (!buffer.producer) {
        room -= buffer.bytes;
        continue;
      }
      if (!before(b) || (later_[b] == 0 && !buffer.kept))
        continue;
      if (read_now[b] != 0 || !problem_.ops[*buffer.producer].repeatable) {
        room -= buffer.bytes;
        there_[b] = kAlways;
      } else {
        wanted.push_back(b);
      }
    }
    for (const std::uint32_t b : wanted)
      require(b, kNone);
    while (!open_.empty()) {
      const std::uint32_t op = open_.back();
      open_.pop_back();
      for (const std::uint32_t b : problem_.ops[op].reads) {
        if (before(b))
          require(b, again_[op]);
      }
    }
  }

  /// Requires the buffer to be live, or recomputed if `reader` is (always, without a reader).
  void require(std::uint32_t buffer, std::uint32_t reader) {
    if (there_[buffer] == kAlways)
      return;
    const std::uint32_t producer = *problem_.buffers[buffer].producer;
    if (there_[buffer] == kNone)
      there_[buffer] = model_.add_binary(0);
    if (again_[producer] == kNone && problem_.ops[producer].repeatable) {
      again_[producer] = model_.add_binary(static_cast<double>(problem_.ops[producer].cost));
      open_.push_back(producer);
    }
    std::vector<LinearTerm> terms{{there_[buffer], 1}};
    if (again_[producer] != kNone)
      terms.push_back({again_[producer], 1});
    if (reader != kNone)
      terms.push_back({reader, -1});
    model_.add_row(terms, reader == kNone ? 1 : 0, kUnbounded);
  }

  void limit(std::int64_t room) {
    std::vector<std::uint32_t> buffers;
    std::int64_t unit = 0;
    for (std::uint32_t b = 0; b < there_.size(); ++b) {
      if (there_[b] < kAlways && problem_.buffers[b].bytes > 0) {
        buffers.push_back(b);
        unit = std::gcd(unit, problem_.buffers[b].bytes);
      }
    }
    std::vector<LinearTerm> terms;
    for (const std::uint32_t b : buffers)
      terms.push_back({there_[b], static_cast<double>(problem_.buffers[b].bytes / unit)});
    if (!terms.empty())
      model_.add_row(terms, -kUnbounded, static_cast<double>(room / unit));
  }

  static constexpr std::uint32_t kAlways = kNone - 1;

  const RecomputeProblem& problem_;
  std::uint32_t at_;
  std::vector<std::uint8_t> later_;  ///< per buffer: read at the moment or later
  std::vector<std::uint32_t> there_; ///< per buffer: its variable
  std::vector<std::uint32_t> again_; ///< per operator before the moment
  std::vector<std::uint32_t> open_;
  MilpModel model_;
};

} // namespace

MomentBound moment_bound(const RecomputeProblem& problem, std::uint32_t at, std::int64_t budget,
                         const SearchControl& control) {
  internal_check(at < problem.ops.size(), "no such operator");
  return MomentModel(problem, at).solve(budget, control);
}

} // namespace monet
