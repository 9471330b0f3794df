// Fusion against brute force over every partition of small steps, written without the search's
// code.
#include "level.hpp"
#include "schedule/random_networks.hpp"
#include "schedule/random_systems.hpp"
#include "schedule/schedule_alone.hpp"
#include "schedule/shared/bounds.hpp"

#include "monet/base/errors.hpp"
#include "monet/optimise/fusion.hpp"
#include "monet/tiling/stacks_file.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <string>

namespace monet {
namespace MONET_TEST_FILE {

using testing::Random;

struct Case {
  TrainingGraph step;
  Chip chip;
  std::unique_ptr<CoreCostCache> costs = std::make_unique<CoreCostCache>();
  FusionOptions options;
  TilingOptions tiling;

  FusionProblem problem() { return {step, chip, *costs, tiling, {}}; }
};

/// With `large`, more plans of fewer slices.
Case random_case(std::uint64_t seed, int operators, bool large = false) {
  Random random(seed);
  Case c;
  c.step = testing::random_step(random, {.operators = operators, .training = seed % 4 == 0});
  c.chip = testing::random_chip(random, {.cores = 4});
  c.options.objective = static_cast<Objective>(seed % 4);
  c.options.loops = 1 + seed % 2;
  c.options.max_slices = 2 + 2 * static_cast<std::int64_t>(seed % 2);
  c.options.complete_below = 400;
  c.options.recomputed_halos = seed % 3 == 0;
  c.options.evaluations = 40; // where there are more plans
  c.options.group_evaluations = 100;
  if (large) {
    c.options.loops = 1;
    c.options.max_slices = 2;
    c.options.recomputed_halos = false;
    c.options.complete_below = 3000;
  }
  return c;
}

bool feasible(Case& c) {
  try {
    testing::schedule_alone(make_tiles(c.step, c.chip), c.step, c.chip, *c.costs);
    return true;
  } catch (const InfeasibleError&) {
    return false;
  }
}

double value_of(Case& c, const FusionPlan& plan) {
  TilingOptions tiling;
  tiling.mode = TilingMode::fused;
  tiling.stacks = plan.stacks;
  tiling.slices = plan.slices;
  return model_step(c.step, c.chip, {tiling, {}, {}}, {*c.costs})
      .figures.value(c.options.objective);
}

using Matrix = std::vector<std::vector<bool>>;

void close(Matrix& reach) {
  for (std::size_t k = 0; k < reach.size(); ++k) {
    for (auto& row : reach) {
      for (std::size_t j = 0; row[k] && j < reach.size(); ++j)
        row[j] = row[j] || reach[k][j];
    }
  }
}

/// Every partition of a small step as its definition says: words in which each letter is at most
/// one more than those before.
class BruteForce {
public:
  explicit BruteForce(Case& c) : case_(c), count_(c.step.graph.operators().size()) {
    const Graph& graph = c.step.graph;
    order_.assign(count_, std::vector<bool>(count_, false));
    linked_ = order_;
    for (std::size_t a = 0; a < count_; ++a) {
      for (std::size_t b = a + 1; b < count_; ++b) {
        for (const Access& first : graph.operators()[a].nest.operands) {
          for (const Access& second : graph.operators()[b].nest.operands)
            relate(a, first, b, second);
        }
      }
    }
  }

  double best() {
    std::vector<std::size_t> word(count_, 0);
    spell(word, 0, 0);
    return best_;
  }
  std::int64_t plans() const { return plans_; }

private:
  void relate(std::size_t a, const Access& first, std::size_t b, const Access& second) {
    const Graph& graph = case_.step.graph;
    if (first.tensor == second.tensor) {
      linked_[a][b] = linked_[b][a] = true;
      order_[a][b] = order_[a][b] || first.mode != AccessMode::read;
    }
    if (second.mode != AccessMode::read && first.mode == AccessMode::read &&
        graph.tensor(second.tensor).alias_of == first.tensor)
      order_[a][b] = true;
  }

  void spell(std::vector<std::size_t>& word, std::size_t at, std::size_t letters) {
    if (at == count_) {
      judge(word, letters);
      return;
    }
    for (word[at] = 0; word[at] <= letters && word[at] < count_; ++word[at]) {
      const std::size_t letter = word[at];
      spell(word, at + 1, std::max(letters, letter + 1));
    }
  }

  void judge(const std::vector<std::size_t>& word, std::size_t letters) {
    Matrix before(letters, std::vector<bool>(letters, false));
    for (std::size_t a = 0; a < count_; ++a) {
      for (std::size_t b = 0; b < count_; ++b) {
        if (order_[a][b] && word[a] != word[b])
          before[word[a]][word[b]] = true;
      }
    }
    close(before);
    std::vector<std::vector<OpId>> groups(letters);
    for (std::size_t a = 0; a < count_; ++a)
      groups[word[a]].emplace_back(a);
    for (std::size_t g = 0; g < letters; ++g) {
      if (before[g][g] || !whole(groups[g]))
        return;
    }
    slice(groups, 0, {});
  }

  bool whole(const std::vector<OpId>& members) const {
    Matrix reach(members.size(), std::vector<bool>(members.size(), false));
    for (std::size_t i = 0; i < members.size(); ++i) {
      for (std::size_t j = 0; j < members.size(); ++j)
        reach[i][j] = i == j || linked_[members[i].index()][members[j].index()];
    }
    close(reach);
    return std::all_of(reach[0].begin(), reach[0].end(), [](bool r) { return r; });
  }

  void slice(const std::vector<std::vector<OpId>>& groups, std::size_t at, FusionPlan plan) {
    if (at == groups.size()) {
      ++plans_;
      try {
        best_ = std::min(best_, value_of(case_, plan));
      } catch (const InfeasibleError&) {
      }
      return;
    }
    if (groups[at].size() == 1) {
      slice(groups, at + 1, std::move(plan));
      return;
    }
    plan.stacks.push_back(groups[at]);
    for (const StackSlices& choice : slice_choices(case_.step.graph, groups[at], case_.options)) {
      plan.slices.resize(plan.stacks.size());
      plan.slices.back() = choice;
      slice(groups, at + 1, plan);
    }
  }

  Case& case_;
  std::size_t count_;
  Matrix order_;  ///< [a][b]: a comes before b
  Matrix linked_; ///< they touch one tensor
  double best_ = std::numeric_limits<double>::infinity();
  std::int64_t plans_ = 0;
};

/// Points as they are scheduled; the better, the more memory.
void expect_front(Case& c, const FusionResult& result) {
  ASSERT_FALSE(result.front.empty());
  const auto value = [&](const FusionResult::Point& at) {
    return at.figures.value(c.options.objective);
  };
  EXPECT_EQ(value(result.front.front()), result.certificate.best);
  for (std::size_t i = 0; i < result.front.size(); ++i) {
    const FusionResult::Point& at = result.front[i];
    EXPECT_DOUBLE_EQ(value_of(c, at.plan), value(at));
    if (i > 0) {
      EXPECT_LT(value(result.front[i - 1]), value(at));
      EXPECT_GT(result.front[i - 1].figures.peak_memory_bytes, at.figures.peak_memory_bytes);
    }
  }
}

void expect_consistent(Case& c, const FusionResult& result) {
  expect_front(c, result);
  const double best = result.figures.value(c.options.objective);
  EXPECT_DOUBLE_EQ(best, result.certificate.best);
  EXPECT_LE(result.certificate.bound, best);
  EXPECT_DOUBLE_EQ(value_of(c, result.plan), best);
  for (const FusionAnswer& answer : result.compared) {
    if (answer.figures) {
      EXPECT_LE(best, answer.figures->value(c.options.objective)) << name_of(answer.method);
    }
  }
  const std::string text = stacks_yaml(result.plan, c.step.graph);
  const FusionPlan again = resolve_stacks(parse_stacks(text, "s.yaml"), c.step.graph, c.step.graph);
  EXPECT_DOUBLE_EQ(value_of(c, again), best) << text;
}

TEST(Fusion, equals_brute_force_on_small_steps) {
  const auto kCases = static_cast<std::size_t>(test::cases(70, 250, 700));
  std::size_t compared = 0;
  std::size_t large = 0;
  std::size_t gained = 0;
  for (std::uint64_t seed = 1; seed <= kCases; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const bool many = seed % 7 == 0;
    Case c = random_case(seed, many ? 10 : 3 + static_cast<int>(seed % 4), many);
    const std::size_t operators = c.step.graph.operators().size();
    if (operators == 0 || operators > 10 || !feasible(c))
      continue;
    const FusionResult result = optimise_fusion(c.problem(), c.options, {});
    expect_consistent(c, result);
    if (!result.complete)
      continue;
    BruteForce force(c);
    double best = force.best();
    for (const FusionAnswer& answer : result.compared) {
      if (answer.figures)
        best = std::min(best, answer.figures->value(c.options.objective));
    }
    EXPECT_DOUBLE_EQ(result.certificate.best, best) << operators << " operators";
    ++compared;
    large += operators >= 7 ? 1 : 0;
    gained += best < result.compared[0].figures->value(c.options.objective) ? 1 : 0;
    if (::testing::Test::HasFailure())
      return;
  }
  RecordProperty("compared", static_cast<int>(compared));
  EXPECT_GT(compared, kCases * 250U / 700);
  EXPECT_GE(large, kCases * 11U / 700);
  EXPECT_GT(gained, kCases * 50U / 700);
}

TEST(Fusion, search_without_enumeration_is_never_worse_than_known_plans) {
  for (std::uint64_t seed = 1001; seed <= 1040; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Case c = random_case(seed, 8);
    if (!feasible(c))
      continue;
    c.options.complete_below = 0;
    c.options.evaluations = 60;
    c.options.group_evaluations = 300;
    SearchControl two;
    two.jobs = 2;
    const FusionResult result = optimise_fusion(c.problem(), c.options, {});
    expect_consistent(c, result);
    const FusionResult same = optimise_fusion(c.problem(), c.options, two);
    EXPECT_EQ(same.plan, result.plan);
    EXPECT_EQ(same.trace, result.trace);
    EXPECT_EQ(same.ends, result.ends);
  }
}

TEST(Fusion, interrupted_it_has_a_plan_and_a_bound) {
  Case c = random_case(1002, 8);
  ASSERT_TRUE(feasible(c));
  c.options.complete_below = 0;
  const std::atomic<bool> stop{true};
  SearchControl control;
  control.stop = &stop;
  const FusionResult result = optimise_fusion(c.problem(), c.options, control);
  EXPECT_TRUE(result.certificate.interrupted || result.certificate.gap() == 0);
  EXPECT_LE(result.certificate.bound, result.certificate.best);
}

} // namespace MONET_TEST_FILE
} // namespace monet
