// Factors of MatMul and Einsum that PyTorch keeps or copies, for eager.cpp.
#include "training_graph/memory/eager_parts.hpp"
#include "workload/shared/einsum_equation.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace monet {

namespace {

using Shape = Integers;

bool wants(const Operator& op, std::size_t input, const std::vector<bool>& requires_grad) {
  return requires_grad[op.inputs[input]->index()];
}

/// Images one after the other, rows and columns of each exchanged: such a stack is multiplied
/// matrix by matrix, as it lies.
bool is_transposed_stack(EagerKept& kept, const Graph& graph, TensorId id) {
  const Shape& shape = graph.tensor(id).shape;
  const Shape& strides = kept.layouts()[id].strides;
  return shape.size() == 3 && strides[2] != 1 && strides[0] == shape[1] * shape[2];
}

void keep_stack_transposed(EagerKept& kept, const Graph& graph, TensorId stack) {
  EagerLayout seen = kept.layouts()[stack];
  Shape shape = graph.tensor(stack).shape;
  const std::size_t last = shape.size() - 1;
  std::swap(shape[last], shape[last - 1]);
  std::swap(seen.strides[last], seen.strides[last - 1]);
  const std::int64_t rows =
      element_count(graph.tensor(stack)) / std::max<std::int64_t>(shape[last], 1);
  kept.keep_reshaped(stack, seen, shape, {rows, shape[last]});
}

// PyTorch 1.13 multiplies two tensors by an equation as stacks of matrices: both are permuted and
// reshaped, which copies what does not lie in memory like that.

/// An operand as it is permuted, and the three axes that its axes are joined to.
struct EinsumFactor {
  Integers shape;
  Integers strides;
  Integers stack; ///< [batch, rows, summed], or [batch, summed, columns]
};

struct EinsumProduct {
  std::array<EinsumFactor, 2> factors;
  Integers result_strides;
};

/// Letters of two operands by where they are longer than one, each group in the order of the
/// result, summed ones by the alphabet (uppercase first).
struct EinsumAxes {
  std::string both;    ///< in both operands and the result
  std::string rows;    ///< of the first operand alone
  std::string columns; ///< of the second operand alone, or of size 1
  std::string summed;
};

std::optional<EinsumAxes> sort_letters(const EinsumEquation& equation,
                                       const std::array<Integers, 2>& shapes) {
  const auto longer = [&](std::size_t operand, char letter) {
    const std::size_t at = equation.operands[operand].find(letter);
    return at != std::string::npos && shapes[operand][at] > 1;
  };
  EinsumAxes letters;
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
EinsumFactor permute(const std::string& own, const Integers& shape, const EagerLayout& layout,
                     const std::array<std::string, 3>& groups) {
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

/// Nullopt for what is no such product: other numbers of operands, nothing summed, letters that are
/// summed in one operand alone.
std::optional<EinsumProduct> einsum_product(const Graph& graph, const Operator& op,
                                            EagerLayouts& layouts) {
  if (op.inputs.size() != 2)
    return std::nullopt;
  const std::array<Integers, 2> shapes{graph.tensor(*op.inputs[0]).shape,
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
  const Integers& shape = graph.tensor(*op.outputs[0]).shape;
  product.result_strides.resize(shape.size());
  std::int64_t stride = 1;
  for (std::size_t i = made.size(); i-- > 0;) {
    const std::size_t at = equation.result.find(made[i]);
    product.result_strides[at] = stride;
    stride *= shape[at];
  }
  return product;
}

} // namespace

/// Batched factors are expanded and reshaped to three axes, a stack of rows times a matrix to
/// two; that copies what does not lie in memory like that.
void keep_factors(EagerKept& kept, const Graph& graph, const Operator& op,
                  const std::vector<bool>& requires_grad) {
  const Shape& result = graph.tensor(*op.outputs[0]).shape;
  for (std::size_t i = 0; i < 2; ++i) {
    if (!wants(op, 1 - i, requires_grad))
      continue;
    const TensorId factor = *op.inputs[i];
    const Shape& shape = graph.tensor(factor).shape;
    const std::size_t other = graph.tensor(*op.inputs[1 - i]).shape.size();
    if (shape.size() < 3 || (other < 3 && is_transposed_stack(kept, graph, factor))) {
      kept.keep(factor);
      continue;
    }
    if (other < 3 && i == 1) { // a matrix times a stack is the stack's transpose times the matrix's
      keep_stack_transposed(kept, graph, factor);
      continue;
    }
    Shape wide = shape;
    EagerLayout seen = kept.layouts()[factor];
    if (other >= 3) {
      wide.assign(result.begin(), result.end() - 2);
      wide.insert(wide.end(), shape.end() - 2, shape.end());
      Shape strides(wide.size(), 0);
      const std::size_t added = wide.size() - shape.size();
      for (std::size_t k = 0; k < shape.size(); ++k)
        strides[k + added] = shape[k] == wide[k + added] ? seen.strides[k] : 0;
      seen.strides = strides;
    }
    std::int64_t rows = 1;
    const std::size_t joined = other >= 3 ? wide.size() - 2 : wide.size() - 1;
    for (std::size_t k = 0; k < joined; ++k)
      rows *= wide[k];
    Shape flat{rows};
    flat.insert(flat.end(), wide.begin() + static_cast<std::ptrdiff_t>(joined), wide.end());
    kept.keep_reshaped(factor, seen, wide, flat);
  }
}

bool keep_einsum(EagerKept& kept, const Graph& graph, const Operator& op,
                 const std::vector<bool>& requires_grad) {
  const auto product = einsum_product(graph, op, kept.layouts());
  if (!product)
    return false;
  for (std::size_t i = 0; i < 2; ++i) {
    const EinsumFactor& factor = product->factors[i];
    const TensorId id = *op.inputs[i];
    if (wants(op, 1 - i, requires_grad))
      kept.keep_reshaped(id, {kept.layouts()[id].storage, factor.strides}, factor.shape,
                         factor.stack);
  }
  kept.layouts().set(*op.outputs[0], product->result_strides);
  return true;
}

} // namespace monet
