// Logs of a training step, operator by operator, in the form of the DTR prototype: what each call
// read, made and cost, and when the program dropped its names.
#pragma once

#include "monet/optimise/recompute_problem.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

/// A log as a problem: a buffer per storage, an operator per CALL and MUTATE in the log's order,
/// all of which may run again; costs in nanoseconds. See docs/reference/operator-log.md.
struct OperatorLog {
  RecomputeProblem problem;
  /// Of the log as written: what RELEASE drops is freed when its last name goes, constants never.
  std::int64_t recorded_peak_bytes = 0;
  /// Per buffer: the operator after which the program dropped its last name; the number of
  /// operators where it never did, and for given buffers.
  std::vector<std::uint32_t> released;
};

/// One JSON object per line: CONSTANT, MEMORY, CALL, ALIAS, MUTATE, COPY, COPY_FROM, RELEASE and
/// ANNOTATE. Lines before ANNOTATE START are not part of the step; what they made is given where
/// the step uses it. Throws InputError with file and line for anything else, unknown names, and
/// sums of bytes or nanoseconds beyond 2^53.
OperatorLog parse_operator_log(std::string_view text, const std::string& origin);
OperatorLog read_operator_log(const std::string& path);

} // namespace monet
