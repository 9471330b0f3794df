// Sets the numbers that a step is executed with (step_numbers.hpp), for `monet graph --execute`.
#include "commands/step_numbers.hpp"

#include "base/shared/npy.hpp"
#include "base/shared/text.hpp"
#include "console.hpp"

#include "monet/base/errors.hpp"
#include "monet/workload/onnx_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <variant>

namespace monet::cli {

namespace {

TensorId tensor_named(const Graph& graph, const std::string& name) {
  const auto found = graph.find_tensor(name);
  if (found && !graph.tensor(*found).producer)
    return *found;
  std::vector<std::string> names;
  for (const Tensor& tensor : graph.tensors()) {
    if (!tensor.producer)
      names.push_back(tensor.name);
  }
  throw InputError({graph.origin, 0, 0, fmt::format("tensor '{}'", name)},
                   found ? "is computed by the network; its values cannot be set"
                         : "does not exist, or is not needed in this step",
                   nearest_name_hint(name, names));
}

/// Checks that labels and indices are whole numbers that a double represents exactly.
void check_whole(const Tensor& tensor, std::span<const double> numbers, const std::string& where) {
  constexpr double kExact = 9007199254740992.0; // 2^53
  if (tensor.type != ElementType::int64 && tensor.type != ElementType::int32)
    return;
  const auto wrong = std::ranges::find_if(
      numbers, [](double x) { return !(std::nearbyint(x) == x && std::abs(x) <= kExact); });
  if (wrong != numbers.end()) {
    throw InputError({where, 0, 0, ""},
                     fmt::format("element {} is {}, but '{}' requires whole numbers",
                                 wrong - numbers.begin(), *wrong, tensor.name));
  }
}

} // namespace

std::string StepNumbers::name_in(const std::string& pair) {
  const std::size_t equals = pair.rfind('=');
  if (equals == std::string::npos)
    throw UsageError(fmt::format("--numbers: '{}' is not of the form TENSOR=FILE.npy", pair));
  return pair.substr(0, equals);
}

void StepNumbers::from_npy(const std::vector<std::string>& pairs) {
  for (const std::string& pair : pairs)
    from_npy(pair);
}

void StepNumbers::from_npy(const std::string& pair) {
  const std::string name = name_in(pair);
  const std::string file = pair.substr(name.size() + 1);
  shape_of(name); // checks the name before the file is read
  const NpyArray array = read_npy(file);
  give(name, array.shape, array.numbers(), file);
}

void StepNumbers::give(const std::string& name, const std::vector<std::int64_t>& shape,
                       std::span<const double> numbers, const std::string& where) {
  const std::vector<std::int64_t>& own = shape_of(name);
  if (shape != own) {
    throw InputError({where, 0, 0, ""},
                     fmt::format("has shape [{}], but '{}' has [{}]", fmt::join(shape, ", "), name,
                                 fmt::join(own, ", ")));
  }
  if (const auto id = step_.graph.find_tensor(name))
    check_whole(step_.graph.tensor(*id), numbers, where);
  set_by_name(execution_, step_, name, numbers);
  ++given;
}

void StepNumbers::from_network(const std::string& path) {
  const auto needs = [&](const std::string& name) {
    return takes_numbers(execution_, step_, name);
  };
  for (const auto& [name, values] : read_onnx_weights(path, needs)) {
    std::visit(
        [&](const auto& list) {
          const std::vector<double> numbers(list.begin(), list.end());
          stored += set_by_name(execution_, step_, name, numbers);
        },
        values);
  }
}

void StepNumbers::generate_rest(std::uint64_t seed) {
  std::int64_t missing = 0;
  for (std::size_t i = 0; i < step_.graph.tensors().size(); ++i) {
    const Tensor& tensor = step_.graph.tensors()[i];
    missing += !tensor.producer && !tensor.consumers.empty() && !execution_.has(TensorId(i));
  }
  fill(execution_, step_, seed);
  generated = missing;
}

const std::vector<std::int64_t>& StepNumbers::shape_of(const std::string& name) const {
  const auto part =
      std::ranges::find_if(step_.parts, [&](const WeightPart& p) { return p.whole == name; });
  return part != step_.parts.end() ? part->whole_shape
                                   : step_.graph.tensor(tensor_named(step_.graph, name)).shape;
}

void run_step(Execution& execution, const TrainingGraph& step, int number) {
  if (number > 0)
    execution.advance();
  set_step_number(execution, step, number + 1);
  execution.run();
}

} // namespace monet::cli
