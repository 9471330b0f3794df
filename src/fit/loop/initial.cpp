// Draws the initial numbers of parameters, states and running statistics. The training loop calls
// it before the first step.
#include "fit/loop/initial.hpp"

#include "base/shared/npy.hpp"
#include "execute/shared/generator.hpp"
#include "workload/shared/op_types.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/stop.hpp"
#include "monet/base/warnings.hpp"
#include "monet/workload/onnx_reader.hpp"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <numbers>
#include <optional>

namespace monet {

namespace {

namespace fs = std::filesystem;

using Scheme = InitialOptions::Scheme;

enum class Role { weight, bias, zeros, ones };

bool is_product(const Operator& op) {
  return op.op_type == ops::Conv || op.op_type == ops::ConvTranspose || op.op_type == ops::Gemm ||
         op.op_type == ops::MatMul;
}

/// Role of a tensor, if it determines the initial numbers.
std::optional<Role> role_of(const Graph& graph, TensorId id) {
  const Tensor& tensor = graph.tensor(id);
  const Operator& reader = first_reader(graph, tensor);
  const auto reads = [&](std::size_t input) {
    return reader.inputs.size() > input && reader.inputs[input] == id;
  };
  if (reader.op_type.contains("Norm")) // scale, bias, running mean and variance
    return reads(1) || reads(4)   ? std::optional(Role::ones)
           : reads(2) || reads(3) ? std::optional(Role::zeros)
                                  : std::nullopt;
  if (tensor.kind != TensorKind::parameter)
    return std::nullopt;
  if (tensor.shape.size() == 1 && ((is_product(reader) && reads(2)) || reader.op_type == ops::Add))
    return Role::bias;
  return is_product(reader) && tensor.shape.size() > 1 ? std::optional(Role::weight) : std::nullopt;
}

/// Weight of the layer that a bias belongs to.
const Tensor* weight_beside(const Graph& graph, const Tensor& bias) {
  const Operator& reader = first_reader(graph, bias);
  const auto weight_of = [&](const Operator& op) {
    return is_product(op) && op.inputs.size() > 1 && op.inputs[1] ? &graph.tensor(*op.inputs[1])
                                                                  : nullptr;
  };
  if (reader.op_type != ops::Add)
    return weight_of(reader);
  for (const TensorId other : present(reader.inputs)) {
    const auto producer = graph.tensor(other).producer;
    if (producer && weight_of(graph.op(*producer)) != nullptr)
      return weight_of(graph.op(*producer));
  }
  return nullptr;
}

std::vector<double> normal_numbers(const Tensor& tensor, double deviation, std::uint64_t seed) {
  const NumberGenerator generator(tensor.name, seed);
  std::vector<double> numbers(static_cast<std::size_t>(element_count(tensor)));
  for (std::size_t i = 0; i < numbers.size(); ++i) { // Box and Muller 1958
    if (i % 1024 == 0)
      check_stop();
    const double radius = std::sqrt(-2 * std::log(1 - generator.fraction(2 * i)));
    numbers[i] =
        deviation * radius * std::cos(2 * std::numbers::pi * generator.fraction(2 * i + 1));
  }
  return numbers;
}

std::vector<double> numbers_of(const Graph& graph, const Tensor& tensor, Role role, Scheme scheme,
                               std::uint64_t seed) {
  if (role == Role::ones || role == Role::zeros)
    return std::vector<double>(static_cast<std::size_t>(element_count(tensor)),
                               role == Role::ones ? 1.0 : 0.0);
  if (scheme == Scheme::pytorch) {
    const Tensor* weight = role == Role::bias ? weight_beside(graph, tensor) : &tensor;
    if (weight != nullptr)
      return generate(tensor, {0.0, 1 / std::sqrt(static_cast<double>(fan_in(graph, *weight))), 0},
                      seed);
  }
  if (role == Role::bias)
    return generate(tensor, {0.0, 0.0, 0}, seed);
  const auto fan = static_cast<double>(fan_in(graph, tensor));
  return scheme == Scheme::he_uniform ? generate(tensor, {0.0, std::sqrt(6 / fan), 0}, seed)
                                      : normal_numbers(tensor, std::sqrt(2 / fan), seed);
}

/// Whether a tensor still needs numbers from outside.
bool is_open(const Execution& execution, const Tensor& tensor, TensorId id) {
  const bool lasts = tensor.kind == TensorKind::parameter || tensor.kind == TensorKind::buffer;
  return lasts && !tensor.producer && !tensor.consumers.empty() && !execution.has(id);
}

void set_by_scheme(Execution& execution, const TrainingGraph& step, Scheme scheme,
                   std::uint64_t seed) {
  const Graph& graph = step.graph;
  for (std::size_t i = 0; i < graph.tensors().size(); ++i) {
    const Tensor& tensor = graph.tensors()[i];
    if (!is_open(execution, tensor, TensorId(i)) || !is_floating(tensor.type))
      continue;
    if (const auto role = role_of(graph, TensorId(i)))
      execution.set(TensorId(i), numbers_of(graph, tensor, *role, scheme, seed));
  }
}

void set_from_onnx(Execution& execution, const TrainingGraph& step, const std::string& path) {
  const WarningScope ignored; // check_parameters() reports parameters without numbers
  const auto needs = [&](const std::string& name) { return takes_numbers(execution, step, name); };
  for (const auto& [name, values] : read_onnx_weights(path, needs)) {
    std::visit(
        [&, &of = name](const auto& list) {
          const std::vector<double> numbers(list.begin(), list.end());
          set_by_name(execution, step, of, numbers);
        },
        values);
  }
}

void set_from_folder(Execution& execution, const TrainingGraph& step, const std::string& folder) {
  for (std::size_t i = 0; i < step.graph.tensors().size(); ++i) {
    const Tensor& tensor = step.graph.tensors()[i];
    const std::string file = (fs::path(folder) / file_name_of(tensor.name)).string();
    std::error_code ignored;
    if (!is_open(execution, tensor, TensorId(i)) || !fs::exists(file, ignored))
      continue;
    const NpyArray array = read_npy(file);
    if (array.shape != tensor.shape)
      throw InputError({file}, fmt::format("has shape [{}], but '{}' has [{}]",
                                           fmt::join(array.shape, ", "), tensor.name,
                                           fmt::join(tensor.shape, ", ")));
    execution.set(TensorId(i), array.numbers());
  }
}

/// Reports parameters without numbers if the scheme reads numbers from files only.
void check_parameters(const Execution& execution, const TrainingGraph& step,
                      const InitialOptions& initial, const std::string& file) {
  ProblemList problems;
  for (std::size_t i = 0; i < step.graph.tensors().size(); ++i) {
    const Tensor& tensor = step.graph.tensors()[i];
    if (tensor.kind == TensorKind::parameter && is_open(execution, tensor, TensorId(i)))
      problems.add(initial.where, fmt::format("'{}' has no numbers in {}", tensor.name, file));
  }
  problems.throw_if_any();
}

} // namespace

std::string file_name_of(const std::string& tensor) {
  std::string name;
  for (const char c : tensor) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '-' || (c == '.' && !name.empty());
    name += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return name + ".npy";
}

void set_initial_numbers(Execution& execution, const TrainingGraph& step, const TrainRecipe& recipe,
                         std::uint64_t seed) {
  const InitialOptions& initial = recipe.initial;
  if (initial.scheme == Scheme::file) {
    std::error_code ignored;
    if (fs::is_directory(initial.path, ignored))
      set_from_folder(execution, step, initial.path);
    else
      set_from_onnx(execution, step, initial.path);
    check_parameters(execution, step, initial, initial.path);
  } else if (initial.scheme != Scheme::network) {
    set_by_scheme(execution, step, initial.scheme, seed);
  }
  set_from_onnx(execution, step, recipe.network.value);
  if (initial.scheme == Scheme::network)
    check_parameters(execution, step, initial, recipe.network.value);
  fill(execution, step, seed);
}

} // namespace monet
