// Builds a partial graph of a network with unknown operators, used for reports only.
#include "workload/onnx/model.hpp"
#include "workload/shared/operators.hpp"

#include <algorithm>
#include <array>

namespace monet::onnx_file {

namespace {

constexpr std::array<OpType, 4> kMakeIntegers{ops::Shape, ops::Size, ops::NonZero, ops::ArgMax};
constexpr std::array<OpType, 11> kMakeBooleans{
    ops::Equal, ops::Greater, ops::GreaterOrEqual, ops::Less, ops::LessOrEqual, ops::And, ops::Or,
    ops::Xor,   ops::Not,     ops::IsNaN,          ops::IsInf};

class Outline {
public:
  explicit Outline(NetworkDraft& draft) : draft_(draft), model_(draft.model) {}

  NetworkOutline run() {
    made_.graph.name = model_.name;
    made_.graph.origin = model_.origin;
    for (const Declared& input : model_.inputs)
      made_.graph.inputs.push_back(add(input.name, ElementType::fp32));
    for (const Node& node : draft_.visited) {
      if (!is_folded(node))
        add_node(node);
    }
    for (const Declared& output : model_.outputs)
      made_.graph.outputs.push_back(add(output.name, ElementType::fp32));
    return std::move(made_);
  }

private:
  bool is_folded(const Node& node) const {
    return std::ranges::all_of(node.outputs, [&](const std::string& name) {
      const auto value = draft_.values.find(name);
      return name.empty() || (value != draft_.values.end() && value->second.is_constant);
    });
  }

  TensorId add(const std::string& name, ElementType guess) {
    if (const auto at = ids_.find(name); at != ids_.end())
      return at->second;
    const auto value = draft_.values.find(name);
    const bool known = value != draft_.values.end();
    Tensor tensor;
    tensor.name = name;
    tensor.type = known ? value->second.type : guess;
    if (known)
      tensor.shape = value->second.shape;
    if (const auto kind = draft_.kinds.of.find(name); kind != draft_.kinds.of.end()) {
      tensor.kind = kind->second;
    } else if (known && value->second.is_constant) {
      tensor.kind = TensorKind::constant;
    }
    if (known && tensor.kind == TensorKind::constant)
      tensor.values = value->second.values;
    const TensorId id = made_.graph.add_tensor(std::move(tensor));
    made_.known.push_back(known);
    ids_.emplace(name, id);
    return id;
  }

  ElementType guessed_type(const Node& node, const Operator& op) const {
    const auto listed = [&](const auto& names) {
      return std::ranges::find(names, node.op_type) != names.end();
    };
    if (listed(kMakeIntegers))
      return ElementType::int64;
    if (listed(kMakeBooleans))
      return ElementType::boolean;
    // ONNX's numbers of the floating types are 1, 10, 11 and 16.
    const std::int64_t to = node.attributes.integer("to", 1);
    if (node.op_type == ops::Cast && to != 1 && to != 10 && to != 11 && to != 16)
      return ElementType::int64;
    const auto floats = [&](const std::optional<TensorId>& id) {
      return id && is_floating(made_.graph.tensor(*id).type);
    };
    // A gradient is assumed to pass through an unknown operator.
    if (draft_.unsupported.count(node.name) != 0 && std::ranges::any_of(op.inputs, floats))
      return ElementType::fp32;
    const bool first = !op.inputs.empty() && op.inputs[0] && node.op_type != ops::Cast &&
                       node.op_type != ops::ConstantOfShape && node.op_type != ops::Where;
    return first ? made_.graph.tensor(*op.inputs[0]).type : ElementType::fp32;
  }

  void add_node(const Node& node) {
    Operator op{.name = node.name,
                .op_type = node.op_type,
                .domain = rule_domain(node),
                .attributes = node.attributes};
    for (const std::string& name : node.inputs) {
      op.inputs.push_back(
          name.empty() ? std::nullopt
                       : std::optional(add(constant_behind(draft_, name), ElementType::fp32)));
    }
    const ElementType guess = guessed_type(node, op);
    for (const std::string& name : node.outputs) {
      op.outputs.push_back(name.empty() ? std::nullopt : std::optional(add(name, guess)));
    }
    const OpId id = made_.graph.add_operator(std::move(op));
    const auto unsupported = draft_.unsupported.find(node.name);
    if (unsupported != draft_.unsupported.end()) {
      made_.unsupported.push_back({id, unsupported->second});
    } else if (can_have_nest(made_.graph.op(id))) {
      try_nest(made_.graph, id, draft_.problems);
    }
  }

  bool can_have_nest(const Operator& op) const {
    const auto known = [&](const std::optional<TensorId>& tensor) {
      return !tensor || made_.known[tensor->index()];
    };
    return std::ranges::all_of(op.inputs, known) && std::ranges::all_of(op.outputs, known) &&
           find_row(op.domain, op.op_type) != nullptr;
  }

  NetworkDraft& draft_;
  const Model& model_;
  NetworkOutline made_;
  std::unordered_map<std::string, TensorId> ids_;
};

} // namespace

NetworkOutline outline(NetworkDraft& draft) {
  return Outline(draft).run();
}

} // namespace monet::onnx_file
