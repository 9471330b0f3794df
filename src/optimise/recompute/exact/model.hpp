// Rematerialisation within a budget as an integer program over stages.
//
// A stage is a range of operators, in the order of their first runs. Recomputation between two of
// them belongs to the stage of the later one. The program states which buffers are live at the ends
// of stages and which operators are recomputed in each.
//
// It omits the order within a stage, small buffers, and second recomputations within a stage. Every
// plan corresponds to a solution that costs no more, so the optimum of the program, and that of its
// linear relaxation, bound all plans from below. Finer stages raise the bound. If the plan made
// from a solution costs no more than the solution, the plan is optimal.
#pragma once

#include "optimise/milp/milp_model.hpp"

#include "monet/base/ids.hpp"
#include "monet/optimise/recompute_problem.hpp"

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace monet {

struct RecomputeModelOptions {
  std::int64_t budget = 0;
  std::int64_t threshold = 1; ///< smaller buffers are free, unless they always stay
  /// Only plans with a lower cost beyond running everything once are of interest.
  std::int64_t best_extra = std::numeric_limits<std::int64_t>::max();
  std::vector<char> never_again; ///< per operator: not recomputed in some best plan
};

/// Problem without irrelevant parts. An item is a buffer with bytes.
struct ReducedRecompute {
  struct Item {
    std::uint32_t buffer = 0;
    std::int64_t bytes = 0;
    std::uint32_t maker = 0;     ///< operator
    std::uint32_t last_read = 0; ///< last first run that reads it, or the end
    bool kept = false;
    /// The only reader reads nothing else, follows at once, and makes no more bytes. A plan may
    /// keep the reader's output instead of this item, so the item never outlives a stage.
    bool passing = false;
  };
  /// Operator together with the makers of the passing items it reads.
  struct Op {
    std::vector<std::uint32_t> reads;  ///< items
    std::vector<std::uint32_t> writes; ///< items
    std::int64_t bytes = 0;            ///< live in its first run, less given buffers
    bool again = false;                ///< may be recomputed, and makes items that do not pass
    std::int64_t again_cost = 0;
    std::int64_t again_bytes = 0;           ///< peak bytes of a second run
    std::int64_t again_free_bytes = 0;      ///< share of again_bytes that is not in items
    std::vector<std::uint32_t> again_reads; ///< items, none of them passing
    /// Some optimal plan recomputes this operator only if it recomputes `only_with`; kNone: no such
    /// condition. That operator makes an item no smaller than all outputs of this one. This one is
    /// its only reader, or the last reader that may run again, so its outputs may stay in place of
    /// the item.
    std::uint32_t only_with = kNone;
    /// Some optimal plan recomputes this operator only just before a run that reads its outputs.
    bool late = false;
  };
  std::int64_t capacity = 0; ///< budget less given bytes
  std::vector<Item> items;
  std::vector<Op> ops; ///< with a last one that reads the kept items
  /// Per operator: bytes of buffers, other than items, that are certainly live during its first run
  /// and that it neither reads nor writes.
  std::vector<std::int64_t> certain;
  /// Per operator: whether a stage may end after it.
  std::vector<char> may_end;
  /// Non-item buffer that always stays: first and last operator, and bytes.
  struct FixedBuffer {
    std::uint32_t maker = 0, last = 0;
    std::int64_t bytes = 0;
  };
  std::vector<FixedBuffer> certain_buffers;
};
ReducedRecompute reduce(const RecomputeProblem& problem, const RecomputeModelOptions& options);

/// Columns and rows of the program for given stages.
class StageProgram {
public:
  struct Column {
    double lower = 0, upper = 1, cost = 0;
    bool integer = true;
  };

  /// `ends`: last operator of each stage.
  StageProgram(const ReducedRecompute& reduced, std::vector<std::uint32_t> ends);

  const std::vector<Column>& columns() const { return columns_; }
  const std::vector<LinearRow>& rows() const { return rows_; } ///< without memory rows
  /// Memory rows that `values` violates by more than `tolerance` of the capacity; all rows if
  /// `values` is empty.
  std::vector<LinearRow> memory_rows(std::span<const double> values, double tolerance) const;

  std::size_t stages() const { return ends_.size(); }
  const std::vector<std::uint32_t>& ends() const { return ends_; }
  std::uint32_t stage_of(std::uint32_t op) const { return stage_[op]; }
  std::uint32_t first_op(std::uint32_t stage) const {
    return stage == 0 ? 0 : ends_[stage - 1] + 1;
  }

  /// Columns: whether the item is live at the start of the stage, and whether the operator is
  /// recomputed in it.
  std::uint32_t held(std::uint32_t stage, std::uint32_t item) const;
  std::uint32_t again(std::uint32_t stage, std::uint32_t op) const;
  /// Operator of a recomputation column; kNone for other columns.
  std::uint32_t op_of_column(std::uint32_t column) const { return op_of_column_[column]; }

private:
  struct Range { ///< columns of consecutive stages [first, first + count)
    std::uint32_t first = 0, count = 0, column = 0;
  };
  struct StageReads;
  void find_lives();
  void add_columns();
  void add_links();
  void add_uses();
  void add_late();
  StageReads reads_in(std::uint32_t stage) const;
  bool first_run_row(const StageReads& reads, std::uint32_t op, LinearRow& row) const;
  bool again_row(const StageReads& reads, std::uint32_t op, LinearRow& row) const;
  Range add_range(std::uint32_t first, std::uint32_t end, double cost, bool integer);
  static std::uint32_t at(const Range& range, std::uint32_t stage) {
    return stage >= range.first && stage < range.first + range.count
               ? range.column + (stage - range.first)
               : kNone;
  }

  const ReducedRecompute* reduced_;
  double scale_ = 1;
  std::vector<std::uint32_t> ends_, stage_;
  std::vector<std::uint32_t> last_;   // per item: last stage at whose start it may be live
  std::vector<Range> held_, through_; // per item
  std::vector<Range> again_;          // per operator
  std::vector<std::vector<std::uint32_t>> items_at_;  // per stage: items with a column `through`
  std::vector<std::vector<std::uint32_t>> agains_at_; // per stage: operators
  std::vector<Column> columns_;
  std::vector<std::uint32_t> op_of_column_;
  std::vector<LinearRow> rows_;
};

/// Plan that holds, where possible, the items that `values` holds at the ends of stages, and
/// recomputes whatever that needs, once per stage. It may exceed the budget.
RecomputePlan plan_of(const RecomputeProblem& problem, const ReducedRecompute& reduced,
                      const StageProgram& program, std::span<const double> values);

} // namespace monet
