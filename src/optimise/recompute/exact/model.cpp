// Reduces a recomputation problem: removes buffers and operators that cannot affect an optimal
// plan. StageProgram is built from the result.
#include "optimise/recompute/exact/model.hpp"

#include "base/shared/checked.hpp"

#include <algorithm>
#include <limits>

namespace monet {

namespace {

/// Steps of reduce().
class Reducer {
public:
  Reducer(const RecomputeProblem& problem, const RecomputeModelOptions& options)
      : problem_(problem), options_(options), item_of_(problem.buffers.size(), kNone),
        last_read_(problem.buffers.size(), 0) {}

  ReducedRecompute run() {
    find_last_reads();
    find_items();
    fill_ops();
    add_end();
    find_partners();
    find_passing();
    find_late();
    count_certain();
    return std::move(r_);
  }

private:
  bool never_again(std::uint32_t op) const {
    return never_drops(op) || (op < options_.never_again.size() && options_.never_again[op] != 0);
  }

  /// Whether its small buffers certainly stay, in every plan rather than some optimal one.
  bool never_drops(std::uint32_t op) const {
    return !problem_.ops[op].repeatable || problem_.ops[op].cost >= options_.best_extra;
  }

  void find_last_reads() {
    for (std::uint32_t t = 0; t < problem_.ops.size(); ++t) {
      for (const std::uint32_t b : problem_.ops[t].reads)
        last_read_[b] = t;
      for (const std::uint32_t b : problem_.ops[t].writes)
        last_read_[b] = t;
    }
  }

  void find_items() {
    r_.capacity = options_.budget;
    const auto end = static_cast<std::uint32_t>(problem_.ops.size());
    for (std::uint32_t b = 0; b < problem_.buffers.size(); ++b) {
      const RecomputeProblem::Buffer& buffer = problem_.buffers[b];
      if (!buffer.producer) {
        r_.capacity -= buffer.bytes;
        continue;
      }
      if (buffer.bytes >= std::max<std::int64_t>(options_.threshold, 1)) {
        item_of_[b] = static_cast<std::uint32_t>(r_.items.size());
        r_.items.push_back({b, buffer.bytes, *buffer.producer, buffer.kept ? end : last_read_[b],
                            buffer.kept, false});
      } else if (buffer.bytes > 0 && never_drops(*buffer.producer)) {
        r_.certain_buffers.push_back(
            {*buffer.producer, buffer.kept ? end : last_read_[b], buffer.bytes});
      }
    }
  }

  void fill_ops() {
    r_.ops.resize(problem_.ops.size());
    for (std::uint32_t t = 0; t < r_.ops.size(); ++t) {
      const RecomputeProblem::Op& from = problem_.ops[t];
      ReducedRecompute::Op& op = r_.ops[t];
      op.bytes = from.scratch;
      std::int64_t no_items = 0;
      for (const std::uint32_t b : from.reads) {
        if (!problem_.buffers[b].producer)
          continue;
        op.bytes += problem_.buffers[b].bytes;
        if (item_of_[b] != kNone)
          op.reads.push_back(item_of_[b]);
        else
          no_items += problem_.buffers[b].bytes;
      }
      for (const std::uint32_t b : from.writes) {
        op.bytes += problem_.buffers[b].bytes;
        if (item_of_[b] != kNone)
          op.writes.push_back(item_of_[b]);
        else
          no_items += problem_.buffers[b].bytes;
      }
      op.again = !never_again(t) && !op.writes.empty();
      op.again_cost = from.cost;
      op.again_bytes = op.bytes;
      op.again_free_bytes = no_items;
      op.again_reads = op.reads;
    }
  }

  /// Adds a last operator that reads the kept buffers; others may be recomputed before it.
  void add_end() {
    ReducedRecompute::Op end;
    for (std::uint32_t i = 0; i < r_.items.size(); ++i)
      if (r_.items[i].kept) {
        end.reads.push_back(i);
        end.bytes += r_.items[i].bytes;
      }
    r_.ops.push_back(std::move(end));
  }

  /// Fills only_with, and excludes operators whose partner never runs again.
  void find_partners() {
    std::vector<std::uint32_t> readers(r_.items.size(), 0); // readers that may run again
    for (const ReducedRecompute::Op& op : r_.ops)
      for (const std::uint32_t i : op.reads)
        readers[i] += op.again ? 1 : 0;
    for (bool change = true; change;) {
      change = false;
      for (const bool look : {true, false}) // repeated for partners that were excluded later
        for (std::uint32_t t = 0; t < problem_.ops.size(); ++t) {
          ReducedRecompute::Op& op = r_.ops[t];
          if (!op.again || (look && op.only_with != kNone))
            continue;
          if (look)
            op.only_with = partner(t, readers);
          if (op.only_with == kNone || r_.ops[op.only_with].again)
            continue;
          op.again = false;
          change = true;
          for (const std::uint32_t i : op.reads)
            --readers[i];
        }
    }
  }

  std::uint32_t partner(std::uint32_t t, const std::vector<std::uint32_t>& readers) const {
    const std::int64_t made = problem_.written_bytes(t);
    for (const std::uint32_t i : r_.ops[t].reads) {
      const ReducedRecompute::Item& item = r_.items[i];
      if (readers[i] == 1 && item.last_read == t && !item.kept && made <= item.bytes)
        return item.maker;
    }
    return kNone;
  }

  /// Joins an operator to its only reader if that adds no cost to any plan: the reader's items
  /// replace the item between them, which is no smaller.
  void find_passing() {
    std::vector<std::uint32_t> readers(r_.items.size(), 0);
    std::vector<std::uint32_t> reader(r_.items.size(), 0);
    std::vector<std::uint32_t> busy; // operators with items
    std::vector<std::uint32_t> place(r_.ops.size(), 0);
    for (std::uint32_t t = 0; t < r_.ops.size(); ++t) {
      for (const std::uint32_t i : r_.ops[t].reads) {
        ++readers[i];
        reader[i] = t;
      }
      place[t] = static_cast<std::uint32_t>(busy.size());
      if (!r_.ops[t].reads.empty() || !r_.ops[t].writes.empty())
        busy.push_back(t);
    }
    r_.may_end.assign(r_.ops.size(), 1);
    for (std::uint32_t t = 0; t < problem_.ops.size(); ++t) {
      ReducedRecompute::Op& op = r_.ops[t];
      if (op.writes.size() != 1 || never_again(t))
        continue;
      ReducedRecompute::Item& item = r_.items[op.writes[0]];
      if (readers[op.writes[0]] != 1 || item.kept)
        continue;
      const std::uint32_t next = reader[op.writes[0]];
      ReducedRecompute::Op& to = r_.ops[next];
      std::int64_t made = 0;
      for (const std::uint32_t i : to.writes)
        made += r_.items[i].bytes;
      if (place[next] != place[t] + 1 || to.reads.size() != 1 || to.writes.empty() ||
          made > item.bytes || never_again(next))
        continue;
      item.passing = true;
      op.again = false;
      to.again_cost = checked_add(to.again_cost, op.again_cost);
      to.again_reads = op.again_reads;
      to.only_with = op.only_with;
      to.again_bytes = op.again_bytes;
      to.again_free_bytes = op.again_free_bytes;
      for (std::uint32_t k = t; k < next; ++k)
        r_.may_end[k] = 0;
    }
  }

  /// Fills `late`. A second run may move to just before the first run that reads its outputs. Until
  /// then its inputs replace its outputs in memory; while it runs, they replace the reader's
  /// outputs. Passing items would outlive a stage.
  void find_late() {
    std::vector<std::int64_t> min_made(
        problem_.buffers.size(), // minimum bytes made by a run that reads it
        std::numeric_limits<std::int64_t>::max());
    for (const RecomputeProblem::Op& op : problem_.ops) {
      const std::int64_t made = bytes_of(op.writes) + op.scratch;
      for (const std::uint32_t b : op.reads)
        min_made[b] = std::min(min_made[b], made);
    }
    for (std::uint32_t t = 0; t < problem_.ops.size(); ++t) {
      const RecomputeProblem::Op& from = problem_.ops[t];
      ReducedRecompute::Op& op = r_.ops[t];
      if (!op.again || op.writes.size() != 1 || from.scratch != 0)
        continue;
      // All outputs with bytes must be read together, so the first run that reads any of them is
      // the one that waits for this run.
      const ReducedRecompute::Item& made = r_.items[op.writes[0]];
      if (bytes_of(from.writes) != made.bytes || !read_with(from.writes, made.buffer))
        continue;
      const std::int64_t read = bytes_of(from.reads);
      const bool passes =
          std::ranges::any_of(op.reads, [&](std::uint32_t i) { return r_.items[i].passing; });
      op.late = !made.kept && !made.passing && !passes && read <= made.bytes &&
                read <= min_made[made.buffer];
    }
  }

  /// Whether every reader of any of the buffers also reads `buffer`.
  bool read_with(const std::vector<std::uint32_t>& buffers, std::uint32_t buffer) const {
    if (buffers.size() == 1)
      return true;
    const auto reads = [](const RecomputeProblem::Op& op, std::uint32_t b) {
      return std::ranges::find(op.reads, b) != op.reads.end();
    };
    for (const std::uint32_t b : buffers) {
      if (problem_.buffers[b].kept)
        return false;
      for (const RecomputeProblem::Op& op : problem_.ops)
        if (reads(op, b) && !reads(op, buffer))
          return false;
    }
    return true;
  }

  /// Total bytes of the buffers that are not given.
  std::int64_t bytes_of(const std::vector<std::uint32_t>& buffers) const {
    std::int64_t bytes = 0;
    for (const std::uint32_t b : buffers)
      bytes += problem_.buffers[b].producer ? problem_.buffers[b].bytes : 0;
    return bytes;
  }

  /// Bytes that are certainly live at each operator, first as differences.
  void count_certain() {
    std::vector<std::int64_t> change(r_.ops.size() + 1, 0);
    for (const ReducedRecompute::FixedBuffer& c : r_.certain_buffers) {
      change[c.maker] += c.bytes;
      change[c.last + 1] -= c.bytes;
    }
    r_.certain.resize(r_.ops.size());
    std::int64_t sum = 0;
    for (std::uint32_t t = 0; t < r_.ops.size(); ++t) {
      sum += change[t];
      r_.certain[t] = sum;
      if (t == problem_.ops.size())
        break;
      for (const auto* list : {&problem_.ops[t].reads, &problem_.ops[t].writes})
        for (const std::uint32_t b : *list) {
          const RecomputeProblem::Buffer& buffer = problem_.buffers[b];
          if (buffer.producer && item_of_[b] == kNone && never_drops(*buffer.producer))
            r_.certain[t] -= buffer.bytes;
        }
    }
  }

  const RecomputeProblem& problem_;
  const RecomputeModelOptions& options_;
  std::vector<std::uint32_t> item_of_, last_read_;
  ReducedRecompute r_;
};

} // namespace

ReducedRecompute reduce(const RecomputeProblem& problem, const RecomputeModelOptions& options) {
  return Reducer(problem, options).run();
}

} // namespace monet
