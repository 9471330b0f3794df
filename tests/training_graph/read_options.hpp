// Training options as tests write them down.
#pragma once

#include "monet/base/yaml.hpp"
#include "monet/training_graph/training.hpp"

#include <string_view>

namespace monet {

/// InputError with all problems of the text.
inline TrainingOptions read_options(std::string_view text) {
  ProblemList problems;
  const TrainingOptions options = read_training_options(parse_yaml(text, "t.yaml"), problems);
  problems.throw_if_any();
  return options;
}

} // namespace monet
