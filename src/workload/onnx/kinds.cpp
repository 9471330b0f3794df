// Which values are trained, fed in, or merely kept. ONNX does not say; the readers of a value do.
#include "workload/onnx/model.hpp"

#include <algorithm>
#include <span>

namespace monet::onnx_file {

namespace {

/// A use of a value: input `input` of an operator of that type.
struct Position {
  std::string_view op_type;
  std::size_t input;
};

/// Inputs of an operator type: bit i is input i.
struct Places {
  std::string_view op_type;
  std::uint32_t inputs;
};

/// Floating values read only here are settings of an operator, not weights.
constexpr Places kSettings[]{
    {"Clip", 0b110},
    {"DequantizeLinear", 0b110},
    {"Dropout", 0b110},
    {"Expand", 0b10},
    {"OneHot", 0b100},
    {"Pad", 0b100},
    {"QLinearConv", 0b101'0010},
    {"QLinearMatMul", 0b101'0010},
    {"QuantizeLinear", 0b110},
    {"Range", 0b111},
    {"Resize", 0b110},
    {"SoftmaxCrossEntropyLossGrad", 0b1},
    {"Upsample", 0b10},
    {"Where", 0b1},
};

/// Weights, whatever their element type (quantised networks store integers here).
constexpr Places kWeights[]{
    {"Conv", 0b110},
    {"ConvTranspose", 0b110},
    {"ConvInteger", 0b10},
    {"Gemm", 0b110},
    {"QLinearConv", 0b1'0000'1000},
    {"MatMulInteger", 0b10},
    {"QLinearMatMul", 0b1000},
    {"Gather", 0b1},
    {"MatMul", 0b11},
    {"FusedMatMul", 0b11},
    {"PRelu", 0b10},
    {"LSTM", 0b1110},
    {"GRU", 0b1110},
    {"RNN", 0b1110},
};

constexpr Places kRunningStatistics[]{{"BatchNormalization", 0b1'1000}};

/// Exporters fold the zeros that a recurrent layer starts with into initializers.
constexpr Places kInitialStates[]{{"LSTM", 0b110'0000}, {"GRU", 0b10'0000}, {"RNN", 0b10'0000}};

constexpr Places kLabels[]{{"SoftmaxCrossEntropyLoss", 0b10},
                           {"NegativeLogLikelihoodLoss", 0b10},
                           {"SoftmaxCrossEntropyLossGrad", 0b100}};

constexpr Places kExponent[]{{"Pow", 0b10}};
constexpr Places kGathered[]{{"Gather", 0b1}};

bool listed(std::span<const Places> table, const Position& position) {
  return position.input < 32 && std::any_of(table.begin(), table.end(), [&](const Places& places) {
           return places.op_type == position.op_type && (places.inputs >> position.input & 1U) != 0;
         });
}

bool is_zero(const Value& value) {
  const auto* numbers = value.values ? std::get_if<std::vector<double>>(&*value.values) : nullptr;
  return numbers != nullptr &&
         std::all_of(numbers->begin(), numbers->end(), [](double v) { return v == 0.0; });
}

using Readers = std::unordered_map<std::string_view, std::vector<Position>>;

Readers find_readers(const Model& model) {
  Readers readers;
  for (const Node& node : model.nodes) {
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      readers[node.inputs[i]].push_back({node.op_type, i});
    }
  }
  return readers;
}

constexpr std::string_view kUpdated = "_optimizer_end";

/// The published training graphs of MONET feed weights, moments and data alike as graph inputs and
/// return the updated weight w as "<w>_optimizer_end".
bool is_training_graph(const Model& model) {
  return std::any_of(model.outputs.begin(), model.outputs.end(),
                     [](const Declared& output) { return output.name.ends_with(kUpdated); });
}

class KindRules {
public:
  explicit KindRules(const Model& model)
      : model_(model), readers_(find_readers(model)), training_graph_(is_training_graph(model)) {}

  TensorKind of_input(const Declared& input) const {
    if (any(input.name, kLabels))
      return TensorKind::label;
    if (!training_graph_ || !input.type || !is_floating(*input.type))
      return TensorKind::input;
    const std::string_view name = input.name;
    if (name.find("_optimizer_first_moment") != name.npos ||
        name.find("_optimizer_second_moment") != name.npos) {
      return TensorKind::optimizer_state;
    }
    if (name.find("accumulation.buffer") != name.npos)
      return TensorKind::buffer;
    // Activations fed in start with the batch axis of the first input; weights read as the data of
    // a product do not exist in these graphs, so being the first graph input tells them apart.
    return &input == &model_.inputs.front() ? TensorKind::input : TensorKind::parameter;
  }

  TensorKind of_initializer(const std::string& name, const Value& value) const {
    const TensorKind known = value.values ? TensorKind::constant : TensorKind::buffer;
    if (all(name, kRunningStatistics))
      return TensorKind::buffer;
    const bool weight = any(name, kWeights);
    if (!is_floating(value.type)) {
      const bool quantised = value.type == ElementType::int8 || value.type == ElementType::uint8;
      return weight && quantised && !any(name, kGathered) ? TensorKind::parameter : known;
    }
    // An exponent is trained only where there is one for every channel or element.
    const bool exponent =
        value.values && value.shape == std::vector<std::int64_t>{1} && all(name, kExponent);
    if (all(name, kSettings) || (value.shape.empty() && value.values) || exponent)
      return known;
    if (all(name, kInitialStates) && is_zero(value))
      return known;
    return !training_graph_ || weight ? TensorKind::parameter : known;
  }

private:
  bool any(std::string_view name, std::span<const Places> table) const {
    const auto found = readers_.find(name);
    return found != readers_.end() &&
           std::any_of(found->second.begin(), found->second.end(),
                       [&](const Position& at) { return listed(table, at); });
  }
  bool all(std::string_view name, std::span<const Places> table) const {
    const auto found = readers_.find(name);
    return found != readers_.end() &&
           std::all_of(found->second.begin(), found->second.end(),
                       [&](const Position& at) { return listed(table, at); });
  }

  const Model& model_;
  Readers readers_;
  bool training_graph_;
};

} // namespace

std::unordered_map<std::string, TensorKind> decide_kinds(const Model& model) {
  const KindRules rules(model);
  std::unordered_map<std::string, TensorKind> kinds;
  for (const Declared& input : model.inputs)
    kinds[input.name] = rules.of_input(input);
  for (const std::string& name : model.initializer_order) {
    kinds[name] = rules.of_initializer(name, model.initializers.at(name));
  }
  return kinds;
}

} // namespace monet::onnx_file
