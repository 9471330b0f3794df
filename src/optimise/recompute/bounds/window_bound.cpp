// Bounds recomputation cost by disjoint windows of operators, each a minimum cut; exact.cpp and
// checkpoint_search.cpp use it.
#include "optimise/shared/window_bound.hpp"

#include "base/shared/checked.hpp"
#include "optimise/recompute/bounds/rerun_cut.hpp"

#include <algorithm>
#include <optional>
#include <vector>

namespace monet {

namespace {

constexpr std::size_t kWindowWork = 100'000;

class Windows {
public:
  Windows(const RecomputeProblem& problem, std::int64_t budget, const SearchControl& control)
      : problem_(problem), budget_(budget), control_(control) {}

  WindowBound run(std::size_t moments) {
    WindowBound bound;
    bound.cost = problem_.base_cost();
    choose(moments > 0 ? moments
                       : std::clamp<std::size_t>(kWindowWork / (problem_.ops.size() + 1), 24, 160));
    // Maximum total cost of disjoint windows, by dynamic programming over moments.
    std::vector<std::int64_t> best(ends_.size() + 1, 0);
    for (std::size_t i = ends_.size(); i-- > 0;)
      if (!all_from(i, best, bound))
        break;
    if (!bound.infeasible)
      bound.cost = checked_add(bound.cost, best.front());
    bound.later.assign(problem_.ops.size() + 1, 0);
    for (std::size_t t = 0, i = 0; t < problem_.ops.size(); ++t) {
      while (i < ends_.size() && ends_[i] < t)
        ++i;
      bound.later[t] = best[i];
    }
    return bound;
  }

private:
  /// Selects moments in order: where storing everything exceeds the budget, at the maximum of each
  /// stretch.
  void choose(std::size_t moments) {
    const RecomputeOutcome stored = replay(problem_, store_everything(problem_));
    std::vector<std::uint32_t> tight;
    for (std::uint32_t t = 0; t < problem_.ops.size(); ++t)
      if (stored.live_bytes[t] > budget_)
        tight.push_back(t);
    const std::size_t count = std::min(moments, tight.size());
    for (std::size_t k = 0; k < count; ++k) {
      const std::size_t begin = tight.size() * k / count;
      const std::size_t end = tight.size() * (k + 1) / count;
      const auto most = std::max_element(tight.begin() + static_cast<std::ptrdiff_t>(begin),
                                         tight.begin() + static_cast<std::ptrdiff_t>(end),
                                         [&](std::uint32_t a, std::uint32_t b) {
                                           return stored.live_bytes[a] < stored.live_bytes[b];
                                         });
      ends_.push_back(*most);
    }
  }

  /// Computes windows that begin at moment i, and best[i] from the best of later moments.
  bool all_from(std::size_t i, std::vector<std::int64_t>& best, WindowBound& bound) {
    best[i] = best[i + 1];
    std::int64_t last = 0;
    for (std::size_t j = ends_.size(); j > i; --j) { // the widest first: it bounds the others
      if (control_.interrupted()) {
        bound.interrupted = true;
        return true; // the windows so far remain valid
      }
      if (j < ends_.size() && checked_add(last, best[j]) <= best[i])
        continue;
      const std::optional<std::int64_t> cost =
          window(ends_[i], j < ends_.size() ? ends_[j] : end());
      if (!cost) {
        bound.infeasible = true;
        return false;
      }
      last = *cost;
      best[i] = std::max(best[i], checked_add(*cost, best[j]));
      if (last == 0)
        break; // narrower windows cost nothing either
    }
    return true;
  }

  std::uint32_t end() const { return static_cast<std::uint32_t>(problem_.ops.size()); }

  /// Minimum cost of runs after the first run of `at` and before that of `until`; nullopt if the
  /// required buffers do not fit.
  std::optional<std::int64_t> window(std::uint32_t at, std::uint32_t until) const {
    std::vector<std::uint8_t> read_later(problem_.buffers.size(), 0);
    std::vector<std::uint8_t> read_within(problem_.buffers.size(), 0);
    for (std::uint32_t t = at; t < end(); ++t)
      for (const std::uint32_t b : problem_.ops[t].reads)
        (t < until ? read_within : read_later)[b] = 1;
    std::vector<std::uint8_t> there(problem_.buffers.size(), 0);
    std::vector<std::uint32_t> wanted;
    std::int64_t room = budget_ - problem_.ops[at].scratch;
    const auto hold = [&](std::uint32_t b) {
      there[b] = 1;
      room -= problem_.buffers[b].bytes;
    };
    for (const std::uint32_t b : problem_.ops[at].writes)
      hold(b);
    for (const std::uint32_t b : problem_.ops[at].reads)
      if (there[b] == 0)
        hold(b);
    for (std::uint32_t b = 0; b < problem_.buffers.size(); ++b) {
      const RecomputeProblem::Buffer& buffer = problem_.buffers[b];
      if (there[b] != 0)
        continue;
      if (!buffer.producer) {
        hold(b);
      } else if (*buffer.producer >= at) {
        there[b] = 1; // made within the window or later
      } else {
        const bool kept = buffer.kept && until == end();
        if (!problem_.ops[*buffer.producer].repeatable &&
            (read_within[b] != 0 || read_later[b] != 0 || buffer.kept))
          hold(b);
        else if (read_within[b] != 0 || kept)
          wanted.push_back(b);
      }
    }
    if (room < 0)
      return std::nullopt;
    const RerunCut::Answer answer = RerunCut(problem_, wanted, there).least(room);
    return answer.infeasible ? std::nullopt : std::optional(answer.bound);
  }

  const RecomputeProblem& problem_;
  std::int64_t budget_;
  const SearchControl& control_;
  std::vector<std::uint32_t> ends_;
};

} // namespace

WindowBound window_bound(const RecomputeProblem& problem, std::int64_t budget,
                         const SearchControl& control, std::size_t moments) {
  return Windows(problem, budget, control).run(moments);
}

} // namespace monet
