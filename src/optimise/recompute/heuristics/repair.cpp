// Makes a recomputation plan fit its budget by dropping buffers, and removes unneeded runs; the
// local search (recompute_search.cpp) uses it.
#include "optimise/recompute/heuristics/repair.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace monet {

namespace {

constexpr std::size_t kLargestClosure = 2000; // maximum operators recomputed for one buffer

} // namespace

RecomputeRepair::RecomputeRepair(RecomputeState& state, std::int64_t effort,
                                 const SearchControl& control)
    : state_(state), effort_(effort), control_(control), overflowing_(state.ops() + 2, 0),
      in_closure_(state.ops() + 1, 0) {}

void RecomputeRepair::add(Slot t, OpIndex v) {
  state_.add(t, v);
  changes_.push_back({t, v, true});
}

void RecomputeRepair::remove(Slot t, OpIndex v) {
  state_.remove(t, v);
  changes_.push_back({t, v, false});
}

void RecomputeRepair::undo_to(std::size_t changes) {
  while (changes_.size() > changes) {
    const Change change = changes_.back();
    changes_.pop_back();
    if (change.added)
      state_.remove(change.slot, change.op);
    else
      state_.add(change.slot, change.op);
  }
}

bool RecomputeRepair::gap_at(BufferIndex b, Slot t, Gap& gap) const {
  const OpIndex v = state_.producer(b);
  if (v == kNone || v > t || state_.last_read(b) <= t || state_.bytes(b) == 0 ||
      !state_.repeatable(v))
    return false;
  const Slot to = state_.next_read(b, t, state_.run_after(v, t));
  if (to == kNone)
    return false;
  const Slot made = state_.run_before(v, t + 1);
  const Slot last = state_.last_read(b, made, t + 1);
  gap = {b, last == kNone ? made : last, to};
  return gap.to > gap.from + 1 || gap.from == t;
}

/// Whether the buffer is available in slot t without changes.
bool RecomputeRepair::available(BufferIndex b, Slot t) const {
  const OpIndex v = state_.producer(b);
  if (in_closure_[v] == closure_mark_)
    return true;
  const Slot made = state_.run_before(v, t + 1);
  if (made == t)
    return true;
  const Slot last = state_.last_read(b, made, state_.run_after(v, t));
  return last != kNone && last >= t;
}

/// Whether holding the buffer from its last use to slot t overflows no slot.
bool RecomputeRepair::can_hold(BufferIndex b, Slot t) const {
  const OpIndex v = state_.producer(b);
  if (!state_.repeatable(v))
    return true; // it cannot be recomputed
  const Slot made = state_.run_before(v, t + 1);
  const Slot last = state_.last_read(b, made, t + 1);
  const Slot from = (last == kNone ? made : last) + 1;
  state_.charge((t - from) / 64 + 1);
  return state_.has_room(from, t, state_.bytes(b));
}

double RecomputeRepair::estimate(const Gap& gap) const {
  const OpIndex v = state_.producer(gap.buffer);
  std::int64_t cost = state_.cost(v);
  for (const BufferIndex b : state_.reads(v))
    if (!available(b, gap.to) && state_.repeatable(state_.producer(b)))
      cost += state_.cost(state_.producer(b));
  const std::uint32_t slots =
      std::max(1U, overflowing_[gap.to] - overflowing_[std::min(gap.from + 1, gap.to)]);
  return static_cast<double>(cost) / static_cast<double>(slots) /
         static_cast<double>(state_.bytes(gap.buffer));
}

/// Recomputes the buffer where it is read next, with all missing inputs. An input is held until
/// then if it fits (or always, with hold_inputs), otherwise recomputed as well. Returns false if
/// that is too much work.
bool RecomputeRepair::drop(const Gap& gap, bool hold_inputs) {
  closure_.assign(1, state_.producer(gap.buffer));
  in_closure_[closure_[0]] = ++closure_mark_;
  for (std::size_t i = 0; i < closure_.size(); ++i) {
    for (const BufferIndex b : state_.reads(closure_[i])) {
      if (available(b, gap.to) || hold_inputs || can_hold(b, gap.to))
        continue;
      closure_.push_back(state_.producer(b));
      in_closure_[closure_.back()] = closure_mark_;
    }
    if (closure_.size() > kLargestClosure)
      return false;
  }
  std::ranges::sort(closure_); // inputs first, so that none is held only in passing
  for (const OpIndex v : closure_)
    add(gap.to, v);
  return true;
}

/// Cost per byte of overflow that dropping removes; infinite if it removes none.
double RecomputeRepair::trial(const Gap& gap, bool& hold_inputs) {
  const std::int64_t cost = state_.cost();
  const std::int64_t overflow = state_.overflow();
  const std::size_t start = changes_.size();
  double best = std::numeric_limits<double>::infinity();
  for (const bool hold : {false, true}) {
    const bool done = drop(gap, hold);
    const std::size_t size = closure_.size();
    if (done && state_.overflow() < overflow) {
      const double ratio = static_cast<double>(state_.cost() - cost) /
                           static_cast<double>(overflow - state_.overflow());
      if (ratio < best) {
        best = ratio;
        hold_inputs = hold;
      }
    }
    undo_to(start);
    if (done && size == 1)
      break; // hold_inputs makes no difference
  }
  return best;
}

void RecomputeRepair::count_overflowing() {
  std::fill(overflowing_.begin(), overflowing_.end(), 0);
  state_.for_overflowing([&](Slot t) { overflowing_[t + 1] = 1; });
  std::partial_sum(overflowing_.begin(), overflowing_.end(), overflowing_.begin());
  state_.charge(state_.ops() / 4);
}

void RecomputeRepair::find_candidates(Slot t, double noise, RandomStream& random) {
  count_overflowing();
  candidates_.clear();
  ++closure_mark_; // empties the closure
  Gap gap{};
  for (BufferIndex b = 0; b < state_.buffers(); ++b)
    if (gap_at(b, t, gap))
      candidates_.push_back({estimate(gap), b, 0});
  state_.charge(static_cast<std::int64_t>(state_.buffers() / 4 + candidates_.size() * 16));
  if (noise > 0)
    for (Candidate& candidate : candidates_)
      candidate.ratio *= 1 + noise * (2 * random.unit() - 1);
}

/// Drops buffers around slot t until it fits. Returns false if no drop helps.
bool RecomputeRepair::fix(Slot t, double noise, RandomStream& random) {
  find_candidates(t, noise, random);
  const auto later = [](const Candidate& a, const Candidate& b) {
    return a.ratio > b.ratio || (a.ratio == b.ratio && a.buffer > b.buffer);
  };
  std::make_heap(candidates_.begin(), candidates_.end(), later);
  bool progress = false;
  std::uint32_t round = 1;
  bool hold_inputs = false;
  Gap gap{};
  while (state_.overflow(t) > 0 && !candidates_.empty()) {
    std::pop_heap(candidates_.begin(), candidates_.end(), later);
    Candidate& candidate = candidates_.back();
    if (!gap_at(candidate.buffer, t, gap)) {
      candidates_.pop_back();
      continue;
    }
    // A ratio is valid until a buffer is dropped, and is then computed again before use.
    const double ratio = trial(gap, hold_inputs);
    const bool believed = candidate.round == round;
    if (ratio == std::numeric_limits<double>::infinity()) {
      candidates_.pop_back();
    } else if (believed) {
      candidates_.pop_back();
      drop(gap, hold_inputs);
      progress = true;
      ++round;
    } else {
      candidate.ratio = noise > 0 ? ratio * (1 + noise * (2 * random.unit() - 1)) : ratio;
      candidate.round = round;
      std::push_heap(candidates_.begin(), candidates_.end(), later);
    }
    if (over())
      return false;
  }
  return progress;
}

bool RecomputeRepair::repair(double noise, RandomStream& random) {
  std::vector<bool> stuck(state_.ops() + 1, false);
  while (state_.overflow() > 0) {
    Slot fullest = kNone;
    state_.for_overflowing([&](Slot t) {
      if (!stuck[t] && (fullest == kNone || state_.overflow(t) > state_.overflow(fullest)))
        fullest = t;
    });
    state_.charge(state_.ops() / 64);
    if (fullest == kNone || over())
      return false;
    if (fix(fullest, noise, random))
      stuck.assign(stuck.size(), false); // terminates, since the overflow has shrunk
    else
      stuck[fullest] = true;
  }
  return true;
}

void RecomputeRepair::prune(std::vector<Run> runs) {
  std::ranges::sort(runs, [&](const auto& a, const auto& b) {
    const std::int64_t cost_a = state_.cost(a.second);
    const std::int64_t cost_b = state_.cost(b.second);
    return cost_a != cost_b ? cost_a > cost_b : a < b;
  });
  for (const auto& [t, v] : runs) {
    if (over())
      return;
    if (v >= t || !state_.runs_in(v, t))
      continue;
    const std::int64_t before = state_.overflow();
    const std::size_t start = changes_.size();
    remove(t, v);
    if (state_.overflow() > before)
      undo_to(start);
  }
}

std::vector<RecomputeRepair::Run> RecomputeRepair::further_runs() const {
  std::vector<Run> runs;
  for (Slot t = 0; t <= state_.ops(); ++t)
    for (const OpIndex v : state_.again(t))
      runs.emplace_back(t, v);
  return runs;
}

} // namespace monet
