// Columns and rows of StageProgram, declared in model.hpp, and the conversion of its solutions to
// plans; exact.cpp solves them.
#include "optimise/recompute/exact/model.hpp"

#include <algorithm>
#include <numeric>

namespace monet {

namespace {

bool contains(const std::vector<std::uint32_t>& list, std::uint32_t value) {
  return std::ranges::find(list, value) != list.end();
}

/// Merges terms of the same column.
void merge(std::vector<LinearTerm>& terms) {
  std::ranges::sort(terms, {}, &LinearTerm::variable);
  std::size_t size = 0;
  for (const LinearTerm& term : terms) {
    if (size > 0 && terms[size - 1].variable == term.variable)
      terms[size - 1].coefficient += term.coefficient;
    else
      terms[size++] = term;
  }
  terms.resize(size);
}

/// Sum of bytes under construction. Each term is all or nothing, so the sum is a multiple of the
/// greatest common divisor of the bytes.
class ByteRow {
public:
  ByteRow(double scale, std::int64_t capacity) : scale_(scale), capacity_(capacity) {}
  void fixed(std::int64_t bytes) { capacity_ -= bytes; }
  void there(std::uint32_t column, std::int64_t bytes) {
    note(bytes);
    terms_.push_back({column, static_cast<double>(bytes)});
  }
  /// Adds bytes that are live unless `again` runs.
  void unless(std::uint32_t again, std::int64_t bytes) {
    if (again == kNone)
      return fixed(bytes);
    note(bytes);
    inverted_ += bytes;
    terms_.push_back({again, -static_cast<double>(bytes)});
  }
  /// Adds `bytes` if `again` runs.
  void needs(std::uint32_t again, std::int64_t bytes) {
    again_ = again;
    again_bytes_ = bytes;
  }
  bool finish(LinearRow& row) {
    const std::int64_t upper = floor_to_step(capacity_);
    if (again_ != kNone && again_bytes_ > 0)
      terms_.push_back(
          {again_, static_cast<double>(upper - floor_to_step(capacity_ - again_bytes_))});
    merge(terms_);
    double most = 0;
    for (LinearTerm& term : terms_) {
      most += std::max(term.coefficient, 0.0);
      term.coefficient *= scale_;
    }
    const auto bound = static_cast<double>(upper - inverted_);
    row = {std::move(terms_), -kUnbounded, bound * scale_};
    return most > bound; // otherwise it never binds
  }

private:
  void note(std::int64_t bytes) { step_ = std::gcd(step_, bytes); }
  std::int64_t floor_to_step(std::int64_t value) const {
    if (step_ == 0)
      return value;
    const std::int64_t rest = value % step_;
    return value - (rest < 0 ? rest + step_ : rest);
  }

  double scale_;
  std::int64_t capacity_;
  std::int64_t inverted_ = 0, step_ = 0, again_bytes_ = 0;
  std::uint32_t again_ = kNone;
  std::vector<LinearTerm> terms_;
};

class PlanBuilder {
public:
  PlanBuilder(const RecomputeProblem& problem, const ReducedRecompute& reduced,
              const StageProgram& program, std::span<const double> values)
      : problem_(problem), reduced_(reduced), program_(program), values_(values),
        there_(problem.buffers.size(), 0), wanted_(problem.ops.size(), 0) {}

  RecomputePlan run() {
    for (std::uint32_t k = 0; k < program_.stages(); ++k) {
      if (k > 0)
        drop(k);
      for (std::uint32_t t = program_.first_op(k); t <= program_.ends()[k]; ++t) {
        if (t < problem_.ops.size())
          for (const std::uint32_t b : problem_.ops[t].reads)
            want(b);
        else
          for (const std::uint32_t i : reduced_.ops[t].reads)
            want(reduced_.items[i].buffer);
        if (t == program_.ends()[k] && k + 1 < program_.stages())
          want_next(k, t);
        run_wanted();
        if (t < problem_.ops.size())
          run_op(t);
      }
    }
    return std::move(plan_);
  }

private:
  bool held(std::uint32_t stage, std::uint32_t item) const {
    const std::uint32_t c = program_.held(stage, item);
    return c != kNone && values_[c] > 0.5;
  }

  void drop(std::uint32_t stage) {
    for (std::uint32_t i = 0; i < reduced_.items.size(); ++i) {
      const ReducedRecompute::Item& item = reduced_.items[i];
      if (problem_.ops[item.maker].repeatable && !held(stage, i))
        there_[item.buffer] = 0;
    }
  }

  /// Requires the items of the next stage that `op` or an earlier operator made.
  void want_next(std::uint32_t stage, std::uint32_t op) {
    for (std::uint32_t i = 0; i < reduced_.items.size(); ++i)
      if (reduced_.items[i].maker < op && held(stage + 1, i))
        want(reduced_.items[i].buffer);
  }

  void want(std::uint32_t buffer) {
    open_.push_back(buffer);
    while (!open_.empty()) {
      const std::uint32_t b = open_.back();
      open_.pop_back();
      if (there_[b] != 0 || !problem_.buffers[b].producer)
        continue;
      const std::uint32_t maker = *problem_.buffers[b].producer;
      if (wanted_[maker] != 0)
        continue;
      wanted_[maker] = 1;
      list_.push_back(maker);
      for (const std::uint32_t r : problem_.ops[maker].reads)
        open_.push_back(r);
    }
  }

  void run_wanted() {
    std::ranges::sort(list_);
    for (const std::uint32_t t : list_) {
      wanted_[t] = 0;
      run_op(t);
    }
    list_.clear();
  }

  void run_op(std::uint32_t t) {
    plan_.runs.push_back(t);
    for (const std::uint32_t b : problem_.ops[t].writes)
      there_[b] = 1;
  }

  const RecomputeProblem& problem_;
  const ReducedRecompute& reduced_;
  const StageProgram& program_;
  std::span<const double> values_;
  RecomputePlan plan_;
  std::vector<char> there_, wanted_;
  std::vector<std::uint32_t> open_, list_;
};

} // namespace

/// First runs of a stage: the last reader of each item.
struct StageProgram::StageReads {
  std::uint32_t stage = 0;
  std::vector<std::uint32_t> items; ///< items read, without duplicates
  std::vector<std::uint32_t> last;  ///< per item of the problem, kNone if not read
  std::int64_t certain = 0;         ///< non-item bytes live throughout the stage
};

StageProgram::StageProgram(const ReducedRecompute& reduced, std::vector<std::uint32_t> ends)
    : reduced_(&reduced), ends_(std::move(ends)), stage_(reduced.ops.size()) {
  scale_ = 100.0 / static_cast<double>(std::max<std::int64_t>(reduced.capacity, 1));
  for (std::uint32_t t = 0, k = 0; t < stage_.size(); ++t) {
    k += t > ends_[k] ? 1 : 0;
    stage_[t] = k;
  }
  find_lives();
  add_columns();
  add_links();
  add_uses();
  add_late();
}

void StageProgram::find_lives() {
  const auto count = static_cast<std::uint32_t>(ends_.size());
  last_.assign(reduced_->items.size(), 0);
  for (std::size_t t = reduced_->ops.size(); t-- > 0;) {
    const ReducedRecompute::Op& op = reduced_->ops[t];
    std::uint32_t last = stage_[t];
    for (const std::uint32_t i : op.writes)
      if (op.again || reduced_->items[i].passing)
        last = std::max(last, std::min(last_[i], count - 1));
    for (const std::uint32_t i : op.reads)
      last_[i] = std::max(last_[i], last);
  }
}

StageProgram::Range StageProgram::add_range(std::uint32_t first, std::uint32_t end, double cost,
                                            bool integer) {
  Range range{first, end > first ? end - first : 0, static_cast<std::uint32_t>(columns_.size())};
  columns_.resize(columns_.size() + range.count, {0, 1, cost, integer});
  op_of_column_.resize(columns_.size(), kNone);
  return range;
}

void StageProgram::add_columns() {
  const auto count = static_cast<std::uint32_t>(ends_.size());
  again_.resize(reduced_->ops.size());
  agains_at_.resize(count);
  items_at_.resize(count);
  std::uint32_t last_busy = kNone; // last operator of its stage with items
  for (std::size_t t = reduced_->ops.size(); t-- > 0;) {
    const ReducedRecompute::Op& op = reduced_->ops[t];
    const auto id = static_cast<std::uint32_t>(t);
    const bool last_of_stage = last_busy == kNone || stage_[last_busy] != stage_[t];
    if (!op.reads.empty() || !op.writes.empty())
      last_busy = id;
    if (!op.again)
      continue;
    std::uint32_t last = 0;
    for (const std::uint32_t i : op.writes)
      last = std::max(last, last_[i]);
    again_[t] = add_range(stage_[t] + (last_of_stage ? 1 : 0), std::min(last + 1, count),
                          static_cast<double>(op.again_cost), true);
    for (std::uint32_t k = 0; k < again_[t].count; ++k) {
      op_of_column_[again_[t].column + k] = id;
      agains_at_[again_[t].first + k].push_back(id);
    }
  }
  held_.resize(reduced_->items.size());
  through_.resize(reduced_->items.size());
  for (std::uint32_t i = 0; i < reduced_->items.size(); ++i) {
    const ReducedRecompute::Item& item = reduced_->items[i];
    if (item.passing)
      continue;
    const std::uint32_t made = stage_[item.maker];
    held_[i] = add_range(made + 1, last_[i] + 1, 0, true);
    const Range& again = again_[item.maker];
    if (again.count > 0)
      through_[i] =
          add_range(made, last_[i], 0, true); // integral in any solution, so cuts may rely on it
    for (std::uint32_t k = made; k < last_[i]; ++k)
      items_at_[k].push_back(i);
    if (again.count == 0)
      for (std::uint32_t k = made + 1; k <= stage_[item.last_read]; ++k)
        columns_[at(held_[i], k)].lower = 1;
  }
}

void StageProgram::add_links() {
  for (std::uint32_t i = 0; i < reduced_->items.size(); ++i) {
    const ReducedRecompute::Item& item = reduced_->items[i];
    const std::uint32_t made = stage_[item.maker];
    if (item.passing)
      continue;
    for (std::uint32_t k = made; k < last_[i]; ++k) {
      const std::uint32_t next = held(k + 1, i);
      const std::uint32_t now = held(k, i);
      const std::uint32_t through = at(through_[i], k);
      const std::uint32_t run = again(k, item.maker);
      if (through == kNone) { // never recomputed
        if (k > made)
          rows_.push_back({{{next, 1}, {now, -1}}, -kUnbounded, 0});
        continue;
      }
      LinearRow row{{{next, 1}, {through, -1}}, -kUnbounded, 0};
      if (run != kNone)
        row.terms.push_back({run, -1});
      rows_.push_back(std::move(row));
      if (k > made)
        rows_.push_back({{{through, 1}, {now, -1}}, -kUnbounded, 0});
    }
  }
}

void StageProgram::add_uses() {
  for (std::uint32_t k = 0; k < ends_.size(); ++k) {
    const StageReads reads = reads_in(k);
    for (const std::uint32_t i : reads.items) {
      if (stage_[reduced_->items[i].maker] == k)
        continue;
      LinearRow row{{{held(k, i), 1}}, 1, kUnbounded};
      if (const std::uint32_t run = again(k, reduced_->items[i].maker); run != kNone)
        row.terms.push_back({run, 1});
      rows_.push_back(std::move(row));
    }
    for (const std::uint32_t t : agains_at_[k])
      for (const std::uint32_t i : reduced_->ops[t].again_reads) {
        const std::uint32_t maker = reduced_->items[i].maker;
        if (stage_[maker] == k)
          continue;
        LinearRow row{{{again(k, t), 1}}, -kUnbounded, 0};
        if (const std::uint32_t c = held(k, i); c != kNone)
          row.terms.push_back({c, -1});
        if (const std::uint32_t c = again(k, maker); c != kNone)
          row.terms.push_back({c, -1});
        rows_.push_back(std::move(row));
      }
  }
}

void StageProgram::add_late() {
  for (std::uint32_t t = 0; t < reduced_->ops.size(); ++t) {
    if (!reduced_->ops[t].late)
      continue;
    const std::uint32_t item = reduced_->ops[t].writes[0];
    std::vector<char> read(ends_.size(), 0); // read by first runs
    for (std::uint32_t r = 0; r < reduced_->ops.size(); ++r)
      if (contains(reduced_->ops[r].reads, item))
        read[stage_[r]] = 1;
    for (std::uint32_t k = again_[t].first; k < again_[t].first + again_[t].count; ++k) {
      if (read[k] != 0)
        continue;
      LinearRow row{{{again(k, t), 1}}, -kUnbounded, 0};
      for (const std::uint32_t r : agains_at_[k])
        if (contains(reduced_->ops[r].again_reads, item))
          row.terms.push_back({again(k, r), -1});
      rows_.push_back(std::move(row));
    }
  }
}

StageProgram::StageReads StageProgram::reads_in(std::uint32_t stage) const {
  StageReads reads;
  reads.stage = stage;
  reads.last.assign(reduced_->items.size(), kNone);
  for (std::uint32_t t = first_op(stage); t <= ends_[stage]; ++t)
    for (const std::uint32_t i : reduced_->ops[t].reads) {
      if (reduced_->items[i].passing)
        continue;
      if (reads.last[i] == kNone)
        reads.items.push_back(i);
      reads.last[i] = t;
    }
  for (const ReducedRecompute::FixedBuffer& c : reduced_->certain_buffers)
    if (c.maker < first_op(stage) && c.last >= ends_[stage])
      reads.certain += c.bytes;
  return reads;
}

bool StageProgram::first_run_row(const StageReads& reads, std::uint32_t op, LinearRow& row) const {
  const ReducedRecompute::Op& run = reduced_->ops[op];
  const std::uint32_t k = reads.stage;
  ByteRow bytes(scale_, reduced_->capacity);
  bytes.fixed(run.bytes + reduced_->certain[op]);
  const auto read_later = [&](std::uint32_t i) {
    return reads.last[i] != kNone && reads.last[i] > op;
  };
  for (const std::uint32_t i : reads.items) {
    const ReducedRecompute::Item& item = reduced_->items[i];
    if (read_later(i) && item.maker < op && !contains(run.reads, i) && !contains(run.writes, i))
      bytes.unless(again(k, item.maker), item.bytes);
  }
  for (const std::uint32_t i : items_at_[k]) {
    const ReducedRecompute::Item& item = reduced_->items[i];
    if (item.maker >= op || read_later(i) || contains(run.reads, i))
      continue;
    const std::uint32_t through = at(through_[i], k);
    // The stage ends with its last first run, so items live at its end are live now.
    bytes.there(op == ends_[k] || through == kNone ? held(k + 1, i) : through, item.bytes);
  }
  return bytes.finish(row);
}

bool StageProgram::again_row(const StageReads& reads, std::uint32_t op, LinearRow& row) const {
  const ReducedRecompute::Op& run = reduced_->ops[op];
  const std::uint32_t k = reads.stage;
  ByteRow bytes(scale_, reduced_->capacity);
  bytes.fixed(reads.certain);
  bytes.needs(again(k, op), run.again_bytes - run.again_free_bytes);
  const auto part = [&](std::uint32_t i) {
    return contains(run.again_reads, i) || contains(run.writes, i);
  };
  const auto to_the_end = [&](std::uint32_t i) { return reads.last[i] == ends_[k]; };
  for (const std::uint32_t i : reads.items) {
    const ReducedRecompute::Item& item = reduced_->items[i];
    if (to_the_end(i) && stage_[item.maker] < k && !part(i))
      bytes.unless(again(k, item.maker), item.bytes);
  }
  for (const std::uint32_t i : items_at_[k]) {
    const ReducedRecompute::Item& item = reduced_->items[i];
    if (stage_[item.maker] == k || to_the_end(i) || part(i))
      continue;
    const std::uint32_t through = at(through_[i], k);
    bytes.there(through == kNone ? held(k + 1, i) : through, item.bytes);
  }
  return bytes.finish(row);
}

std::vector<LinearRow> StageProgram::memory_rows(std::span<const double> values,
                                                 double tolerance) const {
  std::vector<LinearRow> rows;
  LinearRow row;
  const auto keep = [&] {
    double sum = 0;
    if (!values.empty())
      for (const LinearTerm& term : row.terms)
        sum += term.coefficient * values[term.variable];
    if (values.empty() || sum > row.upper + tolerance * 100.0)
      rows.push_back(std::move(row));
  };
  for (std::uint32_t k = 0; k < ends_.size(); ++k) {
    const StageReads reads = reads_in(k);
    for (std::uint32_t t = first_op(k); t <= ends_[k]; ++t)
      if (first_run_row(reads, t, row))
        keep();
    for (const std::uint32_t t : agains_at_[k])
      if (again_row(reads, t, row))
        keep();
  }
  return rows;
}

std::uint32_t StageProgram::held(std::uint32_t stage, std::uint32_t item) const {
  return at(held_[item], stage);
}

std::uint32_t StageProgram::again(std::uint32_t stage, std::uint32_t op) const {
  return at(again_[op], stage);
}

RecomputePlan plan_of(const RecomputeProblem& problem, const ReducedRecompute& reduced,
                      const StageProgram& program, std::span<const double> values) {
  return PlanBuilder(problem, reduced, program, values).run();
}

} // namespace monet
