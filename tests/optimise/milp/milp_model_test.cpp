// Mixed integer and linear programs against brute force and against each other.
#include "base/shared/rng.hpp"
#include "optimise/milp/milp_model.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdio>

namespace monet {
namespace MONET_TEST_FILE {

/// The same program twice: for the solver and as plain data.
struct Program {
  MilpModel model;
  std::vector<LinearRow> rows;
  std::vector<double> costs, upper;

  bool holds(const std::vector<double>& x) const {
    for (const LinearRow& row : rows) {
      double sum = 0;
      for (const LinearTerm& term : row.terms)
        sum += term.coefficient * x[term.variable];
      if (sum < row.lower || sum > row.upper)
        return false;
    }
    return true;
  }
  /// Least cost over all integer points; infinite without one.
  double least() const {
    std::vector<double> x(costs.size(), 0);
    double best = kUnbounded;
    for (bool more = true; more;) {
      if (holds(x)) {
        double sum = 0;
        for (std::size_t j = 0; j < x.size(); ++j)
          sum += costs[j] * x[j];
        best = std::min(best, sum);
      }
      more = false;
      for (std::size_t j = 0; j < x.size() && !more; ++j) {
        more = x[j] < upper[j];
        x[j] = more ? x[j] + 1 : 0;
      }
    }
    return best;
  }
};

Program random_program(std::uint64_t seed) {
  std::uint64_t n = 0;
  const auto below = [&](std::uint64_t count) { return random_bits(seed, n++) % count; };
  Program program;
  const bool fractions = below(2) == 0;
  const std::size_t variables = 2 + below(8);
  for (std::size_t j = 0; j < variables; ++j) {
    const double cost = static_cast<double>(below(41)) - 20 + (fractions ? 0.125 : 0);
    program.costs.push_back(cost);
    program.upper.push_back(below(3) == 0 ? 2 : 1);
    program.model.add_variable(0, program.upper.back(), cost, true);
  }
  for (std::size_t i = below(7); i-- > 0;) {
    LinearRow row;
    double sum = 0;
    for (std::size_t j = 0; j < variables; ++j)
      if (below(2) == 0) {
        const double a = static_cast<double>(below(21)) - 6;
        row.terms.push_back({static_cast<std::uint32_t>(j), a});
        sum += std::max(a, 0.0);
      }
    if (below(4) != 0)
      row.upper = std::floor(sum * 0.6);
    if (below(3) == 0)
      row.lower = std::min(row.upper, std::floor(sum * 0.3));
    program.model.add_row(row.terms, row.lower, row.upper);
    program.rows.push_back(row);
  }
  return program;
}

TEST(Milp, FindsWhatBruteForceFinds) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Program program = random_program(seed);
    const double least = program.least();
    for (const bool plain : {false, true}) {
      MilpOptions options;
      options.cuts = options.heuristics = !plain;
      const MilpResult result = program.model.solve({}, options);
      if (std::isinf(least)) {
        EXPECT_EQ(result.status, MilpStatus::infeasible) << seed;
        continue;
      }
      ASSERT_EQ(result.status, MilpStatus::optimal) << seed;
      EXPECT_NEAR(result.objective, least, 1e-9) << seed;
      EXPECT_EQ(result.bound, result.objective) << seed;
      EXPECT_TRUE(program.holds(result.values)) << seed;
    }
  }
}

TEST(Milp, FindsWhatIsLittleBelowTheCutoff) {
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    const Program program = random_program(seed);
    const double least = program.least();
    if (std::isinf(least))
      continue;
    MilpOptions options;
    options.cuts = options.heuristics = false;
    options.cutoff = least + 0.25; // no multiple of the costs' common divisor
    const MilpResult result = program.model.solve({}, options);
    ASSERT_EQ(result.status, MilpStatus::optimal) << seed;
    EXPECT_NEAR(result.objective, least, 1e-9) << seed;
    options.cutoff = least;
    EXPECT_EQ(program.model.solve({}, options).status, MilpStatus::infeasible) << seed;
  }
}

TEST(Milp, CutsOffNoOptimum) {
  for (std::uint64_t seed = 300; seed < 2000; ++seed) {
    const Program program = random_program(seed);
    MilpOptions options;
    options.heuristics = false;
    const MilpResult result = program.model.solve({}, options);
    const double least = program.least();
    EXPECT_TRUE(result.objective == least || std::abs(result.objective - least) < 1e-9) << seed;
  }
}

// CBC 2.10.8: two-step rounding cut off the optimum of the first, strong branching aborted on the
// others.
TEST(Milp, SolvesWhatItsSolverHadTroubleWith) {
  for (const std::uint64_t seed : {5753U, 4186U, 13296U}) {
    const Program program = random_program(seed);
    for (const bool cuts : {false, true}) {
      MilpOptions options;
      options.cuts = cuts;
      EXPECT_NEAR(program.model.solve({}, options).objective, program.least(), 1e-9) << seed;
    }
  }
}

/// Cheapest assignment of `jobs` to `machines` with sizes: needs branching.
MilpModel assignment(std::size_t jobs, std::size_t machines, std::uint64_t seed) {
  MilpModel model;
  std::vector<std::vector<LinearTerm>> load(machines);
  std::uint64_t n = 0;
  double total = 0;
  for (std::size_t j = 0; j < jobs; ++j) {
    std::vector<LinearTerm> one;
    for (std::size_t m = 0; m < machines; ++m) {
      const double size = 5 + static_cast<double>(random_bits(seed, n++) % 21);
      const double cost = 10 + static_cast<double>(random_bits(seed, n++) % 41);
      const std::uint32_t x = model.add_binary(cost);
      one.push_back({x, 1});
      load[m].push_back({x, size});
      total += size;
    }
    model.add_row(one, 1, 1);
  }
  const double room = std::floor(0.8 * total / static_cast<double>(machines * machines));
  for (const std::vector<LinearTerm>& row : load)
    model.add_row(row, -kUnbounded, room);
  return model;
}

TEST(Milp, SameAnswerEachTimeAndWithALimitOfNodes) {
  const MilpModel model = assignment(24, 5, 3);
  const MilpResult first = model.solve({});
  const MilpResult second = model.solve({});
  EXPECT_EQ(first.status, MilpStatus::optimal);
  EXPECT_EQ(first.values, second.values);
  EXPECT_EQ(first.nodes, second.nodes);
  MilpOptions few;
  few.cuts = few.heuristics = false;
  few.nodes = 20;
  const MilpResult limited = model.solve({}, few);
  EXPECT_LE(limited.bound, first.objective);
  EXPECT_GE(limited.objective, first.objective);
  EXPECT_NE(limited.status, MilpStatus::infeasible);
  EXPECT_FALSE(limited.interrupted);
}

TEST(Milp, BeginsWithTheStartAndKeepsItUnlessThereIsBetter) {
  MilpModel model = assignment(24, 5, 4);
  const MilpResult best = model.solve({});
  model.set_start(best.values);
  const MilpResult again = model.solve({});
  EXPECT_EQ(again.status, MilpStatus::optimal);
  EXPECT_EQ(again.values, best.values);
  MilpOptions none;
  none.nodes = 0;
  none.heuristics = none.cuts = false;
  EXPECT_EQ(model.solve({}, none).values, best.values);
  MilpOptions below;
  below.cutoff = best.objective;
  const MilpResult nothing = model.solve({}, below);
  EXPECT_EQ(nothing.status, MilpStatus::infeasible);
  EXPECT_EQ(nothing.bound, best.objective);
  below.cutoff = best.objective + 1;
  EXPECT_EQ(model.solve({}, below).objective, best.objective);
}

TEST(Milp, StoppedOrLateItStillHasAValidBound) {
  const MilpModel model = assignment(60, 8, 5);
  const std::atomic<bool> stop{true};
  SearchControl control;
  control.stop = &stop;
  EXPECT_TRUE(model.solve(control).interrupted);
  const SearchControl unhurried;
  MilpOptions options;
  options.nodes = 400;
  const MilpResult reference = model.solve(unhurried, options);
  for (const int milliseconds : {5, 30, 80, 200}) {
    SearchControl hurried;
    hurried.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
    const MilpResult result = model.solve(hurried);
    EXPECT_LE(result.bound, reference.objective);
    EXPECT_NE(result.status, MilpStatus::infeasible);
    EXPECT_TRUE(result.values.empty() || model.holds(result.values));
  }
}

TEST(Milp, AddsTheRowsThatASolutionBreaks) {
  // A cycle of five: at most two of them fit together, by rows that are only told when broken.
  MilpModel model;
  for (int i = 0; i < 5; ++i)
    model.add_binary(-1);
  const auto broken = [](std::span<const double> x) {
    std::vector<LinearRow> rows;
    for (std::uint32_t i = 0; i < 5; ++i) {
      const std::uint32_t j = (i + 1) % 5;
      if (x[i] + x[j] > 1)
        rows.push_back({{{i, 1}, {j, 1}}, -kUnbounded, 1});
    }
    return rows;
  };
  const MilpResult result = model.solve_lazily({}, {}, broken);
  EXPECT_EQ(result.status, MilpStatus::optimal);
  EXPECT_EQ(result.objective, -2);
}

TEST(Milp, TakesCostsOfAnySize) {
  for (const double scale : {1e-12, 1.0, 1e12}) {
    MilpModel model;
    std::vector<LinearTerm> row;
    for (int j = 0; j < 12; ++j)
      row.push_back({model.add_binary(-scale * (3 + j % 5 + 0.01 * j)), 2.0 + j % 3});
    model.add_row(row, -kUnbounded, 13);
    const MilpResult result = model.solve({});
    EXPECT_EQ(result.status, MilpStatus::optimal);
    EXPECT_NEAR(result.objective / scale, -32.43, 5) << scale;
    static double first = 0;
    if (scale == 1e-12)
      first = result.objective / scale;
    EXPECT_NEAR(result.objective / scale, first, 1e-6);
  }
}

TEST(Milp, ClaimsNothingWhereThereIsNoLeastCost) {
  MilpModel model;
  const std::uint32_t x = model.add_variable(0, kUnbounded, -1, true);
  const std::uint32_t y = model.add_variable(0, 5, 1, false);
  model.add_row(std::vector<LinearTerm>{{x, 1}, {y, -1}}, 0, kUnbounded);
  const MilpResult result = model.solve({});
  EXPECT_EQ(result.status, MilpStatus::unknown);
  EXPECT_EQ(result.bound, -kUnbounded);
}

TEST(Milp, LeavesSignalsAndOutputAlone) {
  std::signal(SIGINT, [](int) {});
  struct sigaction before {};
  sigaction(SIGINT, nullptr, &before);
  struct sigaction during {};
  SearchControl control;
  control.progress = [&](const SearchProgress&) { sigaction(SIGINT, nullptr, &during); };
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  MilpOptions plain;
  plain.cuts = plain.heuristics = false;
  plain.nodes = 500;
  EXPECT_GT(assignment(24, 5, 3).solve(control, plain).nodes, 0);
  EXPECT_EQ(assignment(24, 5, 3).solve(control).status, MilpStatus::optimal);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(during.sa_handler, before.sa_handler);
  std::signal(SIGINT, SIG_DFL);
}

TEST(LinearProgram, BoundsTheIntegerProgramAndGrows) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Program program = random_program(seed);
    const double least = program.least();
    LinearProgram lp;
    for (std::size_t j = 0; j < program.costs.size(); ++j)
      lp.add_variable(0, program.upper[j], program.costs[j]);
    double last = -kUnbounded;
    bool feasible = lp.solve({}) == LpStatus::optimal;
    for (const LinearRow& row : program.rows) {
      if (!feasible)
        break;
      EXPECT_NEAR(lp.safe_bound(), lp.objective(), 1e-6) << seed;
      EXPECT_GE(lp.objective(), last - 1e-7) << seed;
      EXPECT_LE(lp.safe_bound(), least + 1e-12) << seed;
      last = lp.objective();
      lp.add_row(row.terms, row.lower, row.upper);
      feasible = lp.solve({}) == LpStatus::optimal;
    }
    if (feasible) {
      EXPECT_LE(lp.safe_bound(), least + 1e-12) << seed;
    } else {
      EXPECT_TRUE(std::isinf(least)) << seed;
    }
  }
}

TEST(LinearProgram, ColumnsComeLater) {
  // Cutting stock, by column generation: widths 3, 5, 7 from rolls of 16; 25, 20, 18 pieces.
  const std::vector<double> wanted = {25, 20, 18};
  LinearProgram lp;
  for (const double count : wanted)
    lp.add_row({}, count, kUnbounded);
  for (std::uint32_t i = 0; i < 3; ++i)
    lp.add_column(0, 1000, 1, std::vector<LinearTerm>{{i, 1.0}});
  for (int round = 0; round < 50; ++round) {
    ASSERT_EQ(lp.solve({}), LpStatus::optimal);
    double best = 0;
    std::vector<LinearTerm> column;
    for (int a = 0; a <= 5; ++a)
      for (int b = 0; 3 * a + 5 * b <= 16; ++b) {
        const int c = (16 - 3 * a - 5 * b) / 7;
        const double worth = a * lp.duals()[0] + b * lp.duals()[1] + c * lp.duals()[2];
        if (worth > best + 1e-9) {
          best = worth;
          column = {{0, double(a)}, {1, double(b)}, {2, double(c)}};
        }
      }
    if (best <= 1 + 1e-9)
      break;
    lp.add_column(0, 1000, 1, column);
  }
  LinearProgram all; // patterns at once
  for (const double count : wanted)
    all.add_row({}, count, kUnbounded);
  for (int a = 0; a <= 5; ++a)
    for (int b = 0; 3 * a + 5 * b <= 16; ++b)
      all.add_column(0, 1000, 1,
                     std::vector<LinearTerm>{
                         {0, double(a)}, {1, double(b)}, {2, double((16 - 3 * a - 5 * b) / 7)}});
  ASSERT_EQ(all.solve({}), LpStatus::optimal);
  EXPECT_NEAR(lp.objective(), all.objective(), 1e-7);
  EXPECT_LE(lp.safe_bound(), lp.objective() + 1e-9);
  EXPECT_GE(lp.safe_bound(), lp.objective() - 1e-6);
}

TEST(LinearProgram, SaysWhatItCannotDo) {
  LinearProgram lp;
  const std::uint32_t x = lp.add_variable(0, kUnbounded, -1);
  EXPECT_EQ(lp.solve({}), LpStatus::unbounded);
  const std::uint32_t row = lp.add_row(std::vector<LinearTerm>{{x, 1}}, -kUnbounded, 4);
  EXPECT_EQ(lp.solve({}), LpStatus::optimal);
  EXPECT_NEAR(lp.values()[0], 4, 1e-9);
  lp.set_bounds(x, 5, 9);
  EXPECT_EQ(lp.solve({}), LpStatus::infeasible);
  lp.remove_rows(std::vector<std::uint32_t>{row});
  EXPECT_EQ(lp.solve({}), LpStatus::optimal);
  EXPECT_NEAR(lp.objective(), -9, 1e-9);
  EXPECT_NEAR(lp.safe_bound(), -9, 1e-12);
  const std::atomic<bool> stop{true};
  SearchControl control;
  control.stop = &stop;
  LinearProgram other;
  for (int j = 0; j < 30; ++j)
    other.add_variable(0, 1, -1 - j);
  for (std::uint32_t j = 0; j + 1 < 30; ++j)
    other.add_row(std::vector<LinearTerm>{{j, 1}, {j + 1, 1}}, 1, 1.5);
  EXPECT_EQ(other.solve(control), LpStatus::interrupted);
  EXPECT_EQ(other.solve({}), LpStatus::optimal);
}

} // namespace MONET_TEST_FILE
} // namespace monet
