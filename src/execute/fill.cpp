// Random numbers for the tensors that a graph expects from outside.

#include "execute/shared/generator.hpp"
#include "workload/shared/op_types.hpp"

#include "monet/base/stop.hpp"
#include "monet/execute/execute.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>

namespace monet {

const Operator& first_reader(const Graph& graph, const Tensor& tensor) {
  for (const OpId id : tensor.consumers) {
    const Operator& op = graph.op(id);
    if (op.op_type == ops::Amax) // its scale is found
      continue;
    const bool casts = op.op_type == ops::ScaledCast || op.op_type == ops::BlockCast ||
                       op.op_type == ops::Quantise || op.op_type == ops::Requantise;
    if (!casts || op.outputs.empty() || !op.outputs[0] ||
        graph.tensor(*op.outputs[0]).consumers.empty())
      return op;
    return graph.op(graph.tensor(*op.outputs[0]).consumers.front());
  }
  return graph.op(tensor.consumers.front());
}

std::int64_t fan_in(const Graph& graph, const Tensor& weight) {
  const std::int64_t count = element_count(weight);
  if (weight.consumers.empty() || weight.shape.empty())
    return 1;
  const Operator& reader = first_reader(graph, weight);
  if (reader.op_type == ops::Gather) // an embedding: rows are picked, nothing is summed
    return 1;
  const std::size_t rank = weight.shape.size();
  const bool by_columns =
      reader.op_type == ops::MatMul ||
      (reader.op_type == ops::Gemm && reader.attributes.integer("transB", 0) == 0);
  const std::int64_t outputs = by_columns ? weight.shape[rank - 1] : weight.shape[0];
  return std::max<std::int64_t>(1, outputs == 0 ? 1 : count / outputs);
}

namespace {

bool is_normalisation(const Operator& op) {
  return op.op_type.contains("Norm");
}

std::int64_t classes_of(const TrainingGraph& step, const Tensor& label) {
  for (const OpId reader : label.consumers) {
    const Operator& op = step.graph.op(reader);
    for (const auto& input : op.inputs) {
      if (!input || !is_floating(step.graph.tensor(*input).type))
        continue;
      const auto& shape = step.graph.tensor(*input).shape;
      if (shape.size() < 2)
        continue;
      const bool first = op.op_type == ops::NegativeLogLikelihoodLoss ||
                         op.op_type == ops::LabelSmoothingLoss; // classes are axis 1
      return first ? shape[1] : shape.back();
    }
    for (const auto& output : op.outputs) { // a view of the labels
      if (output && !is_floating(step.graph.tensor(*output).type))
        return classes_of(step, step.graph.tensor(*output));
    }
  }
  return 2;
}

/// Indices: below the extent of the axis that they pick from.
std::int64_t index_range(const Graph& graph, const Tensor& tensor) {
  for (const OpId reader : tensor.consumers) {
    const Operator& op = graph.op(reader);
    const bool picks = op.op_type == ops::Gather || op.op_type == ops::RoiAlign; // one image of all
    if (!picks || !op.inputs[0])
      continue;
    const auto& shape = graph.tensor(*op.inputs[0]).shape;
    const auto rank = static_cast<std::int64_t>(shape.size());
    const std::int64_t axis = op.attributes.integer("axis", 0);
    return shape.at(static_cast<std::size_t>(axis < 0 ? axis + rank : axis));
  }
  return 2;
}

} // namespace

std::vector<double> generate(const Tensor& tensor, const FillRule& rule, std::uint64_t seed) {
  const NumberGenerator generator(tensor.name, seed);
  std::vector<double> numbers(static_cast<std::size_t>(element_count(tensor)));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (i % 1024 == 0)
      check_stop();
    numbers[i] = rule.range > 0 ? static_cast<double>(generator.index(i, rule.range))
                                : rule.offset + rule.scale * generator.uniform(i);
  }
  return numbers;
}

namespace {

/// Masks and indices that the network computes from constants, but too large to be kept: nothing
/// may be invented for them.
bool is_lost_constant(const Tensor& tensor) {
  const bool known_once = tensor.kind == TensorKind::buffer || tensor.kind == TensorKind::constant;
  return known_once && !is_floating(tensor.type);
}

/// By what the tensor is for: weights uniform within sqrt(3 / fan-in) so that variances are kept,
/// scales of normalisations around 1, biases and states near 0, labels below the number of classes.
FillRule default_fill(const TrainingGraph& step, TensorId id) {
  const Tensor& tensor = step.graph.tensor(id);
  if (!is_floating(tensor.type)) {
    return {0.0, 0.0,
            tensor.kind == TensorKind::label ? classes_of(step, tensor)
                                             : index_range(step.graph, tensor)};
  }
  if (tensor.kind == TensorKind::optimizer_state)
    return {0.0, 0.0, 0};
  if (tensor.kind == TensorKind::parameter || tensor.kind == TensorKind::buffer) {
    const bool normalises =
        !tensor.consumers.empty() && is_normalisation(step.graph.op(tensor.consumers.front()));
    if (normalises) {
      const Operator& op = step.graph.op(tensor.consumers.front());
      const bool around_one = (op.inputs.size() > 1 && op.inputs[1] == id) ||
                              (op.inputs.size() > 4 && op.inputs[4] == id);
      return {around_one ? 1.0 : 0.0, around_one ? 0.2 : 0.1, 0};
    }
    if (tensor.shape.size() < 2)
      return {0.0, 0.1, 0};
    return {0.0, std::sqrt(3.0 / static_cast<double>(fan_in(step.graph, tensor))), 0};
  }
  return {};
}

} // namespace

void fill(Execution& execution, const TrainingGraph& step, std::uint64_t seed) {
  for (std::size_t i = 0; i < step.graph.tensors().size(); ++i) {
    const TensorId id(i);
    const Tensor& tensor = step.graph.tensor(id);
    if (tensor.producer || execution.has(id) || tensor.consumers.empty())
      continue;
    const auto initial = std::ranges::find_if(
        step.initial, [&](const InitialState& state) { return state.state == id; });
    if (initial != step.initial.end() && initial->copy_of)
      continue;
    if (initial != step.initial.end()) {
      const auto count = static_cast<std::size_t>(element_count(tensor));
      execution.set(id, std::vector<double>(count, initial->value));
    } else if (!is_lost_constant(tensor)) {
      execution.set(id, generate(tensor, default_fill(step, id), seed));
    }
  }
  for (const InitialState& state : step.initial) {
    if (state.copy_of && !execution.has(state.state))
      execution.set(state.state, execution.get(*state.copy_of));
  }
}

namespace {

/// The slices [from, from + shape[axis]) of a row-major tensor.
std::vector<double> slices_of(std::span<const double> whole, const WeightPart& part,
                              const Integers& shape) {
  const auto product = [&](auto first, auto last) {
    return std::accumulate(first, last, std::int64_t{1}, std::multiplies<>());
  };
  const auto at = part.whole_shape.begin() + static_cast<std::ptrdiff_t>(part.axis);
  const std::int64_t outer = product(part.whole_shape.begin(), at);
  const std::int64_t inner = product(at + 1, part.whole_shape.end());
  const std::int64_t count = shape.at(part.axis) * inner;
  std::vector<double> numbers;
  for (std::int64_t o = 0; o < outer; ++o) {
    const auto first = whole.begin() + (o * *at + part.from) * inner;
    numbers.insert(numbers.end(), first, first + count);
  }
  return numbers;
}

std::int64_t set_whole_or_part(Execution& execution, const Graph& graph, std::string_view name,
                               std::span<const double> numbers) {
  const auto id = graph.find_tensor(std::string(name));
  if (!id || graph.tensor(*id).producer || execution.has(*id) ||
      static_cast<std::int64_t>(numbers.size()) != element_count(graph.tensor(*id)))
    return 0;
  execution.set(*id, numbers);
  return 1;
}

} // namespace

std::int64_t set_by_name(Execution& execution, const TrainingGraph& step, std::string_view name,
                         std::span<const double> numbers) {
  const Graph& graph = step.graph;
  std::int64_t count = set_whole_or_part(execution, graph, name, numbers);
  for (const WeightPart& part : step.parts) {
    const auto id = graph.find_tensor(part.name);
    if (part.whole != name || !id ||
        std::accumulate(part.whole_shape.begin(), part.whole_shape.end(), std::size_t{1},
                        std::multiplies<>()) != numbers.size())
      continue;
    const std::vector<double> own = slices_of(numbers, part, graph.tensor(*id).shape);
    count += set_whole_or_part(execution, graph, part.name, own);
  }
  return count;
}

bool takes_numbers(const Execution& execution, const TrainingGraph& step, std::string_view name) {
  const auto is_open = [&](std::string_view tensor) {
    const auto id = step.graph.find_tensor(tensor);
    return id && !step.graph.tensor(*id).producer && !execution.has(*id);
  };
  return is_open(name) || std::ranges::any_of(step.parts, [&](const WeightPart& part) {
           return part.whole == name && is_open(part.name);
         });
}

void set_step_number(Execution& execution, const TrainingGraph& step, std::int64_t number) {
  if (step.step_number)
    execution.set(*step.step_number, std::array{static_cast<double>(number)});
}

} // namespace monet
