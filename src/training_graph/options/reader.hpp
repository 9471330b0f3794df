// Functions to read a training file: choices by name, ranges of numbers.
#pragma once

#include "monet/base/yaml.hpp"
#include "monet/training_graph/training.hpp"

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

template <class T>
struct Choice {
  std::string_view name;
  T value;
};

/// Reports an unknown name, with the nearest known one or a list of them as a hint.
void report_unknown(const YamlNode& node, ProblemList& problems, std::string_view wrong,
                    const std::vector<std::string>& names);

/// `choices`: a list of Choice<T>.
template <class T>
void read_choice(const YamlNode& node, ProblemList& problems, const auto& choices, T& value) {
  const auto text = as_string(node, problems);
  if (!text)
    return;
  std::vector<std::string> names;
  for (const Choice<T>& choice : choices) {
    if (choice.name == *text) {
      value = choice.value;
      return;
    }
    names.emplace_back(choice.name);
  }
  report_unknown(node, problems, *text, names);
}

/// Reads what a map has under a key, where it has it: read(node, problems, target).
void read_key(YamlMap& map, ProblemList& problems, std::string_view key, const auto& read,
              auto& target) {
  if (const YamlNode* node = map.find(key))
    read(*node, problems, target);
}
template <class T>
void read_choice(YamlMap& map, ProblemList& problems, std::string_view key, const auto& choices,
                 T& value) {
  if (const YamlNode* node = map.find(key))
    read_choice(*node, problems, choices, value);
}
/// One glob pattern or a list of them.
inline void read_patterns(const YamlNode& node, ProblemList& problems,
                          std::vector<std::string>& patterns) {
  patterns = as_strings(node, problems, true);
}

/// Choices by the names that these values have elsewhere.
template <class T, std::size_t kCount>
std::array<Choice<T>, kCount> choices_of(const std::array<T, kCount>& values) {
  std::array<Choice<T>, kCount> choices;
  for (std::size_t i = 0; i < kCount; ++i)
    choices[i] = {name_of(values[i]), values[i]};
  return choices;
}

/// Reports a number outside [low, high).
void check_range(const YamlMap& map, ProblemList& problems, std::string_view key, double value,
                 double low, double high);

/// `loss: mse` or a map with its settings.
void read_loss(const YamlNode& node, ProblemList& problems, Loss& loss);

/// `optimizer: sgd` or a map with its settings and its groups of parameters.
void read_optimizer(const YamlNode& node, ProblemList& problems, UpdateOptions& options);

/// Which parameters are trained: `all`, or patterns, layers, adapters, channels.
void read_trainable(const YamlNode& node, ProblemList& problems, TrainableOptions& options);
/// One element type, or a map of roles.
void read_precision(const YamlNode& node, ProblemList& problems, Precision& precision);
/// A unit of products: {operands, multiply, variant, accumulate, fma, lanes, rounding, ...}.
std::optional<Mac> read_unit(const YamlNode& node, ProblemList& problems);
/// How results are rounded: a mode, or a map with its settings.
void read_results_rounding(const YamlNode& node, ProblemList& problems, Rounding& rounding);
/// A number, `dynamic`, or a map.
void read_loss_scale(const YamlNode& node, ProblemList& problems,
                     std::optional<LossScaleOptions>& result);

} // namespace monet
