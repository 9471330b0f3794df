// Which values are trained, fed in, or merely kept. ONNX does not say; the readers of a value do.
#include "workload/onnx/model.hpp"

#include <algorithm>
#include <array>

namespace monet::onnx_file {

namespace {

struct Position {
  std::string_view op_type;
  std::size_t input;
  friend bool operator==(const Position&, const Position&) = default;
};

/// Floating values read only here are settings of an operator, not weights.
constexpr std::array kSettings{
    Position{"Clip", 1},
    Position{"Clip", 2},
    Position{"DequantizeLinear", 1},
    Position{"DequantizeLinear", 2},
    Position{"Dropout", 1},
    Position{"Dropout", 2},
    Position{"Expand", 1},
    Position{"OneHot", 2},
    Position{"Pad", 2},
    Position{"QLinearConv", 1},
    Position{"QLinearConv", 4},
    Position{"QLinearConv", 6},
    Position{"QLinearMatMul", 1},
    Position{"QLinearMatMul", 4},
    Position{"QLinearMatMul", 6},
    Position{"QuantizeLinear", 1},
    Position{"QuantizeLinear", 2},
    Position{"Range", 0},
    Position{"Range", 1},
    Position{"Range", 2},
    Position{"Resize", 1},
    Position{"Resize", 2},
    Position{"SoftmaxCrossEntropyLossGrad", 0},
    Position{"Upsample", 1},
    Position{"Where", 0},
};

/// Weights, whatever their element type (quantised networks store integers here).
constexpr std::array kWeights{
    Position{"Conv", 1},          Position{"Conv", 2},          Position{"ConvTranspose", 1},
    Position{"ConvTranspose", 2}, Position{"ConvInteger", 1},   Position{"Gemm", 1},
    Position{"Gemm", 2},          Position{"QLinearConv", 3},   Position{"QLinearConv", 8},
    Position{"MatMulInteger", 1}, Position{"QLinearMatMul", 3}, Position{"Gather", 0},
    Position{"MatMul", 0},        Position{"MatMul", 1},        Position{"FusedMatMul", 0},
    Position{"FusedMatMul", 1},   Position{"PRelu", 1},         Position{"LSTM", 1},
    Position{"LSTM", 2},          Position{"LSTM", 3},          Position{"GRU", 1},
    Position{"GRU", 2},           Position{"GRU", 3},           Position{"RNN", 1},
    Position{"RNN", 2},           Position{"RNN", 3},
};

constexpr std::array kRunningStatistics{Position{"BatchNormalization", 3},
                                        Position{"BatchNormalization", 4}};

/// Exporters fold the zeros that a recurrent layer starts with into initializers.
constexpr std::array kInitialStates{Position{"LSTM", 5}, Position{"LSTM", 6}, Position{"GRU", 5},
                                    Position{"RNN", 5}};

constexpr std::array kLabels{
    Position{"SoftmaxCrossEntropyLoss", 1},
    Position{"NegativeLogLikelihoodLoss", 1},
    Position{"SoftmaxCrossEntropyLossGrad", 2},
};

template <class Table>
bool listed(const Table& table, const Position& position) {
  return std::find(table.begin(), table.end(), position) != table.end();
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

bool ends_with(std::string_view text, std::string_view ending) {
  return text.size() >= ending.size() && text.substr(text.size() - ending.size()) == ending;
}

constexpr std::string_view kUpdated = "_optimizer_end";

/// The published training graphs of MONET feed weights, moments and data alike as graph inputs and
/// return the updated weight w as "<w>_optimizer_end".
bool is_training_graph(const Model& model) {
  return std::any_of(model.outputs.begin(), model.outputs.end(),
                     [](const Declared& output) { return ends_with(output.name, kUpdated); });
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
      return weight && quantised && !any_gather(name) ? TensorKind::parameter : known;
    }
    // An exponent is trained only where there is one for every channel or element.
    const bool exponent = value.values && value.shape == std::vector<std::int64_t>{1} &&
                          all(name, std::array{Position{"Pow", 1}});
    if (all(name, kSettings) || (value.shape.empty() && value.values) || exponent)
      return known;
    if (all(name, kInitialStates) && is_zero(value))
      return known;
    return !training_graph_ || weight ? TensorKind::parameter : known;
  }

private:
  template <class Table>
  bool any(std::string_view name, const Table& table) const {
    const auto found = readers_.find(name);
    return found != readers_.end() &&
           std::any_of(found->second.begin(), found->second.end(),
                       [&](const Position& at) { return listed(table, at); });
  }
  template <class Table>
  bool all(std::string_view name, const Table& table) const {
    const auto found = readers_.find(name);
    return found != readers_.end() &&
           std::all_of(found->second.begin(), found->second.end(),
                       [&](const Position& at) { return listed(table, at); });
  }
  bool any_gather(std::string_view name) const {
    return any(name, std::array{Position{"Gather", 0}});
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
