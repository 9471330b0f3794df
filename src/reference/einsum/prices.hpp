// Prices (Lagrange multipliers) of the buffer and of tensor places, and the resulting lower bounds
// for the planner; see plan.hpp.
#pragma once

#include "reference/einsum/plan.hpp"

#include <cstdint>
#include <vector>

namespace monet::einsum {

/// Data of a run from which its price is computed.
struct PricedRun {
  std::vector<std::uint32_t> agreed; ///< indices of the agreement prices of its uses
  /// The earliest first use of a tensor below loops: those loops began there or earlier.
  std::uint32_t since = std::numeric_limits<std::uint32_t>::max();
  std::vector<std::uint32_t> free_uses; ///< uses of tensors whose place is not fixed
  std::int64_t stored_bits = 0;         ///< bits of stored tensors in its peak, priced separately
};

class Prices {
public:
  /// Starts from the prices of `bounds`, if it has any.
  Prices(const PlanProblem& problem, const RunBounds& bounds);

  /// Performs steps of a subgradient method and keeps the best prices. `upper`: a plan's DRAM bits.
  void improve(std::int64_t upper, int steps, const SearchControl& control);

  /// Lower bound of the DRAM bits of any mapping.
  double bound() const { return best_; }
  /// Lower bound of the DRAM bits of the rest of a plan from place `at` on. stored() and looped()
  /// are added for each tensor in the buffer at that place.
  double rest(std::uint32_t at, bool open, std::uint32_t begin) const {
    return rest_[open ? RunBounds::open(at, begin / part_length_) : RunBounds::closed(at)];
  }
  /// Addition to rest() for the stored tensor `index` that is whole in the buffer at `at`.
  double stored(std::size_t index, std::uint32_t at) const { return stored_[index][at]; }
  /// Addition to rest() for the stored tensor `index` that is below loops at `at`.
  double looped(std::size_t index, std::uint32_t at) const { return looped_[index][at]; }

  /// Whether a plan with at most `most` DRAM bits may contain this run.
  bool useful(std::size_t run, double most) const;
  /// Bounds for discarding runs, if only plans with at most `most` DRAM bits are of interest.
  RunBounds bounds(double most) const;

  /// Completes `bounds` of another run table: adds bounds of places that only this table's runs
  /// lead to or from.
  void fill(RunBounds& bounds) const;

private:
  struct StoredIndex;
  PricedRun priced(const Run& run, const StoredIndex& index) const;
  void compute();
  void lead();
  std::size_t end_of(const Run& run, std::uint32_t part) const {
    return run.open_end ? RunBounds::open(run.end, part) : RunBounds::closed(run.end);
  }
  /// Calls visit(run, begin place, end place) for all runs from one place, once per part.
  template <class Visit>
  void each(std::uint32_t at, Visit visit) const;
  double run_price(std::size_t r, std::uint32_t& point) const;
  double run_price(std::size_t r) const;
  double slopes(std::vector<double>& capacity, std::vector<double>& agreement) const;

  const PlanProblem& problem_;
  std::vector<PricedRun> runs_;
  std::vector<std::uint32_t> first_use_; ///< by stored tensor: index of the price of its first use
  std::vector<std::uint32_t> from_;      ///< first run by 2 * begin + open
  double unit_ = 1;                      ///< number of bits that a capacity price refers to
  std::vector<double> capacity_;         ///< price by Einsum
  std::vector<double> agreement_;        ///< by use: whole in the buffer; second half: below loops
  std::uint32_t part_length_ = 1;
  double best_ = 0;

  std::vector<double> above_; ///< prefix sums of capacity_
  std::vector<double> rest_;
  std::vector<std::uint32_t> chosen_run_;
  std::vector<std::uint32_t> chosen_point_;
  std::vector<std::vector<double>> stored_;
  std::vector<std::vector<double>> looped_;
  double value_ = 0;
  double constant_ = 0;        ///< price of all tensors' places minus that of the capacity
  std::vector<double> before_; ///< by place: minimum price of the runs up to it
  std::vector<double> after_;  ///< by place: minimum price of the runs from it on
  std::vector<double> around_; ///< by run: minimum price of all other runs of a path
};

} // namespace monet::einsum
