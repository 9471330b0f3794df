// Steps as problems of recomputation and back: the same live bytes, the same numbers.
#include "base/shared/rng.hpp"
#include "optimise/recompute/recompute_cases.hpp"
#include "optimise/recompute/steps/checkpoint_chain.hpp"
#include "optimise/shared/recompute_exact.hpp"
#include "optimise/shared/window_bound.hpp"
#include "training_graph/tiny_network.hpp"

#include "monet/execute/execute.hpp"
#include "monet/optimise/checkpoint_search.hpp"
#include "monet/training_graph/liveness.hpp"
#include "monet/training_graph/training.hpp"
#include "monet/workload/onnx_reader.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

namespace monet {
namespace {

struct Random {
  std::uint64_t seed;
  std::uint64_t drawn = 0;
  std::size_t below(std::size_t count) { return random_bits(seed, drawn++) % count; }
  bool chance(std::size_t percent) { return below(100) < percent; }
};

Graph network(const std::string& name, std::int64_t batch = 1) {
  OnnxReadOptions options;
  options.batch = batch;
  return read_onnx(std::string(MONET_SOURCE_DIR) + "/data/workload/" + name + ".onnx", options);
}

std::vector<std::int64_t> some_costs(const Graph& graph) {
  std::vector<std::int64_t> costs;
  for (const Operator& op : graph.operators())
    costs.push_back(1 + macs(op.nest) / 64 + iterations(op.nest) / 16);
  return costs;
}

/// Operators again at random places, results nobody reads included.
RecomputePlan random_plan(const RecomputeProblem& problem, std::size_t again, Random& random) {
  RecomputePlan plan = store_everything(problem);
  for (std::size_t k = 0; k < again; ++k) {
    const std::size_t at = 1 + random.below(plan.runs.size());
    const std::uint32_t op = plan.runs[random.below(at)];
    if (problem.ops[op].repeatable)
      plan.runs.insert(plan.runs.begin() + static_cast<std::ptrdiff_t>(at), op);
  }
  return plan;
}

/// The rewritten step comes to what the plan says, operator by operator.
void expect_as_planned(const TrainingGraph& step, const CheckpointSpace& space,
                       const RecomputePlan& plan) {
  const TrainingGraph made = with_recomputation(step, runs_of(plan));
  const RecomputeOutcome outcome = replay(space.problem, plan);
  const Liveness live = find_liveness(made);
  ASSERT_EQ(live.live.size() + 1, outcome.live_bytes.size());
  const bool exact = step.store == StorePolicy::minimal;
  for (std::size_t i = 0; i < live.live.size(); ++i) {
    const std::int64_t bytes = total(live.live[i]);
    ASSERT_LE(bytes, outcome.live_bytes[i + 1]) << made.graph.op(OpId(i)).name;
    ASSERT_TRUE(bytes == outcome.live_bytes[i + 1] || !exact) << made.graph.op(OpId(i)).name;
  }
  if (exact && step.passes == 1) {
    EXPECT_EQ(stored_bytes(space, plan), made.stored_bytes);
  }
}

TrainingOptions regime(int which) {
  TrainingOptions options;
  switch (which) {
  case 1:
    options.storage.policy = StorePolicy::pytorch_eager;
    break;
  case 2:
    options.micro_batches = 3;
    options.update.optimizer = Sgd{};
    break;
  case 3:
    options.precision.weights = options.precision.activations = ElementType::bf16;
    options.precision.master_weights = ElementType::fp32;
    options.update.loss_scale = LossScaleOptions{};
    break;
  case 4:
    options.update.fused = false;
    options.update.clip_global_norm = 1.0;
    options.attention = AttentionForm::fused;
    break;
  case 5:
    options.sam_rho = 0.05;
    break;
  default:
    break;
  }
  return options;
}

class Networks : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Shipped, Networks,
                         testing::Values("gpt2_nano", "lstm", "mobilenet_v2", "resnet18_cifar",
                                         "unet", "resnet18", "vgg16", "vit_tiny"));

TEST_P(Networks, LiveBytesAreThoseOfTheStep) {
  const Graph forward = network(GetParam());
  Random random{7};
  for (int which = 0; which < 6; ++which) {
    TrainingOptions options = regime(which);
    const TrainingGraph views = make_training_graph(forward, options);
    const TrainingGraph folded = fold_views(views);
    for (const TrainingGraph* step : {&views, &folded}) {
      if (step == &views && which > 1)
        continue;
      const CheckpointSpace space = checkpoint_space(*step, some_costs(step->graph));
      const RecomputeOutcome base = replay(space.problem, store_everything(space.problem));
      const Liveness live = find_liveness(*step);
      ASSERT_EQ(base.live_bytes.size(), live.live.size() + 1);
      for (std::size_t i = 0; i < live.live.size(); ++i)
        ASSERT_EQ(base.live_bytes[i + 1], total(live.live[i]));
      EXPECT_EQ(base.peak_bytes, total(live.live[live.peak]));
      if (step == &folded)
        expect_as_planned(*step, space, random_plan(space.problem, 60, random));
    }
  }
}

/// Two branches, a scaled tensor, normalisations, a mask and a residual.
Graph small_network(Random& random) {
  TinyNetwork n;
  const std::vector<std::int64_t> shape{4, 6};
  std::vector<TensorId> made{
      n.op("MatMul", {n.input("x", shape), n.parameter("w", {6, 6})}, shape)};
  for (int i = 0; i < 5; ++i) {
    const TensorId x = made[random.below(made.size())];
    const std::string id = std::to_string(i);
    switch (random.below(5)) {
    case 0:
      made.push_back(n.op("Gelu", {x}, shape));
      break;
    case 1:
      made.push_back(n.op("Relu", {x}, shape));
      break;
    case 2:
      made.push_back(n.op("MatMul", {x, n.parameter("w" + id, {6, 6})}, shape));
      break;
    case 3:
      made.push_back(n.op("Mul", {x, made.back()}, shape));
      break;
    default:
      made.push_back(n.op("BatchNormalization",
                          {x, n.parameter("s" + id, {6}), n.parameter("b" + id, {6}),
                           n.buffer("m" + id, {6}), n.buffer("v" + id, {6})},
                          shape));
    }
  }
  n.output(n.op("Add", {made.back(), made[random.below(made.size())]}, shape));
  return n.graph;
}

/// The least cost over all choices of what is stored.
std::map<std::int64_t, std::int64_t> brute_force(const CheckpointSpace& space) {
  std::vector<std::uint32_t> free;
  for (std::uint32_t b = 0; b < space.problem.buffers.size(); ++b) {
    const auto producer = space.problem.buffers[b].producer;
    if (producer && space.backward[*producer] == 0)
      free.push_back(b);
  }
  std::map<std::int64_t, std::int64_t> least; // bytes -> cost
  if (free.size() > 16)
    return least;
  for (std::uint32_t mask = 0; mask < (1U << free.size()); ++mask) {
    std::vector<std::uint8_t> stored(space.problem.buffers.size(), 0);
    for (std::size_t k = 0; k < free.size(); ++k)
      stored[free[k]] = (mask >> k) & 1U;
    const auto plan = plan_storing(space, stored);
    if (!plan)
      continue;
    const std::int64_t cost = replay(space.problem, *plan).cost;
    const auto found = least.emplace(stored_bytes(space, *plan), cost).first;
    found->second = std::min(found->second, cost);
  }
  return least;
}

TEST(SolveStored, EqualsBruteForce) {
  Random random{11};
  int compared = 0;
  for (int k = 0; k < 60; ++k) {
    const TrainingGraph step = fold_views(make_training_graph(small_network(random), {}));
    std::vector<std::int64_t> costs;
    for (std::size_t i = 0; i < step.graph.operators().size(); ++i)
      costs.push_back(static_cast<std::int64_t>(random.below(9)));
    const CheckpointSpace space = checkpoint_space(step, costs);
    const auto least = brute_force(space);
    std::int64_t best = std::numeric_limits<std::int64_t>::max();
    for (const auto& [bytes, cost] : least) {
      best = std::min(best, cost);
      const RecomputeResult found = solve_stored(space, bytes, {});
      ASSERT_TRUE(found.plan);
      EXPECT_EQ(found.outcome.cost, best);
      EXPECT_EQ(found.bound, static_cast<double>(best));
      EXPECT_LE(stored_bytes(space, *found.plan), bytes);
      ++compared;
    }
    if (!least.empty()) {
      EXPECT_TRUE(solve_stored(space, least.begin()->first - 1, {}).infeasible);
    }
  }
  EXPECT_GT(compared, 200);
}

TEST(MomentBound, HoldsForAllPlans) {
  int equal = 0;
  int proven = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const RecomputeProblem problem = random_recompute_problem(seed);
    const std::int64_t peak = replay(problem, store_everything(problem)).peak_bytes;
    for (std::int64_t budget = peak / 4; budget <= peak; ++budget) {
      const auto best = brute_force_cost(problem, budget);
      double bound = 0;
      bool infeasible = false;
      for (std::uint32_t at = 0; at < problem.ops.size(); ++at) {
        const MomentBound found = moment_bound(problem, at, budget, {});
        bound = std::max(bound, found.cost);
        infeasible = infeasible || found.infeasible;
      }
      proven += infeasible ? 1 : 0;
      ASSERT_FALSE(best && infeasible) << seed << " " << budget;
      if (best) {
        ASSERT_LE(bound, static_cast<double>(*best)) << seed << " " << budget;
        equal += bound > static_cast<double>(*best) - 1e-3 ? 1 : 0;
      }
    }
  }
  EXPECT_GT(equal, 60);
  EXPECT_GT(proven, 60);
}

TEST(CheckpointFront, IsMonotoneWithBoundsBelow) {
  const TrainingGraph step = fold_views(make_training_graph(network("gpt2_nano"), {}));
  const CheckpointSpace space = checkpoint_space(step, some_costs(step.graph));
  const CheckpointPoint base = evaluate(space, store_everything(space.problem));
  for (const CheckpointMemory memory : {CheckpointMemory::stored, CheckpointMemory::peak}) {
    const std::int64_t whole = base.memory(memory);
    const std::int64_t least = min_memory(space, memory);
    ASSERT_LE(least, whole);
    std::vector<std::int64_t> budgets;
    for (int i = 0; i <= 2; ++i)
      budgets.push_back(whole - (whole - least) * i / 3);
    budgets.push_back(least - 1);
    CheckpointOptions options;
    options.memory = memory;
    options.effort = 20'000'000;
    options.nodes = 20;
    const auto front = checkpoint_front(space, budgets, options, {});
    ASSERT_EQ(front.size(), budgets.size());
    EXPECT_TRUE(front.back().infeasible);
    EXPECT_EQ(front.front().outcome.cost, base.cost);
    double before = 0;
    for (std::size_t i = 0; i + 1 < front.size(); ++i) {
      if (!front[i].plan)
        continue;
      const CheckpointPoint point = evaluate(space, *front[i].plan);
      EXPECT_LE(point.memory(memory), budgets[i]);
      EXPECT_GE(static_cast<double>(point.cost), before);
      EXPECT_LE(front[i].bound, static_cast<double>(point.cost));
      before = static_cast<double>(point.cost);
    }
    EXPECT_TRUE(front[1].plan);
  }
}

TEST(CheckpointFront, BeatsTheGeneticAlgorithmPointByPoint) {
  Random random{17};
  const TrainingGraph step = fold_views(make_training_graph(small_network(random), {}));
  const CheckpointSpace space = checkpoint_space(step, some_costs(step.graph));
  std::vector<std::int64_t> second;
  for (std::size_t i = 0; i < space.problem.ops.size(); ++i)
    second.push_back(static_cast<std::int64_t>(random_bits(9, i) % 1000));
  for (const CheckpointMemory memory : {CheckpointMemory::stored, CheckpointMemory::peak}) {
    const GeneticSettings settings{20, 6};
    const auto points = genetic_checkpoints(space, second, memory, settings, {});
    ASSERT_FALSE(points.empty());
    EXPECT_EQ(genetic_checkpoints(space, second, memory, settings, {}).back().plan,
              points.back().plan);
    const auto exact = dominate(space, second, points, memory, {});
    ASSERT_EQ(exact.size(), points.size());
    for (std::size_t i = 0; i < points.size(); ++i) {
      EXPECT_LE(exact[i].point.cost, points[i].cost);
      EXPECT_LE(exact[i].point.second, points[i].second);
      EXPECT_LE(exact[i].point.memory(memory), points[i].memory(memory));
      EXPECT_LE(exact[i].bound, static_cast<double>(exact[i].point.cost));
    }
  }
}

TEST(CheckpointSpace, PinnedTensorsAreNotMadeAgain) {
  const TrainingGraph step = fold_views(make_training_graph(network("gpt2_nano"), {}));
  const std::vector<std::int64_t> costs = some_costs(step.graph);
  const CheckpointSpace free = checkpoint_space(step, costs);
  std::vector<TensorId> pinned;
  for (std::size_t t = 0; t < step.graph.tensors().size(); ++t) {
    if (step.graph.tensors()[t].name.find("Softmax") != std::string::npos)
      pinned.emplace_back(t);
  }
  ASSERT_FALSE(pinned.empty());
  const CheckpointSpace held = checkpoint_space(step, costs, pinned);
  const std::int64_t half = step.stored_bytes / 2;
  const RecomputeResult best = solve_stored(free, half, {});
  const RecomputeResult with_pins = solve_stored(held, half, {});
  ASSERT_TRUE(best.plan && with_pins.plan);
  EXPECT_GE(with_pins.outcome.cost, best.outcome.cost);
  const auto softmaxes = [&](const RecomputePlan& plan) {
    const std::vector<OpId> runs = runs_of(plan);
    return std::count_if(runs.begin(), runs.end(),
                         [&](OpId id) { return step.graph.op(id).op_type == "Softmax"; });
  };
  EXPECT_EQ(softmaxes(*with_pins.plan), softmaxes(store_everything(held.problem)));
}

TEST(ChainPlans, TradeMemoryForRunsWhereBlocksFollowEachOther) {
  for (const char* name : {"vgg16", "resnet18_cifar", "gpt2_nano"}) {
    const TrainingGraph step = fold_views(make_training_graph(network(name), {}));
    const CheckpointSpace space = checkpoint_space(step, some_costs(step.graph));
    const CheckpointPoint base = evaluate(space, store_everything(space.problem));
    std::int64_t least = base.stored_bytes;
    std::size_t steps_down = 0;
    for (const RecomputePlan& plan : chain_plans(space, 16, {})) {
      const CheckpointPoint point = evaluate(space, without_idle_runs(space.problem, plan));
      EXPECT_GE(point.cost, base.cost) << name;
      const RecomputeResult cheapest = solve_stored(space, point.stored_bytes, {});
      ASSERT_TRUE(cheapest.plan) << name;
      EXPECT_GE(static_cast<double>(point.cost), cheapest.bound) << name;
      steps_down += point.stored_bytes < least ? 1 : 0;
      least = std::min(least, point.stored_bytes);
    }
    EXPECT_GE(steps_down, 2U) << name;
    EXPECT_LT(least, base.stored_bytes / 3 * 2) << name;
  }
}

TEST(ChainPlans, AreTheCheapestOnAChain) {
  TinyNetwork n;
  TensorId x = n.input("x", {256, 8});
  for (int i = 0; i < 8; ++i) {
    x = n.op("MatMul", {x, n.parameter("w" + std::to_string(i), {8, 8})}, {256, 8});
    x = n.op("Tanh", {x}, {256, 8});
  }
  n.output(x);
  const TrainingGraph step = fold_views(make_training_graph(n.graph, {}));
  std::vector<std::int64_t> costs;
  for (const Operator& op : step.graph.operators())
    costs.push_back(op.phase == Phase::forward && op.op_type == "MatMul" ? 10 : 0);
  const CheckpointSpace space = checkpoint_space(step, costs);
  const CheckpointPoint base = evaluate(space, store_everything(space.problem));
  std::set<std::int64_t> peaks;
  for (RecomputePlan& made : chain_plans(space, 12, {})) {
    const CheckpointPoint point = evaluate(space, without_idle_runs(space.problem, made));
    RecomputeExactOptions options;
    options.starts = {point.plan};
    const RecomputeResult exact = solve_recompute(space.problem, point.peak_bytes, {}, options);
    EXPECT_EQ(exact.bound, static_cast<double>(point.cost)) << point.peak_bytes;
    if (point.peak_bytes < base.peak_bytes)
      peaks.insert(point.peak_bytes);
  }
  EXPECT_GE(peaks.size(), 3U);
}

TEST(IdleRuns, AreTakenOut) {
  const TrainingGraph step = fold_views(make_training_graph(network("gpt2_nano"), {}));
  const CheckpointSpace space = checkpoint_space(step, some_costs(step.graph));
  Random random{3};
  const RecomputePlan plan = random_plan(space.problem, 80, random);
  const RecomputePlan less = without_idle_runs(space.problem, plan);
  EXPECT_LT(less.runs.size(), plan.runs.size());
  EXPECT_LE(replay(space.problem, less).peak_bytes, replay(space.problem, plan).peak_bytes);
  EXPECT_EQ(without_idle_runs(space.problem, less), less);
}

} // namespace
} // namespace monet
