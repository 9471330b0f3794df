// The graph of operators and tensors with its invariant checks. The ONNX readers build it; every
// later stage reads it.
#include "monet/workload/graph.hpp"

#include "base/shared/checked.hpp"
#include "workload/operators/contract.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <unordered_set>

namespace monet {

namespace {

template <class T>
const T* get_attribute(const std::map<std::string, AttributeValue, std::less<>>& values,
                       std::string_view name) {
  const auto found = values.find(name);
  return found == values.end() ? nullptr : std::get_if<T>(&found->second);
}

} // namespace

std::string_view name_of(TensorKind kind) {
  static constexpr std::array<std::string_view, 9> kNames{
      "input",      "label",    "parameter",          "buffer",         "constant",
      "activation", "gradient", "parameter_gradient", "optimizer_state"};
  return kNames.at(static_cast<std::size_t>(kind));
}

std::string_view name_of(Phase phase) {
  static constexpr std::array<std::string_view, 5> kNames{"forward", "loss", "backward", "update",
                                                          "recompute"};
  return kNames.at(static_cast<std::size_t>(phase));
}

std::int64_t element_count(const Tensor& tensor) {
  return checked_product(tensor.shape);
}
namespace {

/// Extent of an axis counted from the last; 1 if the tensor has fewer axes.
std::int64_t extent_at(const Tensor& tensor, int axis) {
  const auto from_last = static_cast<std::size_t>(-axis);
  const std::size_t rank = tensor.shape.size();
  return from_last > rank ? 1 : tensor.shape[rank - from_last];
}

} // namespace

Bits size_of(const Tensor& tensor) {
  const BlockFormat block = block_of(tensor.type);
  const std::int64_t count = element_count(tensor);
  if (block.scale_bits == 0 || count == 0)
    return {checked_multiply(count, bits_of(tensor.type))};
  const BlockScaling& blocks = *tensor.type.format().blocks;
  if (block.separate_scales) {
    const std::int64_t rows = extent_at(tensor, blocks.row_axis);
    const std::int64_t columns = extent_at(tensor, blocks.column_axis);
    const std::int64_t scales =
        checked_multiply(count / (rows * columns), checked_multiply(ceil_div(rows, block.rows),
                                                                    ceil_div(columns, block.size)));
    return {checked_add(checked_multiply(count, bits_of(tensor.type)),
                        checked_multiply(scales, block.scale_bits))};
  }
  // Rows shorter than a block share blocks, for example rows of a kernel of size 3.
  const std::int64_t length = extent_at(tensor, axis_of_vector(blocks));
  const std::int64_t row = length < block.size ? count : length;
  const std::int64_t filled = checked_multiply(count / row, ceil_div(row, block.size));
  return {checked_multiply(filled, block.size * bits_of(tensor.type) + block.scale_bits)};
}

std::int64_t Attributes::integer(std::string_view name, std::int64_t fallback) const {
  const auto* value = get_attribute<std::int64_t>(values_, name);
  return value ? *value : fallback;
}
double Attributes::number(std::string_view name, double fallback) const {
  const auto* value = get_attribute<double>(values_, name);
  return value ? *value : fallback;
}
std::string Attributes::text(std::string_view name, std::string_view fallback) const {
  const auto* value = get_attribute<std::string>(values_, name);
  return value ? *value : std::string(fallback);
}
Integers Attributes::integers(std::string_view name, Integers fallback) const {
  const auto* value = get_attribute<Integers>(values_, name);
  if (value)
    return *value;
  return fallback;
}

TensorId Graph::add_tensor(Tensor tensor) {
  tensors_.push_back(std::move(tensor));
  return TensorId(tensors_.size() - 1);
}

OpId Graph::add_operator(Operator op) {
  const OpId id(operators_.size());
  for (const TensorId input : present(op.inputs)) {
    Tensor& tensor = this->tensor(input);
    if (tensor.consumers.empty() || tensor.consumers.back() != id)
      tensor.consumers.push_back(id);
  }
  for (const TensorId output : present(op.outputs)) {
    Tensor& tensor = this->tensor(output);
    internal_check(!tensor.producer, "tensor '" + tensor.name + "' has two producers");
    internal_check(tensor.consumers.empty(),
                   "tensor '" + tensor.name + "' is read before it is made");
    tensor.producer = id;
  }
  operators_.push_back(std::move(op));
  return id;
}

std::optional<TensorId> Graph::find_tensor(std::string_view wanted) const {
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (tensors_[i].name == wanted)
      return TensorId(i);
  }
  return std::nullopt;
}

void Graph::replace_input(OpId id, std::size_t input, TensorId replacement) {
  Operator& op = this->op(id);
  const std::optional<TensorId> old = op.inputs.at(input);
  op.inputs[input] = replacement;
  if (old && std::ranges::find(op.inputs, old) == op.inputs.end()) {
    std::erase(tensor(*old).consumers, id);
  }
  auto& consumers = tensor(replacement).consumers;
  const auto at = std::lower_bound(consumers.begin(), consumers.end(), id);
  if (at == consumers.end() || *at != id)
    consumers.insert(at, id);
}

namespace {

/// internal_check() with a message built only on failure, since verify() runs after every stage.
template <class Words>
void check(bool condition, Words words) {
  if (!condition)
    throw InternalError(words());
}

std::int64_t count_of(const ConstantValues& values) {
  return std::visit([](const auto& list) { return static_cast<std::int64_t>(list.size()); },
                    values);
}

void verify_nest(const Graph& graph, const Operator& op) {
  std::size_t place = 0; // accesses mostly follow the order of the operands
  for (const Access& access : op.nest.operands) {
    const auto& side = access.mode == AccessMode::read ? op.inputs : op.outputs;
    const auto middle = side.begin() + static_cast<std::ptrdiff_t>(std::min(place, side.size()));
    auto found = std::find(middle, side.end(), access.tensor);
    if (found == side.end())
      found = std::find(side.begin(), middle, access.tensor);
    const bool known = found != side.end() && *found == access.tensor;
    place = static_cast<std::size_t>(found - side.begin());
    check(known, [&] {
      return fmt::format("nest of '{}' touches a tensor that is not its operand", op.name);
    });
    check(access.opaque || access.axes.size() == graph.tensor(access.tensor).shape.size(),
          [&] { return fmt::format("nest of '{}' has the wrong number of axes", op.name); });
    for (const AxisExpr& axis : access.axes) {
      for (const AffineTerm& term : axis.terms) {
        check(term.dim < op.nest.dims.size(),
              [&] { return fmt::format("nest of '{}' names a loop it lacks", op.name); });
      }
    }
  }
}

} // namespace

void verify(const Graph& graph) {
  std::unordered_set<std::string_view> names;
  for (const Tensor& tensor : graph.tensors()) {
    check(names.insert(tensor.name).second,
          [&] { return "two tensors are called '" + tensor.name + "'"; });
    check(!tensor.values || count_of(*tensor.values) == element_count(tensor),
          [&] { return fmt::format("'{}' has numbers for another shape", tensor.name); });
  }
  names.clear();
  for (std::size_t i = 0; i < graph.operators().size(); ++i) {
    const Operator& op = graph.operators()[i];
    check(names.insert(op.name).second,
          [&] { return "two operators are called '" + op.name + "'"; });
    for (const TensorId input : present(op.inputs)) {
      const Tensor& tensor = graph.tensor(input);
      check(!tensor.producer || tensor.producer->index() < i,
            [&] { return fmt::format("'{}' reads '{}' before it is made", op.name, tensor.name); });
      check(std::ranges::binary_search(tensor.consumers, OpId(i)), [&] {
        return fmt::format("'{}' is missing among the readers of '{}'", op.name, tensor.name);
      });
    }
    for (const auto& output : op.outputs) {
      check(!output || graph.tensor(*output).producer == OpId(i),
            [&] { return fmt::format("an output of '{}' names another producer", op.name); });
    }
    try {
      check_contract(graph, op);
    } catch (const InputError& error) {
      throw InternalError(error.what());
    }
    verify_nest(graph, op);
  }
}

std::optional<Integers> known_integers(const Graph& graph, const Operator& op, std::size_t input) {
  if (input >= op.inputs.size() || !op.inputs[input])
    return std::nullopt;
  const auto* integers = integers_of(graph.tensor(*op.inputs[input]).values);
  return integers ? std::optional(*integers) : std::nullopt;
}

std::vector<OpId> all_operators(const Graph& graph) {
  std::vector<OpId> all;
  for (std::size_t i = 0; i < graph.operators().size(); ++i)
    all.emplace_back(i);
  return all;
}

std::int64_t parameter_count(const Graph& graph) {
  std::int64_t total = 0;
  for (const Tensor& tensor : graph.tensors()) {
    if (tensor.kind == TensorKind::parameter)
      total = checked_add(total, element_count(tensor));
  }
  return total;
}

} // namespace monet
