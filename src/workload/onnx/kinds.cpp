// Decides which values are trained, inputs, or buffers. ONNX does not specify it, so the decision
// follows from the readers of each value. onnx_reader.cpp calls it before inference.
#include "base/shared/checked.hpp"
#include "base/shared/text.hpp"
#include "workload/onnx/model.hpp"
#include "workload/shared/op_types.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <span>
#include <unordered_set>

namespace monet::onnx_file {

namespace {

/// Input positions of an operator type: bit i stands for input i.
struct Places {
  OpType op_type;
  std::uint32_t inputs;
};

/// Positions of settings: floating values read only there are not weights.
constexpr Places kSettings[]{
    {ops::Clip, 0b110},
    {ops::DequantizeLinear, 0b110},
    {ops::Dropout, 0b110},
    {ops::Expand, 0b10},
    {ops::OneHot, 0b100},
    {ops::Pad, 0b100},
    {ops::QLinearConv, 0b101'0010},
    {ops::QLinearMatMul, 0b101'0010},
    {ops::QuantizeLinear, 0b110},
    {ops::Range, 0b111},
    {ops::Resize, 0b110},
    {ops::SoftmaxCrossEntropyLossGrad, 0b1},
    {ops::Upsample, 0b10},
    {ops::Where, 0b1},
};

/// Positions of weights of any element type; quantised networks store integers there.
constexpr Places kWeights[]{
    {ops::Conv, 0b110},
    {ops::ConvTranspose, 0b110},
    {ops::ConvInteger, 0b10},
    {ops::Gemm, 0b110},
    {ops::QLinearConv, 0b1'0000'1000},
    {ops::MatMulInteger, 0b10},
    {ops::QLinearMatMul, 0b1000},
    {ops::Gather, 0b1},
    {ops::MatMul, 0b11},
    {ops::FusedMatMul, 0b11},
    {ops::PRelu, 0b10},
    {ops::LSTM, 0b1110},
    {ops::GRU, 0b1110},
    {ops::RNN, 0b1110},
};

constexpr Places kRunningStatistics[]{{ops::BatchNormalization, 0b1'1000}};

/// Positions of initial states: exporters fold a recurrent layer's initial zeros into initialisers.
constexpr Places kInitialStates[]{
    {ops::LSTM, 0b110'0000}, {ops::GRU, 0b10'0000}, {ops::RNN, 0b10'0000}};

/// Positions of ones and zeros. Exporters write group normalisation as instance normalisation with
/// scale 1 and shift 0, and may fold both into initialisers.
constexpr Places kOnesAndZeros[]{{ops::InstanceNormalization, 0b110}};

constexpr Places kLabels[]{{ops::SoftmaxCrossEntropyLoss, 0b10},
                           {ops::NegativeLogLikelihoodLoss, 0b10},
                           {ops::SoftmaxCrossEntropyLossGrad, 0b100}};

constexpr Places kScales[]{{ops::QuantizeLinear, 0b10}, {ops::DequantizeLinear, 0b10}};

constexpr Places kGathered[]{{ops::Gather, 0b1}};

bool listed(std::span<const Places> table, const Use& use) {
  return use.input < 32 && std::ranges::any_of(table, [&](const Places& places) {
           return places.op_type == use.node->op_type && (places.inputs >> use.input & 1U) != 0;
         });
}

bool is_zero(const Value& value) {
  const auto* numbers = reals_of(value.values);
  return numbers != nullptr && std::ranges::all_of(*numbers, [](double v) { return v == 0.0; });
}

bool is_filled(const Value& value) {
  const auto* numbers = reals_of(value.values);
  return numbers != nullptr && !numbers->empty() &&
         std::ranges::all_of(*numbers, [&](double v) { return v == numbers->front(); });
}

double number_of(const Value& single) {
  return std::visit([](const auto& list) { return static_cast<double>(list.at(0)); },
                    *single.values);
}

bool is_single(const Value& value) {
  return std::ranges::all_of(value.shape, [](auto size) { return size == 1; });
}

using Readers = std::unordered_map<std::string_view, std::vector<Use>>;

/// Outer names of values that names within a graph refer to.
using Outside = std::unordered_map<std::string_view, std::string_view>;

void add_readers(const std::vector<Node>& nodes, const Outside& outside, Readers& readers) {
  const auto outer = [&](const std::string& name) {
    const auto found = outside.find(name);
    return found == outside.end() ? std::string_view(name) : found->second;
  };
  for (const Node& node : nodes) {
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      readers[outer(node.inputs[i])].push_back({&node, i});
    if (!node.inner)
      continue;
    const InnerGraphs& inner = *node.inner;
    for (const InnerGraph& graph : inner.graphs) {
      Outside names;
      for (std::size_t i = 0; i < inner.captured.size(); ++i)
        names[inner.captured[i]] = outer(node.inputs[inner.own_inputs + i]);
      // The graph's inputs are the node's inputs, except a loop's counter and condition.
      for (std::size_t i = node.op_type == ops::Loop ? 2 : 0;
           i < std::min(graph.inputs.size(), inner.own_inputs); ++i)
        names[graph.inputs[i]] = outer(node.inputs[i]);
      add_readers(graph.nodes, names, readers);
    }
  }
}

Readers find_readers(const Model& model) {
  Readers readers;
  add_readers(model.nodes, {}, readers);
  return readers;
}

constexpr std::string_view kUpdated = "_optimizer_end";

/// Whether the model is one of MONET's published training graphs. They have weights, moments and
/// data as graph inputs, and name the updated weight w "<w>_optimizer_end".
bool is_training_graph(const Model& model) {
  return std::ranges::any_of(
      model.outputs, [](const Declared& output) { return output.name.ends_with(kUpdated); });
}

class KindRules {
public:
  using Patterns = std::vector<std::string>;

  KindRules(const Model& model, const Patterns& parameters, const Patterns& buffers)
      : model_(model), parameters_(parameters), buffers_(buffers), readers_(find_readers(model)),
        training_graph_(is_training_graph(model)) {
    const auto listed = model.metadata.find(std::string(kParameterList));
    if (listed != model.metadata.end()) {
      listed_.emplace();
      std::string_view text = listed->second;
      while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        listed_->insert(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
      }
    }
  }

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
    // Activations among the inputs start with the first input's batch axis. In these graphs no
    // product reads a weight as its data, so only the first graph input is an activation here.
    return &input == &model_.inputs.front() ? TensorKind::input : TensorKind::parameter;
  }

  KindCandidate judge(const std::string& name, const Value& value) const {
    KindCandidate candidate{.name = name, .elements = checked_product(value.shape)};
    candidate.is_floating = is_floating(value.type);
    candidate.is_layer = any(name, kWeights) || is_layer_name(name);
    candidate.is_settled = matches(parameters_, name);
    candidate.has_place = model_.copies.count(name) == 0;
    candidate.kind = kind_of(name, value, candidate.sign);
    if (is_listed(name) && candidate.kind != TensorKind::parameter && candidate.is_floating)
      candidate.sign = {"its use as a setting of an operator", BufferSign::Strength::strong};
    if (candidate.kind == TensorKind::parameter && candidate.sign.why.empty() && !listed_ &&
        candidate.is_floating && !candidate.is_settled && is_suspect_name(name))
      candidate.sign = {"its name", BufferSign::Strength::weak};
    return candidate;
  }

  /// Whether the order of initialisers is informative: PyTorch writes a module's parameters before
  /// its buffers.
  bool has_module_order() const { return model_.producer == "pytorch" && !listed_; }

private:
  /// Decides the kind; sets `sign` if a floating tensor looks like a buffer.
  TensorKind kind_of(const std::string& name, const Value& value, BufferSign& sign) const {
    const TensorKind known = value.values ? TensorKind::constant : TensorKind::buffer;
    if (all(name, kRunningStatistics))
      return TensorKind::buffer;
    const bool weight = any(name, kWeights);
    if (!is_floating(value.type)) {
      const bool quantised = value.type == ElementType::int8 || value.type == ElementType::uint8;
      return weight && quantised && !any(name, kGathered) ? TensorKind::parameter : known;
    }
    if (only_set(name, 0))
      return is_learned_scale(name) ? TensorKind::parameter : known;
    if (matches(parameters_, name))
      return TensorKind::parameter;
    sign = sign_of(name, value);
    // A layer's weight may be initialised to filters or a transform and then trained; position
    // embeddings initialised so are buffers.
    const bool begins_so =
        sign.may_begin && has_module_order() && is_layer_name(name) && !any(name, kGathered);
    if (!sign.why.empty() && !begins_so)
      return TensorKind::buffer;
    if (is_single(value) && value.values && !weight && !listed_ &&
        (is_constant_name(name) || is_named_number(name, number_of(value))))
      return known;
    if (all(name, kInitialStates) && is_zero(value) && !listed_)
      return known;
    if (all(name, kOnesAndZeros) && is_filled(value) && is_constant_name(name) && !listed_)
      return known;
    return !training_graph_ || weight ? TensorKind::parameter : known;
  }

  bool is_listed(const std::string& name) const { return listed_ && listed_->count(name) != 0; }

  /// Whether every reader uses the value as a setting, directly or after casts and reshapes.
  bool only_set(std::string_view name, int depth) const {
    constexpr int kDepth = 8;
    const auto found = readers_.find(name);
    return depth < kDepth && found != readers_.end() &&
           std::ranges::all_of(found->second, [&](const Use& use) {
             const Node& node = *use.node;
             const bool passes =
                 use.input == 0 && node.outputs.size() == 1 &&
                 node.op_type.is_one_of({ops::Cast, ops::Identity, ops::Reshape, ops::Unsqueeze,
                                         ops::Squeeze, ops::Flatten});
             return listed(kSettings, use) || (passes && only_set(node.outputs[0], depth + 1));
           });
  }

  /// Whether a quantisation scale is learned, as the file or the options state; otherwise it is a
  /// setting.
  bool is_learned_scale(const std::string& name) const {
    return all(name, kScales) && (matches(parameters_, name) || is_listed(name));
  }

  static bool matches(const std::vector<std::string>& patterns, const std::string& name) {
    return std::ranges::any_of(
        patterns, [&](const std::string& pattern) { return glob_match(pattern, name); });
  }

  BufferSign sign_of(const std::string& name, const Value& value) const {
    using Strength = BufferSign::Strength;
    if (matches(buffers_, name))
      return {"asked for", Strength::certain};
    if (listed_ && !is_listed(name))
      return {"the file's list of parameters", Strength::certain};
    if (listed_)
      return {};
    BufferSign sign = buffer_by_name(name, has_two_numbers(value));
    if (sign.why.empty())
      sign = buffer_by_numbers(value, uses_of(name));
    if (sign.why.empty() && (normalises_image(name, value) || normalises_features(name)))
      sign = {"what normalises the input", Strength::strong};
    return sign;
  }

  const std::vector<Use>& uses_of(const std::string& name) const {
    static const std::vector<Use> kNone;
    const auto found = readers_.find(name);
    return found == readers_.end() ? kNone : found->second;
  }

  /// Whether the value is a per-channel mean subtracted from images, or the deviation that they are
  /// divided by afterwards.
  bool normalises_image(const std::string& name, const Value& value) const {
    const std::vector<Use>& uses = uses_of(name);
    if (uses.size() != 1 || uses[0].input != 1)
      return false;
    const Node& node = *uses[0].node;
    if (node.op_type == ops::Sub)
      return is_per_channel(value) && is_image(node.inputs[0]);
    if (node.op_type != ops::Div && node.op_type != ops::Mul)
      return false;
    const auto shifted = std::ranges::find_if(model_.nodes, [&](const Node& n) {
      return n.op_type == ops::Sub && n.inputs.size() == 2 && !n.outputs.empty() &&
             n.outputs[0] == node.inputs[0];
    });
    return shifted != model_.nodes.end() && is_per_channel(value) && is_image(shifted->inputs[0]);
  }

  /// Whether the value is a mean subtracted from a graph input before division by another
  /// initialiser, or that deviation.
  bool normalises_features(const std::string& name) const {
    const std::vector<Use>& uses = uses_of(name);
    if (uses.size() != 1 || uses[0].input != 1)
      return false;
    const auto is_input = [&](const std::string& value) {
      return std::ranges::any_of(model_.inputs,
                                 [&](const Declared& input) { return input.name == value; });
    };
    const auto is_pair = [&](const Node& shift, const Node& division) {
      return shift.op_type == ops::Sub && shift.inputs.size() == 2 &&
             division.op_type == ops::Div && division.inputs.size() == 2 &&
             is_input(shift.inputs[0]) && division.inputs[0] == shift.outputs[0] &&
             model_.initializers.count(shift.inputs[1]) != 0 &&
             model_.initializers.count(division.inputs[1]) != 0;
    };
    const Node& own = *uses[0].node;
    return std::ranges::any_of(model_.nodes, [&](const Node& other) {
      return is_pair(own, other) || is_pair(other, own);
    });
  }

  /// Whether the shape is [C, 1, 1] or [1, C, 1, 1] with few channels.
  static bool is_per_channel(const Value& value) {
    const Integers& shape = value.shape;
    const bool leading = shape.size() == 4 && shape[0] == 1;
    return (shape.size() == 3 || leading) && shape[shape.size() - 3] <= 4 &&
           shape[shape.size() - 2] == 1 && shape.back() == 1;
  }

  bool is_image(const std::string& name) const {
    return std::ranges::any_of(model_.inputs, [&](const Declared& input) {
      return input.name == name && input.shape && input.shape->size() == 4;
    });
  }

  bool any(std::string_view name, std::span<const Places> table) const {
    const auto found = readers_.find(name);
    return found != readers_.end() &&
           std::ranges::any_of(found->second, [&](const Use& at) { return listed(table, at); });
  }
  bool all(std::string_view name, std::span<const Places> table) const {
    const auto found = readers_.find(name);
    return found != readers_.end() &&
           std::ranges::all_of(found->second, [&](const Use& at) { return listed(table, at); });
  }

  const Model& model_;
  const Patterns& parameters_;
  const Patterns& buffers_;
  Readers readers_;
  bool training_graph_;
  std::optional<std::unordered_set<std::string_view>> listed_; ///< parameters that the file lists
};

/// Reports patterns that match no initialiser.
void check_patterns(const Model& model, const std::vector<std::string>& patterns,
                    std::string_view key, ProblemList& problems) {
  for (const std::string& pattern : patterns) {
    const auto& names = model.initializer_order;
    if (std::ranges::none_of(names,
                             [&](const std::string& name) { return glob_match(pattern, name); }))
      problems.add({model.origin, 0, 0, {}},
                   fmt::format("no initialiser matches the pattern '{}' of '{}'", pattern, key));
  }
}

} // namespace

void decide_kinds(NetworkDraft& draft, const std::vector<std::string>& parameters,
                  const std::vector<std::string>& buffers) {
  const Model& model = draft.model;
  Kinds& kinds = draft.kinds;
  check_patterns(model, parameters, "parameters", draft.problems);
  check_patterns(model, buffers, "buffers", draft.problems);
  const KindRules rules(model, parameters, buffers);
  for (const Declared& input : model.inputs)
    kinds.of[input.name] = rules.of_input(input);
  std::vector<KindCandidate> candidates;
  candidates.reserve(model.initializer_order.size());
  for (const std::string& name : model.initializer_order)
    candidates.push_back(rules.judge(name, model.initializers.at(name)));
  if (rules.has_module_order())
    apply_module_order(candidates);
  for (const KindCandidate& candidate : candidates) {
    kinds.of[candidate.name] = candidate.kind;
    if (candidate.sign.why.empty())
      continue;
    const bool is_guess = candidate.sign.strength != BufferSign::Strength::certain;
    auto& list = candidate.kind == TensorKind::parameter ? kinds.doubtful : kinds.buffers;
    list.push_back({candidate.name, candidate.sign.why, is_guess, candidate.elements});
  }
}

void check_size(const std::string& name, const Value& value, std::int64_t max_elements,
                SourceLoc where) {
  bool fits = true;
  try {
    fits = checked_product(value.shape) <= max_elements;
  } catch (const InputError&) {
    fits = false;
  }
  if (!fits)
    throw InputError(std::move(where),
                     fmt::format("'{}' has more than {} elements", name, max_elements));
}

void take_initialisers(NetworkDraft& draft, std::int64_t max_elements) {
  std::unordered_set<std::string_view> still; // buffers without a producer
  for (const FoundBuffer& buffer : draft.kinds.buffers)
    still.insert(buffer.name);
  for (const std::string& name : draft.model.initializer_order) {
    Value value = std::move(draft.model.initializers.at(name));
    const TensorKind kind = draft.kinds.of.at(name);
    value.is_constant = kind == TensorKind::constant || kind == TensorKind::buffer;
    // Running statistics change during training: they are kept, but are not constants.
    if (kind == TensorKind::buffer && is_floating(value.type) && !still.count(name))
      value.is_constant = false;
    if (!value.is_constant && checked_product(value.shape) != 1)
      value.values.reset();
    check_size(name, value, max_elements, at_tensor(draft.model, name));
    draft.values[name] = std::move(value);
  }
}

} // namespace monet::onnx_file
