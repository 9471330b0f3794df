// Reader of logs of training steps in the format of the DTR prototype: reads, writes and cost of
// each call, and the release of names.
#pragma once

#include "monet/optimise/recompute_problem.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

/// A log as a recomputation problem. It has a buffer per storage and an operator per CALL and
/// MUTATE, in the log's order; all operators may run again. Costs are in nanoseconds. See
/// docs/reference/operator-log.md.
struct OperatorLog {
  RecomputeProblem problem;
  /// Peak of live bytes in the log as recorded: RELEASE frees a storage when its last name is
  /// dropped; constants are never freed.
  std::int64_t recorded_peak_bytes = 0;
  /// Per buffer: the operator after which the program dropped its last name. The number of
  /// operators if it never did, and for given buffers.
  std::vector<std::uint32_t> released;
};

/// Parses a log with one JSON object per line: CONSTANT, MEMORY, CALL, ALIAS, MUTATE, COPY,
/// COPY_FROM, RELEASE and ANNOTATE. Lines before ANNOTATE START are not part of the step; storages
/// that they produce are given if the step uses them. `origin` names the log in messages. Throws
/// InputError with file and line for other lines, unknown names, and sums of bytes or nanoseconds
/// beyond 2^53.
OperatorLog parse_operator_log(std::string_view text, const std::string& origin);
/// Reads a log from a file; see parse_operator_log().
OperatorLog read_operator_log(const std::string& path);

} // namespace monet
