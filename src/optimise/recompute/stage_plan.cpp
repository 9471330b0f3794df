#include "optimise/recompute/model.hpp"

#include <algorithm>

namespace monet {

namespace {

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

  /// What the next stage finds, made by `op` or before.
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

RecomputePlan plan_of(const RecomputeProblem& problem, const ReducedRecompute& reduced,
                      const StageProgram& program, std::span<const double> values) {
  return PlanBuilder(problem, reduced, program, values).run();
}

} // namespace monet
