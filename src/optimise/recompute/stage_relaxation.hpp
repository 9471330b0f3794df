// The linear relaxation of a program over stages, and what it proves of single operators.
#pragma once

#include "optimise/recompute/model.hpp"

namespace monet {

class StageRelaxation {
public:
  enum class RerunChoice : std::uint8_t { open, never, always };
  /// Whether operators run again in the plans that cost less than the best known: in none, or all;
  /// `never`: there is a cheapest one in which it does not.
  using Known = std::vector<RerunChoice>;

  /// `best`: of the best known plan, beyond running everything once. Costs of plans
  /// differ by multiples of `step`.
  StageRelaxation(const StageProgram& program, const SearchControl& control, double best,
                  double step, Known& known);

  /// False where no plan is better than the best, or the control stopped it.
  bool solve();
  /// What follows for an operator where its running again, or not, leaves nothing better: at most
  /// `solves` linear programs. True where something new is known.
  bool probe(std::int64_t solves);
  /// Like probe, for operators that run again only with others (ReducedRecompute::Op::only_with).
  bool probe_chains(const ReducedRecompute& reduced, std::int64_t solves);

  double bound() const { return bound_; }       ///< beyond running everything once
  bool exhausted() const { return exhausted_; } ///< proven: nothing is better than the best
  bool interrupted() const { return interrupted_; }
  std::size_t columns() const { return lp_.variables(); }
  std::span<const double> values() const { return root_; }
  /// The rows of memory that matter.
  const std::vector<LinearRow>& memory_rows() const { return memory_; }

private:
  double solve_rows(); ///< with rows of memory; infinite: nothing better than the best
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
  double cutoff_; ///< nothing above is better
  Known& known_;
  LinearProgram lp_;
  std::vector<std::uint32_t> count_row_;            // per operator: number of its second runs
  std::vector<std::vector<std::uint32_t>> columns_; // per operator: of its second runs
  std::uint32_t memory_begin_ = 0;
  std::vector<LinearRow> memory_;
  std::vector<double> root_, values_;
  double bound_ = 0;
  std::int64_t solves_ = 0;
  bool exhausted_ = false, interrupted_ = false;
};

} // namespace monet
