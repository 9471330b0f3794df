// Assigns the operators of an imported training step to forward, loss, backward and update, by
// their dependencies. foreign.cpp calls it first.
#include "workload/imported_steps/parts.hpp"
#include "workload/shared/operators.hpp"

#include <algorithm>
#include <array>

namespace monet::foreign {

namespace {

constexpr std::string_view kUpdated = "_optimizer_end";
constexpr std::array<OpType, 8> kElementwise{ops::Add, ops::Sub,  ops::Mul, ops::Div,
                                             ops::Sum, ops::Sqrt, ops::Pow, ops::Neg};

template <class Names>
bool listed(const Names& names, OpType name) {
  return std::ranges::find(names, name) != names.end();
}

bool is_loss(OpType type) {
  return has_trait(type, OperatorRow::kSoftmaxRows) ||
         type.is_one_of({ops::Identity, ops::SoftmaxCrossEntropyLoss});
}

/// Whether an operator computes the gradient of a loss; it depends on no other gradient.
bool is_seed(const Operator& op) {
  return op.domain == "com.microsoft" &&
         op.op_type.is_one_of(
             {ops::SoftmaxCrossEntropyLossGrad, ops::SoftmaxCrossEntropyLossInternalGrad});
}

/// Operators for which `begins` is true, and all operators that depend on them.
template <class Begins>
std::vector<bool> downstream(const Graph& graph, Begins begins) {
  std::vector<bool> tensors(graph.tensors().size(), false);
  std::vector<bool> operators(graph.operators().size(), false);
  for (std::size_t i = 0; i < operators.size(); ++i) {
    const Operator& op = graph.operators()[i];
    operators[i] = begins(op) || std::ranges::any_of(op.inputs, [&](const auto& id) {
                     return id && tensors[id->index()];
                   });
    for (const auto& id : op.outputs) {
      if (id && operators[i])
        tensors[id->index()] = true;
    }
  }
  return operators;
}

bool reads_state(const Graph& graph, const Operator& op) {
  return std::ranges::any_of(op.inputs, [&](const auto& id) {
    if (!id)
      return false;
    const Tensor& tensor = graph.tensor(*id);
    return tensor.kind == TensorKind::optimizer_state ||
           tensor.name.find("accumulation.buffer") != std::string::npos;
  });
}

/// Element-wise operators between a gradient and an updated weight. A sum of gradients only belongs
/// to the backward phase.
std::vector<bool> update_operators(const Graph& graph) {
  const std::vector<bool> of_state =
      downstream(graph, [&](const Operator& op) { return reads_state(graph, op); });
  std::vector<bool> update(graph.operators().size(), false);
  std::vector<bool> wanted(graph.tensors().size(), false);
  for (const TensorId id : graph.outputs)
    wanted[id.index()] = updated_tensor(graph, id).has_value();
  for (std::size_t i = graph.operators().size(); i-- > 0;) {
    const Operator& op = graph.operators()[i];
    if (op.outputs.size() != 1 || !op.outputs[0] || !wanted[op.outputs[0]->index()])
      continue;
    const bool sums = op.op_type == ops::Add || op.op_type == ops::Sum;
    if (!listed(kElementwise, op.op_type) || (sums && !of_state[i]))
      continue;
    update[i] = true;
    for (const TensorId id : present(op.inputs))
      wanted[id.index()] = true;
  }
  return update;
}

bool read_only_in(const Graph& graph, const Operator& op, const std::vector<Phase>& phases,
                  Phase phase) {
  bool read = false;
  for (const TensorId id : present(op.outputs)) {
    if (std::ranges::find(graph.outputs, id) != graph.outputs.end())
      return false;
    for (const OpId reader : graph.tensor(id).consumers) {
      read = true;
      if (phases[reader.index()] != phase)
        return false;
    }
  }
  return read;
}

} // namespace

std::optional<TensorId> updated_tensor(const Graph& graph, TensorId output) {
  const std::string& name = graph.tensor(output).name;
  if (name.size() <= kUpdated.size() || !name.ends_with(kUpdated))
    return std::nullopt;
  const auto weight = graph.find_tensor(name.substr(0, name.size() - kUpdated.size()));
  if (!weight || graph.tensor(*weight).shape != graph.tensor(output).shape)
    return std::nullopt;
  return weight;
}

std::vector<Phase> find_phases(const Graph& graph) {
  const std::vector<Operator>& operators = graph.operators();
  const bool updates = std::ranges::any_of(
      graph.outputs, [&](TensorId id) { return updated_tensor(graph, id).has_value(); });
  if (!updates && std::ranges::none_of(operators, is_seed))
    return {};
  std::vector<Phase> phases(operators.size(), Phase::forward);
  const std::vector<bool> backward = downstream(graph, is_seed);
  const std::vector<bool> update = update_operators(graph);
  for (std::size_t i = operators.size(); i-- > 0;) {
    if (update[i]) {
      phases[i] = Phase::update;
    } else if (backward[i]) {
      phases[i] = Phase::backward;
    } else if (read_only_in(graph, operators[i], phases, Phase::update)) {
      phases[i] = Phase::update; // moments may decay before the gradient arrives
    } else if (read_only_in(graph, operators[i], phases, Phase::backward)) {
      const bool loss = is_loss(operators[i].op_type) &&
                        std::all_of(graph.tensor(*operators[i].outputs[0]).consumers.begin(),
                                    graph.tensor(*operators[i].outputs[0]).consumers.end(),
                                    [&](OpId id) { return is_seed(graph.op(id)); });
      phases[i] = loss ? Phase::loss : Phase::backward;
    }
  }
  return phases;
}

std::vector<std::optional<TensorId>> find_parameter_gradients(const Graph& graph,
                                                              const std::vector<Phase>& phases) {
  std::vector<std::optional<TensorId>> weight_of(graph.tensors().size());
  std::vector<std::optional<TensorId>> chain(graph.tensors().size());
  for (const TensorId id : graph.outputs)
    chain[id.index()] = updated_tensor(graph, id);
  for (std::size_t i = graph.operators().size(); i-- > 0;) {
    const Operator& op = graph.operators()[i];
    if (op.outputs.empty() || !op.outputs[0] || !chain[op.outputs[0]->index()])
      continue;
    const auto weight = chain[op.outputs[0]->index()];
    if (phases[i] == Phase::update) {
      for (const auto& id : op.inputs) {
        if (id && graph.tensor(*id).producer)
          chain[id->index()] = weight;
      }
    } else if (phases[i] == Phase::backward) {
      weight_of[op.outputs[0]->index()] = weight;
    }
  }
  return weight_of;
}

} // namespace monet::foreign
