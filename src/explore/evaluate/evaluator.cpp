// Evaluates designs of a space of chips: models the runs of a design and trains its arithmetic if
// the space asks for accuracy. explore() calls it through a DesignRunner.
#include "base/shared/text.hpp"
#include "explore/evaluate/design_steps.hpp"
#include "explore/evaluate/evaluators.hpp"
#include "explore/evaluate/short_trainings.hpp"
#include "explore/shared/invalid_design.hpp"

#include "monet/explore/space.hpp"
#include "monet/optimise/allocation.hpp"
#include "monet/optimise/fusion.hpp"
#include "monet/optimise/step_mode.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace monet {

namespace {

class Evaluator : public DesignEvaluator {
public:
  Evaluator(const Space& space, DesignStore* store)
      : space_(space), steps_(space), trainings_(space, store, space.first_design()) {
    steps_.of(space.first_design()); // reports a faulty network as an error of the space
  }

  DesignResult evaluate(DesignId id) override { return *evaluate_unless(id, nullptr); }

  std::optional<DesignResult> evaluate_unless(DesignId id, const BoundTest& enough) override {
    DesignBound bound;
    DesignResult result;
    return follow(id, enough, bound, result) ? std::optional(std::move(result)) : std::nullopt;
  }

  DesignBound bound(DesignId id) override {
    DesignBound bound;
    DesignResult result;
    follow(
        id, [](const DesignBound&) { return true; }, bound, result);
    return bound;
  }

  std::vector<TrainingRecord> new_trainings() override { return trainings_.cache().take_new(); }
  void learn(std::span<const TrainingRecord> trainings) override {
    trainings_.cache().learn(trainings);
  }

private:
  void judge_metrics(const std::vector<Metric>& metrics) const {
    const double budget = space_.budgets.error;
    if (budget > 0 && !metrics.empty() && metrics.front().value > budget)
      throw InfeasibleError(
          fmt::format("error {:.4g} is over the budget of {:.4g}", metrics.front().value, budget));
  }

  static void check_dataflows(const Chip& chip, const DesignSteps& steps) {
    ProblemList problems;
    check_loops(chip, steps.subjects.loops, problems);
    problems.throw_if_any();
  }

  SearchControl search_control() const {
    SearchControl control; // a search within one design uses only the calling thread
    control.seed = space_.workload.search_seed;
    return control;
  }

  /// Sets `tiling` to the plan of the best fusion found.
  void fuse(const FusionProblem& problem, TilingOptions& tiling) const {
    FusionOptions options;
    options.objective = *objective_named(space_.workload.fusion->objective);
    options.evaluations = space_.workload.fusion->evaluations;
    options.group_evaluations = 20 * options.evaluations;
    options.recomputed_halos = tiling.halo == Halo::recomputed;
    tiling = tiling.with(optimise_fusion(problem, options, search_control()).plan);
  }

  CoreAllocation allocate(const TrainingGraph& step, const Chip& chip, const TilingOptions& tiling,
                          const ScheduleOptions& schedule) const {
    AllocationEvaluator evaluator(step, chip, tiling, schedule);
    AllocationSearchOptions options;
    options.objective = *objective_named(space_.workload.allocation->objective);
    options.evaluations = static_cast<std::size_t>(space_.workload.allocation->evaluations);
    const AllocationResult found = search_allocation(evaluator, options, search_control());
    return evaluator.allocation(found.best.plan);
  }

  /// The figures of one run; empty if `hopeless` stopped the evaluation.
  std::optional<StepFigures> run(const TrainingGraph& step, const SharedPlans& shared,
                                 const Chip& chip, CoreCostCache& costs,
                                 std::function<bool(const ScheduleFloor&)> hopeless) const {
    const StudiedWorkload& workload = space_.workload;
    StepOptions options;
    options.tiling.mapping = steps_.mapping();
    options.tiling.halo = workload.halo;
    options.schedule.core_cost = workload.core_cost;
    options.schedule.priority = workload.priority;
    options.schedule.rules = workload.rules;
    if (workload.fusion)
      fuse({step, chip, costs, options.tiling, options.schedule}, options.tiling);
    else if (!workload.allocation || workload.mode != StepMode::layer_by_layer) {
      if (!workload.allocation)
        options.schedule.hopeless = std::move(hopeless);
      StepChoice chosen = choose_step(
          step, chip, options, {workload.mode, workload.core_cost.objective, &shared}, costs);
      if (!workload.allocation)
        return chosen.complete ? std::optional(chosen.figures.totals()) : std::nullopt;
      options.tiling = std::move(chosen.tiling);
    }
    CoreAllocation allocation;
    if (workload.allocation) {
      allocation = allocate(step, chip, options.tiling, options.schedule);
      options.tiling.allocation = &allocation;
    }
    // Searches are not stopped early; only the schedule of their result may be.
    options.schedule.hopeless = std::move(hopeless);
    const ModelledStep modelled = model_step(step, chip, options, {costs});
    if (!modelled.timeline.complete)
      return std::nullopt;
    return modelled.figures.totals();
  }

  bool follow_runs(const DesignSteps& steps, const Chip& chip, const BoundTest& enough,
                   DesignBound& bound, DesignResult& result) {
    const std::size_t runs = steps.graphs.size();
    if (enough) {
      for (std::size_t i = 0; i < runs; ++i)
        bound.runs[i] = steps.floors[i]->of(chip);
      if (enough(bound))
        return false;
    }
    const std::shared_ptr<CoreCostCache> costs = costs_.get();
    for (std::size_t i = 0; i < runs; ++i) {
      StepFigures& least = bound.runs[i];
      std::function<bool(const ScheduleFloor&)> hopeless;
      if (enough)
        hopeless = [&](const ScheduleFloor& floor) {
          least.latency_cycles = std::max(least.latency_cycles, floor.latency.value);
          least.energy_pj = std::max(least.energy_pj, floor.energy.value);
          return enough(bound);
        };
      try {
        const std::optional<StepFigures> figures =
            run(steps.graphs[i], *steps.shared[i], chip, *costs, std::move(hopeless));
        if (!figures)
          return false;
        least = *figures;
      } catch (const InfeasibleError& error) {
        throw InfeasibleError(space_.workload.runs[i] + ": " + error.what());
      }
      result.runs.push_back(least);
      const double budget = space_.budgets.peak_memory_bytes;
      if (budget > 0 && static_cast<double>(least.peak_memory_bytes) > budget)
        throw InfeasibleError(fmt::format(
            "{}: {} of memory are over the budget of {}", space_.workload.runs[i],
            human_bytes(least.peak_memory_bytes), human_bytes(static_cast<std::int64_t>(budget))));
    }
    return true;
  }

  /// Evaluates a design until the bounds so far satisfy `enough`. Returns whether the evaluation
  /// was completed.
  bool follow(DesignId id, const BoundTest& enough, DesignBound& bound, DesignResult& result) {
    result.id = id;
    bound.runs.resize(space_.workload.runs.size());
    for (const std::string& metric : space_.workload.metrics)
      bound.metrics.push_back({metric, 0}); // the minimum of a share
    try {
      const Chip chip = space_.chip(id);
      const DesignSteps& steps = steps_.of(id);
      check_dataflows(chip, steps);
      result.reason = judge_chips(chip, 1, space_.budgets, result);
      result.frequency_hz = chip.frequency_hz;
      bound.area_mm2 = result.area_mm2;
      bound.peak_power_w = result.peak_power_w;
      bound.frequency_hz = result.frequency_hz;
      if (result.reason.empty()) {
        if (!follow_runs(steps, chip, enough, bound, result))
          return false;
        if (!space_.workload.metrics.empty() && enough && enough(bound))
          return false; // beaten already: no training needed
        result.metrics = bound.metrics = trainings_.metrics_of(id);
        judge_metrics(result.metrics);
      }
    } catch (const InfeasibleError& error) {
      result.reason = error.what();
    } catch (const InputError& error) { // parameter values that do not form a valid chip
      result.reason = invalid_design(error);
    }
    result.feasible = result.reason.empty();
    if (!result.feasible) {
      result.runs.clear();
      result.metrics.clear();
    }
    bound.feasible = result.feasible;
    bound.reason = result.reason;
    return true;
  }

  const Space& space_;
  AllDesignSteps steps_;
  ShortTrainings trainings_;
  SharedCosts costs_;
};

} // namespace

std::string judge_chips(const Chip& chip, double count, const DesignBudgets& budgets,
                        DesignResult& result) {
  result.area_mm2 = count * chip.area_mm2();
  result.peak_power_w = count * peak_power_w(chip).value_or(0);
  const auto over = [](const char* what, double value, double budget, const char* unit) {
    return fmt::format("{} {:.4g} {} is over the budget of {:.4g} {}", what, value, unit, budget,
                       unit);
  };
  if (budgets.area_mm2 > 0 && result.area_mm2 > budgets.area_mm2)
    return over("area", result.area_mm2, budgets.area_mm2, "mm2");
  if (budgets.peak_power_w > 0 && result.peak_power_w > budgets.peak_power_w)
    return over("peak power", result.peak_power_w, budgets.peak_power_w, "W");
  if (budgets.offchip_bits_per_cycle > 0 && chip.offchip) {
    const OffchipPort port = offchip_port(chip);
    const auto bits = static_cast<double>(
        port.shared ? std::max(port.read_bits_per_cycle, port.write_bits_per_cycle)
                    : port.read_bits_per_cycle + port.write_bits_per_cycle);
    if (bits > budgets.offchip_bits_per_cycle)
      return over("off-chip bandwidth", bits, budgets.offchip_bits_per_cycle, "bits per cycle");
  }
  return {};
}

std::unique_ptr<DesignEvaluator> make_evaluator(const Space& space, DesignStore* store) {
  if (is_of_clusters(space))
    return cluster_evaluator(space);
  return std::make_unique<Evaluator>(space, store);
}

} // namespace monet
