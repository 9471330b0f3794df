#include "monet/explore/evaluator.hpp"

#include "explore/evaluate/step_floors.hpp"

#include "monet/core_cost/mapping_file.hpp"
#include "monet/optimise/allocation.hpp"
#include "monet/optimise/fusion.hpp"
#include "monet/optimise/step_mode.hpp"
#include "monet/training/explain.hpp"
#include "monet/workload/foreign.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <mutex>

namespace monet {

namespace {

/// Costs kept at once, of about 4 KB each.
constexpr std::size_t kMostCosts = 100'000;

/// Core costs that all designs share, started anew when there are many. Costs are the same
/// whoever asks first, so that results do not depend on what is still there.
class SharedCosts {
public:
  std::shared_ptr<CoreCostCache> get() {
    const std::lock_guard lock(mutex_);
    if (!costs_ || costs_->solved() > kMostCosts)
      costs_ = std::make_shared<CoreCostCache>();
    return costs_;
  }

private:
  std::mutex mutex_;
  std::shared_ptr<CoreCostCache> costs_;
};

class Evaluator : public DesignEvaluator {
public:
  explicit Evaluator(const Space& space) : space_(space) {
    const StudiedWorkload& workload = space.workload;
    OnnxReadOptions reading = workload.network_options;
    if (workload.training)
      read_for(reading, *workload.training);
    ForeignReport report;
    const Graph network =
        recognise(read_onnx(workload.network, reading), workload.training.has_value(), report,
                  "leave out 'training:'; the step is then the run 'inference'");
    if (!workload.mapping.empty())
      mapping_ = read_mapping(workload.mapping);
    steps_.reserve(workload.runs.size()); // floors refer to them
    for (const std::string& run : workload.runs) {
      const Precision precision = inference_precision(workload);
      steps_.push_back(fold_views(run == "training"
                                      ? make_training_graph(network, *workload.training)
                                      : make_inference_graph(network, precision)));
      floors_.push_back(std::make_unique<StepFloors>(steps_.back(), workload.halo == Halo::cached));
      shared_.push_back(std::make_unique<SharedPlans>(steps_.back(), workload.halo));
    }
    subjects_.add(network);
    for (const TrainingGraph& step : steps_)
      subjects_.add(step.graph);
    ProblemList problems;
    if (mapping_)
      check_subjects(*mapping_, subjects_, problems);
    problems.throw_if_any();
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

private:
  /// Area and power; the reason why the budgets exclude it, or nothing.
  std::string judge_chip(const Chip& chip, DesignResult& result) const {
    result.frequency_hz = chip.frequency_hz;
    result.area_mm2 = chip.area_mm2();
    result.peak_power_w = peak_power_w(chip).value_or(0);
    const DesignBudgets& budgets = space_.budgets;
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

  void check_dataflows(const Chip& chip) const {
    ProblemList problems;
    check_loops(chip, subjects_.loops, problems);
    problems.throw_if_any();
  }

  SearchControl search_control() const {
    SearchControl control; // of one design: on the thread that evaluates it
    control.seed = space_.workload.search_seed;
    return control;
  }

  /// The plan of the best fusion found, into `tiling`.
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

  /// Nothing when `hopeless` gave it up.
  std::optional<StepFigures> run(std::size_t which, const Chip& chip, CoreCostCache& costs,
                                 std::function<bool(const ScheduleFloor&)> hopeless) const {
    const StudiedWorkload& workload = space_.workload;
    const TrainingGraph& step = steps_[which];
    StepOptions options;
    options.tiling.mapping = mapping_ ? &*mapping_ : nullptr;
    options.tiling.halo = workload.halo;
    options.schedule.core_cost = workload.core_cost;
    options.schedule.priority = workload.priority;
    options.schedule.rules = workload.rules;
    if (workload.fusion)
      fuse({step, chip, costs, options.tiling, options.schedule}, options.tiling);
    else if (!workload.allocation || workload.mode != StepMode::layer_by_layer) {
      if (!workload.allocation)
        options.schedule.hopeless = std::move(hopeless);
      StepChoice chosen = choose_step(step, chip, options, workload.mode,
                                      workload.core_cost.objective, {costs}, shared_[which].get());
      if (!workload.allocation)
        return chosen.complete ? std::optional(chosen.figures.totals()) : std::nullopt;
      options.tiling = std::move(chosen.tiling);
    }
    CoreAllocation allocation;
    if (workload.allocation) {
      allocation = allocate(step, chip, options.tiling, options.schedule);
      options.tiling.allocation = &allocation;
    }
    // Searches go to their end; the schedule of what they found may be given up.
    options.schedule.hopeless = std::move(hopeless);
    const ModelledStep modelled = model_step(step, chip, options, {costs});
    if (!modelled.timeline.complete)
      return std::nullopt;
    return modelled.figures.totals();
  }

  bool follow_runs(const Chip& chip, const BoundTest& enough, DesignBound& bound,
                   DesignResult& result) {
    if (enough) {
      for (std::size_t i = 0; i < steps_.size(); ++i)
        bound.runs[i] = floors_[i]->of(chip);
      if (enough(bound))
        return false;
    }
    const std::shared_ptr<CoreCostCache> costs = costs_.get();
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      StepFigures& least = bound.runs[i];
      std::function<bool(const ScheduleFloor&)> hopeless;
      if (enough)
        hopeless = [&](const ScheduleFloor& floor) {
          least.latency_cycles = std::max(least.latency_cycles, floor.latency.value);
          least.energy_pj = std::max(least.energy_pj, floor.energy.value);
          return enough(bound);
        };
      try {
        const std::optional<StepFigures> figures = run(i, chip, *costs, std::move(hopeless));
        if (!figures)
          return false;
        least = *figures;
      } catch (const InfeasibleError& error) {
        throw InfeasibleError(space_.workload.runs[i] + ": " + error.what());
      }
      result.runs.push_back(least);
      const double budget = space_.budgets.peak_memory_bytes;
      if (budget > 0 && static_cast<double>(least.peak_memory_bytes) > budget)
        throw InfeasibleError(fmt::format("{}: {} bytes of memory are over the budget of {:.0f}",
                                          space_.workload.runs[i], least.peak_memory_bytes,
                                          budget));
    }
    return true;
  }

  /// Evaluates until `enough` is met by the bounds so far; whether it came to the end.
  bool follow(DesignId id, const BoundTest& enough, DesignBound& bound, DesignResult& result) {
    result.id = id;
    bound.runs.resize(steps_.size());
    try {
      const Chip chip = space_.chip(id);
      check_dataflows(chip);
      result.reason = judge_chip(chip, result);
      bound.area_mm2 = result.area_mm2;
      bound.peak_power_w = result.peak_power_w;
      bound.frequency_hz = result.frequency_hz;
      if (result.reason.empty() && !follow_runs(chip, enough, bound, result))
        return false;
    } catch (const InfeasibleError& error) {
      result.reason = error.what();
    } catch (const InputError& error) { // values that make no chip
      result.reason = error.what();
    }
    result.feasible = result.reason.empty();
    if (!result.feasible)
      result.runs.clear();
    bound.feasible = result.feasible;
    bound.reason = result.reason;
    return true;
  }

  const Space& space_;
  std::optional<MappingFile> mapping_;
  MappingSubjects subjects_;
  std::vector<TrainingGraph> steps_;                 ///< per run, views folded
  std::vector<std::unique_ptr<StepFloors>> floors_;  ///< per run
  std::vector<std::unique_ptr<SharedPlans>> shared_; ///< per run
  SharedCosts costs_;
};

} // namespace

std::unique_ptr<DesignEvaluator> make_evaluator(const Space& space) {
  return std::make_unique<Evaluator>(space);
}

} // namespace monet
