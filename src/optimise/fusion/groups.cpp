// Finds groups of neighbouring operators, evaluates each kind on its own and covers the step with
// the best ones; FusionSearch builds its plans from them.
#include "optimise/fusion/groups.hpp"

#include "base/shared/parallel.hpp"

#include "monet/tiling/tiling.hpp"

#include <algorithm>
#include <numeric>

namespace monet {

namespace {

/// Bits of tensors that members pass to other members.
double handed_bits(const Graph& graph, std::span<const OpId> members) {
  double bits = 0;
  for (const OpId member : members) {
    for (const auto& output : graph.op(member).outputs) {
      if (!output)
        continue;
      const Tensor& tensor = graph.tensor(*output);
      const bool inside = std::ranges::any_of(tensor.consumers, [&](OpId reader) {
        return std::ranges::binary_search(members, reader);
      });
      bits += inside ? static_cast<double>(size_of(tensor).value) : 0.0;
    }
  }
  return bits;
}

bool same_loop(const StackSlices& a, const StackSlices& b) {
  return a.cuts.size() == 1 && b.cuts.size() == 1 && a.cuts[0].op == b.cuts[0].op &&
         a.cuts[0].dim == b.cuts[0].dim && a.halo == b.halo;
}

} // namespace

FusionPlan plan_of(const FusionGroups& groups) {
  FusionPlan plan;
  for (const FusionGroup& group : groups) {
    plan.stacks.push_back(group.members);
    plan.slices.push_back(group.slices);
  }
  return plan;
}

const GroupKind::Choice* GroupKind::best(const FusionWeights& weights) const {
  const Choice* best = nullptr;
  double least = layer_by_layer ? weights.of(*layer_by_layer) : 0.0;
  for (const Choice& choice : choices) {
    const double value = weights.of(choice.figures);
    if (layer_by_layer && value < least) {
      least = value;
      best = &choice;
    }
  }
  return best;
}

double GroupKind::gain(const FusionWeights& weights) const {
  const Choice* found = best(weights);
  return found == nullptr ? 0.0 : weights.of(*layer_by_layer) - weights.of(found->figures);
}

FusionSegments::FusionSegments(const FusionProblem& problem, const FusionEvaluator& evaluator,
                               const FusionOptions& options, const FusionOrder& order)
    : problem_(problem), evaluator_(evaluator), options_(options), order_(order),
      updates_of_(order.size()) {
  const auto makers = gradient_makers(problem.step.graph);
  for (std::size_t i = 0; i < makers.size(); ++i) {
    if (makers[i])
      updates_of_[makers[i]->index()].emplace_back(i);
    else
      sequence_.emplace_back(i);
  }
  find();
}

void FusionSegments::find() {
  const auto count = static_cast<std::uint32_t>(sequence_.size());
  for (std::uint32_t end = 1; end <= count; ++end) {
    const auto longest = static_cast<std::uint32_t>(options_.longest);
    bool updates = false;
    for (std::uint32_t begin = end; begin-- > 0 && end - begin <= longest;) {
      updates = updates || !updates_of_[sequence_[begin].index()].empty();
      if (end - begin > 1)
        add(begin, end, false);
      if (updates)
        add(begin, end, true);
    }
  }
}

void FusionSegments::add(std::uint32_t begin, std::uint32_t end, bool updates) {
  Segment segment{begin, end, 0, {}};
  for (std::uint32_t i = begin; i < end; ++i) {
    segment.members.push_back(sequence_[i]);
    if (updates) {
      const auto& own = updates_of_[sequence_[i].index()];
      segment.members.insert(segment.members.end(), own.begin(), own.end());
    }
  }
  std::ranges::sort(segment.members);
  if (!connected_.note(connected(problem_.step.graph, segment.members)) ||
      !convex_.note(order_.convex(segment.members)))
    return;
  const bool names = problem_.tiling.mapping != nullptr;
  std::string key = group_signature(problem_.step.graph, segment.members, names);
  const auto next = static_cast<std::uint32_t>(kinds_.size());
  const auto [known, added] = kind_of_.emplace(std::move(key), next);
  if (added) {
    kinds_.emplace_back();
    kinds_.back().example = segment.members;
  }
  segment.kind = known->second;
  GroupKind& kind = kinds_[segment.kind];
  ++kind.occurrences;
  kind.potential += handed_bits(problem_.step.graph, segment.members);
  segments_.push_back(std::move(segment));
}

FusionSegments::Effort FusionSegments::solve(GroupKind& kind,
                                             std::span<const FusionWeights> weights,
                                             const SearchControl& control) const {
  kind.evaluated = true;
  Effort done;
  const TrainingGraph step = group_step(problem_.step, kind.example);
  const auto schedule = [&](const FusionPlan& plan) {
    ++done.schedules;
    auto figures = control.interrupted() ? std::nullopt : evaluator_.try_group(step, plan);
    if (figures)
      done.tiles += static_cast<double>(figures->tiles);
    return figures;
  };
  kind.layer_by_layer = schedule({});
  std::vector<OpId> all;
  for (std::size_t m = 0; m < kind.example.size(); ++m)
    all.emplace_back(m);
  const std::vector<StackSlices> choices = slice_choices(step.graph, all, options_);
  std::vector<bool> tried(choices.size(), false);
  const auto try_choice = [&](std::size_t c) {
    if (tried[c])
      return;
    tried[c] = true;
    if (const auto figures = schedule({{all}, {choices[c]}}))
      kind.choices.push_back({choices[c], *figures});
  };
  // Tries a few counts of every loop, then neighbouring counts of the best one.
  for (std::size_t c = 0; c < choices.size(); ++c) {
    const std::int64_t count = choices[c].cuts.empty() ? 4 : choices[c].cuts[0].count;
    if (count == 4 || count == 16 || (c + 1 == choices.size() && count < 4) ||
        (c + 1 < choices.size() && count < 4 && !same_loop(choices[c], choices[c + 1])))
      try_choice(c);
  }
  for (std::size_t round = 0; round < 3 * weights.size(); ++round) {
    const GroupKind::Choice* best = kind.best(weights[round % weights.size()]);
    if (best == nullptr || best->slices.cuts.empty())
      continue;
    const auto at =
        static_cast<std::size_t>(std::ranges::find(choices, best->slices) - choices.begin());
    const std::size_t step_width = options_.recomputed_halos ? 2 : 1;
    const StackSlices known = best->slices;
    if (at + step_width < choices.size() && same_loop(choices[at + step_width], known))
      try_choice(at + step_width);
    if (at >= step_width && same_loop(choices[at - step_width], known))
      try_choice(at - step_width);
  }
  return done;
}

std::int64_t FusionSegments::evaluate(std::span<const FusionWeights> weights,
                                      const SearchControl& control) {
  const std::int64_t most = options_.group_evaluations;
  std::vector<std::uint32_t> order(kinds_.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, [&](std::uint32_t a, std::uint32_t b) {
    return kinds_[a].potential > kinds_[b].potential;
  });
  constexpr std::size_t kBatch = 16;
  std::int64_t done = 0;
  double tiles = 0;
  for (std::size_t first = 0; first < order.size() && done < most; first += kBatch) {
    if (control.interrupted() || (options_.group_tiles > 0 && tiles >= options_.group_tiles))
      break;
    const std::size_t count = std::min(kBatch, order.size() - first);
    std::vector<Effort> efforts(count);
    parallel_for(count, control.jobs, [&](std::size_t i) {
      efforts[i] = solve(kinds_[order[first + i]], weights, control);
    });
    for (const Effort& effort : efforts) {
      done += effort.schedules;
      tiles += effort.tiles;
    }
    control.tell({"fusion: groups", std::min(done, most), most});
  }
  return done;
}

FusionGroups FusionSegments::cover(const FusionWeights& weights) const {
  std::vector<const GroupKind::Choice*> best;
  std::vector<double> gain;
  for (const GroupKind& kind : kinds_) {
    best.push_back(kind.best(weights));
    gain.push_back(kind.gain(weights));
  }
  const std::size_t count = sequence_.size();
  std::vector<double> total(count + 1, 0.0);
  std::vector<const Segment*> last(count + 1, nullptr);
  std::size_t next = 0;
  for (std::size_t end = 1; end <= count; ++end) {
    total[end] = total[end - 1];
    for (; next < segments_.size() && segments_[next].end == end; ++next) {
      const Segment& segment = segments_[next];
      const double with = total[segment.begin] + gain[segment.kind];
      if (gain[segment.kind] > 0 && with > total[end]) {
        total[end] = with;
        last[end] = &segment;
      }
    }
  }
  std::vector<const Segment*> chosen;
  for (std::size_t end = count; end > 0;) {
    if (last[end] == nullptr) {
      --end;
      continue;
    }
    chosen.push_back(last[end]);
    end = last[end]->begin;
  }
  FusionGroups groups;
  for (auto segment = chosen.rbegin(); segment != chosen.rend(); ++segment) {
    const std::vector<OpId>& members = (*segment)->members;
    groups.push_back({members, from_group(best[(*segment)->kind]->slices, members)});
  }
  return groups;
}

std::vector<FusionSegments::Offer> FusionSegments::offers(const FusionWeights& weights) const {
  std::vector<Offer> offers;
  for (std::uint32_t k = 0; k < kinds_.size(); ++k) {
    const double gain = kinds_[k].gain(weights) * static_cast<double>(kinds_[k].occurrences);
    if (gain > 0)
      offers.push_back({k, gain});
  }
  std::ranges::stable_sort(offers, std::ranges::greater{}, &Offer::gain);
  return offers;
}

FusionGroups FusionSegments::groups_of(std::uint32_t kind, const FusionWeights& weights) const {
  FusionGroups groups;
  const GroupKind::Choice* best = kinds_[kind].best(weights);
  if (best == nullptr)
    return groups;
  std::uint32_t at = 0;
  for (const Segment& segment : segments_) {
    if (segment.kind != kind || segment.begin < at)
      continue;
    groups.push_back({segment.members, from_group(best->slices, segment.members)});
    at = segment.end;
  }
  return groups;
}

std::vector<KeepRate> FusionSegments::rates(const FusionWeights& weights) const {
  KeepRate looked{"scheduled alone (those with most on-chip data first)"};
  KeepRate fits{"fit the chip as a group"};
  KeepRate saves{"save cost alone"};
  for (const GroupKind& kind : kinds_) {
    looked.candidates += kind.occurrences;
    if (!kind.evaluated)
      continue;
    looked.kept += kind.occurrences;
    fits.candidates += kind.occurrences;
    if (kind.choices.empty())
      continue;
    fits.kept += kind.occurrences;
    saves.candidates += kind.occurrences;
    saves.kept += kind.best(weights) != nullptr ? kind.occurrences : 0;
  }
  return {connected_, convex_, looked, fits, saves};
}

} // namespace monet
