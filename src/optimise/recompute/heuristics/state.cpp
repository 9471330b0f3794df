// Incremental state of a recomputation plan with the live bytes of each slot; repair and local
// search change plans through it.
#include "optimise/recompute/heuristics/state.hpp"

#include <algorithm>

namespace monet {

RecomputeState::RecomputeState(const RecomputeProblem& problem, std::int64_t budget)
    : problem_(problem), ops_(static_cast<OpIndex>(problem.ops.size())), budget_(budget),
      base_usage_(-budget) {
  std::vector<std::vector<OpIndex>> consumers(problem.buffers.size());
  for (OpIndex v = 0; v < ops_; ++v) {
    const RecomputeProblem::Op& op = problem.ops[v];
    costs_.push_back(op.cost);
    repeatable_.push_back(op.repeatable ? 1 : 0);
    for (const BufferIndex b : op.reads)
      if (problem.buffers[b].producer) {
        reads_.push(b);
        consumers[b].push_back(v);
      }
    for (const BufferIndex b : op.writes)
      writes_.push(b);
    reads_.close();
    writes_.close();
  }
  for (BufferIndex b = 0; b < problem.buffers.size(); ++b) {
    const RecomputeProblem::Buffer& buffer = problem.buffers[b];
    bytes_.push_back(buffer.bytes);
    producer_.push_back(buffer.producer.value_or(kNone));
    if (!buffer.producer)
      base_usage_ += buffer.bytes;
    for (const OpIndex v : consumers[b])
      consumers_.push(v);
    if (buffer.kept && buffer.producer) {
      consumers_.push(ops_);
      reads_.push(b);
    }
    consumers_.close();
  }
  reads_.close(); // reads at the end
  writes_.close();
  assign(store_everything(problem));
}

void RecomputeState::assign(const RecomputePlan& plan) {
  runs_.assign(ops_ + 1, {});
  again_.assign(ops_ + 1, {});
  cost_ = 0;
  OpIndex next = 0;
  for (const OpIndex v : plan.runs) {
    if (v == next) {
      ++next;
      runs_[v].push_back(v);
    } else if (runs_[v].back() == next) {
      continue;
    } else {
      again_[next].push_back(v);
      runs_[v].push_back(next);
    }
    cost_ += costs_[v];
  }
  runs_[ops_] = {ops_};
  for (std::vector<OpIndex>& list : again_)
    std::sort(list.begin(), list.end());
  usage_.assign(ops_ + 1, base_usage_);
  block_more_.assign(ops_ / kBlock + 1, 0);
  block_most_.assign(ops_ / kBlock + 1, base_usage_);
  local_.assign(ops_ + 1, 0);
  overflow_ = 0;
  for (Slot t = 0; t <= ops_; ++t)
    overflow_ += overflow(t);
  last_read_ever_.assign(bytes_.size(), 0);
  for (BufferIndex b = 0; b < bytes_.size(); ++b) {
    if (producer_[b] == kNone)
      continue;
    find_last_read(b);
    const std::vector<Slot>& copies = runs_[producer_[b]];
    for (std::size_t i = 0; i < copies.size(); ++i) {
      const Slot limit = i + 1 < copies.size() ? copies[i + 1] : ops_ + 1;
      if (const Slot last = last_read(b, copies[i], limit); last != kNone)
        hold(copies[i] + 1, last, bytes_[b]);
    }
  }
  for (Slot t = 0; t <= ops_; ++t)
    refresh(t);
}

RecomputePlan RecomputeState::plan() const {
  RecomputePlan plan;
  for (Slot t = 0; t <= ops_; ++t) {
    plan.runs.insert(plan.runs.end(), again_[t].begin(), again_[t].end());
    if (t < ops_)
      plan.runs.push_back(t);
  }
  return plan;
}

std::int64_t RecomputeState::peak_bytes() const {
  std::int64_t most = base_usage_;
  for (Slot t = 0; t <= ops_; ++t)
    most = std::max(most, usage(t));
  return most + budget_;
}

void RecomputeState::find_last_read(BufferIndex b) {
  const Slot last = last_read(b, 0, ops_ + 1);
  last_read_ever_[b] = last == kNone ? 0 : last;
}

bool RecomputeState::runs_in(OpIndex v, Slot t) const {
  return std::binary_search(runs_[v].begin(), runs_[v].end(), t);
}

RecomputeState::Slot RecomputeState::run_before(OpIndex v, Slot limit) const {
  const std::vector<Slot>& runs = runs_[v];
  for (std::size_t i = runs.size(); i-- > 0;)
    if (runs[i] < limit)
      return runs[i];
  return kNone;
}

RecomputeState::Slot RecomputeState::run_after(OpIndex v, Slot t) const {
  for (const Slot run : runs_[v])
    if (run > t)
      return run;
  return ops_ + 1;
}

RecomputeState::Slot RecomputeState::last_read(BufferIndex b, Slot from, Slot limit) const {
  Slot last = kNone;
  for (const OpIndex c : consumers_[b]) {
    const Slot run = run_before(c, limit);
    if (run != kNone && run >= from && (last == kNone || run > last))
      last = run;
  }
  return last;
}

RecomputeState::Slot RecomputeState::next_read(BufferIndex b, Slot t, Slot limit) const {
  Slot next = limit;
  for (const OpIndex c : consumers_[b])
    next = std::min(next, run_after(c, t));
  return next < limit ? next : kNone;
}

void RecomputeState::hold_within(Slot from, Slot to, std::int64_t bytes) {
  const std::int64_t more = block_more_[from / kBlock];
  std::int64_t change = 0;
  for (Slot t = from; t <= to; ++t) {
    const std::int64_t before = usage_[t] + more;
    usage_[t] += bytes;
    change += std::max<std::int64_t>(before + bytes, 0) - std::max<std::int64_t>(before, 0);
  }
  overflow_ += change;
  const std::uint32_t k = from / kBlock;
  block_most_[k] = *std::max_element(usage_.begin() + k * kBlock, usage_.begin() + block_end(k));
  work_ += kBlock;
}

void RecomputeState::hold(Slot from, Slot to, std::int64_t bytes) {
  if (from > to || bytes == 0)
    return;
  for (std::uint32_t k = from / kBlock; k <= to / kBlock; ++k) {
    const Slot begin = std::max(from, k * kBlock);
    const Slot end = std::min(to + 1, block_end(k));
    const std::int64_t most = block_most_[k] + block_more_[k];
    if (end - begin == block_end(k) - k * kBlock && most <= 0 && most + bytes <= 0)
      block_more_[k] += bytes;
    else
      hold_within(begin, end - 1, bytes);
  }
  work_ += to / kBlock - from / kBlock + 1;
}

bool RecomputeState::has_room(Slot from, Slot to, std::int64_t bytes) const {
  for (std::uint32_t k = from / kBlock; from <= to && k <= to / kBlock; ++k) {
    if (block_most_[k] + block_more_[k] + bytes <= 0)
      continue;
    const Slot end = std::min(to + 1, block_end(k));
    for (Slot t = std::max(from, k * kBlock); t < end; ++t)
      if (usage(t) + bytes > 0)
        return false;
  }
  return true;
}

bool RecomputeState::read_later_in(BufferIndex b, Slot t, OpIndex reader) const {
  for (const OpIndex c : consumers_[b])
    if (c > reader && runs_in(c, t))
      return true;
  return next_read(b, t, run_after(producer_[b], t)) != kNone;
}

std::int64_t RecomputeState::local_peak(Slot t) const {
  std::int64_t live = 0;
  std::int64_t peak = 0;
  const std::vector<OpIndex>& list = again_[t];
  for (std::size_t i = 0; i <= list.size(); ++i) {
    const OpIndex v = i < list.size() ? list[i] : t;
    std::int64_t dying = 0;
    for (const BufferIndex b : writes_[v]) {
      live += bytes_[b];
      dying += read_later_in(b, t, v) ? 0 : bytes_[b];
    }
    peak = std::max(peak, live + (v < ops_ ? problem_.ops[v].scratch : 0));
    for (const BufferIndex b : reads_[v])
      dying += read_later_in(b, t, v) ? 0 : bytes_[b];
    live -= dying;
  }
  return peak;
}

void RecomputeState::refresh(Slot t) {
  const std::int64_t peak = local_peak(t);
  work_ += 4 * static_cast<std::int64_t>(again_[t].size() + 1);
  if (peak == local_[t])
    return;
  hold_within(t, t, peak - local_[t]);
  local_[t] = peak;
}

void RecomputeState::refresh_dirty() {
  std::sort(dirty_.begin(), dirty_.end());
  dirty_.erase(std::unique(dirty_.begin(), dirty_.end()), dirty_.end());
  for (const Slot t : dirty_)
    refresh(t);
  dirty_.clear();
}

/// Moves reads; called while v does not run in slot t.
void RecomputeState::move_reads(Slot t, OpIndex v, bool adding) {
  for (const BufferIndex b : reads_[v]) {
    if (adding)
      last_read_ever_[b] = std::max(last_read_ever_[b], t);
    else if (last_read_ever_[b] == t)
      find_last_read(b);
    const Slot made = run_before(producer_[b], t + 1);
    if (made == t)
      continue;
    const Slot last = last_read(b, made, run_after(producer_[b], t));
    const Slot until = last == kNone ? made : last;
    if (until >= t)
      continue;
    hold(until + 1, t, adding ? bytes_[b] : -bytes_[b]);
    mark(until);
  }
}

/// Moves writes; called while v does not run in slot t.
void RecomputeState::move_writes(Slot t, OpIndex v, bool adding) {
  const Slot made = run_before(v, t);
  const Slot limit = run_after(v, t);
  for (const BufferIndex b : writes_[v]) {
    if (const Slot last = last_read(b, made, limit); last == kNone || last < t)
      continue; // has no reader from here on
    const Slot before = last_read(b, made, t);
    const Slot until = before == kNone ? made : before;
    hold(until + 1, t, adding ? -bytes_[b] : bytes_[b]);
    mark(until);
  }
}

void RecomputeState::add(Slot t, OpIndex v) {
  move_reads(t, v, true);
  move_writes(t, v, true);
  runs_[v].insert(std::upper_bound(runs_[v].begin(), runs_[v].end(), t), t);
  again_[t].insert(std::upper_bound(again_[t].begin(), again_[t].end(), v), v);
  cost_ += costs_[v];
  mark(t);
  refresh_dirty();
}

void RecomputeState::remove(Slot t, OpIndex v) {
  runs_[v].erase(std::lower_bound(runs_[v].begin(), runs_[v].end(), t));
  again_[t].erase(std::lower_bound(again_[t].begin(), again_[t].end(), v));
  cost_ -= costs_[v];
  move_reads(t, v, false);
  move_writes(t, v, false);
  mark(t);
  refresh_dirty();
}

} // namespace monet
