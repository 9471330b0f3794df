// Branch and cut over binary columns against brute force, and against CBC on larger programs.
#include "base/shared/rng.hpp"
#include "optimise/milp/binary_search.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>

namespace monet {
namespace {

struct Case {
  BinaryProgram program;
  std::vector<LinearRow> rows; ///< all
  bool steps = false;          ///< all costs are whole numbers
};

/// Rows of small and of large numbers, some of them left to the pool; sums to branch on.
Case random_case(std::uint64_t seed, std::uint32_t most) {
  RandomStream random(seed);
  const auto draw = [&](std::int64_t below) {
    return static_cast<double>(random.below(static_cast<std::uint64_t>(below)));
  };
  Case made;
  BinaryProgram& p = made.program;
  const auto n = 4 + static_cast<std::uint32_t>(draw(most - 3));
  made.steps = draw(2) == 0;
  for (std::uint32_t j = 0; j < n; ++j) {
    p.lower.push_back(0);
    p.upper.push_back(1);
    p.cost.push_back(draw(41) - 20 * draw(2) + (made.steps ? 0 : 0.125 * draw(8)));
  }
  for (double i = 1 + draw(12); i > 0; --i) {
    LinearRow row;
    double sum = 0;
    const bool small = draw(3) != 0;
    for (std::uint32_t j = 0; j < n; ++j)
      if (const double a = small && draw(4) != 0 ? draw(3) - 1 : draw(31) - 10;
          draw(2) == 0 && a != 0) {
        row.terms.push_back({j, a});
        sum += std::max(a, 0.0);
      }
    if (row.terms.empty())
      continue;
    if (draw(4) != 0)
      row.upper = std::floor(sum * (0.3 + 0.1 * draw(5)));
    if (draw(3) == 0 || std::isinf(row.upper))
      row.lower = std::min(row.upper, std::floor(sum * 0.3));
    made.rows.push_back(row);
    (draw(3) == 0 ? p.pool : p.rows).push_back(std::move(row));
  }
  if (draw(2) == 0)
    p.sums = {{0, 1, 2}, {1, 3}};
  return made;
}

/// Over all points; infinite without a solution.
double min_cost(const Case& made) {
  const std::size_t n = made.program.cost.size();
  double least = kUnbounded;
  for (std::uint32_t x = 0; x < 1U << n; ++x) {
    double cost = 0;
    for (std::size_t j = 0; j < n; ++j)
      cost += (x >> j & 1U) != 0 ? made.program.cost[j] : 0;
    bool holds = cost < least;
    for (std::size_t i = 0; i < made.rows.size() && holds; ++i) {
      double sum = 0;
      for (const LinearTerm& term : made.rows[i].terms)
        sum += (x >> term.variable & 1U) != 0 ? term.coefficient : 0;
      holds = sum >= made.rows[i].lower && sum <= made.rows[i].upper;
    }
    least = holds ? cost : least;
  }
  return least;
}

TEST(SearchBinary, FindsWhatBruteForceFinds) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const Case made = random_case(seed, 12);
    const double least = min_cost(made);
    const bool any = !std::isinf(least);
    for (const double room : {kUnbounded, 10.0, made.steps ? 1.0 : 0.25, 0.0}) {
      BinaryOptions options;
      options.step = made.steps ? 1 : 0;
      options.cutoff = any ? least + room : room;
      const MilpResult found = search_binary(made.program, {}, options);
      if (!any || room == 0) {
        ASSERT_EQ(found.status, MilpStatus::infeasible) << seed << " " << room;
        continue;
      }
      ASSERT_EQ(found.status, MilpStatus::optimal) << seed << " " << room;
      ASSERT_NEAR(found.objective, least, 1e-9) << seed << " " << room;
      ASSERT_LE(found.bound, least + 1e-9) << seed << " " << room;
    }
  }
}

/// The values that branch and cut finds behind MilpModel.
std::vector<double> solved_by_model(const Case& made, double step) {
  MilpModel model;
  const BinaryProgram& program = made.program;
  for (std::size_t j = 0; j < program.cost.size(); ++j)
    model.add_variable(program.lower[j], program.upper[j], program.cost[j], true);
  for (const LinearRow& row : program.rows)
    model.add_row(row.terms, row.lower, row.upper);
  model.add_pool(program.pool);
  for (const auto& sum : program.sums)
    model.add_sum(sum);
  MilpOptions options;
  options.solver = MilpSolver::branch_and_cut;
  options.nodes = BinaryOptions{}.nodes;
  options.step = step;
  return model.solve({}, options).values;
}

TEST(SearchBinary, MeetsCbcAndItsBoundsHoldWhereItIsCutShort) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Case made = random_case(seed, 40);
    MilpModel model;
    for (const double cost : made.program.cost)
      model.add_variable(0, 1, cost, true);
    for (const LinearRow& row : made.rows)
      model.add_row(row.terms, row.lower, row.upper);
    MilpOptions plain;
    plain.cuts = plain.heuristics = false;
    const MilpResult expected = model.solve({}, plain);
    BinaryOptions options;
    options.step = made.steps ? 1 : 0;
    const MilpResult found = search_binary(made.program, {}, options);
    ASSERT_EQ(found.status, expected.status) << seed;
    EXPECT_EQ(solved_by_model(made, options.step), found.values) << seed;
    options.nodes = 1;
    const MilpResult cut_short = search_binary(made.program, {}, options);
    if (expected.status != MilpStatus::optimal)
      continue;
    EXPECT_NEAR(found.objective, expected.objective, 1e-9) << seed;
    EXPECT_TRUE(model.holds(found.values)) << seed;
    EXPECT_LE(cut_short.bound, expected.objective + 1e-9) << seed;
    EXPECT_GE(cut_short.objective, expected.objective - 1e-9) << seed;
    EXPECT_EQ(search_binary(made.program, {}, options).values, cut_short.values) << seed;
  }
}

TEST(SearchBinary, StopsAtOnce) {
  std::atomic<bool> stop = true;
  SearchControl control;
  control.stop = &stop;
  const MilpResult found = search_binary(random_case(1, 40).program, control, {});
  EXPECT_TRUE(found.interrupted);
  EXPECT_NE(found.status, MilpStatus::optimal);
  EXPECT_NE(found.status, MilpStatus::infeasible);
}

} // namespace
} // namespace monet
