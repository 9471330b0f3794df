// The pass over the nodes that resolves control flow, infers shapes and folds constants.
#include "base/shared/checked.hpp"
#include "workload/onnx/control.hpp"
#include "workload/onnx/expand.hpp"
#include "workload/onnx/model.hpp"
#include "workload/shared/operators.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <utility>

namespace monet::onnx_file {

namespace {

/// Maximum number of elements in all folded constants; beyond it only shapes are kept.
constexpr std::int64_t kMaxFoldedTotal = 64'000'000;

bool is_random(OpType op_type) {
  return op_type.starts_with("Random") || op_type == ops::Bernoulli ||
         op_type == ops::Multinomial || op_type == ops::Dropout;
}

class NodeEvaluation {
public:
  NodeEvaluation(NetworkDraft& draft, bool rewrites, bool explains, std::int64_t max_elements)
      : draft_(draft), rewrites_(rewrites), explains_(explains), max_elements_(max_elements),
        control_(draft.model, draft.values, second_names_, [this](Node& node) {
          visit(node);
          return is_known(node.outputs);
        }) {
    for (const Declared& output : model_.outputs)
      graph_outputs_.insert(output.name);
  }

  void run() {
    for (Node& node : model_.nodes)
      visit(node);
    for (const Declared& output : model_.outputs) {
      if (sequences_.has(second_names_.of(output.name)))
        problems_.add(at_tensor(model_, output.name), "this graph output is a sequence",
                      "return its tensors one by one");
    }
    model_.nodes = std::move(kept_);
  }

private:
  void visit(Node& node) {
    for (std::string& name : node.inputs)
      name = second_names_.of(name);
    if (sequences_.handles(node) || ControlFlow::handles(node)) {
      resolve(node);
      return;
    }
    record(node);
    if (expands(node)) {
      if (!reads_sequence(node))
        visit_parts(node);
      return;
    }
    if (!node.unsupported_attribute.empty()) {
      unsupported(node, fmt::format("attribute '{}'", node.unsupported_attribute),
                  node.has_subgraph ? "operators with subgraphs are not supported"
                                    : "attributes of this type are not supported");
      return;
    }
    // Operators without a rule are not inferred, which reduces the code of libonnx that untrusted
    // files reach.
    if (find_row(rule_domain(node), node.op_type) == nullptr && !is_shape_arithmetic(node) &&
        !is_renamed(node)) {
      unsupported(node);
      return;
    }
    if (reads_sequence(node))
      return;
    if (has_unknown_input(node)) {
      // The shapes are unknown because of an earlier problem; a missing rule is reported
      // nevertheless.
      if (!is_shape_arithmetic(node))
        check_rule(node);
      return;
    }
    try {
      check_attributes(model_, node);
      std::vector<Node> parts = expand(model_, node, values_, rewrites_);
      for (Node& part : parts)
        infer(part);
      if (parts.empty()) {
        normalise(model_, node, values_);
        infer(node);
      }
    } catch (const InputError& error) {
      add_problems(error, node);
    }
  }

  /// Resolves control flow and sequences; only nodes that compute tensors remain.
  void resolve(const Node& node) {
    if (!is_known(node.inputs)) {
      record(node);
      return;
    }
    try {
      check_attributes(model_, node);
      if (ControlFlow::handles(node)) {
        const auto made = control_.run(node);
        if (made && !made->depends.empty()) {
          record(node);
          unsupported(node, "", made->depends);
        }
        for (std::size_t i = 0; made && i < made->results.size(); ++i)
          name_result(node, i, made->results[i]);
        return;
      }
      Sequences::Resolved made = sequences_.resolve(model_, node, values_);
      for (Node& part : made.nodes)
        visit(part);
      name_result(node, 0, made.result);
    } catch (const InputError& error) {
      add_problems(error, node);
    }
  }

  void record(const Node& node) {
    if (explains_ && records_)
      draft_.visited.push_back(node);
  }

  /// Records output `i` of a node as an alias of another value; does nothing if either name is
  /// empty.
  void name_result(const Node& node, std::size_t i, const std::string& value) {
    if (value.empty() || node.outputs[i].empty())
      return;
    second_names_.add(node.outputs[i], value);
    if (graph_outputs_.count(node.outputs[i]) == 0 || sequences_.has(value))
      return;
    Node copy{.name = i == 0 ? node.name : control_.unused(fmt::format("{}/{}", node.name, i)),
              .op_type = ops::Identity,
              .opset = 17,
              .inputs = {value},
              .outputs = {node.outputs[i]}};
    visit(copy);
  }

  bool reads_sequence(const Node& node) {
    const auto found =
        std::ranges::find_if(node.inputs, [&](const auto& name) { return sequences_.has(name); });
    if (found != node.inputs.end())
      problems_.add(at_node(model_, node),
                    fmt::format("input '{}' is a sequence where a tensor is expected", *found));
    return found != node.inputs.end();
  }

  /// Whether all names are omitted inputs, or tensors and sequences with known properties.
  bool is_known(const std::vector<std::string>& names) const {
    return std::ranges::all_of(names, [&](const std::string& name) {
      const std::string& value = second_names_.of(name);
      return name.empty() || values_.count(value) != 0 || sequences_.has(value);
    });
  }

  /// Visits the parts of a composite node. Unknown inputs have been reported at their producers.
  void visit_parts(const Node& node) {
    if (has_unknown_input(node))
      return;
    const bool records = std::exchange(records_, false);
    try {
      check_attributes(model_, node);
      for (Node& part : expand_node(model_, node, values_))
        visit(part);
    } catch (const InputError& error) {
      add_problems(error, node);
    }
    records_ = records;
  }

  void add_problems(const InputError& error, const Node& node) {
    for (const InputProblem& problem : error.problems()) {
      const bool located = !problem.where.element.empty();
      problems_.add(located ? problem.where : at_node(model_, node), problem.what, problem.hint);
    }
  }

  void infer(Node& node) {
    auto outputs = can_infer(node) ? infer_outputs(model_, node, values_)
                                   : std::vector<std::optional<Value>>(node.outputs.size());
    if (counts_by_data(node)) {
      const auto stated = draft_.dimensions.find(node.outputs[0]);
      outputs = {infer_places(model_, node, values_,
                              stated == draft_.dimensions.end() ? std::nullopt
                                                                : std::optional(stated->second))};
    }
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
        problems_.add(at_node(model_, node),
                      fmt::format("the shape of output '{}' cannot be known", node.outputs[i]),
                      "it depends on data, or an earlier shape is missing");
        return;
      }
      known.push_back(std::move(*outputs[i]));
    }
    if (node.op_type == ops::ConvTranspose)
      pad_transposed(node, known[0]);
    for (std::size_t i = 0; i < known.size(); ++i) {
      check_size(node.outputs[i], known[i], max_elements_, at_node(model_, node));
    }
    if (!fold(node, known)) {
      check_rule(node);
      kept_.push_back(node);
    }
    for (std::size_t i = 0; i < known.size(); ++i) {
      if (!node.outputs[i].empty())
        values_[node.outputs[i]] = std::move(known[i]);
    }
  }

  /// Whether the node is folded: its outputs are constants.
  bool fold(const Node& node, std::vector<Value>& outputs) {
    const bool asks_shape =
        node.domain == "" &&
        (node.op_type == ops::Shape || node.op_type == ops::Size || node.op_type == ops::EyeLike);
    const bool constant_inputs = std::ranges::all_of(node.inputs, [&](const std::string& name) {
      return name.empty() || values_.at(name).is_constant;
    });
    if (!asks_shape && (!constant_inputs || is_random(node.op_type)))
      return false;
    const bool room = folded_ < kMaxFoldedTotal;
    const bool folded = room && fold_constant(node, values_, outputs);
    if (!folded && (node.inputs.empty() && node.op_type != ops::Constant))
      return false;
    if (!folded && room && has_numbers(node, outputs))
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

  /// Whether all operands have numbers, but no fold exists (a product of two small constants). The
  /// node stays in the graph, and execution computes its result.
  bool has_numbers(const Node& node, const std::vector<Value>& outputs) const {
    if (node.inputs.empty() || find_row(rule_domain(node), node.op_type) == nullptr)
      return false;
    const bool small = std::ranges::all_of(outputs, [](const Value& output) {
      return checked_product(output.shape) <= kMaxComputedElements;
    });
    return small && std::ranges::all_of(node.inputs, [&](const auto& name) {
             return name.empty() || values_.at(name).values.has_value();
           });
  }

  /// Maps a copy of a large constant to its original. Twelve layers that cast one causal mask to
  /// its type then share one mask.
  void share_large_constant(const Node& node, const std::vector<Value>& outputs) {
    const bool copies =
        node.op_type == ops::Identity || node.op_type == ops::Cast || node.op_type == ops::CastLike;
    if (!copies || !node.domain.empty() || outputs.size() != 1 || outputs[0].values)
      return;
    if (values_.at(node.inputs[0]).type == outputs[0].type)
      draft_.same_as[node.outputs[0]] = constant_behind(draft_, node.inputs[0]);
  }

  /// Sets output_padding from the declared output. A transposed convolution may leave up to stride
  /// - 1 rows undetermined; the published training graphs declare the larger output but lack the
  /// attribute.
  void pad_transposed(Node& node, Value& output) {
    const auto wanted = declared(node.outputs[0]);
    if (!wanted || node.attributes.has("output_padding") || output.shape.size() < 3 ||
        wanted->shape.size() != output.shape.size() || wanted->shape == output.shape) {
      return;
    }
    const auto strides = node.attributes.integers("strides", Integers(output.shape.size() - 2, 1));
    Integers padding;
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
      const auto named = draft_.dimensions.find(dimension.symbol);
      if (!dimension.size && named == draft_.dimensions.end())
        return std::nullopt;
      value.shape.push_back(dimension.size ? *dimension.size : named->second);
      if (value.shape.back() < 0)
        return std::nullopt;
    }
    return value;
  }

  bool has_unknown_input(const Node& node) const {
    return std::ranges::any_of(node.inputs, [&](const std::string& name) {
      return !name.empty() && values_.count(name) == 0;
    });
  }

  /// Whether a network uses the operator for shapes only; without a rule it must be folded.
  static bool is_shape_arithmetic(const Node& node) {
    return node.op_type.is_one_of(
        {ops::Shape, ops::Size, ops::Constant, ops::Range, ops::ConstantOfShape});
  }

  /// Whether the operator of an old opset is read under another name.
  static bool is_renamed(const Node& node) {
    return node.domain.empty() && node.op_type == ops::Upsample && node.opset < 10;
  }

  void check_rule(const Node& node) {
    if (find_row(rule_domain(node), node.op_type) == nullptr)
      unsupported(node);
  }
  void unsupported(const Node& node) {
    unsupported(node, "",
                fmt::format("operator {} of domain '{}' is not supported", node.op_type,
                            node.domain.empty() ? "ai.onnx" : node.domain));
  }
  void unsupported(const Node& node, std::string_view detail, const std::string& what) {
    draft_.unsupported.emplace(node.name, what);
    if (!explains_)
      problems_.add(at_node(model_, node, detail), what);
  }

  NetworkDraft& draft_;
  bool rewrites_;
  bool explains_; ///< unsupported operators are explained later
  std::int64_t max_elements_;
  Model& model_ = draft_.model;
  Values& values_ = draft_.values;
  ProblemList& problems_ = draft_.problems;
  std::vector<Node> kept_; ///< nodes that compute something at run time
  std::int64_t folded_ = 0;
  std::unordered_set<std::string_view> graph_outputs_;
  bool records_ = true; ///< false within parts of a layer
  SecondNames second_names_;
  Sequences sequences_;
  ControlFlow control_;
};

} // namespace

void evaluate_nodes(NetworkDraft& draft, bool recognise, const OutlineExplainer& explain,
                    std::int64_t max_elements) {
  NodeEvaluation(draft, recognise && !draft.is_own(), explain != nullptr, max_elements).run();
}

void report_problems(NetworkDraft& draft, const OutlineExplainer& explain) {
  if (!draft.unsupported.empty() && explain)
    draft.problems.add(explain(outline(draft)));
  draft.problems.throw_if_any();
}

} // namespace monet::onnx_file
