// Reverse-mode differentiation over the forward operators of a step.
#pragma once

#include "training_graph/build/step_builder.hpp"
#include "training_graph/gradients/rules.hpp"

#include "monet/workload/graph.hpp"
#include "monet/workload/onnx_reader.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace monet {

/// Which tensors lie between trained parameters and the loss. Indexed by TensorId.
struct GradientNeeds {
  std::vector<bool> depends;     ///< on a trained parameter, differentiably
  std::vector<bool> reaches;     ///< one of the differentiated outputs
  std::vector<bool> weight_view; ///< a trained parameter or a view of one

  bool wanted(TensorId tensor) const { return depends[tensor.index()] && reaches[tensor.index()]; }
};

/// Rows of the gradient of a table that others leave zero: [n, ...] and their numbers [n].
struct RowGradient {
  TensorId values;
  TensorId rows;
};

/// `trained` by TensorId, `detached` as well: what no gradient passes. One InputError lists every
/// operator on a path that has no gradient rule, and the path.
GradientNeeds find_needs(const Graph& forward, const std::vector<bool>& trained,
                         const std::vector<TensorId>& outputs, const std::vector<bool>& detached);

/// For a network of which nothing can be trained: throws an InputError with every operator at which
/// the gradient ends, and its way.
[[noreturn]] void refuse_untrained(const Graph& network, const GradientNeeds& needs,
                                   const std::vector<TensorId>& outputs);

/// Problems of a network that cannot be read: its unsupported operators, and the operators that no
/// gradient could pass, with the gradient's way, in the order of operators.
std::vector<InputProblem> explain_needs(const NetworkOutline& outline,
                                        const std::vector<bool>& trained,
                                        const std::vector<TensorId>& outputs,
                                        const std::vector<bool>& detached);

/// The gradient of `first_output` of an operator is needed.
bool is_differentiated(const GradientNeeds& needs, const Operator& op);

class Differentiator {
public:
  Differentiator(StepBuilder& builder, GradientNeeds needs, std::size_t forward_operators,
                 StorePolicy store);

  /// A gradient that arrives at `tensor`. Several are added up, one Add for every one after the
  /// first.
  void give(TensorId tensor, TensorId gradient);
  /// Walks the forward operators backwards and emits their gradients.
  void run();

  std::optional<TensorId> gradient(TensorId tensor) const;

  /// Restricts the gradients of these tables, by TensorId, to the rows that were looked up.
  void keep_rows_of(std::vector<bool> tables) { tables_ = std::move(tables); }
  /// Sparse gradients by table, one part for each look-up.
  const std::map<TensorId, std::vector<RowGradient>>& row_gradients() const {
    return row_gradients_;
  }

private:
  friend class GradientContext;

  bool wants(TensorId tensor) const {
    return tensor.index() < needs_.depends.size() && needs_.wanted(tensor);
  }

  StepBuilder* builder_;
  GradientNeeds needs_;
  std::size_t forward_operators_;
  StorePolicy store_;
  std::vector<std::optional<TensorId>> gradient_;
  std::vector<bool> tables_;
  std::map<TensorId, std::vector<RowGradient>> row_gradients_;
};

/// Gradients of embeddings that hold only the rows that were read, as nn.Embedding(sparse=True) has
/// them. By TensorId: tables that the patterns name and of which look-ups along the first axis are
/// the only readers. InputError for a pattern that names none.
std::vector<bool> tables_of_rows(const Graph& forward, const GradientNeeds& needs,
                                 const std::vector<std::string>& patterns);

/// The parts as one gradient in which no row comes twice (PyTorch's coalesce()): `values` [n, ...]
/// are sums, `rows` [n] ascending. n is the number of all indices; what is left over of it is zero,
/// its rows outside of the table.
RowGradient coalesce(StepBuilder& builder, TensorId table, const std::vector<RowGradient>& parts);

/// The graph with `ai.monet.ProductGrad` (A, B, dY) -> dA, dB in place of the two gradients of
/// every product that a glob pattern names, by the name of the forward operator. Products with one
/// gradient only (first layers, frozen weights), and pairs that cannot be merged because of an
/// operator between them, stay as they are. Tensors keep their ids. InputError at the network's
/// file for a pattern that pairs nothing; "*" may.
Graph with_paired_gradients(const Graph& graph, const std::vector<std::string>& patterns);

/// Names of the products whose gradients are paired, each once, ascending.
std::vector<std::string> paired_products(const Graph& graph);

} // namespace monet
