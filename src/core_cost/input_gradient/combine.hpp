// What costs of parts come to together, and the best of several ways.
#pragma once

#include "monet/base/errors.hpp"
#include "monet/core_cost/core_cost.hpp"

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace monet::core_cost_detail {

/// Adds what runs after `sum`, `times` times. Operand i of it is `operands[i]` of the sum's
/// problem, which has room for all of them in `offchip` and `resident`; empty: the operands are the
/// same. What stays is the most of any part. The mapping is the first part's.
void add_cost(const CoreCost& one, std::int64_t times, std::span<const std::size_t> operands,
              CoreCost& sum);

/// The core with its outermost memories less the bits that `beside(i)` says of every operand that
/// lies there: of what stays beside the part that runs. InfeasibleError, which says whose bits they
/// are, where nothing is left.
Core with_less_memory(const Core& core, std::span<const ProblemOperand> operands,
                      const std::function<std::int64_t(std::size_t)>& beside,
                      std::string_view whose);

/// Keeps the best cost by the objective, transfers counted; the first of equal ones.
class BestCost {
public:
  explicit BestCost(const CoreCostOptions& options) : options_(options) {}

  /// `find()`: a cost, or an optional one. What does not fit does not count.
  template <class Find>
  void attempt(Find find) {
    try {
      consider(find());
    } catch (const InfeasibleError&) {
      if (!failure_)
        failure_ = std::current_exception();
    }
  }
  /// Of the best so far.
  std::optional<std::pair<double, double>> merit() const;
  /// Throws the first failure where nothing was found.
  CoreCost take();

private:
  void consider(std::optional<CoreCost> cost);

  const CoreCostOptions& options_;
  std::optional<CoreCost> best_;
  std::exception_ptr failure_;
};

} // namespace monet::core_cost_detail
