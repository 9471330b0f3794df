#include "robustness/searches.hpp"

#include "monet/base/errors.hpp"
#include "monet/optimise/allocation.hpp"
#include "monet/optimise/checkpoint_search.hpp"
#include "monet/optimise/fusion.hpp"
#include "monet/optimise/joint.hpp"
#include "monet/reference/einsum_mapper.hpp"
#include "monet/training_graph/training.hpp"

#include <atomic>
#include <chrono>

namespace monet::testing {

namespace {

void check(const Asked& asked, const TrainingGraph& step, const StepOptions& options,
           const StepFigures& claimed, const Certificate& found) {
  CoreCostCache costs;
  verify_figures(claimed, step, asked.chip, options, {costs});
  internal_check(!(found.best < found.bound), "the best answer of a search beats its bound");
}

StepOptions chosen(Asked& asked, StepMode mode, const TrainingGraph& step) {
  StepOptions options = asked.options;
  if (mode != StepMode::layer_by_layer) {
    options.tiling = choose_step(step, asked.chip, options,
                                 {mode, options.schedule.core_cost.objective}, asked.costs)
                         .tiling;
  } else {
    options.tiling.stacks.reset();
  }
  return options;
}

void search_fusion(Asked& asked, const SearchControl& control, Random& random) {
  asked.options.tiling.stacks.reset();
  const FusionProblem problem{asked.step, asked.chip, asked.costs, asked.options.tiling,
                              asked.options.schedule};
  FusionOptions options;
  options.objective =
      random.one_of({Objective::latency, Objective::energy, Objective::edp, Objective::dram});
  options.method = random.one_of({FusionMethod::cost, FusionMethod::cost,
                                  FusionMethod::fewest_groups, FusionMethod::min_traffic});
  options.evaluations = random.between(1, 3);
  options.group_evaluations = 20;
  options.complete_below = random.chance(20) ? 10 : 0;
  options.recomputed_halos = random.chance(30);
  const FusionResult found = optimise_fusion(problem, options, control);
  const StepOptions best{problem.tiling.with(found.plan), problem.schedule, {}};
  check(asked, asked.step, best, found.figures, found.certificate);
}

void search_allocation(Asked& asked, const SearchControl& control, Random& random) {
  StepOptions options = asked.options;
  options.tiling.idle.assign(asked.chip.cores.size(), false);
  if (asked.mode != StepMode::layer_by_layer) {
    options.tiling = choose_step(asked.step, asked.chip, options,
                                 {asked.mode, options.schedule.core_cost.objective}, asked.costs)
                         .tiling;
  } else {
    options.tiling.stacks.reset();
  }
  AllocationEvaluator evaluator(asked.step, asked.chip, options.tiling, options.schedule);
  AllocationSearchOptions search;
  search.objective =
      random.one_of({Objective::latency, Objective::energy, Objective::edp, Objective::memory});
  search.front = random.chance(30);
  search.evaluations = static_cast<std::size_t>(random.between(2, 3));
  search.population = 2;
  search.exact_plans = random.chance(30) ? 20 : 0;
  const AllocationResult found = monet::search_allocation(evaluator, search, control);
  const CoreAllocation allocation = evaluator.allocation(found.best.plan);
  options.tiling.allocation = &allocation;
  check(asked, asked.step, options, found.best.figures, found.certificate);
}

void search_checkpointing(Asked& asked, const SearchControl& control, Random& random) {
  asked.options.schedule.priority = Priority::order;
  const ModelledStep before = model(asked, StepMode::layer_by_layer, asked.step);
  const OperatorCosts costs = operator_costs(before.timeline, asked.step);
  const CheckpointSpace space = checkpoint_space(asked.step, costs.cycles);
  std::vector<std::int64_t> second(1, 0);
  second.insert(second.end(), costs.energy.begin(), costs.energy.end());
  CheckpointOptions options;
  options.memory = random.one_of({CheckpointMemory::peak, CheckpointMemory::stored});
  options.method = random.one_of({CheckpointMethod::automatic, CheckpointMethod::heuristics,
                                  CheckpointMethod::chain, CheckpointMethod::genetic});
  options.genetic = {4, 2};
  options.effort = 200'000;
  options.nodes = 3;
  const CheckpointPoint base = evaluate(space, store_everything(space.problem), second);
  const std::int64_t whole = base.memory(options.memory);
  std::vector<std::int64_t> budgets{whole, whole * random.between(30, 95) / 100};
  const std::vector<CheckpointRow> rows =
      checkpoint_rows(space, second, budgets, options, random.chance(30), control);
  for (const CheckpointRow& row : rows) {
    verify(space, options.memory, row);
    if (!row.point)
      continue;
    const std::vector<OpId> runs = runs_of(row.point->plan);
    const TrainingGraph after = with_recomputation(asked.step, runs);
    verify(after);
    verify(with_recomputation(asked.graph, asked.step, runs));
    model(asked, asked.options.tiling.stacks ? StepMode::layer_by_layer : asked.mode, after);
  }
}

void search_jointly(Asked& asked, const SearchControl& control, Random& random) {
  asked.options.tiling.stacks.reset();
  JointOptions options;
  options.objective = random.one_of({Objective::latency, Objective::energy, Objective::edp});
  options.tiling = asked.options.tiling;
  options.schedule = asked.options.schedule;
  options.levels = random.between(0, 2);
  options.plan_effort = 100'000;
  options.rounds = random.between(1, 2);
  options.fusion.evaluations = random.between(0, 2);
  options.fusion.group_evaluations = 20;
  options.checkpointing.genetic = {4, 2};
  options.checkpointing.effort = 200'000;
  options.checkpointing.nodes = 3;
  const std::int64_t most = random.between(0, 2);
  // Small spaces are searched to the end, which is tens of thousands of schedules.
  if (asked.chip.compute_cores() <= 2 && asked.step.graph.operators().size() <= 8)
    options.allocation_evaluations = most;
  else
    options.allocation_evaluations = 0;
  if (random.chance(60)) {
    const std::int64_t percent = random.between(40, 100);
    options.budget = [percent](std::int64_t whole) { return whole * percent / 100; };
  }
  const JointResult found = optimise_jointly(asked.step, asked.chip, options, control);
  StepOptions best{found.both.tiling, options.schedule, {}};
  best.schedule.priority = found.both.priority;
  check(asked, *found.both.step, best, found.both.figures, found.found);
  internal_check(found.within_budget(found.both.figures), "a joint plan above its budget");
  if (!found.both.runs.empty())
    verify(with_recomputation(asked.graph, asked.step, found.both.runs));
}

void map_to_einsums(const Asked& asked, const SearchControl& control, Random& random) {
  const EinsumCascade cascade = make_cascade(
      asked.step.graph, random.chance(40) ? std::optional<std::int64_t>(8) : std::nullopt);
  EinsumOptions options;
  if (random.chance(70))
    options.buffer_bits = random.between(8, 64) << random.between(0, 12);
  options.front = !options.buffer_bits || random.chance(40);
  options.fuse = random.chance(85);
  options.resident = random.chance(40);
  options.reference_rules = random.chance(20);
  options.max_fused_loops = static_cast<int>(random.between(0, 3));
  options.max_futures = 300;
  options.max_rows = 3000;
  options.max_joins = 200'000;
  const EinsumResult found = map_einsums(cascade, options, control);
  for (const EinsumPoint& point : found.front) {
    internal_check(!options.buffer_bits || point.buffer_bits <= *options.buffer_bits,
                   "a mapping takes more than the buffer");
    internal_check(point.dram_bits >= found.bound_dram_bits, "a mapping beats its bound");
  }
}

} // namespace

ModelledStep model(Asked& asked, StepMode mode, const TrainingGraph& step) {
  const StepOptions options = chosen(asked, mode, step);
  StageContext stages;
  stages.verify = true;
  return model_step(step, asked.chip, options, {asked.costs, &stages});
}

void search(Search search, Asked& asked, Random& random) {
  // As if the user grew impatient, at a moment that does not depend on the machine.
  std::atomic<bool> stop = false;
  const std::int64_t most = random.one_of<std::int64_t>({3, 30, 300});
  std::int64_t told = 0;
  SearchControl control;
  control.seed = random.raw();
  control.stop = &stop;
  control.progress = [&](const SearchProgress&) { stop = ++told > most; };
  // Or set a time limit: what cannot be ended is a hang, not what takes its time.
  control.deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  switch (search) {
  case Search::fusion:
    return search_fusion(asked, control, random);
  case Search::allocation:
    return search_allocation(asked, control, random);
  case Search::checkpointing:
    return search_checkpointing(asked, control, random);
  case Search::joint:
    return search_jointly(asked, control, random);
  case Search::einsum:
    return map_to_einsums(asked, control, random);
  case Search::none:
    break;
  }
}

} // namespace monet::testing
