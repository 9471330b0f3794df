// Linear relaxation of a program over stages, and its proofs about single operators.
#pragma once

#include "optimise/recompute/exact/model.hpp"

namespace monet {

class StageRelaxation {
public:
  enum class RerunChoice : std::uint8_t { open, never, always };
  /// Per operator, whether plans cheaper than the best known one recompute it: none or all of them.
  /// `never`: some cheapest plan does not.
  using Known = std::vector<RerunChoice>;

  /// `best`: cost of the best known plan beyond running everything once. Costs of plans differ by
  /// multiples of `step`.
  StageRelaxation(const StageProgram& program, const SearchControl& control, double best,
                  double step, Known& known);

  /// Solves the relaxation. Returns false if no plan improves on the best, or the control stopped
  /// it.
  bool solve();
  /// Tests whether recomputing an operator, or not, excludes every better plan, with at most
  /// `solves` linear programs. Returns true if a fact is new.
  bool probe(std::int64_t solves);
  /// Probes operators that are recomputed only with others (ReducedRecompute::Op::only_with); see
  /// probe().
  bool probe_chains(const ReducedRecompute& reduced, std::int64_t solves);

  double bound() const { return bound_; }       ///< beyond running everything once
  bool exhausted() const { return exhausted_; } ///< proven: no plan improves on the best
  bool interrupted() const { return interrupted_; }
  std::size_t columns() const { return lp_.variables(); }
  std::span<const double> values() const { return root_; }
  /// Memory rows that were added.
  const std::vector<LinearRow>& memory_rows() const { return memory_; }

private:
  double solve_rows(); ///< with memory rows; infinite if no plan improves on the best
  void purge_memory_rows();
  void set_count(std::uint32_t op, double lower, double upper);
  void reset_count(std::uint32_t op);
  bool chain_prunes(const std::vector<std::uint32_t>& chain, std::size_t count);
  void learn_never(const ReducedRecompute& reduced, std::uint32_t op);
  double max_runs(std::uint32_t op) const { return static_cast<double>(columns_[op].size()); }
  bool open(std::uint32_t op) const {
    return known_[op] == RerunChoice::open && !columns_[op].empty();
  }

  const StageProgram& program_;
  const SearchControl& control_;
  double cutoff_; ///< maximum cost of a better plan
  Known& known_;
  LinearProgram lp_;
  std::vector<std::uint32_t> count_row_;            // per operator: number of its recomputations
  std::vector<std::vector<std::uint32_t>> columns_; // per operator: its recomputations
  std::uint32_t memory_begin_ = 0;
  std::vector<LinearRow> memory_;
  std::vector<double> root_, values_;
  double bound_ = 0;
  std::int64_t solves_ = 0;
  bool exhausted_ = false, interrupted_ = false;
};

} // namespace monet
