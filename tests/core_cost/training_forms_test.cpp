// Every product that training multiplies: what moves, against a walk over the nest, and costs that
// do not depend on how tensors are laid out.
#include "core_cost/search/temporal_order.hpp"
#include "core_cost/cores.hpp"
#include "core_cost/order_walk.hpp"
#include "core_cost/random_problems.hpp"
#include "core_cost/simulated_walk.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <sstream>
#include <string>
#include <vector>

namespace monet::core_cost_detail {
namespace {

using test::Dice;

/// One axis: "K", or "2*OX+FX".
AxisExpr read_axis(const CoreProblem& problem, const std::string& text) {
  AxisExpr axis;
  std::istringstream terms(text);
  for (std::string term; std::getline(terms, term, '+');) {
    const std::size_t star = term.find('*');
    const std::string name = star == std::string::npos ? term : term.substr(star + 1);
    const std::int64_t coefficient = star == std::string::npos ? 1 : std::stoll(term);
    for (std::uint32_t d = 0; d < problem.dims.size(); ++d) {
      if (problem.dims[d].name == name)
        axis.terms.push_back({d, coefficient});
    }
  }
  std::sort(axis.terms.begin(), axis.terms.end(),
            [](const AffineTerm& a, const AffineTerm& b) { return a.dim < b.dim; });
  return axis;
}

/// Axes of one operand, separated by blanks; extents as large as the loops reach.
ProblemOperand read_operand(const CoreProblem& problem, const std::string& text) {
  ProblemOperand operand;
  std::istringstream axes(text);
  for (std::string axis; axes >> axis;) {
    operand.axes.push_back(read_axis(problem, axis));
    std::int64_t extent = 1;
    for (const AffineTerm& term : operand.axes.back().terms)
      extent += term.coefficient * (problem.dims[term.dim].size - 1);
    operand.extents.push_back(extent);
  }
  operand.bits = operand.partial_bits = 8;
  return operand;
}

struct Form {
  std::string name;
  std::vector<LoopDim> dims;
  std::string output, first, second; ///< operands, in memories O, I1 and I2
};

CoreProblem problem_of(const Form& form) {
  CoreProblem problem;
  problem.dims = form.dims;
  ProblemOperand output = read_operand(problem, form.output);
  output.mode =
      form.output.find('+') == std::string::npos ? AccessMode::write : AccessMode::accumulate;
  output.memory = MemoryOperand::O;
  output.partial_bits = 16;
  ProblemOperand first = read_operand(problem, form.first);
  ProblemOperand second = read_operand(problem, form.second);
  second.memory = MemoryOperand::I2;
  problem.operands = {output, first, second};
  return problem;
}

std::vector<Form> forms() {
  const std::vector<LoopDim> conv{{"B", 2},  {"K", 4},  {"C", 3}, {"OY", 2},
                                  {"OX", 4}, {"FY", 2}, {"FX", 3}};
  const std::vector<LoopDim> grouped{{"B", 2}, {"G", 2}, {"K", 2}, {"C", 2}, {"OX", 4}, {"FX", 3}};
  const std::vector<LoopDim> depthwise{{"B", 2}, {"G", 4}, {"OY", 2}, {"OX", 4}, {"FX", 3}};
  const std::vector<LoopDim> line{{"B", 2}, {"K", 4}, {"C", 4}, {"OX", 6}, {"FX", 3}};
  const std::vector<LoopDim> volume{{"K", 2},  {"C", 2},  {"OZ", 2}, {"OY", 2},
                                    {"OX", 3}, {"FZ", 2}, {"FY", 2}, {"FX", 2}};
  const std::vector<LoopDim> batched{{"B", 2}, {"D", 4}, {"C", 6}, {"K", 4}};
  return {
      {"dW over batch and space", conv, "K C FY FX", "B C OY+FY 2*OX+FX", "B K OY OX"},
      {"dX with stride", conv, "B C OY+FY 2*OX+FX", "B K OY OX", "K C FY FX"},
      {"grouped", grouped, "B G K OX", "B G C OX+FX", "G K C FX"},
      {"dX of grouped", grouped, "B G C OX+FX", "B G K OX", "G K C FX"},
      {"dW of grouped", grouped, "G K C FX", "B G C OX+FX", "B G K OX"},
      {"depthwise", depthwise, "B G OY OX", "B G OY 2*OX+FX", "G FX"},
      {"dX of depthwise", depthwise, "B G OY 2*OX+FX", "B G OY OX", "G FX"},
      {"dW of depthwise", depthwise, "G FX", "B G OY 2*OX+FX", "B G OY OX"},
      {"1-D, dilated", line, "B K OX", "B C OX+2*FX", "K C FX"},
      {"dX of 1-D, dilated", line, "B C OX+2*FX", "B K OX", "K C FX"},
      {"3-D", volume, "K OZ OY OX", "C OZ+FZ OY+FY OX+FX", "K C FZ FY FX"},
      {"dX of 3-D", volume, "C OZ+FZ OY+FY OX+FX", "K OZ OY OX", "K C FZ FY FX"},
      {"dW of 3-D", volume, "K C FZ FY FX", "C OZ+FZ OY+FY OX+FX", "K OZ OY OX"},
      {"batched product", batched, "B D K", "B D C", "B C K"},
      {"batched product, A transposed", batched, "B D K", "B C D", "B C K"},
      {"batched product, B transposed", batched, "B D K", "B D C", "B K C"},
      {"batched product, both transposed", batched, "B D K", "B C D", "B K C"},
      {"batched product, shared B", batched, "B D K", "B D C", "C K"},
      {"batched product, shared A", batched, "B D K", "D C", "B C K"},
      {"gradient of shared B", batched, "C K", "B D C", "B D K"},
      {"gradient of shared A", batched, "D C", "B D K", "B C K"},
  };
}

/// Registers and a buffer of random sizes below a memory for everything.
Core random_memories(Dice& dice) {
  Core core = test::tpu_like(true);
  core.memories[0].size = {8 * dice.number(1, 16)};
  core.memories[1].size = {16 * dice.number(1, 8)};
  core.memories[2].size = {8 * dice.number(24, 400)};
  return core;
}

TEST(TrainingForms, MoveWhatAWalkFetches) {
  for (const Form& form : forms()) {
    int compared = 0;
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
      Dice dice(seed);
      const test::Prepared p = test::prepare(problem_of(form), random_memories(dice));
      OrderWalk walk(p.model, temporal_factors(p.spatial.temporal, 6));
      Candidate candidate;
      candidate.size = walk.size();
      for (std::int64_t skip = dice.number(0, 200); skip >= 0 && walk.next(candidate.loops.data());
           --skip) {
      }
      if (!evaluate(p.model, p.hierarchy, p.spatial, candidate))
        continue;
      for (std::size_t i = 0; i < p.model.operands.size(); ++i) {
        const Direction up = p.model.operands[i].output ? Direction::th : Direction::fh;
        for (std::size_t l = 0; l + 1 < p.hierarchy.levels[i].size(); ++l) {
          const Movement& m = candidate.exact[i].levels[l][static_cast<std::size_t>(up)];
          EXPECT_EQ(m.amount * m.count, test::simulated_fetches(p.problem, i, candidate.order(),
                                                                candidate.allocation.cut[i][l]))
              << form.name << ", seed " << seed << ", operand " << i << ", level " << l;
          ++compared;
        }
      }
    }
    EXPECT_GT(compared, 10) << form.name;
  }
}

CoreProblem transposed(CoreProblem problem, std::size_t operand, std::size_t by) {
  ProblemOperand& o = problem.operands[operand];
  const auto middle = static_cast<std::ptrdiff_t>(by % o.axes.size());
  std::rotate(o.axes.begin(), o.axes.begin() + middle, o.axes.end());
  std::rotate(o.extents.begin(), o.extents.begin() + middle, o.extents.end());
  return problem;
}

TEST(TrainingForms, CostTheSameInAnyLayout) {
  for (const Form& form : forms()) {
    const CoreProblem problem = problem_of(form);
    const Core core = test::tpu_like(true);
    const CoreCost cost = core_cost(problem, core);
    for (std::size_t operand = 0; operand < 3; ++operand) {
      const CoreProblem other = transposed(problem, operand, operand + 1);
      const CoreCost again = core_cost(other, core);
      EXPECT_EQ(cost.parts.total(), again.parts.total()) << form.name;
      EXPECT_EQ(cost.energy().value, again.energy().value) << form.name;
      EXPECT_EQ(cost.resident, again.resident) << form.name;
      EXPECT_EQ(cost.variant, again.variant) << form.name;
    }
  }
}

// However its factors are laid out, a batched product costs the same.
TEST(TrainingForms, BatchedProductsCostTheSame) {
  const std::vector<Form> all = forms();
  const auto plain = std::find_if(all.begin(), all.end(),
                                  [](const Form& form) { return form.name == "batched product"; });
  const CoreCost wanted = core_cost(problem_of(*plain), test::tpu_like(true));
  for (int i = 1; i < 4; ++i) {
    const CoreProblem other = problem_of(*(plain + i));
    EXPECT_EQ(core_cost(other, test::tpu_like(true)).parts.total(), wanted.parts.total());
    EXPECT_EQ(core_cost(other, test::tpu_like(true)).energy().value, wanted.energy().value);
  }
}

// A gradient sums over the loops that its operand lacks: dW of a convolution over B, OY and OX, the
// gradient of a shared factor over the batch.
TEST(TrainingForms, SumOverWhatTheResultLacks) {
  const std::vector<Form> all = forms();
  const auto loops_over = [&](const std::string& name) {
    std::string loops;
    const auto form =
        std::find_if(all.begin(), all.end(), [&](const Form& f) { return f.name == name; });
    const NestModel model = make_nest_model(problem_of(*form));
    for (std::size_t d = 0; d < model.dims.size(); ++d) {
      if (model.operands[model.output].relevance[d] == Relevance::irrelevant)
        loops += model.dims[d].name + " ";
    }
    return loops;
  };
  EXPECT_EQ(loops_over("dW over batch and space"), "B OY OX ");
  EXPECT_EQ(loops_over("dW of grouped"), "B OX ");
  EXPECT_EQ(loops_over("dX of depthwise"), "");
  EXPECT_EQ(loops_over("gradient of shared B"), "B D ");
  EXPECT_EQ(loops_over("batched product"), "C ");
}

} // namespace
} // namespace monet::core_cost_detail
