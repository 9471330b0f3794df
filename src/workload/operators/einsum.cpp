// Rules of Einsum with one or two operands, listed in registry.cpp: every letter is a loop. The
// reader splits longer equations into pairs.
//
// Letters of the result and both operands are B, H, ...; of the result and one operand D and K;
// summed letters C; further ones are numbered. A letter repeated in an operand reads its diagonal.
#include "workload/operators/families.hpp"
#include "workload/shared/einsum_equation.hpp"

#include <fmt/core.h>

#include <map>

namespace monet {

namespace {

/// Loop name by the role of a letter, so that cores with fixed array dimensions find theirs.
std::string loop_name(bool in_result, bool in_first, bool in_second, std::map<char, int>& used) {
  const char name = !in_result ? 'C' : in_first && in_second ? 'B' : in_first ? 'D' : 'K';
  const int serial = used[name]++;
  return serial == 0 ? std::string(1, name) : fmt::format("{}{}", name, serial);
}

/// Compute kind: two operands without a summed letter are multiplied element by element.
ComputeKind compute_of(std::size_t operands, bool sums) {
  if (operands == 2)
    return sums ? ComputeKind::mac : ComputeKind::vector;
  return sums ? ComputeKind::vector : ComputeKind::copy;
}

VectorWork work_of(std::size_t operands, bool sums) {
  if (operands == 2)
    return sums ? VectorWork{} : VectorWork{0, 1, 0, 0, 0, 0};
  return sums ? VectorWork{1, 0, 0, 0, 0, 0} : VectorWork{};
}

std::vector<AxisExpr> operand_axes(const std::string& letters, const Integers& shape,
                                   const std::map<char, LoopIndex>& loops,
                                   const LoopNestBuilder& nest) {
  std::vector<AxisExpr> axes;
  for (std::size_t i = 0; i < letters.size(); ++i) {
    const LoopIndex loop = loops.at(letters[i]);
    axes.push_back(shape[i] == nest.size(loop) ? axis(loop) : axis_fixed());
  }
  return axes;
}

} // namespace

LoopNest build_einsum(const Graph& graph, const Operator& op) {
  std::vector<std::size_t> ranks;
  std::vector<Integers> shapes;
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    shapes.push_back(input_shape(graph, op, i));
    ranks.push_back(shapes.back().size());
  }
  if (shapes.empty() || shapes.size() > 2)
    fail(graph, op, fmt::format("one or two operands are expected, not {}", shapes.size()));
  EinsumEquation equation;
  Integers sizes;
  std::string wrong = parse_einsum(op.attributes.text("equation", ""), ranks, equation);
  if (wrong.empty())
    wrong = einsum_sizes(equation, shapes, sizes);
  if (!wrong.empty())
    fail(graph, op, wrong, "attribute 'equation'");
  const auto& y = output_shape(graph, op, 0);
  if (y.size() != equation.result.size())
    fail(graph, op, "the result has other axes than the equation's");

  std::string letters = equation.result;
  for (const std::string& term : equation.operands) {
    for (const char letter : term) {
      if (letters.find(letter) == std::string::npos)
        letters += letter;
    }
  }
  const bool sums = letters.size() > equation.result.size();
  LoopNestBuilder nest(graph, op, compute_of(shapes.size(), sums), work_of(shapes.size(), sums));
  std::map<char, LoopIndex> loops;
  std::map<char, int> used;
  for (const char letter : letters) {
    const auto in = [&](const std::string& term) { return term.find(letter) != std::string::npos; };
    const bool second = shapes.size() == 2 && in(equation.operands[1]);
    loops[letter] =
        nest.loop(loop_name(in(equation.result), in(equation.operands[0]), second, used),
                  sizes[static_cast<std::size_t>(letter)]);
  }
  nest.output(0, "O", operand_axes(equation.result, y, loops, nest));
  nest.input(0, "I", operand_axes(equation.operands[0], shapes[0], loops, nest));
  if (shapes.size() == 2)
    nest.input(1, "W", operand_axes(equation.operands[1], shapes[1], loops, nest));
  return nest.finish();
}

} // namespace monet
