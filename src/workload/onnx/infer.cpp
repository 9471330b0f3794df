// Infers the output shapes of one node, in the form of opset 17: by libonnx's inference function of
// the newest definition, or by rules below where libonnx has no function. Nodes are inferred one by
// one with the known constants, so chains of shape arithmetic need no second pass.
#include "base/shared/checked.hpp"
#include "workload/onnx/model.hpp"
#include "workload/onnx/proto.hpp"
#include "workload/shared/einsum_equation.hpp"
#include "workload/shared/operators.hpp"

#include <fmt/core.h>
#include <onnx/defs/schema.h>
#include <onnx/onnx_pb.h>

#include <algorithm>

namespace monet::onnx_file {

namespace {

constexpr std::size_t kMaxRank = 32;
/// Maximum number of elements passed to inference functions, which read shapes, axes and repeats
/// only.
constexpr std::size_t kMaxDataForInference = 4096;

/// Constant as a TensorProto; nullopt if the numbers are unknown, too many, or of a type that no
/// inference function reads.
std::optional<onnx::TensorProto> to_proto(const Value& value) {
  if (!value.values)
    return std::nullopt;
  onnx::TensorProto proto;
  proto.set_data_type(onnx_type(value.type));
  for (const std::int64_t size : value.shape)
    proto.add_dims(size);
  if (const auto* integers = integers_of(value.values)) {
    if (integers->size() > kMaxDataForInference)
      return std::nullopt;
    for (const std::int64_t number : *integers) {
      if (value.type == ElementType::int64) {
        proto.add_int64_data(number);
      } else {
        proto.add_int32_data(static_cast<std::int32_t>(number));
      }
    }
    return proto;
  }
  const auto& reals = std::get<std::vector<double>>(*value.values);
  if (reals.size() > kMaxDataForInference)
    return std::nullopt;
  for (const double number : reals) {
    if (value.type == ElementType::fp64) {
      proto.add_double_data(number);
    } else if (value.type == ElementType::fp32) {
      proto.add_float_data(static_cast<float>(number));
    } else {
      return std::nullopt;
    }
  }
  return proto;
}

/// Attributes with which ZigZag and Stream set the bits of a node's operands; they are not part of
/// ONNX.
bool is_precision(const std::string& attribute) {
  return attribute == "weight_size" || attribute == "act_size" || attribute == "output_size";
}

/// Inference context of libonnx for one node.
class NodeContext final : public onnx::InferenceContext {
public:
  NodeContext(const Node& node, const Values& values) : outputs_(node.outputs.size()) {
    proto_.set_op_type(node.op_type.str());
    for (const std::string& name : node.inputs)
      proto_.add_input(name);
    for (const std::string& name : node.outputs)
      proto_.add_output(name);
    for (const auto& [name, value] : node.attributes.all()) {
      if (!is_precision(name))
        write_attribute(name, value, *proto_.add_attribute());
    }
    for (const auto& [name, value] : node.tensors) {
      onnx::AttributeProto& attribute = *proto_.add_attribute();
      attribute.set_name(name);
      attribute.set_type(onnx::AttributeProto::TENSOR);
      auto data = to_proto(value);
      onnx::TensorProto& tensor = *attribute.mutable_t();
      if (data)
        tensor = std::move(*data);
      if (!data) { // only type and shape are read
        tensor.set_data_type(onnx_type(value.type));
        for (const std::int64_t size : value.shape)
          tensor.add_dims(size);
      }
    }
    for (const std::string& name : node.inputs) {
      const auto value = name.empty() ? values.end() : values.find(name);
      types_.emplace_back();
      data_.emplace_back();
      present_.push_back(value != values.end());
      if (value == values.end())
        continue;
      auto& tensor = *types_.back().mutable_tensor_type();
      tensor.set_elem_type(onnx_type(value->second.type));
      auto& shape = *tensor.mutable_shape();
      for (const std::int64_t size : value->second.shape)
        shape.add_dim()->set_dim_value(size);
      data_.back() = to_proto(value->second);
    }
  }

  const onnx::NodeProto& node() const { return proto_; }

  const onnx::AttributeProto* getAttribute(const std::string& name) const override {
    for (const auto& attribute : proto_.attribute()) {
      if (attribute.name() == name)
        return &attribute;
    }
    return nullptr;
  }
  std::size_t getNumInputs() const override { return types_.size(); }
  const onnx::TypeProto* getInputType(std::size_t i) const override {
    return present_.at(i) ? &types_[i] : nullptr;
  }
  const onnx::TensorProto* getInputData(std::size_t i) const override {
    return data_.at(i) ? &*data_[i] : nullptr;
  }
  std::size_t getNumOutputs() const override { return outputs_.size(); }
  onnx::TypeProto* getOutputType(std::size_t i) override { return &outputs_.at(i); }
  onnx::GraphInferencer* getGraphAttributeInferencer(const std::string&) override {
    throw std::runtime_error("subgraphs are not supported");
  }
  const onnx::SparseTensorProto* getInputSparseData(std::size_t) const override { return nullptr; }
  const onnx::TensorShapeProto* getSymbolicInput(std::size_t) const override { return nullptr; }

private:
  onnx::NodeProto proto_;
  std::vector<onnx::TypeProto> types_;
  std::vector<std::optional<onnx::TensorProto>> data_;
  std::vector<bool> present_;
  std::vector<onnx::TypeProto> outputs_;
};

std::optional<Value> read_output(const onnx::TypeProto& type) {
  if (!type.has_tensor_type() || !type.tensor_type().has_shape())
    return std::nullopt;
  const auto element = element_type(type.tensor_type().elem_type());
  if (!element)
    return std::nullopt;
  Value value;
  value.type = *element;
  for (const auto& dim : type.tensor_type().shape().dim()) {
    if (!dim.has_dim_value())
      return std::nullopt;
    value.shape.push_back(dim.dim_value());
  }
  return value;
}

// --- operators without inference in libonnx ---

bool is_fused_matmul(const Node& node) {
  return node.domain == "com.microsoft" &&
         (node.op_type == ops::FusedMatMul || node.op_type == ops::TransposeMatMul);
}

/// Batch axes of an operand of FusedMatMul, followed by its two matrix sizes.
Integers matrix_order(Integers shape, bool transpose, bool batch_first) {
  if (batch_first && shape.size() > 2) {
    std::rotate(shape.begin(), shape.begin() + 1, shape.end() - 1);
  }
  if (transpose && shape.size() > 1)
    std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
  return shape;
}

Value infer_fused_matmul(const Model& model, const Node& node, const Value& left,
                         const Value& right) {
  const auto flag = [&](const char* name) { return node.attributes.integer(name, 0) != 0; };
  const auto a = matrix_order(left.shape, flag("transA"), flag("transBatchA"));
  const auto b = matrix_order(right.shape, flag("transB"), flag("transBatchB"));
  if (a.size() < 2 || b.size() < 2 || a.back() != b[b.size() - 2]) {
    throw InputError(at_node(model, node), "the operands' reduced axes differ");
  }
  Value out{left.type, {}, std::nullopt, false};
  const std::size_t batches = std::max(a.size(), b.size()) - 2;
  const auto batch = [&](const Integers& shape, std::size_t i) {
    const std::size_t skipped = batches - (shape.size() - 2);
    return i < skipped ? 1 : shape[i - skipped];
  };
  for (std::size_t i = 0; i < batches; ++i) {
    const std::int64_t x = batch(a, i);
    const std::int64_t y = batch(b, i);
    if (x != y && x != 1 && y != 1) {
      throw InputError(at_node(model, node), "the operands' batch axes do not broadcast");
    }
    out.shape.push_back(x == 1 ? y : x);
  }
  out.shape.push_back(a[a.size() - 2]);
  out.shape.push_back(b.back());
  return out;
}

std::vector<std::optional<Value>> infer_own(const Model& model, const Node& node,
                                            const Values& values) {
  std::vector<std::optional<Value>> outputs(node.outputs.size());
  const auto input = [&](std::size_t i) { return input_value(node, i, values); };
  if (outputs.empty())
    return outputs;
  if (is_fused_matmul(node) && input(0) != nullptr && input(1) != nullptr) {
    outputs[0] = infer_fused_matmul(model, node, *input(0), *input(1));
  }
  const OperatorRow* row = find_row(rule_domain(node), node.op_type);
  if (row != nullptr && row->shape_of >= 0) {
    if (const Value* like = input(static_cast<std::size_t>(row->shape_of)))
      outputs[0] = Value{like->type, like->shape, {}, false};
  }
  return outputs;
}

/// Infers Einsum, for which libonnx 1.12 yields only the rank.
std::vector<std::optional<Value>> infer_einsum(const Model& model, const Node& node,
                                               const Values& values) {
  std::vector<std::size_t> ranks;
  std::vector<Integers> shapes;
  for (const std::string& name : node.inputs) {
    const auto operand = values.find(name);
    if (operand == values.end())
      throw InputError(at_node(model, node), "an operand is left out");
    shapes.push_back(operand->second.shape);
    ranks.push_back(shapes.back().size());
  }
  if (shapes.empty())
    throw InputError(at_node(model, node), "one or two operands are expected, not 0");
  EinsumEquation equation;
  Integers sizes;
  std::string wrong = parse_einsum(node.attributes.text("equation", ""), ranks, equation);
  if (wrong.empty())
    wrong = einsum_sizes(equation, shapes, sizes);
  if (!wrong.empty())
    throw InputError(at_node(model, node, "attribute 'equation'"), wrong);
  Value out{values.at(node.inputs.at(0)).type, {}, std::nullopt, false};
  for (const char letter : equation.result)
    out.shape.push_back(sizes[static_cast<std::size_t>(letter)]);
  std::vector<std::optional<Value>> outputs(node.outputs.size());
  if (!outputs.empty())
    outputs[0] = std::move(out);
  return outputs;
}

/// Infers OneHot, whose new axis libonnx 1.12 leaves unknown if the depth is not an initialiser.
std::vector<std::optional<Value>> infer_one_hot(const Model& model, const Node& node,
                                                const Values& values) {
  const Value* indices = input_value(node, 0, values);
  const Value* depth = input_value(node, 1, values);
  const Value* levels = input_value(node, 2, values);
  std::vector<std::optional<Value>> outputs(node.outputs.size());
  if (outputs.empty() || !indices || !depth || !levels || !depth->values)
    return outputs;
  const double classes = std::visit(
      [](const auto& list) { return list.size() == 1 ? static_cast<double>(list[0]) : -1.0; },
      *depth->values);
  constexpr double kMax = 1e12;
  const auto rank = static_cast<std::int64_t>(indices->shape.size()) + 1;
  std::int64_t axis = node.attributes.integer("axis", -1);
  axis += axis < 0 ? rank : 0;
  if (!(classes >= 0.0 && classes <= kMax))
    throw InputError(at_node(model, node),
                     fmt::format("a OneHot of {} classes is not possible", classes));
  if (axis < 0 || axis >= rank)
    throw InputError(at_node(model, node, "attribute 'axis'"), "the axis is outside the tensor");
  Value out{levels->type, indices->shape, std::nullopt, false};
  out.shape.insert(out.shape.begin() + axis, static_cast<std::int64_t>(classes));
  outputs[0] = std::move(out);
  return outputs;
}

/// Infers MaxUnpool with output_shape, which libonnx 1.12 leaves unknown.
std::vector<std::optional<Value>> infer_sized_unpool(const Node& node, const Values& values) {
  const Value* input = input_value(node, 0, values);
  const Value* size = input_value(node, 2, values);
  std::vector<std::optional<Value>> outputs(node.outputs.size());
  const auto* shape = size != nullptr ? integers_of(size->values) : nullptr;
  if (!outputs.empty() && input != nullptr && shape != nullptr)
    outputs[0] = Value{input->type, *shape, std::nullopt, false};
  return outputs;
}

/// Name of an operator with the same shape rule that libonnx 1.12 can infer; empty if not needed.
OpType inferred_as(const Node& node) {
  if (!node.domain.empty())
    return {};
  const OpType op = node.op_type;
  if (op == ops::GreaterOrEqual || op == ops::LessOrEqual)
    return ops::Greater; // a function in ONNX, without inference
  if (op == ops::BitwiseAnd || op == ops::BitwiseOr || op == ops::BitwiseXor)
    return ops::Mod;
  return {};
}

bool is_pool(const Node& node) {
  return node.domain.empty() && (node.op_type == ops::MaxPool || node.op_type == ops::AveragePool ||
                                 node.op_type == ops::LpPool);
}

/// A pooling node with dilations, or an LpPool with ceil_mode, as a MaxPool: libonnx 1.12 infers
/// these attributes only for MaxPool.
std::optional<Node> as_max_pool(const Node& node) {
  const bool newer = node.attributes.has("dilations") ||
                     (node.op_type == ops::LpPool && node.attributes.has("ceil_mode"));
  if (!is_pool(node) || node.op_type == ops::MaxPool || !newer)
    return std::nullopt;
  Node pool = node;
  pool.op_type = ops::MaxPool;
  pool.attributes = {};
  for (const auto& [name, value] : node.attributes.all()) {
    if (name != "p" && name != "count_include_pad")
      pool.attributes.set(name, value);
  }
  return pool;
}

/// Drops a last window that rounding up places beyond the input and its front padding (ONNX 22 and
/// PyTorch).
void drop_outside_windows(const Node& node, const Values& values,
                          std::vector<std::optional<Value>>& outputs) {
  const Value* input = input_value(node, 0, values);
  if (node.attributes.integer("ceil_mode", 0) == 0 || input == nullptr || input->shape.size() < 3)
    return;
  const auto& x = input->shape;
  const std::size_t count = x.size() - 2;
  const auto strides = node.attributes.integers("strides", Integers(count, 1));
  const auto pads = node.attributes.integers("pads", Integers(2 * count, 0));
  if (strides.size() != count || pads.size() != 2 * count)
    return;
  for (auto& output : outputs) {
    for (std::size_t i = 0; output && output->shape.size() == x.size() && i < count; ++i) {
      std::int64_t& size = output->shape[2 + i];
      if (size > 1 && (size - 1) * strides[i] >= x[2 + i] + pads[i])
        --size;
    }
  }
}

const onnx::OpSchema* schema_of(const Node& node) {
  if (!node.domain.empty() && node.domain != "ai.onnx.preview.training")
    return nullptr;
  return onnx::OpSchemaRegistry::Schema(node.op_type.str(), node.domain);
}

} // namespace

bool counts_by_data(const Node& node) {
  return node.domain.empty() && node.op_type == ops::NonZero && node.outputs.size() == 1;
}

std::optional<Value> infer_places(const Model& model, const Node& node, const Values& values,
                                  std::optional<std::int64_t> stated) {
  const Value* input = input_value(node, 0, values);
  if (input == nullptr)
    return std::nullopt;
  if (input->shape.empty())
    throw InputError(at_node(model, node), "a tensor with axes is expected");
  if (input->is_constant && input->values) {
    stated = std::visit(
        [](const auto& list) {
          return std::ranges::count_if(list, [](auto number) { return number != 0; });
        },
        *input->values);
  }
  if (!stated)
    throw InputError(
        at_node(model, node), "how many elements are not zero depends on data",
        fmt::format("state it in `dimensions: {{\"{0}\": ...}}`, --dim {0}=...", node.outputs[0]));
  if (*stated > checked_product(input->shape))
    throw InputError(at_node(model, node),
                     fmt::format("{} of {} elements cannot be other than zero", *stated,
                                 checked_product(input->shape)));
  return Value{ElementType::int64,
               {static_cast<std::int64_t>(input->shape.size()), *stated},
               std::nullopt,
               false};
}

bool can_infer(const Node& node) {
  if (schema_of(node) != nullptr || is_fused_matmul(node) || !inferred_as(node).empty())
    return true;
  const OperatorRow* row = find_row(rule_domain(node), node.op_type);
  return row != nullptr && row->shape_of >= 0;
}

std::vector<std::optional<Value>> infer_outputs(const Model& model, const Node& node,
                                                const Values& values) {
  check_node(model, node, values);
  if (const OpType other = inferred_as(node); !other.empty()) {
    Node same = node;
    same.op_type = other;
    return infer_outputs(model, same, values);
  }
  if (const auto pool = as_max_pool(node))
    return infer_outputs(model, *pool, values);
  const onnx::OpSchema* schema = schema_of(node);
  if (schema == nullptr)
    return infer_own(model, node, values);
  if (node.domain.empty() && node.op_type == ops::Einsum)
    return infer_einsum(model, node, values);
  if (node.domain.empty() && node.op_type == ops::OneHot)
    return infer_one_hot(model, node, values);
  NodeContext context(node, values);
  std::vector<std::optional<Value>> outputs;
  try {
    schema->Verify(context.node());
    schema->GetTypeAndShapeInferenceFunction()(context);
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      outputs.push_back(read_output(*context.getOutputType(i)));
    }
  } catch (const std::exception& error) { // libonnx throws several types
    throw InputError(at_node(model, node), error.what());
  }
  if (node.domain.empty() && node.op_type == ops::MaxUnpool && node.inputs.size() > 2)
    outputs = infer_sized_unpool(node, values);
  if (is_pool(node))
    drop_outside_windows(node, values, outputs);
  for (const auto& output : outputs) {
    if (!output)
      continue;
    const bool sane =
        output->shape.size() <= kMaxRank &&
        std::ranges::all_of(output->shape, [](std::int64_t size) { return size >= 0; });
    if (!sane)
      throw InputError(at_node(model, node), "an output would have a negative size");
  }
  return outputs;
}

} // namespace monet::onnx_file
