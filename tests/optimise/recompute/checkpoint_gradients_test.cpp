// Steps with plans of recomputation compute the same to the last bit, in the memory that the plan
// says.
#include "base/shared/rng.hpp"
#include "level.hpp"

#include "monet/execute/execute.hpp"
#include "monet/optimise/checkpoint_search.hpp"
#include "monet/training_graph/liveness.hpp"
#include "monet/training_graph/training.hpp"
#include "monet/workload/onnx_reader.hpp"
#include "monet/workload/onnx_writer.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace monet {
namespace {

using Results = std::map<std::string, std::vector<double>>;

struct Run {
  Results results; ///< loss, gradients, updated weights, states and running statistics by name
  std::int64_t peak_bytes = 0;
};

Run execute(const TrainingGraph& step) {
  ExecuteOptions options;
  options.keep_all = false;
  Execution execution(step.graph, options);
  fill(execution, step, 3);
  execution.run();
  Run run;
  run.peak_bytes = execution.peak_bytes();
  for (const TensorId id : step.graph.outputs)
    run.results[step.graph.tensor(id).name] = execution.get(id);
  for (const ParameterRecord& record : step.parameters)
    run.results[step.graph.tensor(record.gradient).name] = execution.get(record.gradient);
  return run;
}

std::vector<std::int64_t> costs_of(const Graph& graph) {
  std::vector<std::int64_t> costs;
  for (const Operator& op : graph.operators())
    costs.push_back(1 + macs(op.nest) / 64 + iterations(op.nest) / 16);
  return costs;
}

/// Everything that can runs again directly before the backward part, and once more in its middle.
RecomputePlan everything_twice(const CheckpointSpace& space) {
  const RecomputeProblem& problem = space.problem;
  std::vector<std::uint32_t> again;
  for (std::uint32_t i = 0; i < problem.ops.size() && space.backward[i] == 0; ++i) {
    if (problem.ops[i].repeatable)
      again.push_back(i);
  }
  RecomputePlan plan = store_everything(problem);
  const auto first =
      std::find(space.backward.begin(), space.backward.end(), 1) - space.backward.begin();
  const auto middle = (first + static_cast<std::ptrdiff_t>(problem.ops.size())) / 2;
  plan.runs.insert(plan.runs.begin() + middle, again.begin(), again.end());
  plan.runs.insert(plan.runs.begin() + first, again.begin(), again.end());
  return plan;
}

RecomputePlan random_plan(const RecomputeProblem& problem, std::uint64_t seed) {
  RecomputePlan plan = store_everything(problem);
  for (std::uint64_t k = 0; k < problem.ops.size() / 2; ++k) {
    const std::size_t at = 1 + random_bits(seed, 2 * k) % plan.runs.size();
    const std::uint32_t op = plan.runs[random_bits(seed, 2 * k + 1) % at];
    if (problem.ops[op].repeatable)
      plan.runs.insert(plan.runs.begin() + static_cast<std::ptrdiff_t>(at), op);
  }
  return plan;
}

/// Hand-made, random and optimal plans.
std::vector<RecomputePlan> plans_for(const CheckpointSpace& space, int optimal) {
  std::vector<RecomputePlan> plans{everything_twice(space), random_plan(space.problem, 5)};
  const std::int64_t stored = stored_bytes(space, store_everything(space.problem));
  for (int i = 1; i <= optimal; ++i) {
    const RecomputeResult found = solve_stored(space, stored * (optimal - i) / optimal, {});
    if (found.plan)
      plans.push_back(*found.plan);
  }
  const std::int64_t peak = replay(space.problem, store_everything(space.problem)).peak_bytes;
  const std::int64_t least = min_memory(space, CheckpointMemory::peak);
  CheckpointOptions options;
  options.method = CheckpointMethod::heuristics;
  const std::vector<std::int64_t> budgets{(peak + least) / 2};
  for (const RecomputeResult& found : checkpoint_front(space, budgets, options, {})) {
    if (found.plan)
      plans.push_back(*found.plan);
  }
  return plans;
}

void check(const std::string& network, int optimal, bool with_export = true) {
  OnnxReadOptions reading;
  reading.batch = 1;
  const std::string file = std::string(MONET_SOURCE_DIR) + "/data/workload/" + network + ".onnx";
  const TrainingGraph views = make_training_graph(read_onnx(file, reading), {});
  const TrainingGraph step = fold_views(views);
  const CheckpointSpace space = checkpoint_space(step, costs_of(step.graph));
  const Run expected = execute(step);
  EXPECT_EQ(expected.peak_bytes, replay(space.problem, store_everything(space.problem)).peak_bytes);
  const std::vector<RecomputePlan> plans = plans_for(space, optimal);
  EXPECT_GE(plans.size(), 2U + static_cast<std::size_t>(optimal));
  for (const RecomputePlan& plan : plans) {
    const TrainingGraph made = with_recomputation(step, runs_of(plan));
    verify(made);
    const Liveness live = find_liveness(made);
    const std::int64_t planned = replay(space.problem, plan).peak_bytes;
    const Run run = execute(made);
    EXPECT_EQ(run.results, expected.results) << network; // bit for bit
    EXPECT_EQ(total(live.live[live.peak]), planned);
    EXPECT_EQ(run.peak_bytes, planned);
  }
  if (!with_export)
    return;
  const TrainingGraph exported = with_recomputation(views, step, runs_of(plans.back()));
  EXPECT_EQ(execute(exported).results, execute(views).results);
  EXPECT_FALSE(write_onnx(exported.graph).empty());
}

TEST(RecomputedGradients, OfASmallGptAreTheSame) {
  check("gpt2_nano", 4);
}
TEST(RecomputedGradients, OfAUNetAreTheSame) {
  MONET_FROM_LEVEL(slow);
  check("unet", 2);
}
TEST(RecomputedGradients, OfAResNetAreTheSame) {
  MONET_FROM_LEVEL(slow);
  check("resnet18_cifar", 1, false);
}
TEST(RecomputedGradients, OfAnLstmAreTheSame) {
  MONET_FROM_LEVEL(full);
  check("lstm", 2);
}

} // namespace
} // namespace monet
