// Total cost of several parts, and the best of several alternatives.
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

/// Adds a part that runs `times` times after `sum`. Its operand i is `operands[i]` of the sum's
/// problem, whose `offchip` and `resident` have that size; empty if operands are equal. Kept data
/// are the maximum over parts. The mapping is that of the first part.
void add_cost(const CoreCost& one, std::int64_t times, std::span<const std::size_t> operands,
              CoreCost& sum);

/// Core with its outermost memories reduced by a number of bits for every operand that lies there:
/// the data kept while a part runs. Throws InfeasibleError, with the operand's name, if no memory
/// is left.
Core with_less_memory(const Core& core, std::span<const ProblemOperand> operands,
                      const std::function<std::int64_t(std::size_t)>& extra,
                      std::string_view whose);

/// Keeps the best cost by the objective, including transfers; ties go to the first.
class BestCost {
public:
  explicit BestCost(const CoreCostOptions& options) : options_(options) {}

  /// Tries `find()`, which returns a cost or an optional one. An infeasible result is recorded as a
  /// failure.
  template <class Find>
  void attempt(Find find) {
    try {
      consider(find());
    } catch (const InfeasibleError&) {
      if (!failure_)
        failure_ = std::current_exception();
    }
  }
  /// Merit of the best cost so far.
  std::optional<std::pair<double, double>> merit() const;
  /// Returns the best cost, or throws the first failure if none was found.
  CoreCost take();

private:
  void consider(std::optional<CoreCost> cost);

  const CoreCostOptions& options_;
  std::optional<CoreCost> best_;
  std::exception_ptr failure_;
};

} // namespace monet::core_cost_detail
