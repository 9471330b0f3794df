// What operators do along loops that a result lacks.
#pragma once

#include "monet/training/training.hpp"

#include <cstddef>

namespace monet::mesh {

enum class OverLoop {
  sum,     ///< results of parts of the loop add up
  largest, ///< the largest of the parts' results is the result
  local,   ///< a part has a result of its own: statistics of a batch normalisation
  none,    ///< the result needs the loop as a whole
};

/// Of one operand that the operator writes, along a loop that it lacks.
OverLoop over_loop(const Operator& op, const Access& written, std::size_t loop);
/// The operator may be cut along a loop that is coupled: batch normalisation, whose ranks normalise
/// by statistics of their own samples.
bool has_local_statistics(const Operator& op, std::size_t loop);
/// Sums of results are the result of sums: what is applied to terms may be added up later.
bool is_sum_of_operands(const Operator& op);
/// The same of an exchange along another axis, where nothing is sent twice by adding up later.
bool is_linear_exchange(const Operator& op);

/// The step with the divisor of every mean that a loss takes as a number of its own, so that a part
/// of the loss can be divided by the count of all parts.
TrainingGraph with_divisors(const TrainingGraph& step);

} // namespace monet::mesh
