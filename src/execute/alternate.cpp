// AlternatingExecution: runs several step graphs in turn on shared tensors.
#include "monet/execute/execute.hpp"

namespace monet {

namespace {

/// Whether a tensor persists between steps and is shared by all step graphs.
bool is_shared(const Tensor& tensor) {
  const bool lasts = tensor.kind == TensorKind::parameter || tensor.kind == TensorKind::buffer;
  return lasts && !tensor.producer && !tensor.alias_of;
}

} // namespace

AlternatingExecution::AlternatingExecution(std::vector<const TrainingGraph*> steps,
                                           const ExecuteOptions& options)
    : steps_(std::move(steps)), runs_(steps_.size(), 0) {
  for (const TrainingGraph* step : steps_)
    executions_.emplace_back(step->graph, options);
}

void AlternatingExecution::begin() {
  for (std::size_t step = steps_.size(); step-- > 0;)
    hand_on(step);
}

void AlternatingExecution::run(std::size_t step) {
  Execution& execution = executions_[step];
  set_step_number(execution, *steps_[step], ++runs_[step]);
  execution.run();
  execution.advance();
  hand_on(step);
}

void AlternatingExecution::hand_on(std::size_t from) {
  const Graph& source = steps_[from]->graph;
  for (std::size_t i = 0; i < source.tensors().size(); ++i) {
    const Tensor& tensor = source.tensors()[i];
    if (!is_shared(tensor) || !executions_[from].has(TensorId(i)))
      continue;
    for (std::size_t to = 0; to < steps_.size(); ++to) {
      const auto same = to == from ? std::nullopt : steps_[to]->graph.find_tensor(tensor.name);
      if (same && is_shared(steps_[to]->graph.tensor(*same)) &&
          steps_[to]->graph.tensor(*same).shape == tensor.shape)
        executions_[to].set(*same, executions_[from].get(TensorId(i)));
    }
  }
}

} // namespace monet
