// Elements and bits that a step's operands take, by role.
#include "training_graph/shared/operand_roles.hpp"

#include "base/shared/checked.hpp"
#include "workload/shared/op_types.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace monet {

namespace {

bool only_changes_type(const Operator& op) {
  const bool ours = op.domain == kMonetDomain;
  return (op.domain.empty() && op.op_type == ops::Cast) ||
         (ours && (op.op_type == ops::Quantise || op.op_type == ops::Requantise));
}

/// Sources of tensors through casts and quantisation; the source of a master copy is its weight.
class Sources {
public:
  explicit Sources(const TrainingGraph& step) : graph_(step.graph) {
    for (const ParameterRecord& parameter : step.parameters)
      if (parameter.master)
        weight_of_[*parameter.master] = parameter.weight;
  }

  TensorId of(TensorId id) const {
    for (;;) {
      const Tensor& tensor = graph_.tensor(id);
      if (!tensor.producer)
        break;
      const Operator& op = graph_.op(*tensor.producer);
      if (!only_changes_type(op) || op.inputs.empty() || !op.inputs[0])
        break;
      id = *op.inputs[0];
    }
    const auto weight = weight_of_.find(id);
    return weight == weight_of_.end() ? id : weight->second;
  }

private:
  const Graph& graph_;
  std::map<TensorId, TensorId> weight_of_; // by master
};

OperandRole role_of(const Tensor& source) {
  if (source.kind == TensorKind::parameter)
    return OperandRole::weights;
  return is_gradient(source.kind) ? OperandRole::errors : OperandRole::activations;
}

} // namespace

std::string_view name_of(OperandRole role) {
  constexpr std::array<std::string_view, kOperandRoles> kNames{"weights", "activations", "errors"};
  return kNames.at(static_cast<std::size_t>(role));
}

std::int64_t RoleOperands::copies() const {
  std::int64_t count = 0;
  for (const ProductOperand& operand : operands)
    count += std::ssize(operand.forms) - 1;
  return count;
}

Bits footprint(const std::array<RoleOperands, kOperandRoles>& roles) {
  return roles[static_cast<std::size_t>(OperandRole::weights)].size() +
         roles[static_cast<std::size_t>(OperandRole::activations)].size() +
         roles[static_cast<std::size_t>(OperandRole::errors)].largest;
}

std::array<RoleOperands, kOperandRoles> operand_roles(const TrainingGraph& folded,
                                                      const Liveness& liveness) {
  const Graph& graph = folded.graph;
  std::array<RoleOperands, kOperandRoles> roles;
  const Sources sources(folded);
  std::map<TensorId, std::set<TensorId>> forms; // by source
  for (const Operator& op : graph.operators()) {
    if (op.phase == Phase::update)
      continue;
    for (const std::size_t i : multiplied_operands(op.nest)) {
      const TensorId id = op.nest.operands[i].tensor;
      const TensorId source = sources.of(id);
      forms[source].insert(id);
      roles[static_cast<std::size_t>(role_of(graph.tensor(source)))].read +=
          size_of(graph.tensor(id));
    }
  }
  const auto peak = static_cast<std::int64_t>(liveness.peak);
  for (const auto& [source, ids] : forms) {
    RoleOperands& role = roles[static_cast<std::size_t>(role_of(graph.tensor(source)))];
    ProductOperand operand{source, {ids.begin(), ids.end()}, {}, {}};
    for (const TensorId id : operand.forms) {
      const Tensor& tensor = graph.tensor(id);
      const Bits elements{checked_multiply(element_count(tensor), bits_of(tensor.type))};
      operand.elements += elements;
      operand.scales += size_of(tensor) - elements;
      const std::optional<std::size_t> buffer = liveness.buffer_of[id.index()];
      const bool lives =
          buffer &&
          (liveness.buffers[*buffer].permanent ||
           (liveness.buffers[*buffer].start <= peak && peak < liveness.buffers[*buffer].end));
      if (lives)
        role.peak_live += size_of(tensor);
    }
    role.largest = std::max(role.largest, operand.elements + operand.scales);
    role.elements += operand.elements;
    role.scales += operand.scales;
    role.operands.push_back(std::move(operand));
  }
  return roles;
}

} // namespace monet
