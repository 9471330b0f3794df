// Parts of find_eager_storage() (storage.hpp).
#pragma once

#include "training_graph/memory/storage.hpp"

#include "monet/workload/graph.hpp"

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

namespace monet {

/// A storage, and strides into it.
struct EagerLayout {
  TensorId storage; ///< the tensor that the storage was made for
  Integers strides; ///< 0 for a broadcast axis
};

/// Strides of `to` over the same storage, or nullopt when a reshape has to copy: axes are joined
/// only when they follow each other in memory (torch's computeStride).
std::optional<Integers> reshaped_strides(const EagerLayout& layout, const Integers& from,
                                         const Integers& to);

/// Where PyTorch would have the tensors of a graph: views share storages, with strides.
class EagerLayouts {
public:
  explicit EagerLayouts(const Graph& graph) : graph_(&graph), of_(graph.tensors().size()) {}

  /// Layout of a tensor; an unknown one lies row by row in a separate storage.
  const EagerLayout& operator[](TensorId id);
  /// Results of a view, or of an index taken out of an axis: over the storage of its operand, or in
  /// in a new one if it must be copied.
  void add_view(const Operator& op);
  /// Sets the strides of a result that its operator does not write row by row.
  void set(TensorId id, Integers strides);

private:
  std::optional<Integers> through(const Operator& op, const EagerLayout& source,
                                  const Integers& to) const;
  std::optional<Integers> sliced(const Operator& op, Integers strides) const;

  const Graph* graph_;
  std::vector<std::optional<EagerLayout>> of_;
};

/// Memory that PyTorch's autograd keeps, collected operator by operator: storages and copies.
class EagerKept {
public:
  explicit EagerKept(const Graph& graph) : graph_(graph), layouts_(graph) {}

  EagerLayouts& layouts() { return layouts_; }

  /// Keeps the storage of the tensor, unless it is a parameter's. Of quantised copies, those that
  /// the backward part reads.
  void keep(TensorId id);
  void keep(const std::vector<std::optional<TensorId>>& ids, std::size_t i);
  /// Keeps a tensor with the axes `from` reshaped to the axes `flat`: its storage if it can be
  /// viewed like that, else a copy.
  void keep_reshaped(TensorId id, const EagerLayout& seen, const Integers& from,
                     const Integers& flat);
  /// Counts bytes that an operator allocates internally.
  void add_copies(std::int64_t bytes) { copied_bytes_ += bytes; }

  EagerStorage storage() const;

private:
  void keep_storage(TensorId storage);
  bool backward_reads(TensorId storage);
  TensorId first_of_numbers(TensorId id);

  const Graph& graph_;
  EagerLayouts layouts_;
  std::set<TensorId> kept_;       ///< storages, by the tensor they were made for
  std::vector<TensorId> numbers_; ///< constants and buffers among them, of known numbers
  std::set<TensorId> copied_;     ///< tensors of which products made copies
  std::int64_t copied_bytes_ = 0;
  std::optional<std::vector<TensorId>> read_; ///< by the backward part; made when asked for
};

/// A chain of a network's operators that is one operator in PyTorch 1.13, whose node in autograd
/// keeps other tensors than the nodes of the parts would.
struct EagerFused {
  std::vector<OpId> parts;
  std::vector<TensorId> kept;    ///< tensors that exist in the graph
  std::int64_t copied_bytes = 0; ///< bytes of copies made internally
};

/// Finds the fused operators. If the file does not distinguish a function from the same chain
/// written by hand, the function is assumed. `requires_grad` per tensor: see find_eager_storage().
std::vector<EagerFused> find_eager_fused(const Graph& graph,
                                         const std::vector<bool>& requires_grad);

/// Memory that PyTorch 1.13 keeps for an operator of a step's loss.
struct EagerLoss {
  std::int64_t copied_bytes = 0; ///< bytes of copies made internally
  bool keeps_reads = true;       ///< also keeps the tensors that its gradient reads here
};

EagerLoss eager_loss(const Graph& graph, const Operator& op);

// Factors of products: PyTorch 1.13 makes stacks of matrices of them, and copies those whose layout
// in memory does not allow that.

/// Keeps factors of a MatMul; a factor is kept when the other one requires a gradient.
void keep_factors(EagerKept& kept, const Graph& graph, const Operator& op,
                  const std::vector<bool>& requires_grad);
/// Keeps factors of an Einsum; false if it is no product of two stacks of matrices.
bool keep_einsum(EagerKept& kept, const Graph& graph, const Operator& op,
                 const std::vector<bool>& requires_grad);

} // namespace monet
