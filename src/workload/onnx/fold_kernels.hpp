// Helpers for folding constants: strided walks over row-major numbers, and the inputs of a node.
#pragma once

#include "base/shared/checked.hpp"
#include "workload/onnx/model.hpp"

namespace monet::onnx_file {

using Reals = std::vector<double>;

inline std::size_t total(const Integers& shape) {
  return static_cast<std::size_t>(checked_product(shape));
}

inline Integers strides_of(const Integers& shape) {
  Integers strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;)
    strides[i - 1] = strides[i] * shape[i];
  return strides;
}

/// Calls visit(output position, source position) for all elements of `shape`. The source is
/// addressed with `strides` (one per axis, 0 if broadcast) from `origin`.
template <class Visit>
void walk(const Integers& shape, const Integers& strides, std::int64_t origin, Visit&& visit) {
  const std::size_t count = total(shape);
  Integers index(shape.size(), 0);
  std::int64_t source = origin;
  for (std::size_t at = 0; at < count; ++at) {
    visit(at, static_cast<std::size_t>(source));
    for (std::size_t i = shape.size(); i-- > 0;) {
      source += strides[i];
      if (++index[i] < shape[i])
        break;
      source -= strides[i] * shape[i];
      index[i] = 0;
    }
  }
}

/// Strides that broadcast `shape` to `target`.
inline Integers broadcast_strides(const Integers& shape, const Integers& target) {
  Integers strides(target.size(), 0);
  const auto own = strides_of(shape);
  const std::size_t skipped = target.size() - shape.size();
  for (std::size_t i = 0; i < shape.size(); ++i) {
    strides[skipped + i] = shape[i] == 1 ? 0 : own[i];
  }
  return strides;
}

template <class Number>
std::vector<Number> gather_strided(const std::vector<Number>& source, const Integers& shape,
                                   const Integers& strides, std::int64_t origin = 0) {
  std::vector<Number> result(total(shape));
  walk(shape, strides, origin,
       [&](std::size_t to, std::size_t from) { result[to] = source[from]; });
  return result;
}

/// Inputs of a node with their numbers; null for omitted inputs.
struct Inputs {
  std::vector<const Value*> list;

  const Value* get(std::size_t i) const { return i < list.size() ? list[i] : nullptr; }
  const Integers* integers(std::size_t i) const {
    const Value* value = get(i);
    return value ? integers_of(value->values) : nullptr;
  }
  std::optional<Reals> reals(std::size_t i) const {
    const Value* value = get(i);
    if (!value || !value->values)
      return std::nullopt;
    if (const auto* reals = std::get_if<Reals>(&*value->values))
      return *reals;
    const auto& integers = std::get<Integers>(*value->values);
    return Reals(integers.begin(), integers.end());
  }
};

/// Numbers in the storage of the element type: integers for integer types, otherwise doubles.
ConstantValues as_stored(ElementType type, Reals numbers);

// Each function computes the numbers of `out`, whose shape and type are set; it returns false if an
// operand is unknown.
bool fold_unary(const Node& node, const Inputs& in, Value& out);
bool fold_binary(const Node& node, const Inputs& in, Value& out);
bool fold_cast(const Node& node, const Inputs& in, Value& out);
bool fold_range(const Node& node, const Inputs& in, Value& out);
bool fold_where(const Node& node, const Inputs& in, Value& out);
bool fold_reduce(const Node& node, const Inputs& in, Value& out);
bool fold_trilu(const Node& node, const Inputs& in, Value& out);

} // namespace monet::onnx_file
