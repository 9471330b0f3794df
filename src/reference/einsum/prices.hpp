// Prices of the buffer and of tensors' places, and the bounds that they give (einsum_plan.hpp).
#pragma once

#include "reference/einsum/plan.hpp"

#include <cstdint>
#include <vector>

namespace monet::einsum {

/// A run with what prices need of it.
struct PricedRun {
  std::vector<std::uint32_t> agreed; ///< prices of agreement of its uses
  /// Loops of tensors below them began at the first use of these, or before.
  std::uint32_t since = std::numeric_limits<std::uint32_t>::max();
  std::vector<std::uint32_t> free_uses; ///< of tensors which the run leaves open
  std::int64_t apart = 0; ///< bits of its peak that stored tensors have, whatever stores them
};

class Prices {
public:
  /// From the prices of `bounds`, if there are any.
  Prices(const PlanProblem& problem, const RunBounds& bounds);

  /// Steps of a subgradient method; keeps the best prices. `upper` is a plan's DRAM bits.
  void improve(std::int64_t upper, int steps, const SearchControl& control);

  /// Less DRAM traffic no mapping has.
  double bound() const { return best_; }
  /// Less DRAM traffic no rest of a plan has: of the runs from `at` on ...
  double rest(std::uint32_t at, bool open, std::uint32_t begin) const {
    return rest_[open ? RunBounds::open(at, begin / part_length_) : RunBounds::closed(at)];
  }
  /// ... plus that for each tensor in the buffer there, by index.
  double stored(std::size_t index, std::uint32_t at) const { return stored_[index][at]; }
  /// ... and for each below loops.
  double looped(std::size_t index, std::uint32_t at) const { return looped_[index][at]; }

  /// Whether a plan with at most so many DRAM bits may have this run.
  bool useful(std::size_t run, double most) const;
  /// All that these prices say of runs, where only plans of at most `most` DRAM bits are wanted.
  RunBounds bounds(double most) const;

  /// Bounds for places that no run of another table led to or from, by the runs of this one.
  void fill(RunBounds& bounds) const;

private:
  void compute();
  void lead();
  std::size_t end_of(const Run& run, std::uint32_t part) const {
    return run.open_end ? RunBounds::open(run.end, part) : RunBounds::closed(run.end);
  }
  /// Calls visit(run, its begin as a place, its end as a place, part) for runs from one place.
  template <class Visit>
  void each(std::uint32_t at, Visit visit) const;
  double run_price(std::size_t r, std::uint32_t& point) const;
  double run_price(std::size_t r) const;
  double slopes(std::vector<double>& capacity, std::vector<double>& agreement) const;

  const PlanProblem& problem_;
  std::vector<PricedRun> runs_;
  std::vector<std::uint32_t> first_use_; ///< by stored tensor: index of the price of its first use
  std::vector<std::uint32_t> from_;      ///< runs by 2 * begin + open: first of them
  double unit_ = 1;                      ///< bits that a price of capacity is of
  std::vector<double> capacity_;         ///< price by Einsum
  std::vector<double> agreement_;        ///< price by use, whole in the buffer; then below loops
  std::uint32_t part_length_ = 1;
  double best_ = 0;

  std::vector<double> above_; ///< sums of capacity_ of the Einsums before
  std::vector<double> rest_;
  std::vector<std::uint32_t> chosen_run_;
  std::vector<std::uint32_t> chosen_point_;
  std::vector<std::vector<double>> stored_;
  std::vector<std::vector<double>> looped_;
  double value_ = 0;
  double constant_ = 0;        ///< rest_ of nothing but what stores tensors, at the begin
  std::vector<double> before_; ///< by place: of the runs that lead there
  std::vector<double> after_;  ///< of those that lead on
  std::vector<double> around_; ///< by run: both
};

} // namespace monet::einsum
