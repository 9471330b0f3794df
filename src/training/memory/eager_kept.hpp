// What PyTorch's autograd keeps, as it is found operator by operator: storages, and copies.
#pragma once

#include "training/memory/eager.hpp"
#include "training/memory/eager_layout.hpp"

#include <optional>
#include <set>
#include <vector>

namespace monet {

class EagerKept {
public:
  explicit EagerKept(const Graph& graph) : graph_(graph), layouts_(graph) {}

  EagerLayouts& layouts() { return layouts_; }

  /// The storage that the tensor lies in, unless it is a parameter's.
  void keep(TensorId id);
  void keep(const std::vector<std::optional<TensorId>>& ids, std::size_t i);
  /// A tensor with the axes `from` as one with the axes `flat`: where it lies if it can be seen
  /// like that, else as a copy.
  void keep_reshaped(TensorId id, const EagerLayout& seen, const std::vector<std::int64_t>& from,
                     const std::vector<std::int64_t>& flat);
  /// What an operator makes for itself.
  void add_copies(std::int64_t bytes) { copied_bytes_ += bytes; }

  EagerStorage storage() const;

private:
  TensorId first_of_numbers(TensorId id);

  const Graph& graph_;
  EagerLayouts layouts_;
  std::set<TensorId> kept_;       ///< storages, by the tensor they were made for
  std::vector<TensorId> numbers_; ///< constants and buffers among them, of known numbers
  std::set<TensorId> copied_;     ///< tensors of which products made copies
  std::int64_t copied_bytes_ = 0;
};

} // namespace monet
