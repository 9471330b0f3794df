// EagerKept: collects the storages and copies that autograd keeps, for eager.cpp.
#include "training_graph/build/block_copies.hpp"
#include "training_graph/build/scaled_casts.hpp"
#include "training_graph/memory/eager_parts.hpp"
#include "workload/shared/op_types.hpp"
#include "workload/shared/views.hpp"

#include <algorithm>

namespace monet {

namespace {

bool is_transposed(const Tensor& a, const Tensor& b) {
  if (a.shape.size() != 2 || b.shape.size() != 2 || a.shape[0] != b.shape[1] ||
      a.shape[1] != b.shape[0])
    return false;
  const auto columns = static_cast<std::size_t>(a.shape[1]);
  const auto rows = static_cast<std::size_t>(a.shape[0]);
  return std::visit(
      [&](const auto& list) {
        const auto& other = std::get<std::decay_t<decltype(list)>>(*b.values);
        for (std::size_t i = 0; i < list.size(); ++i) {
          if (list[i] != other[i % columns * rows + i / columns])
            return false;
        }
        return true;
      },
      *a.values);
}

bool is_copy(const Tensor& copy, const Tensor& of) {
  const auto is_constant_node = [](const Tensor& one) {
    return one.name.substr(one.name.rfind('/') + 1).rfind(ops::Constant, 0) == 0;
  };
  if (copy.kind != TensorKind::constant || copy.type != of.type ||
      copy.values->index() != of.values->index())
    return false;
  return of.kind == TensorKind::buffer ? is_transposed(copy, of)
                                       : copy.shape == of.shape && copy.values == of.values &&
                                             is_constant_node(copy) && is_constant_node(of);
}

/// Indices that repeat along an axis were expanded, which an export of constants spells out.
std::int64_t kept_bytes(const Tensor& one) {
  const std::int64_t all = bytes_of(size_of(one));
  const bool spelt_out = one.kind == TensorKind::constant && one.shape.size() > 1;
  const auto* list = spelt_out ? integers_of(one.values) : nullptr;
  if (!list || std::adjacent_find(list->begin(), list->end(), std::not_equal_to<>()) == list->end())
    return all;
  std::int64_t bytes = all;
  std::size_t stride = 1;
  for (std::size_t axis = one.shape.size(); axis-- > 0;) {
    const auto length = static_cast<std::size_t>(one.shape[axis]);
    bool repeats = length > 1;
    for (std::size_t i = 0; repeats && i < list->size(); ++i)
      repeats = (*list)[i] == (*list)[i - i / stride % length * stride];
    bytes = repeats ? bytes / one.shape[axis] : bytes;
    stride *= length;
  }
  return bytes;
}

} // namespace

void EagerKept::keep(TensorId id) {
  const std::vector<TensorId> copies =
      quantised_copies(graph_, copy_for_weight(graph_, layouts_[id].storage));
  const auto is_read = [&](TensorId copy) { return copies.size() == 1 || backward_reads(copy); };
  if (std::ranges::none_of(copies, is_read))
    return keep_storage(copies.front());
  for (const TensorId copy : copies) {
    if (is_read(copy))
      keep_storage(copy);
  }
}

void EagerKept::keep_storage(TensorId storage) {
  while (graph_.tensor(storage).alias_of) // statistics are updated where they lie
    storage = *graph_.tensor(storage).alias_of;
  if (graph_.tensor(storage).kind != TensorKind::parameter)
    kept_.insert(first_of_numbers(storage));
}

bool EagerKept::backward_reads(TensorId storage) {
  if (!read_)
    read_ = tensors_read_by_backward(graph_);
  return std::ranges::binary_search(*read_, storage);
}

void EagerKept::keep(const std::vector<std::optional<TensorId>>& ids, std::size_t i) {
  if (i < ids.size() && ids[i])
    keep(*ids[i]);
}

/// PyTorch's exporter writes a constant once for every reader, and folds a transposed buffer:
/// both are one tensor.
TensorId EagerKept::first_of_numbers(TensorId id) {
  const Tensor& own = graph_.tensor(id);
  if (!own.values || own.shape.empty() ||
      (own.kind != TensorKind::buffer && own.kind != TensorKind::constant))
    return id;
  const auto found = std::ranges::find_if(numbers_, [&](TensorId other) {
    return other == id || is_copy(own, graph_.tensor(other)) || is_copy(graph_.tensor(other), own);
  });
  if (found != numbers_.end())
    return *found;
  numbers_.push_back(id);
  return id;
}

void EagerKept::keep_reshaped(TensorId id, const EagerLayout& seen, const Integers& from,
                              const Integers& flat) {
  if (reshaped_strides(seen, from, flat)) {
    keep(id);
    return;
  }
  Tensor copy = graph_.tensor(id);
  copy.shape = flat;
  copied_bytes_ += bytes_of(size_of(copy));
  copied_.insert(storage_root(graph_, id));
}

EagerStorage EagerKept::storage() const {
  EagerStorage storage;
  storage.bytes = copied_bytes_;
  std::set<TensorId> roots(copied_.begin(), copied_.end());
  for (const TensorId id : kept_) {
    storage.bytes += kept_bytes(graph_.tensor(id));
    roots.insert(storage_root(graph_, id));
  }
  storage.tensors.assign(roots.begin(), roots.end());
  return storage;
}

} // namespace monet
