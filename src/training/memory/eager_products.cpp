#include "training/memory/eager_products.hpp"

#include "training/memory/eager_einsum.hpp"

#include <algorithm>
#include <utility>

namespace monet {

namespace {

using Shape = std::vector<std::int64_t>;

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
