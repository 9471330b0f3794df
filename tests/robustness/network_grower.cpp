#include "robustness/network_grower.hpp"

#include "monet/base/errors.hpp"
#include "monet/workload/onnx_reader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace monet::testing {

namespace {

constexpr std::int64_t kMaxElements = 3000;

void set(onnx::NodeProto& node, const std::string& name, const AttributeValue& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) {
    ModelMaker::set(node, name, *number);
  } else if (const auto* numbers = std::get_if<Shape>(&value)) {
    ModelMaker::set(node, name, *numbers);
  } else if (const auto* real = std::get_if<double>(&value)) {
    ModelMaker::set_float(node, name, *real);
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    auto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::STRING);
    attribute.set_s(*text);
  } else {
    auto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::STRINGS);
    for (const std::string& item : std::get<std::vector<std::string>>(value))
      attribute.add_strings(item);
  }
}

int onnx_type(ElementType type) {
  switch (type.kind()) {
  case ElementType::Kind::fp64:
    return onnx::TensorProto::DOUBLE;
  case ElementType::Kind::fp16:
    return onnx::TensorProto::FLOAT16;
  case ElementType::Kind::bf16:
    return onnx::TensorProto::BFLOAT16;
  case ElementType::Kind::int64:
    return onnx::TensorProto::INT64;
  case ElementType::Kind::fp32:
    return onnx::TensorProto::FLOAT;
  default:
    return onnx::TensorProto::BOOL;
  }
}

/// The last node alone, its operands given.
onnx::ModelProto alone(const onnx::ModelProto& model, const std::vector<Value>& values) {
  onnx::ModelProto made = model;
  onnx::GraphProto& graph = *made.mutable_graph();
  const onnx::NodeProto node = model.graph().node(model.graph().node_size() - 1);
  graph.clear_node();
  graph.clear_input();
  graph.clear_initializer();
  *graph.add_node() = node;
  const auto reads = [&](const std::string& name) {
    return std::find(node.input().begin(), node.input().end(), name) != node.input().end();
  };
  for (const auto& initializer : model.graph().initializer())
    if (reads(initializer.name()))
      *graph.add_initializer() = initializer;
  for (const Value& value : values) {
    if (!reads(value.name))
      continue;
    auto& info = *graph.add_input();
    info.set_name(value.name);
    info.mutable_type()->mutable_tensor_type()->set_elem_type(value.type);
    auto& shape = *info.mutable_type()->mutable_tensor_type()->mutable_shape();
    for (const std::int64_t size : value.shape)
      shape.add_dim()->set_dim_value(size);
  }
  for (const std::string& output : node.output())
    graph.add_output()->set_name(output);
  return made;
}

} // namespace

Value NetworkGrower::input(const Shape& shape) {
  Value value{fresh("x"), shape, type_};
  model_.input(value.name, shape, type_);
  values_.push_back(value);
  return value;
}

Value NetworkGrower::indices(Random& random, const Shape& shape, std::int64_t bound,
                             bool constant) {
  Value value{fresh("i"), shape, onnx::TensorProto::INT64};
  if (!constant) {
    model_.input(value.name, shape, value.type);
    values_.push_back(value);
    return value;
  }
  auto& tensor = *model_.graph().add_initializer();
  tensor.set_name(value.name);
  tensor.set_data_type(onnx::TensorProto::INT64);
  std::int64_t elements = 1;
  for (const std::int64_t size : shape) {
    tensor.add_dims(size);
    elements *= size;
  }
  for (std::int64_t i = 0; i < elements; ++i)
    tensor.add_int64_data(random.between(random.chance(20) ? -bound : 0, bound - 1));
  return value;
}

Value NetworkGrower::weight(const Shape& shape, int type) {
  Value value{fresh("w"), shape, type};
  model_.weight(value.name, shape, type);
  return value;
}

std::string NetworkGrower::integers(const Shape& values) {
  const std::string name = fresh("c");
  model_.integers(name, values);
  return name;
}

std::string NetworkGrower::floats(const std::vector<double>& values) {
  const std::string name = fresh("f");
  auto& tensor = *model_.graph().add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  tensor.add_dims(static_cast<std::int64_t>(values.size()));
  for (const double value : values)
    tensor.add_float_data(static_cast<float>(value));
  return name;
}

std::vector<Value> NetworkGrower::add_all(const std::string& op_type,
                                          const std::vector<std::string>& inputs,
                                          const AttributeList& attributes, std::size_t outputs,
                                          const std::string& domain) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < outputs; ++i)
    names.push_back(fresh("t"));
  onnx::NodeProto& node = model_.node(op_type, inputs, names, domain);
  for (const auto& [name, value] : attributes)
    set(node, name, value);
  const Graph graph = read_onnx_bytes(alone(model_.proto(), values_).SerializeAsString(), "node");
  std::vector<Value> made;
  for (const std::string& name : names) {
    const auto id = graph.find_tensor(name);
    if (!id)
      throw InputError({"node"}, "the reader has folded " + op_type);
    const Tensor& tensor = graph.tensor(*id);
    std::int64_t elements = 1;
    for (const std::int64_t size : tensor.shape)
      elements *= size;
    if (elements > kMaxElements || elements == 0)
      throw InputError({"node"}, "too large, or nothing");
    made.push_back({name, tensor.shape, onnx_type(tensor.type)});
  }
  read_.insert(inputs.begin(), inputs.end());
  values_.insert(values_.end(), made.begin(), made.end());
  return made;
}

Value NetworkGrower::some(Random& random) const {
  std::vector<Value> fitting;
  for (const Value& value : values_)
    if (value.type == type_)
      fitting.push_back(value);
  return random.chance(60) ? fitting.back() : random.pick(fitting);
}

Value NetworkGrower::with_axes(Random& random) {
  const Value x = some(random);
  return x.shape.empty() ? reshape(x, {1}) : x;
}

Value NetworkGrower::of_rank(Random& random, std::int64_t rank) {
  const Value x = some(random);
  if (x.rank() == rank)
    return x;
  Shape shape = x.shape;
  while (static_cast<std::int64_t>(shape.size()) > rank) {
    const std::int64_t last = shape.back();
    shape.pop_back();
    shape[random.index(shape.size())] *= last;
  }
  while (static_cast<std::int64_t>(shape.size()) < rank)
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(random.index(shape.size() + 1)), 1);
  return reshape(x, shape);
}

void NetworkGrower::begin() {
  before_ = model_.proto();
  values_before_ = values_.size();
}

void NetworkGrower::undo() {
  model_.proto() = before_;
  values_.resize(values_before_);
}

std::string NetworkGrower::finish(Random& random) {
  std::set<std::string> read;
  for (const onnx::NodeProto& node : model_.graph().node())
    read.insert(node.input().begin(), node.input().end());
  for (auto value = values_.rbegin(); value != values_.rend(); ++value) { // a loss is of the first
    const bool made = value->name.starts_with('t');
    if (made && (!read.contains(value->name) || random.chance(5)))
      model_.output(value->name);
  }
  return model_.bytes();
}

RandomNetwork grow(const NetworkRecipe& recipe) {
  std::vector<LayerFamily> families;
  for (const auto* some : {&window_layers(), &product_layers(), &plain_layers(), &layout_layers()})
    families.insert(families.end(), some->begin(), some->end());
  Random random(recipe.seed);
  const int type =
      random.chance(80)
          ? onnx::TensorProto::FLOAT
          : random.one_of<int>({onnx::TensorProto::FLOAT16, onnx::TensorProto::BFLOAT16,
                                onnx::TensorProto::DOUBLE});
  NetworkGrower network(recipe.largest, type);
  Shape shape;
  for (std::int64_t rank = random.between(1, 4); rank > 0; --rank)
    shape.push_back(network.size(random));
  const Value x = network.input(shape);
  if (recipe.begins_with_weight)
    network.add("Mul", {x.name, network.weight({shape.back()}, type).name});
  RandomNetwork made;
  for (const std::uint64_t seed : recipe.layers) {
    made.layers.emplace_back();
    Random choices(seed);
    for (int attempt = 0; attempt < 4 && made.layers.back().empty(); ++attempt) {
      const LayerFamily& family = choices.pick(families);
      network.begin();
      try {
        family.add(network, choices);
        made.layers.back() = family.name;
      } catch (const InputError&) {
        network.undo();
      }
    }
  }
  made.onnx = network.finish(random);
  return made;
}

std::vector<std::string> layer_families() {
  std::vector<std::string> names;
  for (const auto* some : {&window_layers(), &product_layers(), &plain_layers(), &layout_layers()})
    for (const LayerFamily& family : *some)
      names.emplace_back(family.name);
  return names;
}

namespace {

std::string in_words(const onnx::AttributeProto& attribute) {
  switch (attribute.type()) {
  case onnx::AttributeProto::INT:
    return fmt::format("{}={}", attribute.name(), attribute.i());
  case onnx::AttributeProto::INTS:
    return fmt::format("{}=[{}]", attribute.name(), fmt::join(attribute.ints(), ","));
  case onnx::AttributeProto::FLOAT:
    return fmt::format("{}={}", attribute.name(), attribute.f());
  case onnx::AttributeProto::STRING:
    return fmt::format("{}={}", attribute.name(), attribute.s());
  default:
    return attribute.name();
  }
}

} // namespace

std::string in_words(const std::string& onnx) {
  onnx::ModelProto model;
  model.ParseFromString(onnx);
  std::string text;
  for (const auto& input : model.graph().input()) {
    text +=
        fmt::format("  input {} type {} [", input.name(), input.type().tensor_type().elem_type());
    for (const auto& dim : input.type().tensor_type().shape().dim())
      text += fmt::format(" {}", dim.dim_value());
    text += " ]\n";
  }
  for (const auto& tensor : model.graph().initializer())
    text += fmt::format("  initialiser {} type {} [{}] {}\n", tensor.name(), tensor.data_type(),
                        fmt::join(tensor.dims(), " "), fmt::join(tensor.int64_data(), ","));
  for (const auto& node : model.graph().node()) {
    text += fmt::format("  {} ({}) -> {}", node.op_type(), fmt::join(node.input(), ", "),
                        fmt::join(node.output(), ", "));
    for (const auto& attribute : node.attribute())
      text += " " + in_words(attribute);
    text += "\n";
  }
  for (const auto& output : model.graph().output())
    text += fmt::format("  output {}\n", output.name());
  return text;
}

} // namespace monet::testing
