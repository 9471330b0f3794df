#include "training/memory/eager_einsum.hpp"

#include "workload/shared/einsum_equation.hpp"

#include <algorithm>
#include <string>

namespace monet {

namespace {

/// Letters of two operands by where they are longer than one, each group in the order of the
/// result, summed ones by the alphabet (uppercase first).
struct Letters {
  std::string both;    ///< in both operands and the result
  std::string rows;    ///< of the first operand alone
  std::string columns; ///< of the second operand alone, or of size 1
  std::string summed;
};

std::optional<Letters> sort_letters(const EinsumEquation& equation,
                                    const std::array<std::vector<std::int64_t>, 2>& shapes) {
  const auto longer = [&](std::size_t operand, char letter) {
    const std::size_t at = equation.operands[operand].find(letter);
    return at != std::string::npos && shapes[operand][at] > 1;
  };
  Letters letters;
  for (const char letter : equation.result) {
    const bool first = longer(0, letter);
    const bool second = longer(1, letter);
    (first && second ? letters.both : first ? letters.rows : letters.columns) += letter;
  }
  for (const std::string& operand : equation.operands) {
    for (const char letter : operand) {
      if (equation.result.find(letter) != std::string::npos ||
          letters.summed.find(letter) != std::string::npos)
        continue;
      if (longer(0, letter) != longer(1, letter))
        return std::nullopt;
      if (longer(0, letter))
        letters.summed += letter;
    }
  }
  std::sort(letters.summed.begin(), letters.summed.end());
  return letters.summed.empty() ? std::nullopt : std::optional(letters);
}

bool repeats(const std::string& letters) {
  std::string sorted = letters;
  std::sort(sorted.begin(), sorted.end());
  return std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
}

/// The operand with its axes in that order, each group of letters joined to one axis.
EinsumFactor permute(const std::string& own, const std::vector<std::int64_t>& shape,
                     const EagerLayout& layout, const std::array<std::string, 3>& groups) {
  EinsumFactor factor;
  for (const std::string& group : groups) {
    std::int64_t joined = 1;
    for (const char letter : group) {
      const std::size_t at = own.find(letter);
      const bool has = at != std::string::npos;
      factor.shape.push_back(has ? shape[at] : 1);
      factor.strides.push_back(has ? layout.strides[at] : 1);
      joined *= factor.shape.back();
    }
    factor.stack.push_back(joined);
  }
  return factor;
}

} // namespace

std::optional<EinsumProduct> einsum_product(const Graph& graph, const Operator& op,
                                            EagerLayouts& layouts) {
  if (op.inputs.size() != 2)
    return std::nullopt;
  const std::array<std::vector<std::int64_t>, 2> shapes{graph.tensor(*op.inputs[0]).shape,
                                                        graph.tensor(*op.inputs[1]).shape};
  const std::array<std::size_t, 2> ranks{shapes[0].size(), shapes[1].size()};
  EinsumEquation equation;
  if (!parse_einsum(op.attributes.text("equation", ""), ranks, equation).empty() ||
      repeats(equation.operands[0]) || repeats(equation.operands[1]))
    return std::nullopt;
  const auto letters = sort_letters(equation, shapes);
  if (!letters)
    return std::nullopt;
  EinsumProduct product;
  product.factors[0] = permute(equation.operands[0], shapes[0], layouts[*op.inputs[0]],
                               {letters->both, letters->rows, letters->summed});
  product.factors[1] = permute(equation.operands[1], shapes[1], layouts[*op.inputs[1]],
                               {letters->both, letters->summed, letters->columns});
  const std::string made = letters->both + letters->rows + letters->columns;
  const std::vector<std::int64_t>& shape = graph.tensor(*op.outputs[0]).shape;
  product.result_strides.resize(shape.size());
  std::int64_t stride = 1;
  for (std::size_t i = made.size(); i-- > 0;) {
    const std::size_t at = equation.result.find(made[i]);
    product.result_strides[at] = stride;
    stride *= shape[at];
  }
  return product;
}

} // namespace monet
