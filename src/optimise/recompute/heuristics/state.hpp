// A plan of recomputation that can be changed run by run, with the bytes live in each slot.
//
// Slot t ends with the first run of operator t. Operators recomputed in the slot run before it in
// the problem's order, each once. A slot after the last one is for kept buffers that are recomputed
// at the end. Every set of (slot, operator) is a valid plan: buffers that are not recomputed are
// held.
#pragma once

#include "monet/base/ids.hpp"
#include "monet/optimise/recompute_problem.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace monet {

/// Lists of numbers, stored consecutively.
class NumberLists {
public:
  NumberLists() : begin_(1, 0) {}
  void push(std::uint32_t value) { values_.push_back(value); }
  void close() { begin_.push_back(static_cast<std::uint32_t>(values_.size())); }
  std::span<const std::uint32_t> operator[](std::uint32_t i) const {
    return {values_.data() + begin_[i], values_.data() + begin_[i + 1]};
  }

private:
  std::vector<std::uint32_t> values_;
  std::vector<std::uint32_t> begin_;
};

class RecomputeState {
public:
  using Slot = std::uint32_t;
  using OpIndex = std::uint32_t;
  using BufferIndex = std::uint32_t;

  /// Initial state: every operator runs once.
  RecomputeState(const RecomputeProblem& problem, std::int64_t budget);

  /// Resets the state and adds the plan's recomputations. Runs of one operator in one slot are
  /// merged, so the state may need more bytes than the plan, but never costs more.
  void assign(const RecomputePlan& plan);
  RecomputePlan plan() const;

  std::int64_t cost() const { return cost_; }
  /// Sum over slots of the bytes above the budget.
  std::int64_t overflow() const { return overflow_; }
  std::int64_t overflow(Slot t) const { return usage(t) > 0 ? usage(t) : 0; }
  /// Whether `bytes` more would fit in every slot of [from, to].
  bool has_room(Slot from, Slot to, std::int64_t bytes) const;
  /// Calls see(t) for every slot that overflows, ascending.
  template <class See>
  void for_overflowing(See&& see) const {
    for (std::uint32_t k = 0; k < block_most_.size(); ++k) {
      if (block_most_[k] + block_more_[k] <= 0)
        continue;
      for (Slot t = k * kBlock; t < block_end(k); ++t)
        if (usage(t) > 0)
          see(t);
    }
  }
  std::int64_t peak_bytes() const;

  OpIndex ops() const { return ops_; } ///< also the last slot, and the reader of kept buffers
  std::size_t buffers() const { return bytes_.size(); }
  std::int64_t bytes(BufferIndex b) const { return bytes_[b]; }
  OpIndex producer(BufferIndex b) const { return producer_[b]; } ///< kNone for given buffers
  std::int64_t cost(OpIndex v) const { return costs_[v]; }
  bool repeatable(OpIndex v) const { return repeatable_[v] != 0; }
  std::span<const BufferIndex> reads(OpIndex v) const {
    return reads_[v];
  } ///< without given buffers
    /// Operators recomputed in the slot, ascending.
  std::span<const OpIndex> again(Slot t) const { return again_[t]; }
  bool runs_in(OpIndex v, Slot t) const;

  /// Last run of v in a slot before `limit`, whose copy is live; kNone before the first run.
  Slot run_before(OpIndex v, Slot limit) const;
  /// First run of v in a slot after t; ops() + 1 if it does not exist.
  Slot run_after(OpIndex v, Slot t) const;
  /// Last slot in [from, limit) that reads the buffer; kNone if it does not exist.
  Slot last_read(BufferIndex b, Slot from, Slot limit) const;
  /// First slot in (t, limit) that reads the buffer; kNone if it does not exist.
  Slot next_read(BufferIndex b, Slot t, Slot limit) const;

  /// Last of all slots that read the buffer; 0 if it does not exist.
  Slot last_read(BufferIndex b) const { return last_read_ever_[b]; }

  /// Adds a run with v < t that does not exist yet.
  void add(Slot t, OpIndex v);
  /// Removes an existing run that is not the first run of v.
  void remove(Slot t, OpIndex v);

  /// Number of slots that changes and walks touched, a measure of work.
  std::int64_t work() const { return work_; }
  void charge(std::int64_t slots) { work_ += slots; }

private:
  // Slots are grouped in blocks. A block whose slots all fit before and after a change is updated
  // as a whole.
  static constexpr Slot kBlock = 64;
  Slot block_end(std::uint32_t k) const {
    const Slot end = (k + 1) * kBlock;
    return end < ops_ + 1 ? end : ops_ + 1;
  }
  std::int64_t usage(Slot t) const { return usage_[t] + block_more_[t / kBlock]; }
  void hold(Slot from, Slot to, std::int64_t bytes);        ///< slots [from, to]
  void hold_within(Slot from, Slot to, std::int64_t bytes); ///< slots of one block
  void refresh(Slot t);
  std::int64_t local_peak(Slot t) const;
  bool read_later_in(BufferIndex b, Slot t, OpIndex reader) const;
  void move_reads(Slot t, OpIndex v, bool adding);
  void move_writes(Slot t, OpIndex v, bool adding);
  void find_last_read(BufferIndex b);
  void mark(Slot t) { dirty_.push_back(t); }
  void refresh_dirty();

  const RecomputeProblem& problem_;
  OpIndex ops_;
  std::int64_t budget_;
  std::vector<std::int64_t> bytes_;
  std::vector<OpIndex> producer_;
  std::vector<std::int64_t> costs_;
  std::vector<char> repeatable_;
  NumberLists reads_;
  NumberLists writes_;
  NumberLists consumers_; ///< per buffer, ascending; ops() for kept ones

  std::vector<std::vector<Slot>> runs_; ///< per operator, ascending; the first is its own slot
  std::vector<std::vector<OpIndex>> again_;
  std::vector<std::int64_t> usage_; ///< per slot: peak less budget and less block_more_
  std::vector<std::int64_t> block_more_;
  std::vector<std::int64_t> block_most_; ///< per block: maximum of usage_
  std::vector<std::int64_t> local_;      ///< per slot: peak above its initial bytes
  std::vector<Slot> last_read_ever_;     ///< per buffer
  std::vector<Slot> dirty_;
  std::int64_t base_usage_ = 0; ///< given bytes less budget
  std::int64_t cost_ = 0;
  std::int64_t overflow_ = 0;
  std::int64_t work_ = 0;
};

} // namespace monet
