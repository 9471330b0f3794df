// The numbers of a step that was executed, for tests that compare steps.
#pragma once

#include "monet/execute/execute.hpp"
#include "monet/training_graph/training.hpp"

#include <map>
#include <string>
#include <vector>

namespace monet::test {

/// Loss, gradients, updated parameters, states and running statistics by name.
inline std::map<std::string, std::vector<double>> results(const TrainingGraph& step) {
  ExecuteOptions options;
  options.keep_all = false;
  Execution execution(step.graph, options);
  fill(execution, step, 3);
  execution.run();
  std::map<std::string, std::vector<double>> numbers;
  const auto note = [&](TensorId id) { numbers[step.graph.tensor(id).name] = execution.get(id); };
  note(*step.loss);
  for (const TensorId id : step.graph.outputs)
    note(id);
  for (const ParameterRecord& record : step.parameters) {
    note(record.gradient);
    note(record.updated);
  }
  return numbers;
}

} // namespace monet::test
