// The reader's main line: parse, order, then one pass over the nodes that infers shapes and folds
// constants, then the graph with its nests. See onnx/model.hpp for the parts.
#include "monet/workload/onnx_reader.hpp"

#include "workload/onnx/model.hpp"

#include "monet/base/checked.hpp"
#include "monet/base/files.hpp"
#include "monet/workload/operators.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_set>

namespace monet {

namespace {

using namespace onnx_file;

/// Numbers of all folded constants together; beyond it only shapes are kept.
constexpr std::int64_t kMaxFoldedTotal = 64'000'000;

bool is_random(const std::string& op_type) {
  return op_type.rfind("Random", 0) == 0 || op_type == "Bernoulli" || op_type == "Multinomial" ||
         op_type == "Dropout";
}

/// ONNX operators that we give more outputs than ONNX allows are written in our domain.
std::string rule_domain(const Node& node) {
  if (node.domain == kMonetDomain && find_rule(node.domain, node.op_type) == nullptr &&
      find_rule("", node.op_type) != nullptr) {
    return "";
  }
  return node.domain;
}

/// The pass over the nodes.
class Inference {
public:
  Inference(Model& model, const OnnxReadOptions& options) : model_(model), options_(options) {}

  Values values;
  ProblemList problems;
  std::vector<Node> kept; ///< nodes that compute something at run time

  void run() {
    dimensions_ = bind_inputs(model_, options_, values, problems);
    kinds_ = decide_kinds(model_);
    for (const std::string& name : model_.initializer_order) {
      Value value = std::move(model_.initializers.at(name));
      const TensorKind kind = kinds_.at(name);
      value.is_constant = kind == TensorKind::constant || kind == TensorKind::buffer;
      // Running statistics change during training: they are kept, but no constant.
      if (kind == TensorKind::buffer && is_floating(value.type))
        value.is_constant = false;
      check_size(name, value, at_tensor(model_, name));
      values[name] = std::move(value);
    }
    for (Node& node : model_.nodes)
      visit(node);
    problems.throw_if_any();
  }

  const std::unordered_map<std::string, TensorKind>& kinds() const { return kinds_; }

  /// The value itself, or the large constant that it is a copy of.
  const std::string& constant_behind(const std::string& name) const {
    const auto found = same_as_.find(name);
    return found == same_as_.end() ? name : found->second;
  }

private:
  void visit(Node& node) {
    if (!node.unsupported_attribute.empty()) {
      problems.add(at_node(model_, node, fmt::format("attribute '{}'", node.unsupported_attribute)),
                   node.has_subgraph ? "operators with subgraphs are not supported"
                                     : "attributes of this type are not supported");
      return;
    }
    // Operators without a rule are not even inferred: the fewer of libonnx's functions see
    // strangers' files, the better.
    if (find_rule(rule_domain(node), node.op_type) == nullptr && !is_shape_arithmetic(node)) {
      unsupported(node);
      return;
    }
    if (has_unknown_input(node)) {
      // The shapes cannot be had because of an earlier problem; a missing rule is still worth
      // telling.
      if (!is_shape_arithmetic(node))
        check_rule(node);
      return;
    }
    try {
      normalise(model_, node, values);
      infer(node);
    } catch (const InputError& error) {
      for (const InputProblem& problem : error.problems()) {
        const bool located = !problem.where.element.empty();
        problems.add(located ? problem.where : at_node(model_, node), problem.what, problem.hint);
      }
    }
  }

  void infer(Node& node) {
    auto outputs = can_infer(node) ? infer_outputs(model_, node, values)
                                   : std::vector<std::optional<Value>>(node.outputs.size());
    std::vector<Value> known;
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i].empty()) {
        known.emplace_back();
        continue;
      }
      if (!outputs[i])
        outputs[i] = declared(node.outputs[i]);
      if (!outputs[i]) {
        if (!is_shape_arithmetic(node))
          check_rule(node);
        problems.add(at_node(model_, node),
                     fmt::format("the shape of output '{}' cannot be known", node.outputs[i]),
                     "it depends on data, or an earlier shape is missing");
        return;
      }
      known.push_back(std::move(*outputs[i]));
    }
    if (node.op_type == "ConvTranspose")
      pad_transposed(node, known[0]);
    for (std::size_t i = 0; i < known.size(); ++i) {
      check_size(node.outputs[i], known[i], at_node(model_, node));
    }
    if (!fold(node, known)) {
      check_rule(node);
      kept.push_back(node);
    }
    for (std::size_t i = 0; i < known.size(); ++i) {
      if (!node.outputs[i].empty())
        values[node.outputs[i]] = std::move(known[i]);
    }
  }

  /// True when the node needs not run: its outputs are constants.
  bool fold(const Node& node, std::vector<Value>& outputs) {
    const bool asks_shape =
        node.domain == "" && (node.op_type == "Shape" || node.op_type == "Size");
    const bool constant_inputs =
        std::all_of(node.inputs.begin(), node.inputs.end(), [&](const std::string& name) {
          return name.empty() || values.at(name).is_constant;
        });
    if (!asks_shape && (!constant_inputs || is_random(node.op_type)))
      return false;
    const bool room = folded_ < kMaxFoldedTotal;
    const bool folded = room && fold_constant(node, values, outputs);
    if (!folded && (node.inputs.empty() && node.op_type != "Constant"))
      return false;
    for (Value& output : outputs) {
      if (!folded)
        output.values.reset();
      if (folded)
        folded_ += checked_product(output.shape);
      output.is_constant = true;
    }
    share_large_constant(node, outputs);
    return true;
  }

  /// A copy of a constant too large to keep its numbers is that constant: twelve layers that cast
  /// one causal mask to the type it has share one mask.
  void share_large_constant(const Node& node, const std::vector<Value>& outputs) {
    const bool copies =
        node.op_type == "Identity" || node.op_type == "Cast" || node.op_type == "CastLike";
    if (!copies || !node.domain.empty() || outputs.size() != 1 || outputs[0].values)
      return;
    if (values.at(node.inputs[0]).type == outputs[0].type)
      same_as_[node.outputs[0]] = constant_behind(node.inputs[0]);
  }

  /// ONNX's transposed convolution may leave up to stride - 1 rows open; the published training
  /// graphs declare the larger output but lack attribute output_padding.
  void pad_transposed(Node& node, Value& output) {
    const auto wanted = declared(node.outputs[0]);
    if (!wanted || node.attributes.has("output_padding") || output.shape.size() < 3 ||
        wanted->shape.size() != output.shape.size() || wanted->shape == output.shape) {
      return;
    }
    const auto strides =
        node.attributes.integers("strides", std::vector<std::int64_t>(output.shape.size() - 2, 1));
    std::vector<std::int64_t> padding;
    for (std::size_t i = 0; i < strides.size(); ++i) {
      padding.push_back(wanted->shape[2 + i] - output.shape[2 + i]);
      if (padding.back() < 0 || padding.back() >= strides[i])
        return;
    }
    node.attributes.set("output_padding", padding);
    output.shape = wanted->shape;
  }

  std::optional<Value> declared(const std::string& name) const {
    const auto found = model_.value_info.find(name);
    if (found == model_.value_info.end() || !found->second.type || !found->second.shape) {
      return std::nullopt;
    }
    Value value{*found->second.type, {}, std::nullopt, false};
    for (const Dimension& dimension : *found->second.shape) {
      const auto named = dimensions_.find(dimension.symbol);
      if (!dimension.size && named == dimensions_.end())
        return std::nullopt;
      value.shape.push_back(dimension.size ? *dimension.size : named->second);
      if (value.shape.back() < 0)
        return std::nullopt;
    }
    return value;
  }

  bool has_unknown_input(const Node& node) const {
    return std::any_of(node.inputs.begin(), node.inputs.end(), [&](const std::string& name) {
      return !name.empty() && values.count(name) == 0;
    });
  }

  /// Operators that a network uses on shapes only; without a rule they vanish by folding.
  static bool is_shape_arithmetic(const Node& node) {
    static constexpr std::array<std::string_view, 5> kNames{"Shape", "Size", "Constant", "Range",
                                                            "ConstantOfShape"};
    return std::find(kNames.begin(), kNames.end(), node.op_type) != kNames.end();
  }

  void check_rule(const Node& node) {
    if (find_rule(rule_domain(node), node.op_type) == nullptr)
      unsupported(node);
  }
  void unsupported(const Node& node) {
    problems.add(at_node(model_, node),
                 fmt::format("operator {} of domain '{}' is not supported", node.op_type,
                             node.domain.empty() ? "ai.onnx" : node.domain));
  }

  void check_size(const std::string& name, const Value& value, SourceLoc where) {
    bool fits = true;
    try {
      fits = checked_product(value.shape) <= options_.max_elements;
    } catch (const InputError&) {
      fits = false;
    }
    if (!fits) {
      throw InputError(std::move(where),
                       fmt::format("'{}' has more than {} elements", name, options_.max_elements));
    }
  }

  Model& model_;
  const OnnxReadOptions& options_;
  std::map<std::string, std::int64_t> dimensions_;
  std::unordered_map<std::string, TensorKind> kinds_;
  std::unordered_map<std::string, std::string> same_as_;
  std::int64_t folded_ = 0;
};

/// What write_onnx adds about tensors, by name.
struct Annotations {
  std::unordered_map<std::string, std::pair<TensorKind, ElementType>> tensors;
  std::unordered_map<std::string, std::string> aliases;
};

std::vector<std::string_view> split(std::string_view text, char separator, std::size_t most) {
  std::vector<std::string_view> parts;
  while (parts.size() + 1 < most && text.find(separator) != text.npos) {
    parts.push_back(text.substr(0, text.find(separator)));
    text.remove_prefix(text.find(separator) + 1);
  }
  parts.push_back(text);
  return parts;
}

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

/// Nodes and values -> Graph.
class Assembly {
public:
  Assembly(const Model& model, Inference& inference)
      : model_(model), inference_(inference), notes_(read_annotations(model)) {}

  Graph run() {
    graph_.name = model_.name;
    graph_.origin = model_.origin;
    for (const Declared& input : model_.inputs) {
      if (model_.initializers.count(input.name) != 0)
        continue;
      const TensorId id = add(input.name);
      if (graph_.tensor(id).kind == TensorKind::input ||
          graph_.tensor(id).kind == TensorKind::label) {
        graph_.inputs.push_back(id);
      }
    }
    const std::vector<bool> alive = find_alive();
    for (std::size_t i = 0; i < inference_.kept.size(); ++i) {
      if (alive[i])
        add_node(inference_.kept[i]);
    }
    for (const Declared& output : model_.outputs)
      graph_.outputs.push_back(add(output.name));
    link_aliases();
    build_nests();
    return std::move(graph_);
  }

private:
  /// Folding leaves nodes that only fed shape arithmetic.
  std::vector<bool> find_alive() const {
    std::unordered_set<std::string_view> needed;
    for (const Declared& output : model_.outputs)
      needed.insert(output.name);
    std::vector<bool> alive(inference_.kept.size(), false);
    for (std::size_t i = alive.size(); i-- > 0;) {
      const Node& node = inference_.kept[i];
      alive[i] = std::any_of(node.outputs.begin(), node.outputs.end(), [&](const auto& name) {
        return !name.empty() && needed.count(name) != 0;
      });
      if (alive[i])
        needed.insert(node.inputs.begin(), node.inputs.end());
    }
    return alive;
  }

  TensorId add(const std::string& name, bool made_by_node = false) {
    const auto known = ids_.find(name);
    if (known != ids_.end())
      return known->second;
    const Value& value = inference_.values.at(name);
    Tensor tensor;
    tensor.name = name;
    tensor.shape = value.shape;
    tensor.type = value.type;
    const auto kind = inference_.kinds().find(name);
    if (kind != inference_.kinds().end()) {
      tensor.kind = kind->second;
    } else if (!made_by_node) {
      tensor.kind = value.values ? TensorKind::constant : TensorKind::buffer;
    }
    if (tensor.kind == TensorKind::constant)
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

  void add_node(Node& node) {
    Operator op;
    op.name = node.name;
    op.op_type = node.op_type;
    op.domain = rule_domain(node);
    op.attributes = node.attributes;
    for (const std::string& name : node.inputs) {
      op.inputs.push_back(name.empty() ? std::nullopt
                                       : std::optional(add(inference_.constant_behind(name))));
    }
    while (!op.inputs.empty() && !op.inputs.back())
      op.inputs.pop_back();
    for (const std::string& name : node.outputs) {
      op.outputs.push_back(name.empty() ? std::nullopt : std::optional(add(name, true)));
    }
    while (!op.outputs.empty() && !op.outputs.back())
      op.outputs.pop_back();
    if (model_.metadata.count("monet.tensors") != 0)
      read_documentation(node, op);
    const bool updates_statistics =
        op.domain.empty() && op.op_type == "BatchNormalization" && op.inputs.size() == 5;
    const OpId id = graph_.add_operator(std::move(op));
    names_.emplace(node.name, id);
    if (updates_statistics)
      alias_statistics(id);
  }

  /// Outputs 1 and 2 of a batch normalisation in training mode are the running statistics
  /// themselves.
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

  void build_nests() {
    ProblemList problems;
    for (std::size_t i = 0; i < graph_.operators().size(); ++i) {
      try {
        build_nest(graph_, OpId(i));
      } catch (const InputError& error) {
        for (const InputProblem& problem : error.problems()) {
          const bool located = !problem.where.element.empty();
          problems.add(located ? problem.where : location_of(graph_, graph_.op(OpId(i))),
                       problem.what, problem.hint);
        }
      }
    }
    problems.throw_if_any();
  }

  const Model& model_;
  Inference& inference_;
  Annotations notes_;
  Graph graph_;
  std::unordered_map<std::string, TensorId> ids_;
  std::unordered_map<std::string, OpId> names_;
};

} // namespace

Graph read_onnx_bytes(std::string_view bytes, const std::string& origin,
                      const OnnxReadOptions& options) {
  Model model = parse_model(bytes, origin);
  inline_functions(model);
  order_nodes(model);
  Inference inference(model, options);
  inference.run();
  return Assembly(model, inference).run();
}

Graph read_onnx(const std::string& path, const OnnxReadOptions& options) {
  return read_onnx_bytes(read_file(path), path, options);
}

} // namespace monet
