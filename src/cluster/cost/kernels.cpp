// Fuses a rank's operators into kernels and estimates their times by a kernel table. Called by
// blocks.cpp.
#include "cluster/cost/costs.hpp"
#include "cluster/partition/placement.hpp"
#include "workload/shared/operators.hpp"

#include "monet/base/errors.hpp"
#include "monet/cluster/partition.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <set>

namespace monet::cluster_cost {

namespace {

using mesh::has_term;

bool is_read(const Access& access) {
  return access.mode == AccessMode::read;
}

/// Whether each iteration computes one result element from one element of each operand.
bool is_pointwise(const Operator& op) {
  if (op.nest.compute == ComputeKind::mac || op.phase == Phase::update || is_collective(op))
    return false;
  for (std::size_t loop = 0; loop < op.nest.dims.size(); ++loop) {
    if (op.nest.dims[loop].coupled || is_reduction(op.nest, loop))
      return false;
  }
  return std::ranges::none_of(op.nest.operands, [](const Access& access) {
    return access.opaque || access.passes > 1 ||
           std::ranges::any_of(access.axes, &AxisExpr::data_dependent);
  });
}

bool is_softmax(const Operator& op) {
  return has_trait(op.op_type, OperatorRow::kSoftmaxRows);
}

bool is_attention(const Operator& op) {
  return op.domain == kMonetDomain &&
         (op.op_type == ops::Attention || op.op_type == ops::AttentionGrad);
}

bool is_norm_weights(OpType op_type) {
  return op_type.contains("NormGradWeight");
}

/// Whether an operator sums over its outer loops and keeps the inner ones, like the gradient of a
/// bias.
bool is_column_sum(const Operator& op) {
  if (op.op_type != ops::ReduceSum && op.op_type != "SumToShape")
    return false;
  const LoopNest& nest = op.nest;
  bool summed = true;
  for (std::size_t loop = 0; loop < nest.dims.size(); ++loop) {
    const bool reduced = is_reduction(nest, loop) || nest.dims[loop].size == 1;
    if (reduced && !summed)
      return false;
    summed = reduced;
  }
  return !summed && !nest.dims.empty();
}

VectorKernel kind_of(const Operator& op) {
  const OpType name = op.op_type;
  const bool backward = name.ends_with("Grad");
  if (has_trait(name, OperatorRow::kSoftmaxFamily))
    return backward ? VectorKernel::softmax_backward : VectorKernel::softmax;
  if (is_norm_weights(name))
    return VectorKernel::layernorm_weights;
  if (name.contains("Norm"))
    return backward ? VectorKernel::layernorm_backward : VectorKernel::layernorm;
  if (name.starts_with("Gelu"))
    return backward ? VectorKernel::gelu_backward : VectorKernel::gelu;
  return is_column_sum(op) ? VectorKernel::column_sum : VectorKernel::elementwise;
}

/// Rows and columns of a vector kernel. Columns are the iterations of the coupled loops or, without
/// such loops, of the last loop; rows are the repetitions.
std::pair<std::int64_t, std::int64_t> rows_and_columns(const LoopNest& nest) {
  std::int64_t columns = 1;
  for (const LoopDim& loop : nest.dims)
    columns *= loop.coupled ? loop.size : 1;
  if (columns == 1 && !nest.dims.empty())
    columns = nest.dims.back().size;
  return {std::max<std::int64_t>(iterations(nest) / std::max<std::int64_t>(columns, 1), 1),
          std::max<std::int64_t>(columns, 1)};
}

/// Fuses operators into kernels in the order of the graph.
class Joiner {
public:
  Joiner(const Graph& graph, std::span<const OperatorPlace> places)
      : graph_(graph), places_(places), kernel_(graph.operators().size()) {}

  std::vector<Kernel> run() {
    for (std::size_t i = 0; i < graph_.operators().size(); ++i) {
      const Operator& op = graph_.operators()[i];
      if (op.phase == Phase::update || is_collective(op))
        continue;
      const auto with = joined(OpId(i));
      if (!with)
        kernels_.emplace_back();
      kernel_[i] = with.value_or(kernels_.size() - 1);
      kernels_[*kernel_[i]].ops.emplace_back(i);
    }
    for (std::size_t k = 0; k < kernels_.size(); ++k)
      kernels_[k].bytes = bytes_of_kernel(k);
    return std::move(kernels_);
  }

private:
  /// The kernel of an operand's producer that the operator can be fused into, or nullopt.
  std::optional<std::size_t> joined(OpId id) const {
    const Operator& op = graph_.op(id);
    const bool softmax = is_softmax(op);
    if (!is_pointwise(op) && !softmax)
      return std::nullopt;
    std::optional<std::size_t> found;
    for (const TensorId input : present(op.inputs)) {
      const Tensor& tensor = graph_.tensor(input);
      if (!tensor.producer || !kernel_[tensor.producer->index()] ||
          !is_pointwise(graph_.op(*tensor.producer)))
        continue;
      const OperatorPlace& theirs = places_[tensor.producer->index()];
      const OperatorPlace& own = places_[id.index()];
      const std::size_t kernel = *kernel_[tensor.producer->index()];
      const bool closed = is_softmax(graph_.op(kernels_[kernel].ops.back()));
      const bool same_size = iterations(graph_.op(*tensor.producer).nest) == iterations(op.nest);
      if (theirs.part == own.part && theirs.pass == own.pass && same_size && !closed &&
          !waits_for_others(id, kernel))
        found = std::max(found.value_or(kernel), kernel);
    }
    return found;
  }

  /// Whether an operand is produced after the kernel, which would have to wait for it.
  bool waits_for_others(OpId id, std::size_t kernel) const {
    const OpId last = kernels_[kernel].ops.back();
    return std::ranges::any_of(present(graph_.op(id).inputs), [&](TensorId input) {
      const auto producer = graph_.tensor(input).producer;
      return producer && last < *producer;
    });
  }

  double bytes_of_kernel(std::size_t kernel) const {
    const Kernel& of = kernels_[kernel];
    const std::set<OpId> inside(of.ops.begin(), of.ops.end());
    std::set<TensorId> seen;
    double bytes = 0;
    for (const OpId id : of.ops) {
      const LoopNest& nest = graph_.op(id).nest;
      for (const Access& access : nest.operands) {
        const Tensor& tensor = graph_.tensor(access.tensor);
        const bool made_here = tensor.producer && inside.contains(*tensor.producer);
        if (is_read(access) ? made_here || !seen.insert(access.tensor).second
                            : stays_inside(tensor, inside))
          continue;
        bytes += moved_bytes(graph_, nest, access);
      }
    }
    return bytes;
  }

  static bool stays_inside(const Tensor& tensor, const std::set<OpId>& inside) {
    return !tensor.consumers.empty() &&
           std::ranges::all_of(tensor.consumers, [&](OpId id) { return inside.contains(id); });
  }

  const Graph& graph_;
  std::span<const OperatorPlace> places_;
  std::vector<Kernel> kernels_;
  std::vector<std::optional<std::size_t>> kernel_; ///< by operator
};

/// Elements in a row of a product's operand: the iterations of all loops with the role of its
/// fastest loop (rows, columns or depth). Libraries copy operands whose rows are not contiguous. 0
/// if no loop has stride 1.
std::int64_t row_of(const LoopNest& nest, const Access& access) {
  if (access.opaque || access.axes.empty())
    return 0;
  const auto& terms = access.axes.back().terms;
  const auto fastest =
      std::ranges::find_if(terms, [](const AffineTerm& term) { return term.coefficient == 1; });
  if (fastest == terms.end())
    return 0;
  const auto alike = [&](std::size_t loop) {
    return std::ranges::all_of(nest.operands, [&](const Access& operand) {
      return has_term(operand, loop) == has_term(operand, fastest->dim);
    });
  };
  std::int64_t row = 1;
  for (std::size_t loop = 0; loop < nest.dims.size(); ++loop)
    row *= alike(loop) ? nest.dims[loop].size : 1;
  return row;
}

/// Whether the rows of a product's operands and result are aligned to `row_bytes`, as the matrix
/// units require. 0 disables the check.
bool is_aligned(const Graph& graph, const LoopNest& nest, std::int64_t row_bytes) {
  return std::ranges::all_of(nest.operands, [&](const Access& access) {
    const std::int64_t bits = row_of(nest, access) * bits_of(graph.tensor(access.tensor).type);
    return row_bytes == 0 || bits % (8 * row_bytes) == 0;
  });
}

/// The operator that determines a kernel's kind: the first that is not element-wise, such as a
/// product or a normalisation, else the last one.
const Operator& leading(const Graph& graph, const Kernel& kernel) {
  for (const OpId id : kernel.ops) {
    if (!is_pointwise(graph.op(id)) || kind_of(graph.op(id)) != VectorKernel::elementwise)
      return graph.op(id);
  }
  return graph.op(kernel.ops.back());
}

AttentionShape attention_shape(const Graph& graph, const Operator& op,
                               const std::set<TensorId>& masks) {
  AttentionShape shape{.backward = op.op_type == ops::AttentionGrad};
  for (const LoopDim& loop : op.nest.dims) {
    std::int64_t& size = loop.name == "D"   ? shape.queries
                         : loop.name == "C" ? shape.keys
                         : loop.name == "K" ? shape.size
                                            : shape.heads;
    size *= loop.size;
  }
  shape.causal = is_masked(graph, op, masks);
  return shape;
}

/// The shape of a product, from the operands that have each loop: result and first factor m, result
/// and second factor n, both factors k, all three batch.
ProductShape product_shape(const LoopNest& nest) {
  ProductShape shape;
  const std::vector<std::size_t> factors = multiplied_operands(nest);
  for (std::size_t loop = 0; loop < nest.dims.size(); ++loop) {
    const bool result = has_term(nest.operands.front(), loop);
    const bool first = !factors.empty() && has_term(nest.operands[factors[0]], loop);
    const bool second = factors.size() > 1 && has_term(nest.operands[factors[1]], loop);
    std::int64_t& size = result && first && second ? shape.batch
                         : result && first         ? shape.m
                         : result && second        ? shape.n
                         : result                  ? shape.batch
                                                   : shape.k;
    size *= nest.dims[loop].size;
  }
  return shape;
}

double nanoseconds_of(const Graph& graph, const Kernel& kernel, const KernelTable& table,
                      const std::set<TensorId>& masks) {
  const Operator& op = leading(graph, kernel);
  if (is_attention(op))
    return table.attention_ns(attention_shape(graph, op, masks), product_type(graph, op, table));
  if (op.nest.compute == ComputeKind::mac) {
    const ProductShape shape = product_shape(op.nest);
    const bool aligned =
        is_aligned(graph, op.nest, table.matrix_units.row_bytes) || !table.has(KernelType::fp32);
    return static_cast<double>(products(op.nest)) *
           table.sustained_matmul_ns(shape.m, shape.n, shape.k, shape.batch,
                                     aligned ? product_type(graph, op, table) : KernelType::fp32);
  }
  const VectorKernel kind = kind_of(op);
  const auto [rows, columns] = rows_and_columns(op.nest);
  return table.vector_bytes_ns(kind, rows, columns, kernel.bytes);
}

} // namespace

KernelType product_type(const Graph& graph, const Operator& op, const KernelTable& table) {
  for (const std::size_t i : multiplied_operands(op.nest)) {
    const Tensor& tensor = graph.tensor(op.nest.operands[i].tensor);
    const auto type = kernel_type_of(tensor.type);
    if (type && table.has(*type))
      return *type;
    throw InfeasibleError(fmt::format("{}: '{}' has no rate for products of {}", op.name,
                                      table.name, name_of(tensor.type)));
  }
  return KernelType::fp16;
}

double moved_bytes(const Graph& graph, const LoopNest& nest, const Access& access) {
  const Tensor& tensor = graph.tensor(access.tensor);
  const double bits = static_cast<double>(size_of(tensor).value);
  const auto elements = static_cast<double>(std::max<std::int64_t>(element_count(tensor), 1));
  double touched = elements;
  if (!access.opaque) {
    touched = 1;
    const Box box = region(access, full_tile(nest), tensor.shape);
    for (std::size_t i = 0; i < box.size(); ++i)
      touched *= static_cast<double>(box[i].end - box[i].begin);
    touched = std::min(touched, static_cast<double>(iterations(nest)));
  }
  return touched * bits / elements / 8;
}

std::vector<Kernel> kernels_of(const Graph& graph, std::span<const OperatorPlace> places,
                               const KernelTable& table, const std::set<TensorId>& masks) {
  std::vector<Kernel> kernels = Joiner(graph, places).run();
  for (Kernel& kernel : kernels)
    kernel.nanoseconds = nanoseconds_of(graph, kernel, table, masks);
  return kernels;
}

} // namespace monet::cluster_cost
