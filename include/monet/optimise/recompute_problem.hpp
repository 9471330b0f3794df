// Rematerialisation as a problem of its own: operators that run in a given order, buffers that they
// read and write, and a limit on the bytes that are live at any time. Dropped buffers are made
// again by running their operator again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace monet {

/// One step. Each buffer is written by at most one operator.
struct RecomputeProblem {
  struct Buffer {
    std::string name;
    std::int64_t bytes = 0;
    std::optional<std::uint32_t> producer; ///< none: given, and there all the time (weights, data)
    bool kept = false;                     ///< must be there at the end
  };
  struct Op {
    std::string name;
    std::int64_t cost = 0;    ///< of one run: nanoseconds, cycles or fJ, as the caller likes
    std::int64_t scratch = 0; ///< bytes that only the run itself needs
    bool repeatable = true;
    std::vector<std::uint32_t> reads;  ///< buffers, each once
    std::vector<std::uint32_t> writes; ///< buffers
  };
  std::vector<Buffer> buffers;
  std::vector<Op> ops; ///< in the order of their first runs, producers first

  /// Cost of running everything once.
  std::int64_t base_cost() const;
  /// Bytes that an operator writes.
  std::int64_t written_bytes(std::uint32_t op) const;
};

/// Operators in the order in which they run. Every one runs, first runs are in the problem's order;
/// further runs may stand anywhere. A run reads what was written last.
struct RecomputePlan {
  std::vector<std::uint32_t> runs;

  friend bool operator==(const RecomputePlan&, const RecomputePlan&) = default;
};

/// Every operator once.
RecomputePlan store_everything(const RecomputeProblem& problem);

/// What a plan comes to. A copy of a buffer lives from the run that writes it to the last run that
/// reads it before it is written again; one that nobody reads lives during its run, a kept one to
/// the end. While a run lasts, everything it reads and writes is there.
struct RecomputeOutcome {
  std::int64_t cost = 0;
  std::int64_t peak_bytes = 0;
  std::size_t peak_run = 0;             ///< the first run at the peak
  std::vector<std::int64_t> live_bytes; ///< per run
};

/// InternalError for a plan that is none: an operator missing, out of order, run again though it
/// must not be, or reading what is not there.
RecomputeOutcome replay(const RecomputeProblem& problem, const RecomputePlan& plan);

/// Invariants as InternalError: indices in range, producers before readers, one producer each,
/// no negative number.
void verify(const RecomputeProblem& problem);

/// No plan whatsoever needs less: what is given and kept aside, the largest operator with all it
/// reads and writes. A bound, not always reached.
std::int64_t peak_bound(const RecomputeProblem& problem);

/// A plan within a budget, and how good it is.
struct RecomputeResult {
  std::optional<RecomputePlan> plan; ///< none found
  RecomputeOutcome outcome;          ///< of the plan
  double bound = 0;                  ///< no plan within the budget costs less
  bool infeasible = false;           ///< proven: no plan is within the budget
  bool interrupted = false;          ///< a limit ended the search
  std::string method;                ///< that found the plan
};
/// InternalError where the plan is not what its outcome says, or beats its bound.
void verify(const RecomputeProblem& problem, const RecomputeResult& found);

} // namespace monet
