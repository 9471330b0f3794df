// A plan of recomputation that can be changed run by run, with the bytes live in each slot.
//
// Slot t ends with the first run of operator t; operators that run again in it do so before, in the
// problem's order, each once. The slot after the last is for kept buffers that are made again at
// the end. Every set of (slot, operator) is a valid plan: what is not made again is held.
#pragma once

#include "monet/base/ids.hpp"
#include "monet/optimise/recompute_problem.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace monet {

/// Lists of numbers, one behind the other.
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

  /// Everything runs once.
  RecomputeState(const RecomputeProblem& problem, std::int64_t budget);

  /// Back to everything once, then the plan's further runs. Runs of one operator that fall into one
  /// slot become one, so that this may need more bytes than the plan, but never costs more.
  void assign(const RecomputePlan& plan);
  RecomputePlan plan() const;

  std::int64_t cost() const { return cost_; }
  /// Sum over slots of the bytes that do not fit.
  std::int64_t overflow() const { return overflow_; }
  std::int64_t overflow(Slot t) const { return usage(t) > 0 ? usage(t) : 0; }
  /// No slot in [from, to] would overflow with so many more bytes.
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

  OpIndex ops() const { return ops_; } ///< also the last slot, and who reads what is kept there
  std::size_t buffers() const { return bytes_.size(); }
  std::int64_t bytes(BufferIndex b) const { return bytes_[b]; }
  OpIndex producer(BufferIndex b) const { return producer_[b]; } ///< kNone for given ones
  std::int64_t cost(OpIndex v) const { return costs_[v]; }
  bool repeatable(OpIndex v) const { return repeatable_[v] != 0; }
  std::span<const BufferIndex> reads(OpIndex v) const { return reads_[v]; } ///< not given ones
  /// Operators that run again in the slot, ascending.
  std::span<const OpIndex> again(Slot t) const { return again_[t]; }
  bool runs_in(OpIndex v, Slot t) const;

  /// The last run of v in a slot before `limit`, whose copy is there; kNone before the first.
  Slot run_before(OpIndex v, Slot limit) const;
  /// The first run of v in a slot after t; ops() + 1 for none.
  Slot run_after(OpIndex v, Slot t) const;
  /// The last slot in [from, limit) in which the buffer is read; kNone for none.
  Slot last_read(BufferIndex b, Slot from, Slot limit) const;
  /// The first slot in (t, limit) in which the buffer is read; kNone for none.
  Slot next_read(BufferIndex b, Slot t, Slot limit) const;

  /// The last slot at all in which the buffer is read; 0 for none.
  Slot last_read(BufferIndex b) const { return last_read_ever_[b]; }

  /// v < t, not there yet.
  void add(Slot t, OpIndex v);
  /// There, and not its first run.
  void remove(Slot t, OpIndex v);

  /// Slots that additions, removals and walks touched: a measure of work done.
  std::int64_t work() const { return work_; }
  void charge(std::int64_t slots) { work_ += slots; }

private:
  // Slots are taken in blocks: a block whose slots all have room before and after a change needs
  // no look at each.
  static constexpr Slot kBlock = 64;
  Slot block_end(std::uint32_t k) const {
    const Slot end = (k + 1) * kBlock;
    return end < ops_ + 1 ? end : ops_ + 1;
  }
  std::int64_t usage(Slot t) const { return usage_[t] + block_more_[t / kBlock]; }
  void hold(Slot from, Slot to, std::int64_t bytes);        ///< slots [from, to]
  void hold_within(Slot from, Slot to, std::int64_t bytes); ///< of one block
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
  std::vector<std::int64_t> usage_; ///< per slot: peak less budget, less what its block has more
  std::vector<std::int64_t> block_more_;
  std::vector<std::int64_t> block_most_; ///< per block: most of usage_
  std::vector<std::int64_t> local_;      ///< per slot: peak above what it starts with
  std::vector<Slot> last_read_ever_;     ///< per buffer
  std::vector<Slot> dirty_;
  std::int64_t base_usage_ = 0; ///< given bytes less budget
  std::int64_t cost_ = 0;
  std::int64_t overflow_ = 0;
  std::int64_t work_ = 0;
};

} // namespace monet
