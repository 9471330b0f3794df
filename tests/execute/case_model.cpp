#include "execute/case_model.hpp"

#include "execute/shared/generator.hpp"
#include "workload/models.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>
#include <stdexcept>

namespace monet::test {

namespace {

using nlohmann::json;

int tensor_type(const std::string& name) {
  if (name == "float")
    return onnx::TensorProto::FLOAT;
  if (name == "double")
    return onnx::TensorProto::DOUBLE;
  if (name == "int64")
    return onnx::TensorProto::INT64;
  if (name == "int32")
    return onnx::TensorProto::INT32;
  if (name == "bool")
    return onnx::TensorProto::BOOL;
  throw std::runtime_error("element type '" + name + "' in a case");
}

void fill_tensor(onnx::TensorProto& tensor, const json& described) {
  const int type = tensor_type(described.value("type", "float"));
  tensor.set_data_type(type);
  for (const json& size : described.at("shape"))
    tensor.add_dims(size.get<std::int64_t>());
  for (const json& value : described.at("values")) {
    if (type == onnx::TensorProto::FLOAT)
      tensor.add_float_data(value.get<float>());
    else if (type == onnx::TensorProto::DOUBLE)
      tensor.add_double_data(value.get<double>());
    else if (type == onnx::TensorProto::INT64)
      tensor.add_int64_data(value.get<std::int64_t>());
    else
      tensor.add_int32_data(value.get<std::int32_t>());
  }
}

void set_list(onnx::AttributeProto& attribute, const json& values) {
  const bool real = std::any_of(values.begin(), values.end(),
                                [](const json& value) { return value.is_number_float(); });
  const bool text = !values.empty() && values.front().is_string();
  attribute.set_type(text   ? onnx::AttributeProto::STRINGS
                     : real ? onnx::AttributeProto::FLOATS
                            : onnx::AttributeProto::INTS);
  for (const json& value : values) {
    if (text)
      attribute.add_strings(value.get<std::string>());
    else if (real)
      attribute.add_floats(value.get<float>());
    else
      attribute.add_ints(value.get<std::int64_t>());
  }
}

void set_attribute(onnx::AttributeProto& attribute, const std::string& name, const json& value) {
  attribute.set_name(name);
  if (value.is_array()) {
    set_list(attribute, value);
  } else if (value.is_object()) {
    attribute.set_type(onnx::AttributeProto::TENSOR);
    fill_tensor(*attribute.mutable_t(), value);
  } else if (value.is_string()) {
    attribute.set_type(onnx::AttributeProto::STRING);
    attribute.set_s(value.get<std::string>());
  } else if (value.is_number_float()) {
    attribute.set_type(onnx::AttributeProto::FLOAT);
    attribute.set_f(value.get<float>());
  } else {
    attribute.set_type(onnx::AttributeProto::INT);
    attribute.set_i(value.get<std::int64_t>());
  }
}

/// Names of the running statistics: buffers that ONNX files hold as initialisers.
std::set<std::string> running_statistics(const json& test_case) {
  std::set<std::string> names;
  for (const json& node : test_case.at("nodes")) {
    if (node.at("op_type") != "BatchNormalization")
      continue;
    const json& inputs = node.at("inputs");
    for (std::size_t i = 3; i < inputs.size(); ++i)
      names.insert(inputs[i].get<std::string>());
  }
  return names;
}

} // namespace

std::string model_bytes(const json& test_case) {
  ModelMaker model(test_case.at("opset").get<std::int64_t>());
  const std::set<std::string> statistics = running_statistics(test_case);
  for (const json& input : test_case.at("inputs")) {
    const std::string name = input.at("name");
    const std::string kind = input.at("kind");
    const Shape shape = input.at("shape").get<Shape>();
    const int type = tensor_type(input.value("type", "float"));
    if (kind == "constant") {
      auto& tensor = *model.graph().add_initializer();
      tensor.set_name(name);
      fill_tensor(tensor, input);
    } else if (kind == "data" || statistics.count(name) != 0) {
      model.weight(name, shape, type);
    } else {
      model.input(name, shape, type);
    }
  }
  std::set<std::string> domains{""};
  for (const json& node : test_case.at("nodes")) {
    const std::string domain = node.value("domain", "");
    if (domains.insert(domain).second)
      model.import(domain, 1);
    onnx::NodeProto& made =
        model.node(node.at("op_type"), node.at("inputs").get<std::vector<std::string>>(),
                   node.at("outputs").get<std::vector<std::string>>(), domain);
    if (!node.contains("attributes"))
      continue;
    for (const auto& [key, value] : node.at("attributes").items())
      set_attribute(*made.add_attribute(), key, value);
  }
  for (const json& output : test_case.at("outputs"))
    model.output(output.get<std::string>());
  return model.bytes();
}

std::vector<double> numbers_of(const json& input, std::uint64_t seed) {
  if (input.contains("values"))
    return input.at("values").get<std::vector<double>>();
  std::uint64_t count = 1;
  for (const json& size : input.at("shape"))
    count *= size.get<std::uint64_t>();
  const NumberGenerator generator(input.at("name").get<std::string>(), seed);
  const double offset = input.at("offset");
  std::vector<double> numbers;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (input.contains("range"))
      numbers.push_back(offset + static_cast<double>(generator.index(i, input.at("range"))));
    else if (input.contains("levels"))
      numbers.push_back(offset + input.at("scale").get<double>() *
                                     static_cast<double>(generator.index(i, input.at("levels"))));
    else
      numbers.push_back(offset + input.at("scale").get<double>() * generator.uniform(i));
  }
  return numbers;
}

} // namespace monet::test
