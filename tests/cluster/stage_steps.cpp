#include "cluster/stage_steps.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace monet::test {

namespace {

/// The operators of each stage, in the order of its schedule, updates last.
class OperatorOrders {
public:
  OperatorOrders(const TrainingGraph& step, std::span<const OperatorPlace> places, PipelineKind kind,
              std::int64_t stages, std::int64_t chunks)
      : step_(step), places_(places), kind_(kind), stages_(stages), chunks_(chunks) {
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (step.graph.operators()[i].phase != Phase::update)
        tasks_[key(places[i])].emplace_back(i);
    }
  }

  std::vector<OpId> order(std::int64_t stage) const {
    std::vector<OpId> ops;
    for (const PipelineTask& task : stage_order(kind_, stages_, chunks_, step_.passes, stage)) {
      const Key wanted{part_of(kind_, stages_, stage, task.chunk), task.micro_batch, task.pass};
      const auto found = tasks_.find(wanted);
      if (found != tasks_.end())
        ops.insert(ops.end(), found->second.begin(), found->second.end());
    }
    for (std::size_t i = 0; i < places_.size(); ++i) {
      const bool own = std::ranges::any_of(places_[i].updates, [&](std::int64_t part) {
        return stage_of_part(kind_, stages_, part) == stage;
      });
      if (own)
        ops.emplace_back(i);
    }
    return ops;
  }

private:
  using Key = std::tuple<std::int64_t, std::int64_t, PipelinePass>;
  static Key key(const OperatorPlace& place) { return {place.part, place.micro_batch, place.pass}; }

  const TrainingGraph& step_;
  std::span<const OperatorPlace> places_;
  PipelineKind kind_;
  std::int64_t stages_, chunks_;
  std::map<Key, std::vector<OpId>> tasks_;
};

/// Of what another part makes again, what it has made in the forward pass.
TensorId before_repetition(const TrainingGraph& step, std::span<const OperatorPlace> places,
                           TensorId id, OpId reader) {
  const auto producer = step.graph.tensor(id).producer;
  if (!producer || !is_repeated(step.graph.op(*producer)) ||
      places[producer->index()].part == places[reader.index()].part)
    return id;
  const Operator& again = step.graph.op(*producer);
  const auto at = std::ranges::find(again.outputs, std::optional(id)) - again.outputs.begin();
  return step.graph.op(*again.forward_op).outputs.at(static_cast<std::size_t>(at)).value();
}

bool makes(const StageStep& stage, TensorId of) {
  const auto found = stage.made.find(of);
  return found != stage.made.end() && stage.step.graph.tensor(found->second).producer.has_value();
}

/// Whoever makes a tensor, the first of several, sends it to who reads it and does not make it.
void connect(std::vector<StageStep>& stages, std::size_t from, TensorId own) {
  const TensorId of = stages[from].of[own.index()];
  const auto before = std::span(stages).first(from);
  if (std::ranges::any_of(before, [&](const StageStep& stage) { return makes(stage, of); }))
    return;
  for (std::size_t to = 0; to < stages.size(); ++to) {
    const auto found = stages[to].made.find(of);
    if (to == from || found == stages[to].made.end() || makes(stages[to], of))
      continue;
    stages[from].sends.push_back({own, static_cast<std::int64_t>(to)});
    stages[to].receives.push_back({found->second, static_cast<std::int64_t>(from)});
  }
}

/// Tensors that a stage sends are outputs, in the order of its tensors.
void give_sent(StageStep& stage) {
  std::vector<TensorId>& outputs = stage.step.graph.outputs;
  for (const StageTransfer& send : stage.sends)
    outputs.push_back(send.tensor);
  std::ranges::sort(outputs);
  const auto repeated = std::ranges::unique(outputs);
  outputs.erase(repeated.begin(), repeated.end());
}

} // namespace

std::vector<StageStep> stage_steps(const TrainingGraph& step, std::span<const OperatorPlace> places,
                                   PipelineKind kind, std::int64_t stages, std::int64_t chunks) {
  const OperatorOrders orders(step, places, kind, stages, chunks);
  const auto stand_in = [&](TensorId id, OpId reader) {
    return before_repetition(step, places, id, reader);
  };
  std::vector<StageStep> made;
  for (std::int64_t stage = 0; stage < stages; ++stage)
    made.push_back({part_of_step(step, orders.order(stage), stand_in), {}, {}});
  for (std::size_t from = 0; from < made.size(); ++from) {
    for (std::size_t i = 0; i < made[from].of.size(); ++i) {
      if (made[from].step.graph.tensors()[i].producer)
        connect(made, from, TensorId(i));
    }
  }
  for (StageStep& stage : made)
    give_sent(stage);
  return made;
}

std::vector<StageStep> even_stages(const RankStep& ranks, const PipelineCase& pipeline) {
  const std::int64_t parts = pipeline.stages * pipeline.chunks;
  const std::int64_t operators = forward_operators(ranks.step);
  std::vector<std::int64_t> begins;
  for (std::int64_t part = 0; part < parts; ++part)
    begins.push_back(part * operators / parts);
  const auto places = place_operators(ranks.step, begins);
  std::vector<StageStep> stages =
      stage_steps(ranks.step, places, pipeline.kind, pipeline.stages, pipeline.chunks);
  for (const StageStep& stage : stages)
    verify(stage.step.graph);
  return stages;
}

} // namespace monet::test
