// Networks and training steps as one kind of graph: tensors, and operators in topological order.
#pragma once

#include "monet/base/ids.hpp"
#include "monet/base/units.hpp"
#include "monet/workload/element_type.hpp"
#include "monet/workload/loop_nest.hpp"

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace monet {

enum class TensorKind {
  input,              ///< fed in: images, token ids
  label,              ///< fed in: targets of the loss
  parameter,          ///< trained (unless frozen)
  buffer,             ///< kept but not trained: running statistics, masks
  constant,           ///< known numbers of the network
  activation,         ///< made by a forward or loss operator
  gradient,           ///< gradient of an activation
  parameter_gradient, ///< gradient of a parameter
  optimizer_state,    ///< moments
};
std::string_view name_of(TensorKind kind);
/// Of an activation or a parameter.
constexpr bool is_gradient(TensorKind kind) {
  return kind == TensorKind::gradient || kind == TensorKind::parameter_gradient;
}

/// There before a step and after it.
constexpr bool is_state(TensorKind kind) {
  return kind == TensorKind::parameter || kind == TensorKind::buffer ||
         kind == TensorKind::constant || kind == TensorKind::optimizer_state;
}

/// Numbers known at compile time, row-major: integers exactly, everything else as double.
using ConstantValues = std::variant<Integers, std::vector<double>>;
/// The integers, or the real numbers, of a constant; null where none are known or it has the
/// others.
inline const Integers* integers_of(const std::optional<ConstantValues>& values) {
  return values ? std::get_if<Integers>(&*values) : nullptr;
}
inline const std::vector<double>* reals_of(const std::optional<ConstantValues>& values) {
  return values ? std::get_if<std::vector<double>>(&*values) : nullptr;
}

struct Tensor {
  std::string name;
  Integers shape; ///< empty = scalar
  ElementType type = ElementType::fp32;
  TensorKind kind = TensorKind::activation;
  std::optional<OpId> producer; ///< none: a graph input, parameter, buffer or constant
  std::vector<OpId> consumers;  ///< in topological order, each once
  std::optional<TensorId>
      alias_of; ///< shares storage: the updated weight is the weight's own memory
  std::optional<ConstantValues> values;
};
std::int64_t element_count(const Tensor& tensor);
/// Whole blocks along the last axis, one shorter than a block sharing them between rows; where
/// scales lie beside the elements, a scale for every block of a row, or of rows, that is begun.
Bits size_of(const Tensor& tensor);

using AttributeValue = std::variant<std::int64_t, double, std::string, Integers,
                                    std::vector<double>, std::vector<std::string>>;

/// Attributes by name, as in ONNX. Readers give the default of the operator's definition.
class Attributes {
public:
  Attributes() = default;
  Attributes(std::initializer_list<std::pair<const std::string, AttributeValue>> values)
      : values_(values) {}
  void set(std::string name, AttributeValue value) { values_[std::move(name)] = std::move(value); }
  bool has(std::string_view name) const { return values_.find(name) != values_.end(); }
  std::int64_t integer(std::string_view name, std::int64_t fallback) const;
  double number(std::string_view name, double fallback) const;
  std::string text(std::string_view name, std::string_view fallback) const;
  Integers integers(std::string_view name, Integers fallback = {}) const;
  const std::map<std::string, AttributeValue, std::less<>>& all() const { return values_; }
  friend bool operator==(const Attributes&, const Attributes&) = default;

private:
  std::map<std::string, AttributeValue, std::less<>> values_;
};

enum class Phase { forward, loss, backward, update, recompute };
std::string_view name_of(Phase phase);

/// Which gradient a backward product computes; splits the MAC count as `macs` in the results does.
enum class GradientOf { none, input, weight, both };

/// Domain of operators that ONNX does not define: gradients and optimiser updates.
inline constexpr std::string_view kMonetDomain = "ai.monet";

struct Operator {
  std::string name; ///< unique in the graph; made from the output's name when the file gives none
  std::string op_type; ///< "Conv", "ConvGradWeight", "AdamUpdate"
  std::string domain;  ///< "" = ai.onnx
  Attributes attributes;
  std::vector<std::optional<TensorId>> inputs; ///< nullopt = optional input left out
  std::vector<std::optional<TensorId>> outputs;
  Phase phase = Phase::forward;
  GradientOf gradient_of = GradientOf::none;
  std::optional<OpId> forward_op; ///< backward and recompute operators: the operator they belong to
  LoopNest nest;                  ///< empty dims and operands for a view
  /// Of products: what their unit converts operands to before it multiplies them; none: nothing.
  std::optional<NumberFormat> multiplied_in;
};
/// Those inputs or outputs of an operator that are not left out, as a view of the list.
inline auto present(std::span<const std::optional<TensorId>> ids) {
  return ids | std::views::filter([](const auto& id) { return id.has_value(); }) |
         std::views::transform([](const auto& id) { return *id; });
}

/// A floating tensor of a file that looks like a buffer, and what makes it so ("its name").
struct FoundBuffer {
  std::string name;
  std::string why;
  bool is_guess = false; ///< no certain name, nor the user, nor the file's own list decides
  std::int64_t elements = 0;
};

/// An initialiser that has the numbers of another, bit for bit, or of its transpose.
struct EqualWeights {
  std::string name;
  std::string of; ///< the first with these numbers
  bool is_transposed = false;
  bool is_tied = false; ///< one parameter, `of`, stands for both
};

/// Tensors and operators by id. Operators are stored in topological order; ids never change.
class Graph {
public:
  std::string name;
  std::string origin; ///< file it was read from
  /// What was taken for a buffer in the network's file, running statistics aside.
  std::vector<FoundBuffer> buffers;
  /// Parameters of the network's file that may be buffers.
  std::vector<FoundBuffer> doubtful;
  /// What the network's file has twice. Empty where the file lists its parameters.
  std::vector<EqualWeights> equal_weights;
  std::vector<TensorId> inputs;
  std::vector<TensorId> outputs;

  TensorId add_tensor(Tensor tensor);
  /// Appends an operator, links producers and consumers. The nest may be filled in later through
  /// op(). InternalError when an input is produced by nobody yet or an output has a producer
  /// already.
  OpId add_operator(Operator op);

  const Tensor& tensor(TensorId id) const { return tensors_.at(id.index()); }
  Tensor& tensor(TensorId id) { return tensors_.at(id.index()); }
  const Operator& op(OpId id) const { return operators_.at(id.index()); }
  Operator& op(OpId id) { return operators_.at(id.index()); }
  const std::vector<Tensor>& tensors() const { return tensors_; }
  const std::vector<Operator>& operators() const { return operators_; }
  std::optional<TensorId> find_tensor(std::string_view name) const;

  /// Changes one input of an operator and keeps consumer lists right.
  void replace_input(OpId op, std::size_t input, TensorId tensor);

private:
  std::vector<Tensor> tensors_;
  std::vector<Operator> operators_;
};

/// Ids of all operators, in order.
std::vector<OpId> all_operators(const Graph& graph);

/// Invariants, thrown as InternalError: topological order, links both ways, unique names, constants
/// with a number for each element, operands that keep the operator's contract (their count and
/// kinds), nests whose operands are the operator's tensors with one axis expression per axis.
void verify(const Graph& graph);

/// Integers of a constant input; nullopt when it is left out or they are not known.
std::optional<Integers> known_integers(const Graph& graph, const Operator& op, std::size_t input);

/// Elements of all parameters (each once, however often it is used).
std::int64_t parameter_count(const Graph& graph);

} // namespace monet
