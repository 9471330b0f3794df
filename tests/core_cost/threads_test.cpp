// The cache gives the same costs to one thread and to several, whoever asks first.
#include "base/shared/parallel.hpp"
#include "core_cost/random_problems.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/stop.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <string>
#include <vector>

namespace monet {
namespace {

/// Every field of a cost; two costs give the same bytes only if all are equal to the last bit.
class CostBytes {
public:
  explicit CostBytes(const CoreCost& cost) {
    numbers({static_cast<double>(cost.latency.value), static_cast<double>(cost.ideal.value),
             cost.parts.ideal_temporal, cost.parts.stall, cost.parts.onload, cost.parts.offload,
             static_cast<double>(cost.macs_executed), cost.spatial_utilisation,
             cost.compute_energy.value, cost.memory_energy.value, cost.latency_bound,
             cost.energy_bound, cost.effort.space, static_cast<double>(cost.effort.visited),
             cost.effort.pruned, cost.effort.exact ? 1.0 : 0.0});
    text_ += cost.variant;
    for (const LevelEnergy& level : cost.levels) {
      text_ += '|' + level.memory;
      numbers({static_cast<double>(level.operand), level.energy.value});
      for (const std::int64_t accesses : level.accesses)
        number(static_cast<double>(accesses));
    }
    for (const OffchipTraffic& traffic : cost.offchip)
      numbers({static_cast<double>(traffic.read.value), static_cast<double>(traffic.write.value)});
    for (const Bits bits : cost.resident)
      number(static_cast<double>(bits.value));
    for (const auto& on_dim : cost.spatial.unrolled)
      loops(on_dim);
    loops(cost.temporal.order);
    for (const auto& operand : cost.temporal.by_operand) {
      text_ += '/';
      for (const auto& level : operand)
        loops(level);
    }
  }
  const std::string& text() const { return text_; }

private:
  void number(double value) { text_ += std::to_string(std::bit_cast<std::uint64_t>(value)) + ','; }
  void numbers(std::initializer_list<double> values) {
    for (const double value : values)
      number(value);
  }
  void loops(const std::vector<MappedLoop>& all) {
    text_ += '[';
    for (const MappedLoop& loop : all)
      numbers({static_cast<double>(loop.dim), loop.size});
  }

  std::string text_;
};

struct Question {
  CoreProblem problem;
  Core core;
  CoreCostOptions options;
};

std::string answer(CoreCostCache& cache, const Question& q) {
  try {
    return CostBytes(cache.get(q.problem, q.core, q.options)).text();
  } catch (const InfeasibleError& error) {
    return error.what();
  }
}

/// The same problem as somebody else might put it: axes in another order, an image that starts
/// elsewhere.
CoreProblem put_otherwise(CoreProblem problem) {
  for (ProblemOperand& operand : problem.operands) {
    std::reverse(operand.axes.begin(), operand.axes.end());
    std::reverse(operand.extents.begin(), operand.extents.end());
    for (AxisExpr& axis : operand.axes)
      axis.offset += 1;
  }
  return problem;
}

std::vector<Question> questions() {
  std::vector<Question> all;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    test::Dice dice(seed);
    Question q;
    q.core = dice.chance(50) ? test::random_core(dice) : test::tpu_like(dice.chance(50));
    q.problem = test::random_problem(dice);
    if (dice.chance(50)) // fractional unrollings
      q.problem = test::product(dice.number(20, 400), dice.number(1, 50), dice.number(20, 400));
    q.options.objective =
        dice.any_of<Objective>({Objective::latency, Objective::energy, Objective::edp});
    if (dice.chance(30))
      q.options.model = ModelChoices::zigzag_3_8();
    q.options.lpf_limit = 5;
    all.push_back(q);
    q.problem = put_otherwise(q.problem);
    all.push_back(q);
    all.push_back(all[all.size() - 2]); // asked again
  }
  return all;
}

std::vector<std::string> answers(const std::vector<Question>& all, int threads, bool backwards) {
  CoreCostCache cache;
  std::vector<std::string> found(all.size());
  parallel_for(all.size(), threads, [&](std::size_t i) {
    const std::size_t at = backwards ? all.size() - 1 - i : i;
    found[at] = answer(cache, all[at]);
  });
  return found;
}

TEST(Threads, ManyFindWhatOneFinds) {
  const std::vector<Question> all = questions();
  const std::vector<std::string> alone = answers(all, 1, false);
  EXPECT_EQ(answers(all, 4, false), alone);
  EXPECT_EQ(answers(all, 4, true), alone);
  EXPECT_EQ(answers(all, 1, true), alone);
}

TEST(Threads, AStopIsNotKeptAsAnAnswer) {
  const std::vector<Question> all = questions();
  const std::vector<std::string> expected = answers(all, 1, false);
  CoreCostCache cache;
  int stopped = 0;
  for (const Question& question : all) {
    const std::atomic<bool> flag{true};
    const StopScope scope({&flag});
    try {
      (void)answer(cache, question);
    } catch (const Stopped&) {
      ++stopped;
    }
  }
  EXPECT_GT(stopped, 0);
  for (std::size_t i = 0; i < all.size(); ++i)
    EXPECT_EQ(answer(cache, all[i]), expected[i]);
}

} // namespace
} // namespace monet
