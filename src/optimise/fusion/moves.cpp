// Proposes changes of a fusion plan and explains why its groups end; FusionSearch::improve() and
// optimise_fusion() use it.
#include "optimise/fusion/moves.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <tuple>

namespace monet {

namespace {

constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);

FusionGroups groups_of(const FusionPlan& plan) {
  FusionGroups groups;
  for (std::size_t s = 0; s < plan.stacks.size(); ++s)
    groups.push_back({plan.stacks[s], s < plan.slices.size() ? plan.slices[s] : std::nullopt});
  return groups;
}

bool contains(const std::vector<OpId>& members, OpId op) {
  return std::ranges::binary_search(members, op);
}

bool in_sequence(const std::vector<std::size_t>& place, OpId op) {
  return place[op.index()] != kNowhere;
}

std::vector<std::size_t> places(const FusionSegments& segments, std::size_t operators) {
  std::vector<std::size_t> place(operators, kNowhere);
  for (std::size_t i = 0; i < segments.sequence().size(); ++i)
    place[segments.sequence()[i].index()] = i;
  return place;
}

/// The first or last member that is in the sequence.
std::optional<OpId> end_of(const std::vector<std::size_t>& place, const std::vector<OpId>& members,
                           bool last) {
  std::optional<OpId> found;
  for (const OpId member : members) {
    if (in_sequence(place, member) && (last || !found))
      found = member;
  }
  return found;
}

std::string text_of(const StackSlices& slices, std::span<const OpId> members) {
  std::string text;
  for (const StackSlices::Cut& cut : slices.cuts) {
    const auto at = std::ranges::lower_bound(members, cut.op) - members.begin();
    text += fmt::format("{}.{}x{} ", at, cut.dim, cut.count);
  }
  return text + (slices.halo ? 'r' : 'c');
}

} // namespace

FusionMoves::FusionMoves(const FusionProblem& problem, const FusionOptions& options,
                         const FusionOrder& order, const FusionSegments& segments,
                         const std::vector<FusionWeights>& weights)
    : problem_(problem), options_(options), order_(order), segments_(segments),
      place_(places(segments, order.size())) {
  constexpr std::size_t kMaxOffers = 200; // for each of the weights
  for (std::size_t w = 0; w < weights.size(); ++w) {
    const auto offers = segments.offers(weights[w]);
    for (std::size_t i = 0; i < std::min(kMaxOffers, offers.size()); ++i)
      offers_.push_back({Kind::offer,
                         fmt::format("kind {} {}", offers[i].kind, w),
                         offers[i].gain / static_cast<double>(w + 1),
                         segments.groups_of(offers[i].kind, weights[w]),
                         {}});
  }
}

std::string FusionMoves::signature(const std::vector<OpId>& members) {
  if (const auto known = signatures_.find(members); known != signatures_.end())
    return known->second;
  std::string key =
      group_signature(problem_.step.graph, members, problem_.tiling.mapping != nullptr);
  signatures_.emplace(members, key);
  return key;
}

std::vector<FusionMoves::Class> FusionMoves::classes_of(const FusionGroups& plan) {
  std::vector<Class> classes;
  std::map<std::string, std::size_t> number;
  for (std::size_t g = 0; g < plan.size(); ++g) {
    std::string key = signature(plan[g].members);
    const auto [known, added] = number.emplace(key, classes.size());
    if (added)
      classes.push_back({std::move(key), {}});
    classes[known->second].groups.push_back(g);
  }
  return classes;
}

void FusionMoves::know(const FusionPlan& plan) {
  const FusionGroups groups = groups_of(plan);
  for (const Class& own : classes_of(groups)) {
    Move move{Kind::known, fmt::format("known {}", offers_.size()), 0, {}, {}};
    for (const std::size_t g : own.groups)
      move.add.push_back(groups[g]);
    offers_.push_back(std::move(move));
  }
}

bool FusionMoves::legal(const std::vector<OpId>& members) const {
  return connected(problem_.step.graph, members) && order_.convex(members);
}

void FusionMoves::change_slices(const FusionGroups& plan, const Class& own,
                                std::vector<Move>& moves) const {
  const FusionGroup& example = plan[own.groups.front()];
  std::vector<StackSlices> choices;
  if (example.slices) {
    for (const std::int64_t factor : {2, 4}) {
      for (const bool more : {true, false}) {
        StackSlices changed = *example.slices;
        if (changed.cuts.empty())
          continue;
        StackSlices::Cut& cut = changed.cuts.back();
        const std::int64_t size = problem_.step.graph.op(cut.op).nest.dims[cut.dim].size;
        cut.count =
            std::clamp<std::int64_t>(more ? cut.count * factor : cut.count / factor, 1, size);
        if (cut.count == 1)
          changed.cuts.pop_back();
        choices.push_back(std::move(changed));
      }
    }
  }
  for (StackSlices& choice : slice_choices(problem_.step.graph, example.members, options_)) {
    const bool some =
        choice.cuts.empty() || choice.cuts[0].count == 4 || choice.cuts[0].count == 16;
    if (some)
      choices.push_back(std::move(choice));
  }
  for (const StackSlices& choice : choices) {
    if (example.slices && choice == *example.slices)
      continue;
    const StackSlices relative = to_group(choice, example.members);
    Move move{Kind::slices, own.signature + text_of(choice, example.members), 0, {}, {}};
    for (const std::size_t g : own.groups)
      move.add.push_back({plan[g].members, from_group(relative, plan[g].members)});
    moves.push_back(std::move(move));
  }
}

void FusionMoves::change(const FusionGroups& plan, const Class& own,
                         std::vector<Move>& moves) const {
  moves.push_back({Kind::dropped, own.signature + "!", 0, {}, own.groups});
  change_slices(plan, own, moves);
  shift_borders(plan, own, moves);
}

std::optional<FusionGroup> FusionMoves::with(const FusionGroup& group, OpId more) const {
  FusionGroup larger = group;
  larger.members.insert(std::ranges::upper_bound(larger.members, more), more);
  return legal(larger.members) ? std::optional(std::move(larger)) : std::nullopt;
}

/// The group without the member. If slices start from the member, they start from a loop of the
/// last or first member instead, with at most the same count.
std::optional<FusionGroup> FusionMoves::without(const FusionGroup& group, OpId less) const {
  FusionGroup smaller = group;
  std::erase(smaller.members, less);
  if (smaller.members.size() < 2 || !legal(smaller.members))
    return std::nullopt;
  if (!smaller.slices)
    return smaller;
  const bool gone =
      std::ranges::any_of(smaller.slices->cuts, [&](const auto& cut) { return cut.op == less; });
  if (!gone)
    return smaller;
  const std::int64_t count = smaller.slices->cuts.back().count;
  smaller.slices = StackSlices{};
  for (const StackSlices& choice : slice_choices(problem_.step.graph, smaller.members, options_)) {
    if (!choice.cuts.empty() && choice.cuts[0].count <= count)
      smaller.slices = choice;
    if (!choice.cuts.empty() && choice.cuts[0].count >= count)
      break;
  }
  return smaller;
}

void FusionMoves::shift_borders(const FusionGroups& plan, const Class& own,
                                std::vector<Move>& moves) const {
  const std::vector<OpId>& sequence = segments_.sequence();
  for (const bool last : {true, false}) {
    Move longer{Kind::longer, own.signature + (last ? "+" : "-"), 0, {}, {}};
    Move shorter{Kind::shorter, own.signature + (last ? "<" : ">"), 0, {}, own.groups};
    for (const std::size_t g : own.groups) {
      const auto end = end_of(place_, plan[g].members, last);
      if (!end)
        continue;
      const std::size_t at = place_[end->index()];
      const bool any = last ? at + 1 < sequence.size() : at > 0;
      const OpId next = any ? sequence[last ? at + 1 : at - 1] : *end;
      if (any && !contains(plan[g].members, next)) {
        if (auto grown = with(plan[g], next))
          longer.add.push_back(std::move(*grown));
      }
      if (auto shrunk = without(plan[g], *end))
        shorter.add.push_back(std::move(*shrunk));
    }
    if (!longer.add.empty())
      moves.push_back(std::move(longer));
    if (!shorter.add.empty())
      moves.push_back(std::move(shorter));
  }
  // Joins the group with the next one.
  Move joined{Kind::joined, own.signature + "&", 0, {}, {}};
  for (const std::size_t g : own.groups) {
    const auto end = end_of(place_, plan[g].members, true);
    if (!end || place_[end->index()] + 1 >= sequence.size())
      continue;
    const OpId next = sequence[place_[end->index()] + 1];
    const auto other = std::ranges::find_if(
        plan, [&](const FusionGroup& group) { return contains(group.members, next); });
    if (other == plan.end() || contains(plan[g].members, next))
      continue;
    FusionGroup both = plan[g];
    both.members.insert(both.members.end(), other->members.begin(), other->members.end());
    std::ranges::sort(both.members);
    if (!joined.add.empty() && contains(joined.add.back().members, next))
      continue;
    if (legal(both.members))
      joined.add.push_back(std::move(both));
  }
  if (!joined.add.empty())
    moves.push_back(std::move(joined));
}

/// The plan with the move's groups; overlapping groups lose the shared members.
FusionGroups FusionMoves::apply(const FusionGroups& plan, const Move& move) const {
  std::vector<bool> taken(order_.size(), false);
  FusionGroups result;
  for (const FusionGroup& group : move.add) {
    const bool free =
        std::ranges::none_of(group.members, [&](OpId member) { return taken[member.index()]; });
    if (!free)
      continue;
    for (const OpId member : group.members)
      taken[member.index()] = true;
    result.push_back(group);
  }
  for (std::size_t g = 0; g < plan.size(); ++g) {
    if (std::ranges::find(move.drop, g) != move.drop.end())
      continue;
    std::optional<FusionGroup> left = plan[g];
    for (const OpId member : plan[g].members) {
      if (left && taken[member.index()])
        left = without(*left, member);
    }
    if (left)
      result.push_back(std::move(*left));
  }
  std::ranges::sort(result, {}, [](const FusionGroup& group) { return group.members.front(); });
  return result;
}

/// All changes of the plan, in the order in which they are tried.
std::vector<FusionMoves::Move> FusionMoves::in_turn(const FusionGroups& groups) {
  std::vector<Move> moves = offers_;
  const std::vector<Class> classes = classes_of(groups);
  for (const Class& own : classes)
    change(groups, own, moves);
  std::ranges::stable_sort(moves, std::ranges::greater{}, &Move::promise);
  std::vector<double> turns; // per move: position in its kind's share
  std::array<double, kShares.size()> before{};
  for (const Move& move : moves) {
    const auto kind = static_cast<std::size_t>(move.kind);
    turns.push_back((before[kind]++ + 0.5) / kShares[kind]);
  }
  for (const Class& own : classes) {
    for (std::size_t i = 0; own.groups.size() > 1 && i < own.groups.size(); ++i)
      change(groups, {own.signature + std::to_string(i), {own.groups[i]}}, moves);
  }
  turns.resize(moves.size(), std::numeric_limits<double>::infinity());
  std::vector<std::tuple<int, double, std::size_t>> order; // tries, turn, place
  for (std::size_t m = 0; m < moves.size(); ++m) {
    const auto found = tried_.find(moves[m].id);
    order.emplace_back(found == tried_.end() ? 0 : found->second, turns[m], m);
  }
  std::ranges::sort(order);
  std::vector<Move> ordered;
  for (const auto& [tries, turn, place] : order)
    ordered.push_back(std::move(moves[place]));
  return ordered;
}

void FusionMoves::next(const FusionPlan& plan, std::size_t most, const std::set<std::string>& seen,
                       std::vector<FusionPlan>& batch) {
  const FusionGroups groups = groups_of(plan);
  std::set<std::string> proposed;
  proposed_.clear();
  for (const Move& move : in_turn(groups)) {
    if (batch.size() >= most)
      return;
    FusionPlan changed = plan_of(apply(groups, move));
    changed.idle = plan.idle;
    std::string key = key_of(changed);
    if (seen.contains(key) || proposed.contains(key) || !order_.acyclic(changed.stacks))
      continue;
    ++tried_[move.id];
    proposed.insert(std::move(key));
    proposed_.push_back(move);
    batch.push_back(std::move(changed));
  }
}

std::optional<FusionPlan> FusionMoves::together(const FusionPlan& plan,
                                                std::span<const std::size_t> which) const {
  const FusionGroups before = groups_of(plan);
  FusionGroups groups = before;
  for (const std::size_t w : which) {
    Move move = proposed_[w];
    std::vector<std::size_t> drop; // indices of dropped groups that are still unchanged
    for (const std::size_t g : move.drop) {
      const auto same = std::ranges::find(groups, before[g].members, &FusionGroup::members);
      if (same != groups.end())
        drop.push_back(static_cast<std::size_t>(same - groups.begin()));
    }
    move.drop = std::move(drop);
    groups = apply(groups, move);
  }
  FusionPlan changed = plan_of(groups);
  changed.idle = plan.idle;
  if (!order_.acyclic(changed.stacks))
    return std::nullopt;
  return changed;
}

std::vector<std::string> why_they_end(const FusionProblem& problem, const FusionSegments& segments,
                                      const FusionOrder& order, const FusionPlan& plan,
                                      const FusionWeights& weights, const SearchControl& control) {
  const Graph& graph = problem.step.graph;
  const std::vector<std::size_t> place = places(segments, order.size());
  std::map<std::string, std::string> known;
  const auto costs = [&](const std::vector<OpId>& larger) -> std::string {
    GroupKind kind;
    kind.example = larger;
    segments.solve(kind, {&weights, 1}, control);
    if (kind.choices.empty())
      return "memory: with the next operator it does not fit the chip";
    const GroupKind::Choice* best = kind.best(weights);
    if (best == nullptr)
      return "cost: slices with the next operator save nothing";
    return "cost: the step is better without the next operator, although it saves cost alone";
  };
  std::vector<std::string> reasons;
  for (const auto& stack : plan.stacks) {
    const auto last = end_of(place, stack, true);
    if (!last || place[last->index()] + 1 >= segments.sequence().size()) {
      reasons.emplace_back("end of the step");
      continue;
    }
    const OpId next = segments.sequence()[place[last->index()] + 1];
    std::vector<OpId> larger = stack;
    larger.insert(std::ranges::upper_bound(larger, next), next);
    if (std::ranges::binary_search(stack, next))
      reasons.emplace_back("not convex: the next operator is between members");
    else if (graph.op(next).phase == Phase::update && graph.op(*last).phase != Phase::update)
      reasons.emplace_back("barrier: updates wait for the backward phase");
    else if (!connected(graph, larger))
      reasons.emplace_back("not linked to the next operator");
    else if (!order.convex(larger))
      reasons.emplace_back("not convex with the next operator");
    else {
      const std::string key = group_signature(graph, larger, problem.tiling.mapping != nullptr);
      const auto found = known.find(key);
      reasons.push_back(found != known.end() ? found->second
                                             : known.emplace(key, costs(larger)).first->second);
    }
  }
  return reasons;
}

} // namespace monet
