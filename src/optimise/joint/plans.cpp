// Finds recomputation plans over a range of memory amounts; the joint search extends its archive
// with them.
#include "optimise/joint/plans.hpp"

#include "optimise/shared/recompute_search.hpp"

#include "monet/optimise/checkpoint_search.hpp"

#include <algorithm>
#include <utility>

namespace monet {

namespace {

/// Interval of memory amounts strictly between `low` and `high` that were not tried yet.
struct Open {
  std::int64_t low = 0;
  std::int64_t high = 0;

  bool empty() const { return low + 1 >= high; }
};

class Ladder {
public:
  Ladder(const CheckpointSpace& space, const LadderOptions& options, const SearchControl& control,
         const std::function<void(const RecomputePlan&)>& found)
      : space_(space), options_(options), control_(control), found_(found) {
    plans_.push_back(store_everything(space.problem));
  }

  bool run() {
    descend(CheckpointMemory::stored, [&](std::int64_t bytes) { return storing(bytes); });
    descend(CheckpointMemory::peak, [&](std::int64_t bytes) { return peaking(bytes); });
    return is_whole_;
  }

private:
  /// Requests plans within `levels` amounts: first the minimum, then the middle of the widest
  /// untried interval.
  template <class PlanWithin>
  void descend(CheckpointMemory memory, const PlanWithin& plan_within) {
    const std::int64_t most = evaluate(space_, plans_.front()).memory(memory);
    const std::int64_t least = min_memory(space_, memory);
    std::vector<Open> open{{least - 1, most}};
    std::int64_t asked = least;
    for (std::int64_t i = 0; i < options_.levels; ++i) {
      if (control_.interrupted()) {
        is_whole_ = false;
        return;
      }
      const auto widest = std::ranges::max_element(
          open, {}, [](const Open& part) { return part.empty() ? 0 : part.high - part.low; });
      if (widest == open.end() || widest->empty())
        return;
      const Open part = *widest;
      open.erase(widest);
      if (i > 0)
        asked = part.low + (part.high - part.low) / 2;
      open.push_back({asked, part.high});
      if (const std::optional<std::int64_t> found = take(plan_within(asked), memory))
        open.push_back({part.low, std::min(*found, asked)});
    }
  }

  /// Adds a new plan and returns the memory it needs, or nothing without a plan.
  std::optional<std::int64_t> take(std::optional<RecomputePlan> plan, CheckpointMemory memory) {
    if (!plan)
      return std::nullopt;
    *plan = without_idle_runs(space_.problem, *plan);
    const std::int64_t bytes = evaluate(space_, *plan).memory(memory);
    if (std::ranges::find(plans_, *plan) == plans_.end()) {
      found_(*plan);
      plans_.push_back(std::move(*plan));
    }
    return bytes;
  }

  std::optional<RecomputePlan> storing(std::int64_t bytes) {
    StoredOptions rough{.nodes = 100, .gap = 5e-3};
    return taken(solve_stored(space_, bytes, control_, rough));
  }

  std::optional<RecomputePlan> peaking(std::int64_t bytes) {
    RecomputeSearchOptions search;
    search.effort = options_.effort;
    search.starts.assign(plans_.begin() + 1, plans_.end());
    return taken(search_recompute(space_.problem, bytes, search, control_));
  }

  std::optional<RecomputePlan> taken(RecomputeResult found) {
    is_whole_ = is_whole_ && !found.interrupted;
    return std::move(found.plan);
  }

  const CheckpointSpace& space_;
  const LadderOptions& options_;
  const SearchControl& control_;
  const std::function<void(const RecomputePlan&)>& found_;
  std::vector<RecomputePlan> plans_; ///< the first plan runs everything once
  bool is_whole_ = true;             ///< false if the control ended a search
};

} // namespace

bool plan_ladder(const CheckpointSpace& space, const LadderOptions& options,
                 const SearchControl& control,
                 const std::function<void(const RecomputePlan&)>& found) {
  return Ladder(space, options, control, found).run();
}

} // namespace monet
