// Makes a recomputation plan fit its budget and removes unneeded runs.
#pragma once

#include "base/shared/rng.hpp"
#include "optimise/recompute/heuristics/state.hpp"

#include "monet/optimise/search.hpp"

#include <vector>

namespace monet {

class RecomputeRepair {
public:
  using Slot = RecomputeState::Slot;
  using OpIndex = RecomputeState::OpIndex;
  using BufferIndex = RecomputeState::BufferIndex;
  using Run = std::pair<Slot, OpIndex>;

  struct Change {
    Slot slot;
    OpIndex op;
    bool added;
  };

  /// A repair ends when the state has done `effort` work.
  RecomputeRepair(RecomputeState& state, std::int64_t effort, const SearchControl& control);

  /// Recomputes operators until no slot overflows: at the fullest slot, it drops the buffer with
  /// the lowest cost per byte of removed overflow. `noise` scales costs by random factors in [1 -
  /// noise, 1 + noise]. Returns false if it fails or is interrupted.
  bool repair(double noise, RandomStream& random);
  /// Removes additional runs, the most expensive first, while no slot overflows.
  void prune(std::vector<Run> runs);
  std::vector<Run> further_runs() const;

  void add(Slot t, OpIndex v);
  void remove(Slot t, OpIndex v);
  /// Changes since the last forget().
  const std::vector<Change>& changes() const { return changes_; }
  void forget() { changes_.clear(); }
  void undo_to(std::size_t changes);

private:
  /// Interval in which a buffer is live but unused, between two slots that use or make it.
  struct Gap {
    BufferIndex buffer;
    Slot from;
    Slot to;
  };
  struct Candidate {
    double ratio; ///< cost per byte of overflow; estimated until `round`
    BufferIndex buffer;
    std::uint32_t round;
  };

  bool gap_at(BufferIndex b, Slot t, Gap& gap) const;
  bool fix(Slot t, double noise, RandomStream& random);
  void find_candidates(Slot t, double noise, RandomStream& random);
  bool available(BufferIndex b, Slot t) const;
  bool can_hold(BufferIndex b, Slot t) const;
  double estimate(const Gap& gap) const;
  bool over() const { return state_.work() >= effort_ || control_.interrupted(); }
  bool drop(const Gap& gap, bool hold_inputs);
  double trial(const Gap& gap, bool& hold_inputs);
  void count_overflowing();

  RecomputeState& state_;
  std::int64_t effort_;
  const SearchControl& control_;
  std::vector<Change> changes_;
  std::vector<std::uint32_t> overflowing_; ///< per slot: number of earlier slots that overflow
  std::vector<Candidate> candidates_;
  std::vector<OpIndex> closure_;
  std::vector<std::uint32_t> in_closure_; ///< per operator: last closure that contained it
  std::uint32_t closure_mark_ = 0;
};

} // namespace monet
