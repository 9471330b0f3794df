// Where PyTorch would have the tensors of a graph: views share storages, with strides.
#pragma once

#include "monet/workload/graph.hpp"

#include <optional>
#include <vector>

namespace monet {

/// A storage, and strides into it.
struct EagerLayout {
  TensorId storage;                  ///< the tensor that the storage was made for
  std::vector<std::int64_t> strides; ///< 0 for a broadcast axis
};

/// Strides of `to` over the same storage, or nullopt when a reshape has to copy: axes are joined
/// only when they follow each other in memory (torch's computeStride).
std::optional<std::vector<std::int64_t>> reshaped_strides(const EagerLayout& layout,
                                                          const std::vector<std::int64_t>& from,
                                                          const std::vector<std::int64_t>& to);

class EagerLayouts {
public:
  explicit EagerLayouts(const Graph& graph) : graph_(&graph), of_(graph.tensors().size()) {}

  /// Of a tensor not known otherwise: row by row in a storage of its own.
  const EagerLayout& operator[](TensorId id);
  /// Results of a view, or of an index taken out of an axis: over the storage of its operand, or in
  /// one of their own where that has to be copied.
  void add_view(const Operator& op);
  /// Strides of a result that an operator makes in an order of its own.
  void set(TensorId id, std::vector<std::int64_t> strides);

private:
  std::optional<std::vector<std::int64_t>> through(const Operator& op, const EagerLayout& source,
                                                   const std::vector<std::int64_t>& to) const;
  std::optional<std::vector<std::int64_t>> sliced(const Operator& op,
                                                  std::vector<std::int64_t> strides) const;

  const Graph* graph_;
  std::vector<std::optional<EagerLayout>> of_;
};

} // namespace monet
