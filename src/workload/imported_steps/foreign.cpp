// Converts an imported training step to the form of generated ones: operators in phase order, and
// one operator per convolution gradient. The public entry is recognise_training_step().
#include "workload/imported_steps/parts.hpp"
#include "workload/shared/operators.hpp"

#include "monet/workload/imported_steps.hpp"

#include <algorithm>
#include <unordered_map>

namespace monet {

namespace foreign {

const Operator* made_by(const Graph& graph, std::optional<TensorId> tensor, OpType op_type) {
  if (!tensor || !graph.tensor(*tensor).producer)
    return nullptr;
  const Operator& op = graph.op(*graph.tensor(*tensor).producer);
  return op.domain.empty() && op.op_type == op_type ? &op : nullptr;
}

} // namespace foreign

namespace {

using namespace foreign;

/// Finds replacements, by operator of the original graph; `report` lists candidates that were
/// refused.
std::unordered_map<OpId, Replacement>
find_replacements(const Graph& graph, const std::vector<Phase>& phases, ForeignReport& report) {
  std::unordered_map<OpId, Replacement> found;
  const auto note = [&](Match match, const Operator& op) {
    if (match.found) {
      report.recognised.push_back(match.found->note);
      found.emplace(match.found->last, std::move(*match.found));
    } else {
      report.kept.push_back({op.name, std::move(match.why)});
    }
  };
  for (std::size_t i = 0; i < graph.operators().size(); ++i) {
    const Operator& op = graph.operators()[i];
    if (phases[i] != Phase::backward || !op.domain.empty())
      continue;
    if (op.op_type == ops::ConvTranspose) {
      note(match_input_gradient(graph, phases, OpId(i)), op);
    } else if (op.op_type == ops::MatMul && is_kernel_product(graph, op)) {
      note(match_weight_gradient(graph, phases, OpId(i)), op);
    }
  }
  for (const TensorId id : graph.outputs) {
    const auto updated = updated_tensor(graph, id);
    if (updated && graph.tensor(*updated).kind != TensorKind::parameter) {
      const auto producer = graph.tensor(id).producer;
      report.kept.push_back({producer ? graph.op(*producer).name : graph.tensor(id).name,
                             "it updates '" + graph.tensor(*updated).name +
                                 "', which is not a parameter and is not overwritten"});
    }
  }
  return found;
}

bool is_product(const Operator& op) {
  return op.op_type.is_one_of({ops::MatMul, ops::Gemm, ops::FusedMatMul, ops::TransposeMatMul,
                               ops::Conv, ops::ConvTranspose});
}

bool passes_gradients(const Operator& op) {
  return op.op_type.is_one_of({ops::Reshape, ops::Transpose, ops::Squeeze, ops::Unsqueeze,
                               ops::Identity, ops::Cast, ops::ReduceSum, ops::Sum, ops::Add});
}

bool is_read_forward(const Graph& graph, const std::vector<Phase>& phases, TensorId id) {
  const std::vector<OpId>& readers = graph.tensor(id).consumers;
  return std::ranges::any_of(readers,
                             [&](OpId reader) { return phases[reader.index()] == Phase::forward; });
}

/// Whether a tensor is a parameter of the forward phase, or a view of one.
bool is_weight(const Graph& graph, const std::vector<Phase>& phases, std::optional<TensorId> id) {
  while (id && graph.tensor(*id).producer) {
    const Operator& op = graph.op(*graph.tensor(*id).producer);
    if (!has_view_rule(op) || op.inputs.empty())
      return false;
    id = op.inputs[0];
  }
  return id && graph.tensor(*id).kind == TensorKind::parameter &&
         is_read_forward(graph, phases, *id);
}

/// Kind of gradient of each product of the backward phase. It is a weight gradient if a matrix's
/// gradient is computed from it and it does not read the weight, otherwise an input gradient.
std::vector<GradientOf> gradients_of_products(const Graph& graph, const std::vector<Phase>& phases,
                                              std::vector<std::optional<TensorId>> weight_of) {
  std::vector<GradientOf> result(graph.operators().size(), GradientOf::none);
  for (std::size_t i = result.size(); i-- > 0;) {
    const Operator& op = graph.operators()[i];
    if (phases[i] != Phase::backward || op.outputs.empty() || !op.outputs[0])
      continue;
    const auto weight = weight_of[op.outputs[0]->index()];
    const bool matrix = weight && graph.tensor(*weight).shape.size() >= 2;
    if (is_product(op)) {
      const bool reads_weight = std::ranges::any_of(
          op.inputs, [&](const auto& id) { return is_weight(graph, phases, id); });
      result[i] = matrix && !reads_weight ? GradientOf::weight : GradientOf::input;
    } else if (matrix && passes_gradients(op)) {
      for (const auto& id : op.inputs) {
        if (id && graph.tensor(*id).producer)
          weight_of[id->index()] = weight;
      }
    }
  }
  return result;
}

class Rebuilt {
public:
  Rebuilt(const Graph& graph, std::vector<Operator> operators, std::vector<Phase> phases)
      : from_(graph), operators_(std::move(operators)), phases_(std::move(phases)) {}

  Graph run(const std::vector<std::optional<TensorId>>& weight_of) {
    made_.name = from_.name;
    made_.origin = from_.origin;
    for (const TensorId id : from_.inputs)
      made_.inputs.push_back(add(id));
    const std::vector<bool> alive = find_alive();
    std::vector<std::optional<OpId>> renamed(operators_.size());
    for (const Phase phase : {Phase::forward, Phase::loss, Phase::backward, Phase::update}) {
      for (std::size_t i = 0; i < operators_.size(); ++i) {
        if (alive[i] && phases_[i] == phase)
          renamed[i] = add(operators_[i], renamed);
      }
    }
    for (const TensorId id : from_.outputs) {
      made_.outputs.push_back(add(id));
      const auto weight = updated_tensor(from_, id);
      if (weight && from_.tensor(*weight).kind == TensorKind::parameter)
        made_.tensor(add(id)).alias_of = add(*weight);
    }
    for (std::size_t i = 0; i < weight_of.size(); ++i) {
      if (weight_of[i] && ids_.count(TensorId(i)) != 0)
        made_.tensor(add(TensorId(i))).kind = TensorKind::parameter_gradient;
    }
    return std::move(made_);
  }

private:
  std::vector<bool> find_alive() const {
    std::vector<bool> needed(from_.tensors().size(), false);
    for (const TensorId id : from_.outputs)
      needed[id.index()] = true;
    std::vector<bool> alive(operators_.size(), false);
    for (std::size_t i = operators_.size(); i-- > 0;) {
      const Operator& op = operators_[i];
      alive[i] = std::ranges::any_of(op.outputs,
                                     [&](const auto& id) { return id && needed[id->index()]; });
      for (const auto& id : op.inputs) {
        if (id && alive[i])
          needed[id->index()] = true;
      }
    }
    return alive;
  }

  TensorId add(TensorId id) {
    const auto known = ids_.find(id);
    if (known != ids_.end())
      return known->second;
    Tensor tensor = from_.tensor(id);
    tensor.producer.reset();
    tensor.consumers.clear();
    // The reader classifies every floating input of a training step as a weight, even learning
    // rates.
    const bool fed = tensor.kind == TensorKind::parameter && !from_.tensor(id).producer &&
                     !is_read_forward(from_, phases_, id);
    if (fed)
      tensor.kind = TensorKind::input;
    const TensorId made = made_.add_tensor(std::move(tensor));
    if (fed)
      made_.inputs.push_back(made);
    ids_.emplace(id, made);
    return made;
  }

  OpId add(Operator op, const std::vector<std::optional<OpId>>& renamed) {
    for (auto& id : op.inputs) {
      if (id)
        id = add(*id);
    }
    for (auto& id : op.outputs) {
      if (id)
        id = add(*id);
    }
    if (op.forward_op)
      op.forward_op = renamed[op.forward_op->index()];
    op.nest = {};
    const OpId made = made_.add_operator(std::move(op));
    build_nest(made_, made);
    for (const auto& id : made_.op(made).outputs) {
      if (id && made_.op(made).phase == Phase::backward &&
          made_.tensor(*id).kind == TensorKind::activation)
        made_.tensor(*id).kind = TensorKind::gradient;
    }
    return made;
  }

  const Graph& from_;
  std::vector<Operator> operators_;
  std::vector<Phase> phases_;
  Graph made_;
  std::unordered_map<TensorId, TensorId> ids_;
};

/// Whether no operator reads a result of a later phase. A violation means that the phases are
/// wrong.
bool in_order_of_phases(const Graph& graph, const std::vector<Phase>& phases) {
  for (std::size_t i = 0; i < graph.operators().size(); ++i) {
    for (const auto& id : graph.operators()[i].inputs) {
      if (id && graph.tensor(*id).producer &&
          phases[graph.tensor(*id).producer->index()] > phases[i])
        return false;
    }
  }
  return true;
}

} // namespace

Graph recognise_training_step(const Graph& graph, ForeignReport& report) {
  report = {};
  report.is_training_step = std::ranges::any_of(
      graph.operators(), [](const Operator& op) { return op.phase != Phase::forward; });
  if (report.is_training_step) // written by MONET: the file states its phases
    return graph;
  const std::vector<Phase> phases = find_phases(graph);
  if (phases.empty() || !in_order_of_phases(graph, phases))
    return graph;
  report.is_training_step = true;
  const auto weight_of = find_parameter_gradients(graph, phases);
  const auto products = gradients_of_products(graph, phases, weight_of);
  auto replacements = find_replacements(graph, phases, report);
  std::vector<Operator> operators = graph.operators();
  for (std::size_t i = 0; i < operators.size(); ++i) {
    const auto replacement = replacements.find(OpId(i));
    if (replacement != replacements.end()) {
      operators[i] = std::move(replacement->second.made);
    } else {
      operators[i].phase = phases[i];
      operators[i].gradient_of = products[i];
    }
  }
  return Rebuilt(graph, std::move(operators), phases).run(weight_of);
}

Graph recognise(Graph network, bool differentiate, ForeignReport& report, std::string_view hint) {
  Graph step = recognise_training_step(network, report);
  if (!report.is_training_step)
    return network;
  if (differentiate) {
    throw InputError({network.origin, 0, 0, ""},
                     "the network is a training step already, with gradients and updates", hint);
  }
  return step;
}

} // namespace monet
