// Enumerates every fusion plan of a small step; FusionSearch tries them all in place of a heuristic
// search.
#include "optimise/fusion/complete.hpp"

#include "monet/base/errors.hpp"

#include <bit>

namespace monet {

FusionPlans::FusionPlans(const Graph& graph, const FusionOrder& order, const FusionOptions& options)
    : graph_(graph), order_(order), options_(options) {}

std::vector<OpId> FusionPlans::members_of(Mask mask) const {
  std::vector<OpId> members;
  for (; mask != 0; mask &= mask - 1)
    members.emplace_back(static_cast<std::size_t>(std::countr_zero(mask)));
  return members;
}

void FusionPlans::prepare() {
  if (!legal_.empty())
    return;
  const std::size_t masks = std::size_t{1} << order_.size();
  legal_.resize(masks, false);
  choices_.resize(masks);
  for (Mask mask = 1; mask < masks; ++mask) {
    const std::vector<OpId> members = members_of(mask);
    legal_[mask] = members.size() == 1 || (connected(graph_, members) && order_.convex(members));
    if (legal_[mask])
      choices_[mask] = slice_choices(graph_, members, options_);
  }
}

/// Partitions the remaining operators; returns false if `whole` ended the enumeration.
bool FusionPlans::part(Mask left, const std::function<bool()>& whole) {
  if (left == 0) {
    std::vector<std::vector<OpId>> groups;
    for (const Mask group : groups_)
      groups.push_back(members_of(group));
    return !order_.acyclic(groups) || whole();
  }
  const Mask first = left & (~left + 1);
  const Mask others = left ^ first;
  for (Mask more = others;; more = (more - 1) & others) {
    const Mask group = first | more;
    if (legal_[group]) {
      groups_.push_back(group);
      const bool go_on = part(left ^ group, whole);
      groups_.pop_back();
      if (!go_on)
        return false;
    }
    if (more == 0)
      return true;
  }
}

std::int64_t FusionPlans::count(std::int64_t limit) {
  if (order_.size() == 0 || order_.size() > kMaxOperators)
    return order_.size() == 0 ? 1 : limit + 1;
  prepare();
  std::int64_t plans = 0;
  part(static_cast<Mask>((std::size_t{1} << order_.size()) - 1), [&] {
    std::int64_t product = 1;
    for (const Mask group : groups_) {
      product *= static_cast<std::int64_t>(choices_[group].size());
      if (product > limit)
        break;
    }
    plans += product;
    return plans <= limit;
  });
  return plans;
}

bool FusionPlans::with_slices(const std::function<bool(FusionPlan)>& visit) const {
  std::vector<Mask> stacks;
  for (const Mask group : groups_) {
    if (std::popcount(group) > 1)
      stacks.push_back(group);
  }
  std::vector<std::size_t> choice(stacks.size(), 0);
  while (true) {
    FusionPlan plan;
    for (std::size_t s = 0; s < stacks.size(); ++s) {
      plan.stacks.push_back(members_of(stacks[s]));
      plan.slices.emplace_back(choices_[stacks[s]][choice[s]]);
    }
    if (!visit(std::move(plan)))
      return false;
    std::size_t s = 0;
    while (s < stacks.size() && ++choice[s] == choices_[stacks[s]].size())
      choice[s++] = 0;
    if (s == stacks.size())
      return true;
  }
}

void FusionPlans::for_each(const std::function<bool(FusionPlan)>& visit) {
  if (order_.size() == 0) {
    visit({});
    return;
  }
  internal_check(order_.size() <= kMaxOperators, "too many operators to try every plan");
  prepare();
  part(static_cast<Mask>((std::size_t{1} << order_.size()) - 1),
       [&] { return with_slices(visit); });
}

} // namespace monet
