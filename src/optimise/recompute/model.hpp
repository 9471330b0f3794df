// Rematerialisation within a budget as an integer program over stages.
//
// A stage is a range of operators, in the order of their first runs; what runs again between two
// of them belongs to the stage of the later one. The program says which buffers are there at the
// ends of stages, and which operators run again in each. It leaves out much (the order within a
// stage, buffers of few bytes, second runs within one stage), but every plan gives a solution that
// costs no more: its optimum, and that of its linear relaxation, bound all plans from below. With
// finer stages the bound rises; where the plan made from a solution costs what the solution costs,
// the plan is optimal.
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
  std::int64_t threshold = 1; ///< buffers of fewer bytes are free, unless they never go
  /// Only plans with less than this beyond running everything once are of interest.
  std::int64_t best_extra = std::numeric_limits<std::int64_t>::max();
  std::vector<char> never_again; ///< per operator: does not run again in some best of these
};

/// The problem without what cannot matter. An item is a buffer that has bytes.
struct ReducedRecompute {
  struct Item {
    std::uint32_t buffer = 0;
    std::int64_t bytes = 0;
    std::uint32_t maker = 0;     ///< an operator
    std::uint32_t last_read = 0; ///< by a first run, or by the end
    bool kept = false;
    /// Its only reader reads nothing else, follows at once, and makes no more bytes: what keeps
    /// this one may as well keep that, so it never outlives a stage.
    bool passing = false;
  };
  /// An operator with those that make the passing items it reads.
  struct Op {
    std::vector<std::uint32_t> reads;  ///< items
    std::vector<std::uint32_t> writes; ///< items
    std::int64_t bytes = 0;            ///< there while it runs for the first time, less given ones
    bool again = false;                ///< may run again, and makes items that do not just pass
    std::int64_t again_cost = 0;
    std::int64_t again_bytes = 0;           ///< there at some moment of a second run
    std::int64_t again_free_bytes = 0;      ///< of that, buffers that are no items
    std::vector<std::uint32_t> again_reads; ///< items, none of which passes
    /// Some cheapest plan runs this again only if it runs that operator again, kNone: any. That
    /// makes an item no smaller than all this one makes, which this one alone reads, or is the
    /// last to read of those that may run again: while it stays, what is made of it may instead.
    std::uint32_t only_with = kNone;
    /// Some cheapest plan runs this again only just before a run that reads what it makes.
    bool late = false;
  };
  std::int64_t capacity = 0; ///< budget less what is given
  std::vector<Item> items;
  std::vector<Op> ops; ///< and one more that reads what is kept
  /// Per operator: bytes of buffers that are no items and are there for certain while it runs for
  /// the first time; it reads and writes none of them.
  std::vector<std::int64_t> certain;
  /// Operators after which a stage may end.
  std::vector<char> may_end;
  /// (first, last operator, bytes) of buffers that are no items and never go.
  struct FixedBuffer {
    std::uint32_t maker = 0, last = 0;
    std::int64_t bytes = 0;
  };
  std::vector<FixedBuffer> certain_buffers;
};
ReducedRecompute reduce(const RecomputeProblem& problem, const RecomputeModelOptions& options);

/// The columns and rows for given stages.
class StageProgram {
public:
  struct Column {
    double lower = 0, upper = 1, cost = 0;
    bool integer = true;
  };

  /// `ends`: the last operator of each stage.
  StageProgram(const ReducedRecompute& reduced, std::vector<std::uint32_t> ends);

  const std::vector<Column>& columns() const { return columns_; }
  const std::vector<LinearRow>& rows() const { return rows_; } ///< without those of memory
  /// Rows of memory that `values` breaks by more than `tolerance` of the capacity; all where
  /// `values` is empty.
  std::vector<LinearRow> memory_rows(std::span<const double> values, double tolerance) const;

  std::size_t stages() const { return ends_.size(); }
  const std::vector<std::uint32_t>& ends() const { return ends_; }
  std::uint32_t stage_of(std::uint32_t op) const { return stage_[op]; }
  std::uint32_t first_op(std::uint32_t stage) const {
    return stage == 0 ? 0 : ends_[stage - 1] + 1;
  }

  /// Is the item there when the stage begins; does the operator run again in it?
  std::uint32_t held(std::uint32_t stage, std::uint32_t item) const;
  std::uint32_t again(std::uint32_t stage, std::uint32_t op) const;
  /// The operator of a column of a second run, kNone for others.
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
  std::vector<std::uint32_t> last_;   // per item: the last stage at whose beginning it may be there
  std::vector<Range> held_, through_; // per item
  std::vector<Range> again_;          // per operator
  std::vector<std::vector<std::uint32_t>> items_at_;  // per stage: those with a column `through`
  std::vector<std::vector<std::uint32_t>> agains_at_; // per stage: operators
  std::vector<Column> columns_;
  std::vector<std::uint32_t> op_of_column_;
  std::vector<LinearRow> rows_;
};

/// A plan that holds at the ends of stages what `values` holds there, as far as it can, and runs
/// again what that needs, once per stage. It may need more than the budget.
RecomputePlan plan_of(const RecomputeProblem& problem, const ReducedRecompute& reduced,
                      const StageProgram& program, std::span<const double> values);

} // namespace monet
