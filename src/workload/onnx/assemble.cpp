// The last passes of the reader: build the Graph, then its loop nests, from nodes and values of
// known shapes.
#include "base/shared/text.hpp"
#include "workload/onnx/model.hpp"
#include "workload/shared/operators.hpp"

#include <algorithm>
#include <limits>

namespace monet::onnx_file {

namespace {

/// Annotations of tensors by name, as write_onnx stores them.
struct Annotations {
  std::unordered_map<std::string, std::pair<TensorKind, ElementType>> tensors;
  std::unordered_map<std::string, std::string> aliases;
};

std::optional<TensorKind> kind_named(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(TensorKind::optimizer_state); ++i) {
    if (name_of(static_cast<TensorKind>(i)) == name)
      return static_cast<TensorKind>(i);
  }
  return std::nullopt;
}

Annotations read_annotations(const Model& model) {
  Annotations notes;
  const auto lines_of = [&](const char* key) {
    const auto found = model.metadata.find(key);
    return found == model.metadata.end()
               ? std::vector<std::string_view>{}
               : split(found->second, '\n', std::numeric_limits<std::size_t>::max());
  };
  for (const std::string_view line : lines_of("monet.tensors")) {
    const auto parts = split(line, ' ', 3);
    if (parts.size() != 3)
      continue;
    const auto kind = kind_named(parts[0]);
    const auto type = element_type_named(parts[1]);
    if (kind && type)
      notes.tensors[std::string(parts[2])] = {*kind, *type};
  }
  for (const std::string_view line : lines_of("monet.aliases")) {
    const auto parts = split(line, '\t', 2);
    if (parts.size() == 2)
      notes.aliases[std::string(parts[0])] = std::string(parts[1]);
  }
  return notes;
}

/// Builds a Graph from nodes and values.
class Assembly {
public:
  explicit Assembly(NetworkDraft& draft)
      : draft_(draft), model_(draft.model), graph_(draft.graph),
        notes_(read_annotations(draft.model)) {}

  void run() {
    graph_.name = model_.name;
    graph_.origin = model_.origin;
    graph_.buffers = draft_.kinds.buffers;
    graph_.doubtful = draft_.kinds.doubtful;
    graph_.equal_weights = model_.equal_weights;
    for (const Declared& input : model_.inputs) {
      if (model_.initializers.count(input.name) != 0)
        continue;
      const TensorId id = add(input.name);
      if (graph_.tensor(id).kind == TensorKind::input ||
          graph_.tensor(id).kind == TensorKind::label) {
        graph_.inputs.push_back(id);
      }
    }
    for (const Node& node : model_.nodes)
      add_node(node);
    for (const Declared& output : model_.outputs)
      graph_.outputs.push_back(add(output.name));
    link_aliases();
  }

private:
  TensorId add(const std::string& name, bool made_by_node = false) {
    const auto known = ids_.find(name);
    if (known != ids_.end())
      return known->second;
    const Value& value = draft_.values.at(name);
    Tensor tensor;
    tensor.name = name;
    tensor.shape = value.shape;
    tensor.type = value.type;
    const auto kind = draft_.kinds.of.find(name);
    if (kind != draft_.kinds.of.end()) {
      tensor.kind = kind->second;
    } else if (!made_by_node) {
      tensor.kind = value.values ? TensorKind::constant : TensorKind::buffer;
    }
    if (tensor.kind == TensorKind::constant || tensor.kind == TensorKind::buffer)
      tensor.values = value.values;
    const auto note = notes_.tensors.find(name);
    if (note != notes_.tensors.end()) {
      tensor.kind = note->second.first;
      tensor.type = note->second.second;
    }
    const TensorId id = graph_.add_tensor(std::move(tensor));
    ids_.emplace(name, id);
    return id;
  }

  void add_node(const Node& node) {
    Operator op{.name = node.name,
                .op_type = node.op_type,
                .domain = rule_domain(node),
                .attributes = node.attributes};
    for (const std::string& name : node.inputs) {
      op.inputs.push_back(name.empty() ? std::nullopt
                                       : std::optional(add(constant_behind(draft_, name))));
    }
    while (!op.inputs.empty() && !op.inputs.back())
      op.inputs.pop_back();
    for (const std::string& name : node.outputs) {
      op.outputs.push_back(name.empty() ? std::nullopt : std::optional(add(name, true)));
    }
    while (!op.outputs.empty() && !op.outputs.back())
      op.outputs.pop_back();
    if (draft_.is_own())
      read_documentation(node, op);
    const bool updates_statistics =
        op.domain.empty() && op.op_type == ops::BatchNormalization && op.inputs.size() == 5;
    const OpId id = graph_.add_operator(std::move(op));
    names_.emplace(node.name, id);
    if (updates_statistics)
      alias_statistics(id);
  }

  /// Aliases outputs 1 and 2 of a batch normalisation in training mode with the running statistics,
  /// which they update.
  void alias_statistics(OpId id) {
    const Operator& op = graph_.op(id);
    for (std::size_t i = 1; i < std::min<std::size_t>(op.outputs.size(), 3); ++i) {
      if (!op.outputs[i] || !op.inputs[2 + i])
        continue;
      graph_.tensor(*op.outputs[i]).kind = TensorKind::buffer;
      graph_.tensor(*op.outputs[i]).alias_of = op.inputs[2 + i];
    }
  }

  void read_documentation(const Node& node, Operator& op) const {
    for (const std::string_view line : split(node.documentation, '\n', 8)) {
      const auto parts = split(line, ' ', 2);
      if (parts.size() != 2)
        continue;
      for (int i = 0; parts[0] == "phase:" && i <= static_cast<int>(Phase::recompute); ++i) {
        if (name_of(static_cast<Phase>(i)) == parts[1])
          op.phase = static_cast<Phase>(i);
      }
      if (parts[0] == "gradient_of:" && parts[1] == "input")
        op.gradient_of = GradientOf::input;
      if (parts[0] == "gradient_of:" && parts[1] == "weight")
        op.gradient_of = GradientOf::weight;
      if (parts[0] == "gradient_of:" && parts[1] == "both")
        op.gradient_of = GradientOf::both;
      if (parts[0] == "forward_op:") {
        const auto forward = names_.find(std::string(parts[1]));
        if (forward != names_.end())
          op.forward_op = forward->second;
      }
    }
  }

  void link_aliases() {
    for (const Tensor& tensor : graph_.tensors()) {
      const auto alias = notes_.aliases.find(tensor.name);
      if (alias == notes_.aliases.end())
        continue;
      const auto target = ids_.find(alias->second);
      if (target != ids_.end())
        graph_.tensor(ids_.at(tensor.name)).alias_of = target->second;
    }
  }

  const NetworkDraft& draft_;
  const Model& model_;
  Graph& graph_;
  Annotations notes_;
  std::unordered_map<std::string, TensorId> ids_;
  std::unordered_map<std::string, OpId> names_;
};

} // namespace

std::string rule_domain(const Node& node) {
  if (node.domain == kMonetDomain && find_row(node.domain, node.op_type) == nullptr &&
      find_row("", node.op_type) != nullptr) {
    return "";
  }
  return node.domain;
}

const std::string& constant_behind(const NetworkDraft& draft, const std::string& name) {
  const auto found = draft.same_as.find(name);
  return found == draft.same_as.end() ? name : found->second;
}

void try_nest(Graph& graph, OpId id, ProblemList& problems) {
  try {
    build_nest(graph, id);
  } catch (const InputError& error) {
    for (const InputProblem& problem : error.problems()) {
      const bool located = !problem.where.element.empty();
      problems.add(located ? problem.where : location_of(graph, graph.op(id)), problem.what,
                   problem.hint);
    }
  }
}

void assemble(NetworkDraft& draft) {
  Assembly(draft).run();
}

void build_nests(NetworkDraft& draft) {
  for (std::size_t i = 0; i < draft.graph.operators().size(); ++i)
    try_nest(draft.graph, OpId(i), draft.problems);
  draft.problems.throw_if_any();
}

} // namespace monet::onnx_file
