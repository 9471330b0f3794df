// Graph: a network or training step as tensors, and operators in topological order.
// Example:
//   Bits size_of_parameters(const Graph& network) {
//     Bits sum;
//     for (const Tensor& tensor : network.tensors())
//       if (tensor.kind == TensorKind::parameter)
//         sum += size_of(tensor);
//     return sum;
//   }
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

/// Role of a tensor in a network or training step.
enum class TensorKind {
  input,              ///< given: images, token ids
  label,              ///< given: targets of the loss
  parameter,          ///< trained (unless frozen)
  buffer,             ///< stored but not trained: running statistics, masks
  constant,           ///< known numbers of the network
  activation,         ///< output of a forward or loss operator
  gradient,           ///< gradient of an activation
  parameter_gradient, ///< gradient of a parameter
  optimizer_state,    ///< such as moments
};
std::string_view name_of(TensorKind kind);
/// Whether the kind is a gradient of an activation or a parameter.
constexpr bool is_gradient(TensorKind kind) {
  return kind == TensorKind::gradient || kind == TensorKind::parameter_gradient;
}

/// Whether tensors of the kind exist before and after a step.
constexpr bool is_state(TensorKind kind) {
  return kind == TensorKind::parameter || kind == TensorKind::buffer ||
         kind == TensorKind::constant || kind == TensorKind::optimizer_state;
}

/// Numbers of a constant, row-major: integers exactly, all others as double.
using ConstantValues = std::variant<Integers, std::vector<double>>;
/// Integers of a constant; null if its numbers are unknown or real.
inline const Integers* integers_of(const std::optional<ConstantValues>& values) {
  return values ? std::get_if<Integers>(&*values) : nullptr;
}
/// Real numbers of a constant; null if its numbers are unknown or integers.
inline const std::vector<double>* reals_of(const std::optional<ConstantValues>& values) {
  return values ? std::get_if<std::vector<double>>(&*values) : nullptr;
}

/// A tensor with its producer and consumers.
struct Tensor {
  std::string name;
  Integers shape; ///< empty: scalar
  ElementType type = ElementType::fp32;
  TensorKind kind = TensorKind::activation;
  std::optional<OpId> producer; ///< nullopt: a graph input, parameter, buffer or constant
  std::vector<OpId> consumers;  ///< in topological order, each once
  /// Tensor whose storage it shares: for example, an updated weight is stored in the weight's
  /// memory.
  std::optional<TensorId> alias_of;
  /// Known numbers of a constant.
  std::optional<ConstantValues> values;
};
/// Number of elements of a tensor.
std::int64_t element_count(const Tensor& tensor);
/// Storage of a tensor with its scales. Blocks are padded along their axis; rows shorter than a
/// block share blocks. If scales are stored separately, there is one per started block, without
/// padding.
Bits size_of(const Tensor& tensor);

/// Value of an attribute.
using AttributeValue = std::variant<std::int64_t, double, std::string, Integers,
                                    std::vector<double>, std::vector<std::string>>;

/// Attributes by name, as in ONNX. Readers pass the default of the operator's definition as
/// `fallback`.
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

/// Part of a training step that an operator belongs to.
enum class Phase { forward, loss, backward, update, recompute };
std::string_view name_of(Phase phase);

/// Gradient that a backward product computes; the MAC counts `macs` in results are split by it.
enum class GradientOf { none, input, weight, both };

/// Type of an operator, such as "Conv", "ConvGradWeight" or "AdamUpdate". Each name is stored once,
/// so a comparison of types compares addresses.
class OpType {
public:
  struct Name {
    std::string_view text;
    int place; ///< in the catalogue of operators; -1: not in it
  };

  OpType() : OpType(std::string_view{}) {}
  /// The type of this name, whether or not an operator has it.
  OpType(std::string_view name); // NOLINT(google-explicit-constructor)
  OpType(const char* name) : OpType(std::string_view(name)) {}
  OpType(const std::string& name) : OpType(std::string_view(name)) {}
  /// A name that exists as long as the program.
  constexpr explicit OpType(const Name& name) : name_(&name) {}

  constexpr std::string_view name() const { return name_->text; }
  constexpr operator std::string_view() const { return name(); }
  std::string str() const { return std::string(name()); }
  constexpr int place() const { return name_->place; }
  constexpr bool empty() const { return name().empty(); }
  constexpr bool is_one_of(std::initializer_list<OpType> types) const {
    for (const OpType type : types) {
      if (name_ == type.name_)
        return true;
    }
    return false;
  }
  bool contains(std::string_view part) const { return name().find(part) != name().npos; }
  bool starts_with(std::string_view start) const { return name().starts_with(start); }
  bool ends_with(std::string_view end) const { return name().ends_with(end); }

  friend constexpr bool operator==(OpType a, OpType b) { return a.name_ == b.name_; }
  friend constexpr bool operator==(OpType a, std::string_view b) { return a.name() == b; }
  friend constexpr bool operator==(OpType a, const char* b) { return a.name() == b; }
  friend bool operator==(OpType a, const std::string& b) { return a.name() == b; }

private:
  const Name* name_;
};

/// Domain of operators that ONNX does not define: gradients and optimiser updates.
inline constexpr std::string_view kMonetDomain = "ai.monet";

/// An operator with its tensors and loop nest.
struct Operator {
  /// Name, unique in the graph; derived from the output's name if the file has none.
  std::string name;
  OpType op_type;
  std::string domain; ///< empty: ai.onnx
  Attributes attributes;
  std::vector<std::optional<TensorId>> inputs; ///< nullopt: optional input is omitted
  std::vector<std::optional<TensorId>> outputs;
  Phase phase = Phase::forward;
  GradientOf gradient_of = GradientOf::none;
  /// Backward and recompute operators: the forward operator that they belong to.
  std::optional<OpId> forward_op;
  LoopNest nest; ///< dims and operands are empty for a view
  /// Products: format to which the unit converts operands before it multiplies them. nullopt: no
  /// conversion.
  std::optional<NumberFormat> multiplied_in;
};
/// View of the inputs or outputs of an operator, without omitted ones.
inline auto present(std::span<const std::optional<TensorId>> ids) {
  return ids | std::views::filter([](const auto& id) { return id.has_value(); }) |
         std::views::transform([](const auto& id) { return *id; });
}

/// A floating-point tensor of a file that looks like a buffer, and the reason ("its name").
struct FoundBuffer {
  std::string name;
  std::string why;
  /// Whether the decision is uncertain: not based on a certain name, the user, or the file's list.
  bool is_guess = false;
  std::int64_t elements = 0;
};

/// An initialiser whose numbers, or transposed numbers, equal another's bit for bit.
struct EqualWeights {
  std::string name;
  std::string of; ///< first initialiser with these numbers
  bool is_transposed = false;
  bool is_tied = false; ///< both are one parameter, `of`
};

/// Tensors and operators by id. Operators are stored in topological order; ids never change.
class Graph {
public:
  std::string name;
  std::string origin; ///< file that it was read from
  /// Initialisers that the reader classified as buffers in the network's file, except running
  /// statistics.
  std::vector<FoundBuffer> buffers;
  /// Parameters of the network's file that may be buffers.
  std::vector<FoundBuffer> doubtful;
  /// Duplicate initialisers of the network's file. Empty if the file lists its parameters.
  std::vector<EqualWeights> equal_weights;
  std::vector<TensorId> inputs;
  std::vector<TensorId> outputs;

  /// Appends a tensor.
  TensorId add_tensor(Tensor tensor);
  /// Appends an operator and links producers and consumers. The nest may be set later through op().
  /// Throws InternalError if an input has no producer yet, or if an output already has one.
  OpId add_operator(Operator op);

  const Tensor& tensor(TensorId id) const { return tensors_.at(id.index()); }
  Tensor& tensor(TensorId id) { return tensors_.at(id.index()); }
  const Operator& op(OpId id) const { return operators_.at(id.index()); }
  Operator& op(OpId id) { return operators_.at(id.index()); }
  const std::vector<Tensor>& tensors() const { return tensors_; }
  const std::vector<Operator>& operators() const { return operators_; }
  /// Tensor with this name; nullopt if there is no such tensor.
  std::optional<TensorId> find_tensor(std::string_view name) const;

  /// Replaces one input of an operator and updates consumer lists.
  void replace_input(OpId op, std::size_t input, TensorId tensor);

private:
  std::vector<Tensor> tensors_;
  std::vector<Operator> operators_;
};

/// Ids of all operators, in order.
std::vector<OpId> all_operators(const Graph& graph);

/// Checks the invariants of a graph: topological order, consistent links, unique names, and
/// constants with a number per element. Operands must match the operator's definition in number and
/// kind. Nests must access the operator's tensors, with one expression per axis. Throws
/// InternalError if an invariant is violated.
void verify(const Graph& graph);

/// Integers of a constant input; nullopt if it is omitted or its integers are unknown.
std::optional<Integers> known_integers(const Graph& graph, const Operator& op, std::size_t input);

/// Number of elements of all parameters, each counted once.
std::int64_t parameter_count(const Graph& graph);

} // namespace monet
