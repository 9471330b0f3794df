// Strategies against brute force, on small random spaces whose designs cost what a seed says.
#include "base/shared/pareto.hpp"
#include "base/shared/rng.hpp"
#include "explore/strategy/design_fronts.hpp"
#include "explore/strategy/shuffled.hpp"

#include "monet/base/errors.hpp"
#include "monet/explore/strategy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

namespace monet {
namespace {

/// Figures are products of what each value of each parameter brings, and of chance; few distinct
/// ones where `coarse`, so that ties abound. Some designs are infeasible.
class SeededEvaluator : public DesignEvaluator {
public:
  SeededEvaluator(DesignSet designs, std::uint64_t seed, bool coarse = false, double slack = 0.3,
                  double chance = 0.2)
      : designs_(std::move(designs)), seed_(seed), coarse_(coarse), slack_(slack), chance_(chance) {
  }

  DesignResult evaluate(DesignId id) override {
    DesignResult result;
    result.id = id;
    result.feasible = random_unit(seed_ + 7, id) > 0.15;
    if (!result.feasible) {
      result.reason = "chance";
      return result;
    }
    result.area_mm2 = figure(id, 0, 0.0);
    result.peak_power_w = figure(id, 1, 0.0);
    for (std::uint64_t run = 0; run < 2; ++run)
      result.runs.push_back({static_cast<std::int64_t>(figure(id, 10 * run + 2, chance_)),
                             figure(id, 10 * run + 3, chance_),
                             static_cast<std::int64_t>(figure(id, 10 * run + 4, chance_))});
    return result;
  }

  DesignBound bound(DesignId id) override { return bound(id, 2 * slack_); }
  std::optional<DesignResult> evaluate_unless(DesignId id, const BoundTest& enough) override {
    for (const double slack : {2 * slack_, slack_})
      if (enough(bound(id, slack)))
        return std::nullopt;
    return evaluate(id);
  }

private:
  DesignBound bound(DesignId id, double slack) {
    DesignResult result = evaluate(id);
    DesignBound bound;
    bound.feasible = result.feasible || random_unit(seed_ + 8, id) > 0.5;
    if (!result.feasible)
      result.runs.resize(2); // no bound is wrong
    bound.area_mm2 = result.area_mm2;
    bound.peak_power_w = result.peak_power_w;
    std::uint64_t k = 0;
    const auto lower = [&](double value) {
      const double less = slack * random_unit(seed_ + 9, id * 16 + k++);
      return less < 0.3 * slack ? value : value * (1 - less); // exact now and then
    };
    for (const StepFigures& run : result.runs)
      bound.runs.push_back(
          {static_cast<std::int64_t>(lower(static_cast<double>(run.latency_cycles))),
           lower(run.energy_pj),
           static_cast<std::int64_t>(lower(static_cast<double>(run.peak_memory_bytes)))});
    return bound;
  }

  double figure(DesignId id, std::uint64_t what, double chance) {
    double value = 1000;
    const std::vector<std::uint32_t> choices = designs_.choices(id);
    for (std::size_t p = 0; p < choices.size(); ++p)
      value *= 0.5 + random_unit(seed_ + what, 64 * p + choices[p]);
    value *= 1 + chance * random_unit(seed_ + 100 + what, id);
    return coarse_ ? std::floor(value / 400) * 400 + 400 : std::floor(value) + 1;
  }

  DesignSet designs_;
  std::uint64_t seed_;
  bool coarse_;
  double slack_, chance_;
};

DesignSet small_set(std::uint64_t seed) {
  RandomStream random(seed, 5);
  DesignSet designs;
  const std::size_t parameters = 1 + random.below(4);
  for (std::size_t p = 0; p < parameters; ++p)
    designs.values.push_back(static_cast<std::uint32_t>(1 + random.below(6)));
  if (random.chance(0.5))
    designs.excludes = [seed](DesignId id) { return random_unit(seed + 3, id) < 0.4; };
  const std::vector<std::vector<Objective>> kinds{
      {Objective::latency},
      {Objective::latency, Objective::energy},
      {Objective::latency, Objective::energy, Objective::area},
      {Objective::energy, Objective::memory},
      {Objective::latency, Objective::energy, Objective::memory, Objective::power}};
  const std::size_t fronts = 1 + random.below(3);
  for (std::size_t f = 0; f < fronts; ++f)
    designs.fronts.push_back({random.below(2), kinds[random.below(kinds.size())]});
  return designs;
}

struct Outcome {
  std::vector<DesignResult> results;
  std::vector<std::vector<DesignId>> batches;
  std::uint64_t skipped = 0, excluded = 0;
  std::string ended_early;
};

/// `known`: those that are not raced, as their results are there.
void race(Strategy& strategy, DesignEvaluator& evaluator,
          const std::function<bool(DesignId)>& known = {}) {
  const DesignRace race = strategy.race();
  std::vector<DesignResult> results(race.ids.size());
  for (std::size_t i = 0; i < race.ids.size(); ++i) {
    results[i].id = race.ids[i];
    const auto enough = [&](const DesignBound& bound) { return race.fronts->beat(bound); };
    if (known && known(race.ids[i]))
      results[i] = evaluator.evaluate(race.ids[i]);
    else if (const auto result = evaluator.evaluate_unless(race.ids[i], enough))
      results[i] = *result;
  }
  strategy.tell_race(results);
}

Outcome run(const DesignSet& designs, DesignEvaluator& evaluator, const StrategyOptions& options,
            const std::function<bool(DesignId)>& known = {}) {
  const auto strategy = make_strategy(designs, evaluator, options);
  Outcome outcome;
  for (auto batch = strategy->ask(); !batch.empty() || !strategy->ended();
       batch = strategy->ask()) {
    if (batch.empty()) { // a part of its work
      race(*strategy, evaluator, known);
      continue;
    }
    std::vector<DesignResult> results;
    for (const DesignId id : batch)
      results.push_back(evaluator.evaluate(id));
    strategy->tell(results);
    outcome.results.insert(outcome.results.end(), results.begin(), results.end());
    outcome.batches.push_back(batch);
  }
  outcome.skipped = strategy->skipped_by_bound();
  outcome.excluded = strategy->excluded();
  outcome.ended_early = strategy->ended_early();
  return outcome;
}

/// Ids of the designs that no other strictly dominates: by definition, two loops.
std::set<DesignId> front(const std::vector<DesignResult>& results, const FrontRequest& request) {
  std::set<DesignId> ids;
  for (const DesignResult& a : results) {
    const bool beaten =
        !a.feasible || std::any_of(results.begin(), results.end(), [&](const DesignResult& b) {
          return b.feasible &&
                 dominates(objective_values(b, request), objective_values(a, request));
        });
    if (!beaten)
      ids.insert(a.id);
  }
  return ids;
}

std::set<DesignId> kept_ids(const DesignSet& designs) {
  std::set<DesignId> ids;
  for (DesignId id = 0; id < designs.size(); ++id)
    if (designs.keeps(id))
      ids.insert(id);
  return ids;
}

std::set<DesignId> ids_of(const Outcome& outcome) {
  std::set<DesignId> ids;
  for (const DesignResult& result : outcome.results)
    EXPECT_TRUE(ids.insert(result.id).second) << result.id << " was asked for twice";
  return ids;
}

TEST(DesignSet, NumbersDesignsByTheirDigits) {
  const DesignSet designs{{3, 1, 4}, {}, {}};
  EXPECT_EQ(designs.size(), 12U);
  EXPECT_EQ(designs.choices(7), (std::vector<std::uint32_t>{1, 0, 3}));
  for (DesignId id = 0; id < 12; ++id)
    EXPECT_EQ(designs.id_of(designs.choices(id)), id);
  EXPECT_THROW((DesignSet{{4'000'000'000, 4'000'000'000, 4'000'000'000}, {}, {}}.size()),
               InternalError);
}

TEST(Strategy, ExhaustiveAsksForAllThatConstraintsKeep) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const DesignSet designs = small_set(seed);
    SeededEvaluator evaluator(designs, seed);
    const Outcome outcome = run(designs, evaluator, {"exhaustive", 0, 1, 1});
    EXPECT_EQ(ids_of(outcome), kept_ids(designs));
    EXPECT_EQ(outcome.excluded, designs.size() - kept_ids(designs).size());
    EXPECT_EQ(outcome.ended_early, "");
    const Outcome some = run(designs, evaluator, {"exhaustive", 3, 1, 1});
    EXPECT_EQ(some.results.size(), std::min<std::size_t>(3, outcome.results.size()));
  }
}

TEST(Strategy, RacingFindsTheFrontsOfAllDesigns) {
  std::uint64_t skipped = 0, asked = 0;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    const DesignSet designs = small_set(seed);
    SeededEvaluator evaluator(designs, seed, seed % 2 == 0, seed % 3 == 0 ? 0.05 : 0.3);
    const Outcome all = run(designs, evaluator, {"exhaustive", 0, 1, 1});
    const Outcome some = run(designs, evaluator, {"racing", 0, 1, 1});
    EXPECT_EQ(some.results.size() + some.skipped, all.results.size());
    ids_of(some);
    for (const FrontRequest& request : designs.fronts)
      EXPECT_EQ(front(some.results, request), front(all.results, request)) << "seed " << seed;
    skipped += some.skipped;
    asked += some.results.size();
    if (seed % 50 == 0) {
      EXPECT_EQ(run(designs, evaluator, {"racing", 0, 1, 3}).batches, some.batches);
    }
  }
  EXPECT_GT(skipped, 1000U);
  EXPECT_GT(asked, 1000U);
}

TEST(Strategy, RacingChoosesAlikeWhateverIsKnown) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const DesignSet designs = small_set(seed);
    SeededEvaluator evaluator(designs, seed, seed % 2 == 0);
    const StrategyOptions options{"racing", 0, 1, 1};
    const Outcome without = run(designs, evaluator, options);
    std::uint64_t asked = 0;
    const Outcome with = run(designs, evaluator, options, [&](DesignId id) {
      ++asked;
      return random_unit(seed + 5, id) < 0.5;
    });
    EXPECT_EQ(with.batches, without.batches);
    EXPECT_EQ(with.skipped, without.skipped);
    EXPECT_GE(asked, with.results.empty() ? 0U : 1U);
  }
}

TEST(Strategy, RacingSkipsNothingThatTiesWithAResult) {
  // All designs cost the same, and bounds say so exactly: every one is on the front.
  const DesignSet designs{{200}, {}, {{0, {Objective::latency, Objective::energy}}}};
  class Equal : public DesignEvaluator {
  public:
    DesignResult evaluate(DesignId id) override {
      DesignResult result;
      result.id = id;
      result.feasible = true;
      result.runs = {{5, 5, 5}};
      return result;
    }
    DesignBound bound(DesignId) override {
      DesignBound bound;
      bound.runs = {{5, 5, 5}};
      return bound;
    }
  } evaluator;
  EXPECT_EQ(run(designs, evaluator, {"racing", 0, 1, 1}).results.size(), 200U);
}

TEST(Strategy, RacingSkipsMostWhereBoundsAreTight) {
  const DesignSet designs{{10, 10, 10, 5},
                          {},
                          {{0, {Objective::latency, Objective::energy}},
                           {1, {Objective::latency, Objective::energy, Objective::area}}}};
  SeededEvaluator evaluator(designs, 11, false, 0.02);
  const Outcome some = run(designs, evaluator, {"racing", 0, 1, 1});
  const Outcome all = run(designs, evaluator, {"exhaustive", 0, 1, 1});
  EXPECT_LT(some.results.size() * 8, all.results.size()); // 375 are infeasible without a bound
  for (const FrontRequest& request : designs.fronts)
    EXPECT_EQ(front(some.results, request), front(all.results, request));
}

TEST(Strategy, RacingLetsItsCallerLookAround) {
  class Counting final : public SeededEvaluator {
  public:
    using SeededEvaluator::SeededEvaluator;
    int calls = 0;
    DesignBound bound(DesignId id) override {
      ++calls;
      return SeededEvaluator::bound(id);
    }
  };
  DesignSet designs;
  designs.values = {10, 10, 10, 10};
  designs.fronts = {{0, {Objective::latency}}};
  Counting evaluator(designs, 3);
  const auto strategy = make_strategy(designs, evaluator, {"racing", 0, 1, 1});
  for (bool more = true; more;) {
    evaluator.calls = 0;
    const std::vector<DesignId> batch = strategy->ask();
    EXPECT_LE(evaluator.calls, 4096) << "bounds at a time";
    EXPECT_LE(strategy->race().ids.size(), 32U);
    race(*strategy, evaluator);
    more = !batch.empty() || !strategy->ended();
    std::vector<DesignResult> results;
    for (const DesignId id : batch)
      results.push_back(evaluator.evaluate(id));
    strategy->tell(results);
  }
  EXPECT_GT(strategy->skipped_by_bound(), 5000U);
}

TEST(Strategy, SamplesAreOfTheSpaceAndNeverTwice) {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const DesignSet designs = small_set(seed);
    SeededEvaluator evaluator(designs, seed);
    const std::set<DesignId> kept = kept_ids(designs);
    for (const char* name : {"random", "lhs", "climb", "nsga2", "racing"}) {
      const std::uint64_t budget = 1 + seed % 90;
      const Outcome outcome = run(designs, evaluator, {name, budget, seed, 1});
      const std::set<DesignId> ids = ids_of(outcome);
      EXPECT_TRUE(std::includes(kept.begin(), kept.end(), ids.begin(), ids.end())) << name;
      EXPECT_LE(ids.size(), budget) << name;
      if (std::string_view(name) == "random" || std::string_view(name) == "nsga2") {
        EXPECT_EQ(ids.size(), std::min<std::uint64_t>(budget, kept.size())) << name << ' ' << seed;
        EXPECT_EQ(outcome.ended_early.empty(), budget <= kept.size()) << name;
      }
      EXPECT_EQ(run(designs, evaluator, {name, budget, seed, 1}).batches, outcome.batches) << name;
    }
  }
}

TEST(Strategy, SeedsDrawDifferentDesigns) {
  const DesignSet designs{{10, 10, 10}, {}, {{0, {Objective::latency, Objective::energy}}}};
  SeededEvaluator evaluator(designs, 1);
  for (const char* name : {"random", "lhs", "nsga2"})
    EXPECT_NE(run(designs, evaluator, {name, 100, 1, 1}).batches,
              run(designs, evaluator, {name, 100, 2, 1}).batches)
        << name;
}

TEST(Strategy, GreaterBudgetsBeginAlike) {
  const DesignSet designs{{10, 10, 10}, {}, {{0, {Objective::latency, Objective::energy}}}};
  SeededEvaluator evaluator(designs, 1);
  for (const char* name : {"exhaustive", "random", "climb", "nsga2", "racing"}) {
    const Outcome less = run(designs, evaluator, {name, 150, 1, 1});
    const Outcome more = run(designs, evaluator, {name, 300, 1, 1});
    const std::set<DesignId> first = ids_of(less), all = ids_of(more);
    EXPECT_TRUE(std::includes(all.begin(), all.end(), first.begin(), first.end())) << name;
  }
}

TEST(Strategy, LatinHypercubeHasEveryValueAsOftenAsAnyOther) {
  DesignSet designs{{4, 5, 2, 10}, {}, {{0, {Objective::latency}}}};
  SeededEvaluator evaluator(designs, 1);
  const auto counts = [&](const Outcome& outcome) {
    std::map<std::pair<std::size_t, std::uint32_t>, int> found;
    for (const DesignResult& result : outcome.results)
      for (std::size_t p = 0; p < designs.values.size(); ++p)
        ++found[{p, designs.choices(result.id)[p]}];
    return found;
  };
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    for (const auto& [value, count] : counts(run(designs, evaluator, {"lhs", 40, seed, 1})))
      EXPECT_EQ(count, 40 / static_cast<int>(designs.values[value.first]));
  // A constraint that leaves every value possible: exchanges keep most of the shares.
  designs.excludes = [](DesignId id) { return random_unit(4, id) < 0.3; };
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    for (const auto& [value, count] : counts(run(designs, evaluator, {"lhs", 40, seed, 1})))
      EXPECT_NEAR(count, 40 / static_cast<int>(designs.values[value.first]), 2);
}

TEST(Strategy, SamplesSpacesOfAnySize) {
  DesignSet designs{std::vector<std::uint32_t>(18, 10),
                    [](DesignId id) { return random_unit(3, id) < 0.9; },
                    {{0, {Objective::latency, Objective::energy}}}};
  SeededEvaluator evaluator(designs, 1);
  for (const char* name : {"random", "lhs", "nsga2"}) {
    const Outcome outcome = run(designs, evaluator, {name, 500, 1, 1});
    EXPECT_EQ(ids_of(outcome).size(), 500U) << name;
    EXPECT_GT(outcome.excluded, 0U) << name;
    for (const DesignResult& result : outcome.results)
      EXPECT_TRUE(designs.keeps(result.id));
  }
  EXPECT_THROW(make_strategy(designs, evaluator, {"exhaustive", 0, 1, 1}), InfeasibleError);
  EXPECT_THROW(make_strategy(designs, evaluator, {"racing", 0, 1, 1}), InfeasibleError);
  EXPECT_THROW(make_strategy(designs, evaluator, {"random", 0, 1, 1}), InfeasibleError);
  EXPECT_THROW(make_strategy(designs, evaluator, {"lhs", 0, 1, 1}), InfeasibleError);
}

TEST(Strategy, SaysThatConstraintsLeaveNothing) {
  DesignSet designs{std::vector<std::uint32_t>(18, 10),
                    [](DesignId) { return true; },
                    {{0, {Objective::latency, Objective::energy}}}};
  SeededEvaluator evaluator(designs, 1);
  for (const char* name : {"random", "lhs", "nsga2"}) {
    const Outcome outcome = run(designs, evaluator, {name, 20, 1, 1});
    EXPECT_TRUE(outcome.results.empty()) << name;
    EXPECT_NE(outcome.ended_early, "") << name;
  }
}

double volume_of(const std::vector<DesignResult>& results, const FrontRequest& request,
                 const Objectives& reference) {
  std::vector<Objectives> points;
  for (const DesignResult& result : results)
    if (result.feasible)
      points.push_back(objective_values(result, request));
  std::vector<Objectives> front;
  for (const std::size_t i : non_dominated(points))
    front.push_back(points[i]);
  return hypervolume(front, reference);
}

TEST(Strategy, GeneticSearchReachesTheHypervolumeOfAllWithATenth) {
  for (std::uint64_t space = 0; space < 4; ++space) {
    const DesignSet designs{{4, 4, 5, 5, 5, 5},
                            {},
                            {{0, {Objective::latency, Objective::energy}},
                             {1, {Objective::latency, Objective::energy}},
                             {1, {Objective::latency, Objective::energy, Objective::area}}}};
    SeededEvaluator evaluator(designs, space, false, 0.3, 0.05);
    const Outcome all = run(designs, evaluator, {"exhaustive", 0, 1, 1});
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      const Outcome some = run(designs, evaluator, {"nsga2", 1000, seed, 1});
      for (const FrontRequest& request : designs.fronts) {
        Objectives reference(request.objectives.size(), 0);
        for (const DesignResult& result : all.results)
          for (std::size_t k = 0; k < reference.size() && result.feasible; ++k)
            reference[k] = std::max(reference[k], objective_values(result, request)[k]);
        EXPECT_GE(volume_of(some.results, request, reference),
                  0.99 * volume_of(all.results, request, reference))
            << "space " << space << " seed " << seed << ' ' << request.objectives.size();
      }
    }
  }
}

TEST(Strategy, ClimbsUntilNothingBesideTheBestIsBetter) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const DesignSet designs = small_set(seed);
    SeededEvaluator evaluator(designs, seed, seed % 2 == 0);
    const std::set<DesignId> kept = kept_ids(designs);
    const Outcome outcome = run(designs, evaluator, {"climb", 0, seed, 1});
    if (kept.empty()) {
      EXPECT_TRUE(outcome.results.empty());
      continue;
    }
    EXPECT_EQ(outcome.batches.front(), std::vector<DesignId>{*kept.begin()});
    for (const FrontRequest& front : designs.fronts) {
      for (const Objective objective : front.objectives) {
        const FrontRequest target{front.run, {objective}};
        const auto merit = [&](const DesignResult& result) {
          return result.feasible ? objective_values(result, target)[0]
                                 : std::numeric_limits<double>::infinity();
        };
        DesignResult best = outcome.results.front();
        for (const DesignResult& result : outcome.results) {
          if (std::pair(merit(result), result.id) < std::pair(merit(best), best.id))
            best = result;
        }
        const std::vector<std::uint32_t> own = designs.choices(best.id);
        for (const DesignId id : kept) {
          const std::vector<std::uint32_t> other = designs.choices(id);
          std::uint32_t apart = 0;
          for (std::size_t p = 0; p < own.size(); ++p)
            apart += own[p] > other[p] ? own[p] - other[p] : other[p] - own[p];
          if (apart == 1) {
            EXPECT_GE(merit(evaluator.evaluate(id)), merit(best)) << "seed " << seed;
          }
        }
      }
    }
  }
}

TEST(Shuffled, IsAPermutation) {
  for (const std::uint64_t count : {1U, 2U, 7U, 65536U, 65537U, 200'003U}) {
    const Shuffled order(count, count);
    std::vector<bool> seen(count, false);
    for (std::uint64_t i = 0; i < count; ++i) {
      ASSERT_LT(order[i], count);
      EXPECT_FALSE(seen[order[i]]);
      seen[order[i]] = true;
    }
  }
  const std::uint64_t most = ~std::uint64_t{0};
  const Shuffled order(most, 1);
  std::set<std::uint64_t> some;
  double mean = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    some.insert(order[i]);
    mean += static_cast<double>(order[i]) / static_cast<double>(most) / 1000;
  }
  EXPECT_EQ(some.size(), 1000U);
  EXPECT_NEAR(mean, 0.5, 0.05);
}

} // namespace
} // namespace monet
