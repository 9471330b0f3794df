// EagerLayouts: storages and strides of PyTorch's tensors, for eager.cpp.
#include "training_graph/build/step_builder.hpp"
#include "training_graph/memory/eager_parts.hpp"
#include "workload/shared/op_types.hpp"

#include <algorithm>

namespace monet {

namespace {

using Shape = Integers;

Shape row_major(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;)
    strides[i - 1] = strides[i] * std::max<std::int64_t>(shape[i], 1);
  return strides;
}

/// The reader of networks calls the states that a recurrent layer begins with so.
bool begins_recurrence(const Operator& op) {
  const std::string leaf = op.name.substr(op.name.rfind('/') + 1);
  return op.op_type == ops::Squeeze && (leaf.rfind("h0", 0) == 0 || leaf.rfind("c0", 0) == 0);
}

} // namespace

std::optional<Shape> reshaped_strides(const EagerLayout& layout, const Shape& from,
                                      const Shape& to) {
  Shape result(to.size(), 1);
  if (from.empty())
    return result;
  std::size_t t = to.size();
  std::int64_t base = layout.strides.back();
  std::int64_t elements = 1;
  std::int64_t covered = 1;
  for (std::size_t i = from.size(); i-- > 0;) {
    elements *= from[i];
    const bool joined = i > 0 && (from[i - 1] == 1 || layout.strides[i - 1] == elements * base);
    if (joined)
      continue;
    while (t > 0 && (covered < elements || to[t - 1] == 1)) {
      result[t - 1] = covered * base;
      covered *= to[t - 1];
      --t;
    }
    if (covered != elements)
      return std::nullopt;
    if (i > 0)
      base = layout.strides[i - 1];
    elements = covered = 1;
  }
  return t == 0 ? std::optional(result) : std::nullopt;
}

const EagerLayout& EagerLayouts::operator[](TensorId id) {
  auto& known = of_[id.index()];
  if (!known)
    known = EagerLayout{id, row_major(graph_->tensor(id).shape)};
  return *known;
}

void EagerLayouts::set(TensorId id, Shape strides) {
  of_[id.index()] = EagerLayout{id, std::move(strides)};
}

void EagerLayouts::add_view(const Operator& op) {
  const EagerLayout source = (*this)[*op.inputs[0]];
  for (const auto& output : op.outputs) {
    if (!output)
      continue;
    const auto strides = through(op, source, graph_->tensor(*output).shape);
    if (strides)
      of_[output->index()] = EagerLayout{source.storage, *strides};
  } // no strides: a copy in a new storage
}

/// Steps that are not one widen strides; backwards, as flip() is exported, PyTorch copies.
std::optional<Shape> EagerLayouts::sliced(const Operator& op, Shape strides) const {
  const auto steps = known_integers(*graph_, op, 4);
  const auto axes = known_integers(*graph_, op, 3);
  for (std::size_t i = 0; steps && i < steps->size(); ++i) {
    const std::size_t axis = axes ? normal_axis(axes->at(i), strides.size()) : i;
    if ((*steps)[i] < 0)
      return std::nullopt;
    strides.at(axis) *= (*steps)[i];
  }
  return strides;
}

std::optional<Shape> EagerLayouts::through(const Operator& op, const EagerLayout& source,
                                           const Shape& to) const {
  const Shape& from = graph_->tensor(*op.inputs[0]).shape;
  Shape strides = source.strides;
  if (op.op_type == ops::Transpose) {
    const Shape order = op.attributes.integers("perm");
    for (std::size_t i = 0; i < strides.size(); ++i)
      strides[i] =
          source
              .strides[order.empty() ? strides.size() - 1 - i : static_cast<std::size_t>(order[i])];
    return strides;
  }
  if (op.op_type == ops::Slice)
    return sliced(op, std::move(strides));
  if (begins_recurrence(op) && std::ranges::count(strides, 0) != 0)
    return std::nullopt; // an expanded state is copied for the layer
  if (op.op_type == ops::Split)
    return strides;
  if (op.op_type == ops::Gather) {
    const std::size_t axis = normal_axis(op.attributes.integer("axis", 0), from.size());
    strides.erase(strides.begin() + static_cast<std::ptrdiff_t>(axis));
    return strides;
  }
  if (op.op_type == ops::Expand) {
    const std::size_t added = to.size() - from.size();
    Shape wide(to.size(), 0);
    for (std::size_t i = 0; i < from.size(); ++i)
      wide[i + added] = from[i] == to[i + added] ? strides[i] : 0;
    return wide;
  }
  return reshaped_strides(source, from, to);
}

} // namespace monet
