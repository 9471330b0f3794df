// Plans of parallelism against modelling every strategy.
#include "base/shared/rng.hpp"
#include "base/shared/text.hpp"
#include "cluster/networks.hpp"
#include "cluster/step/bounds.hpp"
#include "level.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/files.hpp"
#include "monet/base/yaml.hpp"
#include "monet/cluster/planner.hpp"
#include "monet/core_cost/core_cost.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

namespace monet {

namespace {

struct PlanCase {
  Cluster cluster;
  ClusterDevice device;
  ClusterWorkload workload;
  StrategySpace space;
};

/// Small, and so that each limit counts in some of them: memory, slow links, the host.
PlanCase plan_case(std::uint64_t seed) {
  RandomStream rng(seed);
  const auto one_of = [&](std::initializer_list<std::int64_t> values) {
    return *(values.begin() + static_cast<std::ptrdiff_t>(rng.below(values.size())));
  };
  PlanCase made;
  made.cluster = with_devices(read_cluster(MONET_SOURCE_DIR "/data/cluster/dgx_a100.yaml"),
                              one_of({2, 4, 6, 8}));
  made.device = read_cluster_device(made.cluster.device);
  made.device.table->host_ns_per_kernel = static_cast<double>(one_of({0, 60'000}));
  TransformerShape shape;
  shape.layers = one_of({2, 4, 8});
  shape.hidden = one_of({256, 512, 2048});
  shape.heads = one_of({4, 8});
  shape.sequence = one_of({128, 512});
  shape.vocabulary = one_of({512, 8192});
  shape.dropout = rng.below(2) == 0 ? 0.0 : 0.1;
  made.workload.transformer = shape;
  made.workload.training.update.optimizer = Adam{};
  made.workload.training.storage.policy = StorePolicy::pytorch_eager;
  made.space.global_batch = one_of({12, 24});
  made.space.overlap = rng.below(4) != 0;
  // All kinds of choices, but not all at once.
  made.space.axes[AxisRole::context] = {1};
  if (rng.below(3) == 0)
    made.space.axes[AxisRole::context].push_back(2);
  made.space.micro_batch = {1, 4};
  made.space.axes[AxisRole::zero] = {0, one_of({1, 2, 3})};
  made.space.recompute = {RecomputeKind::none,
                          rng.below(2) == 0 ? RecomputeKind::selective : RecomputeKind::full};
  if (rng.below(3) != 0)
    made.space.schedule = {PipelineKind::one_f_one_b, PipelineKind::interleaved,
                           PipelineKind::zero_bubble_h1};
  made.cluster.host_link = {.bandwidth_gb_per_s = static_cast<double>(one_of({5, 25, 100})),
                            .latency_ns = 2'000};
  made.space.offload = {OffloadKind::none};
  if (rng.below(3) == 0)
    made.space.offload.push_back(static_cast<OffloadKind>(one_of({1, 2, 3})));
  if (rng.below(4) == 0)
    made.cluster.unequal = {{.first = one_of({0, 1}),
                             .count = 1,
                             .speed = rng.below(2) == 0 ? 0.5 : 2.0,
                             .memory_bytes = static_cast<double>(one_of({0, 1'000})) * 1e6}};
  if (rng.below(2) == 0) // some do not fit
    made.cluster.memory_bytes = static_cast<double>(one_of({1'200, 1'500, 2'000})) * 1e6;
  return made;
}

struct Modelled {
  std::vector<PlannedStrategy> fit;
  std::size_t all = 0;
};

/// Holds each step to its bounds, too.
Modelled model_all(const PlanCase& of) {
  Modelled modelled;
  ClusterModel model(of.cluster, of.device, of.workload);
  const cluster_cost::Profiler profiler(of.cluster, of.device, of.workload,
                                        std::make_shared<CoreCostCache>());
  std::map<cluster_cost::ProfileKey, cluster_cost::Profile> known;
  const auto profile = [&](ParallelStrategy strategy, std::int64_t micro_batch) {
    strategy.micro_batch = micro_batch;
    const auto key = cluster_cost::profile_key(strategy);
    if (!known.contains(key))
      known.emplace(key, profiler.profile(strategy));
    return known.at(key);
  };
  for (const ParallelStrategy& strategy :
       strategies_of(of.space, of.cluster.devices, of.workload, true)) {
    SCOPED_TRACE(to_string(strategy));
    const ClusterStep step = model.model(strategy);
    ++modelled.all;
    if (step.fits())
      modelled.fit.push_back({strategy, step.time, step.largest_memory, step.energy_pj});
    const ParallelStrategy base = cluster_step::base_of(strategy);
    const auto bound =
        cluster_step::step_bound(of.cluster, of.device, profile(base, base.micro_batch), strategy);
    EXPECT_LE(bound.time, step.time);
    EXPECT_LE(bound.memory, step.largest_memory);
    EXPECT_LE(bound.energy_pj, step.energy_pj);
    const auto more =
        cluster_step::with_samples(profile(base, 1), 1, profile(base, 2), 2, base.micro_batch);
    EXPECT_LE(cluster_step::step_bound(of.cluster, of.device, more, strategy).memory,
              step.largest_memory);
  }
  return modelled;
}

bool dominates(const PlannedStrategy& a, const PlannedStrategy& b) {
  return a.time <= b.time && a.memory <= b.memory && (a.time < b.time || a.memory < b.memory);
}

using Point = std::pair<Nanoseconds, std::int64_t>;

std::set<Point> points_of_front(const std::vector<PlannedStrategy>& all) {
  std::set<Point> points;
  for (const PlannedStrategy& candidate : all) {
    if (std::ranges::none_of(
            all, [&](const PlannedStrategy& other) { return dominates(other, candidate); }))
      points.emplace(candidate.time, candidate.memory);
  }
  return points;
}

PlannerResult plan_of(const PlanCase& of, const PlannerOptions& options, int jobs = 1) {
  SearchControl control;
  control.jobs = jobs;
  return plan_parallelism(of.cluster, of.device, of.workload, of.space, options, control);
}

} // namespace

TEST(Planner, FindsTheBestAndTheFrontOfModellingEveryStrategy) {
  std::int64_t all = 0;
  std::int64_t evaluated = 0;
  for (std::uint64_t seed = 1; seed <= static_cast<std::uint64_t>(test::cases(1, 8, 200)); ++seed) {
    SCOPED_TRACE(seed);
    const PlanCase of = plan_case(seed);
    const Modelled modelled = model_all(of);
    const PlannerResult fastest = plan_of(of, {});
    EXPECT_EQ(fastest.counts.all(), static_cast<std::int64_t>(modelled.all));
    EXPECT_EQ(fastest.counts.left, 0);
    all += fastest.counts.all();
    evaluated += fastest.counts.evaluated;
    if (modelled.fit.empty()) {
      EXPECT_FALSE(fastest.best);
      continue;
    }
    ASSERT_TRUE(fastest.best);
    EXPECT_EQ(fastest.best->time, std::ranges::min(modelled.fit, {}, &PlannedStrategy::time).time);
    EXPECT_EQ(fastest.certificate.gap(), 0);
    const PlannerResult smallest = plan_of(of, {.objective = Objective::memory});
    EXPECT_EQ(smallest.best->memory,
              std::ranges::min(modelled.fit, {}, &PlannedStrategy::memory).memory);
    const PlannerResult front = plan_of(of, {.front = true});
    std::set<Point> points;
    for (const PlannedStrategy& planned : front.front)
      points.emplace(planned.time, planned.memory);
    EXPECT_EQ(points, points_of_front(modelled.fit));
    EXPECT_EQ(front.best->time, fastest.best->time);
  }
  RecordProperty("strategies", static_cast<int>(all));
  EXPECT_LT(2 * evaluated, all) << "bounds are to spare most of the work";
}

/// Of chips energy counts, too; gradients in shards are read in shards.
TEST(Planner, FindsTheBestOfChips) {
  MONET_FROM_LEVEL(full);
  PlanCase of;
  of.cluster = read_cluster(MONET_SOURCE_DIR "/data/cluster/edge_tpu_x4.yaml");
  of.device = read_cluster_device(of.cluster.device);
  of.workload.network = [](std::int64_t samples) { return test::small_mlp(samples); };
  of.workload.training.update.optimizer = Adam{};
  of.space.global_batch = 8;
  of.space.micro_batch = {1, 2};
  of.space.axes[AxisRole::tensor] = {1};
  of.space.axes[AxisRole::pipeline] = {1};
  of.space.recompute = {RecomputeKind::none};
  of.space.offload = {OffloadKind::none};
  const Modelled modelled = model_all(of);
  ASSERT_EQ(modelled.fit.size(), 8U); // four stages of ZeRO
  const PlannerResult energy = plan_of(of, {.objective = Objective::energy});
  EXPECT_EQ(energy.best->energy_pj,
            std::ranges::min(modelled.fit, {}, &PlannedStrategy::energy_pj).energy_pj);
  const PlannerResult fastest = plan_of(of, {});
  EXPECT_EQ(fastest.best->time, std::ranges::min(modelled.fit, {}, &PlannedStrategy::time).time);
}

/// Rounded to whole nanoseconds, a time of slow devices over the speed is no bound.
TEST(Planner, BoundsHoldWhereAllDevicesAreFaster) {
  PlanCase of = plan_case(3);
  of.cluster.unequal = {{.first = 0, .count = of.cluster.devices, .speed = 1.7}};
  EXPECT_GT(model_all(of).all, 0U);
}

TEST(Planner, SaysThatAnOffloadNeedsALink) {
  PlanCase of = plan_case(3);
  of.cluster.host_link = {};
  of.device.table->host_link = {};
  of.space.offload = {OffloadKind::states};
  try {
    plan_of(of, {});
    FAIL();
  } catch (const InfeasibleError& error) {
    EXPECT_NE(std::string(error.what()).find("host_link"), std::string::npos) << error.what();
  }
}

TEST(Planner, GivesTheSameForAnyNumberOfThreads) {
  const PlanCase of = plan_case(3);
  const PlannerResult one = plan_of(of, {.front = true}, 1);
  const PlannerResult three = plan_of(of, {.front = true}, 3);
  EXPECT_EQ(one.best, three.best);
  EXPECT_EQ(one.front, three.front);
  EXPECT_EQ(one.runners_up, three.runners_up);
  EXPECT_EQ(one.counts.evaluated, three.counts.evaluated);
}

TEST(Planner, SaysWhatCameClosestWhereNothingFits) {
  PlanCase of = plan_case(3);
  of.cluster.memory_bytes = 1e6;
  const PlannerResult found = plan_of(of, {});
  EXPECT_FALSE(found.best);
  EXPECT_EQ(found.counts.too_large + found.counts.evaluated, found.counts.all());
}

/// Micro-batches that are known from smaller ones not to fit are never priced.
TEST(Planner, AnswersWhereMicroBatchesAreTooLargeToPrice) {
  PlanCase of = plan_case(1);
  of.space.global_batch = 48;
  of.space.micro_batch = {1, 2, 4, 8};
  of.space.axes[AxisRole::pipeline] = {1};
  of.space.axes[AxisRole::zero] = {0};
  of.space.recompute = {RecomputeKind::none};
  const PlannerResult all = plan_of(of, {});
  ASSERT_TRUE(all.best);
  of.cluster.memory_bytes = static_cast<double>(all.best->memory) / 2;
  const PlannerResult found = plan_of(of, {});
  EXPECT_GT(found.counts.too_large, 0);
  EXPECT_LT(found.profiles, all.profiles);
}

TEST(Planner, KnowsEnergyOfChipsOnly) {
  EXPECT_THROW(plan_of(plan_case(1), {.objective = Objective::energy}), InfeasibleError);
}

TEST(Planner, ListsEachStrategyOnceAndAllThatFitTogether) {
  PlanCase of = plan_case(1);
  of.cluster = with_devices(of.cluster, 4);
  of.workload.transformer->layers = 4;
  of.workload.transformer->heads = 4;
  of.space = {.global_batch = 4};
  of.space.axes[AxisRole::context] = {1};
  const auto all = strategies_of(of.space, 4, of.workload, false);
  // With a host link each once more for states, and two times for activations where they may wait
  // in the host.
  const auto split = static_cast<std::size_t>(std::ranges::count_if(
      all, [](const ParallelStrategy& s) { return splits_backward(s.schedule); }));
  EXPECT_GT(split, 0U);
  EXPECT_EQ(strategies_of(of.space, 4, of.workload, true).size(), 4 * all.size() - 2 * split);
  std::set<std::string> texts;
  for (const ParallelStrategy& strategy : all) {
    EXPECT_EQ(find_misfits(strategy, 4), std::vector<std::string>{});
    texts.insert(to_string(strategy));
  }
  EXPECT_EQ(texts.size(), all.size());
  // Counted by hand, for data x tensor x pipeline: what one stage is run with is a micro-batch
  // (the divisors of 4 / data), sequence or not, ZeRO 0 to 3 with data ranks, and one of three
  // kinds of recomputation.
  const auto count = [&](std::int64_t data, std::int64_t tensor) {
    return std::ranges::count_if(all, [&](const ParallelStrategy& s) {
      return s.axes[AxisRole::data] == data && s.axes[AxisRole::tensor] == tensor &&
             s.stages() == 1;
    });
  };
  EXPECT_EQ(count(4, 1), 1 * 1 * 4 * 3);
  EXPECT_EQ(count(1, 4), 3 * 2 * 1 * 3);
  EXPECT_EQ(count(2, 2), 2 * 2 * 4 * 3);
}

/// examples/cluster/gpt3_175b_plan.yaml.
TEST(Planner, CountsTheStrategiesThatDocumentsName) {
  ClusterWorkload gpt3;
  gpt3.transformer = TransformerShape{.layers = 96, .hidden = 12288, .heads = 96};
  gpt3.transformer->sequence = 2048;
  gpt3.transformer->vocabulary = 50257;
  gpt3.transformer->vocabulary_multiple = 1024;
  StrategySpace space{.global_batch = 1536};
  space.axes[AxisRole::context] = {1};
  const std::size_t count = strategies_of(space, 1024, gpt3, true).size();
  const std::string text = group_digits(static_cast<std::int64_t>(count));
  for (const char* file : {"/README.md", "/docs/explanation/parallelism-search.md",
                           "/docs/decisions/0071-proven-parallelism-plans.md"})
    EXPECT_NE(read_file(std::string(MONET_SOURCE_DIR) + file).find(text), std::string::npos)
        << file << " does not have " << text;
}

TEST(Planner, ReadsValuesAndLists) {
  ProblemList problems;
  const StrategySpace space = read_strategy_space(
      parse_yaml("{tensor: [1, 8], zero: 1, schedule: [1f1b, zb-h1], sequence: true, "
                 "recompute: [none, full], offload: [both], global_batch: 64}",
                 "space.yaml"),
      problems);
  problems.throw_if_any();
  EXPECT_EQ(space.axes[AxisRole::tensor], (std::vector<std::int64_t>{1, 8}));
  EXPECT_EQ(space.axes[AxisRole::zero], (std::vector<std::int64_t>{1}));
  EXPECT_EQ(space.schedule,
            (std::vector<PipelineKind>{PipelineKind::one_f_one_b, PipelineKind::zero_bubble_h1}));
  EXPECT_EQ(space.axes[AxisRole::sequence], (std::vector<std::int64_t>{1}));
  EXPECT_EQ(space.recompute,
            (std::vector<RecomputeKind>{RecomputeKind::none, RecomputeKind::full}));
  EXPECT_EQ(space.offload, (std::vector<OffloadKind>{OffloadKind::both}));
  EXPECT_TRUE(space.axes[AxisRole::data].empty());
  EXPECT_EQ(space.global_batch, 64);
}

TEST(Planner, TellsWhatIsWrongWithALine) {
  ProblemList problems;
  read_strategy_space(parse_yaml("tensor: []\nzero: [1, 4]\nvirtual: [2, 2]\nschedule: some\n"
                                 "tensors: 1\n",
                                 "space.yaml"),
                      problems);
  try {
    problems.throw_if_any();
    FAIL();
  } catch (const InputError& error) {
    const std::string text = error.what();
    for (const char* what :
         {"space.yaml:1:9: 'tensor' lists 0 values", "space.yaml:2:11: zero is 4, not 0 to 3",
          "space.yaml:3:14: 'virtual' lists a value twice", "space.yaml:4:11: 'some' is not one of",
          "tensors", "global_batch"})
      EXPECT_NE(text.find(what), std::string::npos) << what << " in " << text;
  }
}

} // namespace monet
