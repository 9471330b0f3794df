// Exploration around the evaluations: bounds, fronts of a million results, what strategies and the
// sensitivity cost by themselves.
#include "base/shared/pareto.hpp"
#include "base/shared/rng.hpp"
#include "explore/shared/sensitivity.hpp"

#include "monet/base/errors.hpp"
#include "monet/explore/explore.hpp"
#include "monet/explore/strategy.hpp"

#include <benchmark/benchmark.h>

#include <cmath>
#include <string>
#include <vector>

namespace monet {
namespace {

/// Figures of a seed; bounds are 3 % lower.
class Seeded : public DesignEvaluator {
public:
  explicit Seeded(std::vector<std::uint32_t> values) { designs_.values = std::move(values); }

  DesignResult evaluate(DesignId id) override {
    DesignResult result;
    result.id = id;
    result.feasible = true;
    result.area_mm2 = figure(id, 0);
    result.runs = {{static_cast<std::int64_t>(1000 * figure(id, 1)), figure(id, 2), 1},
                   {static_cast<std::int64_t>(1000 * figure(id, 3)), figure(id, 4), 1}};
    return result;
  }
  DesignBound bound(DesignId id) override {
    const DesignResult result = evaluate(id);
    DesignBound bound;
    bound.area_mm2 = result.area_mm2;
    bound.runs = result.runs;
    for (StepFigures& run : bound.runs) {
      run.latency_cycles = run.latency_cycles * 97 / 100;
      run.energy_pj *= 0.97;
    }
    return bound;
  }

private:
  double figure(DesignId id, std::uint64_t what) const {
    double value = 1000 * (1 + 0.05 * random_unit(what + 50, id));
    const std::vector<std::uint32_t> choices = designs_.choices(id);
    for (std::size_t p = 0; p < choices.size(); ++p)
      value *= 0.5 + random_unit(what, 64 * p + choices[p]);
    return value;
  }
  DesignSet designs_;
};

const std::vector<std::uint32_t> kMillion{10, 10, 10, 10, 10, 10};
const FrontRequest kTwo{0, {Objective::latency, Objective::energy}};
const FrontRequest kThree{1, {Objective::latency, Objective::energy, Objective::area}};

std::vector<DesignResult> million() {
  Seeded evaluator(kMillion);
  std::vector<DesignResult> results;
  for (DesignId id = 0; id < 1'000'000; ++id)
    results.push_back(evaluator.evaluate(id));
  return results;
}

/// Nothing on the front is dominated, and everything off it that is looked at is.
void check_front(const std::vector<DesignResult>& results, const std::vector<DesignId>& ids,
                 const FrontRequest& front) {
  internal_check(!ids.empty(), "an empty front");
  for (std::size_t i = 0; i < results.size(); i += 997) {
    const std::vector<double> values = objective_values(results[i], front);
    bool on = false, beaten = false;
    for (const DesignId id : ids) {
      on = on || id == results[i].id;
      beaten = beaten || dominates(objective_values(results[id], front), values);
    }
    internal_check(on != beaten, "a front that is wrong");
  }
}

void front(benchmark::State& state) {
  static const std::vector<DesignResult> results = million();
  const FrontRequest& request = state.range(0) == 2 ? kTwo : kThree;
  check_front(results, front_of(results, request), request);
  for (auto _ : state)
    benchmark::DoNotOptimize(front_of(results, request));
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(results.size()));
}
BENCHMARK(front)->Arg(2)->Arg(3)->Unit(benchmark::kMillisecond);

void sensitivity_of_a_million(benchmark::State& state) {
  static const std::vector<DesignResult> results = million();
  Space space;
  for (const std::uint32_t count : kMillion) {
    Parameter parameter;
    parameter.values.resize(count);
    space.parameters.push_back(parameter);
  }
  space.workload.runs = {"inference", "training"};
  space.fronts = {kTwo, kThree};
  const Sensitivity found = sensitivity(space, results);
  internal_check(found.runs.size() == 2 && found.runs[0][0].designs == results.size() &&
                     found.runs[0][0].together < 0.05,
                 "figures that are products have shares that add up to one");
  for (auto _ : state)
    benchmark::DoNotOptimize(sensitivity(space, results));
}
BENCHMARK(sensitivity_of_a_million)->Unit(benchmark::kMillisecond);

/// A whole run of a strategy on 10,000 designs whose evaluation costs next to nothing.
void strategy(benchmark::State& state, const std::string& name, std::uint64_t budget) {
  DesignSet designs{{4, 4, 5, 5, 5, 5}, {}, {kTwo, kThree}};
  Seeded evaluator(designs.values);
  std::size_t asked = 0;
  for (auto _ : state) {
    const auto chosen = make_strategy(designs, evaluator, {name, budget, 1, 1});
    asked = 0;
    for (auto batch = chosen->ask(); !batch.empty() || !chosen->ended(); batch = chosen->ask()) {
      std::vector<DesignResult> results;
      for (const DesignId id : chosen->race().ids)
        results.push_back(evaluator.evaluate(id));
      if (batch.empty()) {
        chosen->tell_race(results);
        continue;
      }
      for (const DesignId id : batch)
        results.push_back(evaluator.evaluate(id));
      chosen->tell(results);
      asked += batch.size();
    }
    internal_check(asked + chosen->skipped_by_bound() == (budget > 0 ? budget : 10'000),
                   "designs got lost");
  }
  state.counters["evaluated"] = static_cast<double>(asked);
}
BENCHMARK_CAPTURE(strategy, exhaustive, "exhaustive", 0)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(strategy, random, "random", 1000)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(strategy, lhs, "lhs", 1000)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(strategy, nsga2, "nsga2", 1000)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(strategy, racing, "racing", 0)->Unit(benchmark::kMillisecond);

/// Bounds of designs of the edge space: cheap ones, and (a training step) evaluations to compare.
void edge_bounds(benchmark::State& state) {
  static const Space space = read_space(MONET_SOURCE_DIR "/data/spaces/edge.yaml");
  static const auto evaluator = make_evaluator(space);
  const DesignId checked = 6280 % space.size();
  const DesignResult result = evaluator->evaluate(checked);
  const DesignBound bound = evaluator->bound(checked);
  for (std::size_t r = 0; r < result.runs.size(); ++r)
    internal_check(bound.runs[r].latency_cycles <= result.runs[r].latency_cycles &&
                       bound.runs[r].energy_pj <= result.runs[r].energy_pj &&
                       bound.runs[r].peak_memory_bytes <= result.runs[r].peak_memory_bytes,
                   "a bound above what the design comes to");
  for (DesignId id = 0; id < space.size(); id += 13) // each size of memory once
    evaluator->bound(id);
  std::uint64_t n = 0;
  for (auto _ : state)
    benchmark::DoNotOptimize(evaluator->bound(random_bits(3, n++) % space.size()));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(edge_bounds)->Unit(benchmark::kMicrosecond);

} // namespace
} // namespace monet

BENCHMARK_MAIN();
