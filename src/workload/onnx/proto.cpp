#include "workload/onnx/proto.hpp"

#include <onnx/onnx_pb.h>

#include <utility>

namespace monet::onnx_file {

namespace {

using Proto = onnx::TensorProto;

constexpr std::pair<ElementType, int> kOnnxTypes[]{
    {ElementType::fp64, Proto::DOUBLE},   {ElementType::fp32, Proto::FLOAT},
    {ElementType::fp16, Proto::FLOAT16},  {ElementType::bf16, Proto::BFLOAT16},
    {ElementType::int64, Proto::INT64},   {ElementType::int32, Proto::INT32},
    {ElementType::int16, Proto::INT16},   {ElementType::int8, Proto::INT8},
    {ElementType::uint64, Proto::UINT64}, {ElementType::uint32, Proto::UINT32},
    {ElementType::uint16, Proto::UINT16}, {ElementType::uint8, Proto::UINT8},
    {ElementType::boolean, Proto::BOOL},  {ElementType::string, Proto::STRING},
};

} // namespace

int onnx_type(ElementType type) {
  for (const auto& [ours, theirs] : kOnnxTypes) {
    if (ours == type)
      return theirs;
  }
  if (type == ElementType::tf32)
    return Proto::FLOAT;
  if (type == ElementType::qint8)
    return Proto::INT8;
  return type == ElementType::bit ? Proto::BOOL : Proto::UINT8; // ONNX has no packed type
}

std::optional<ElementType> element_type(std::int64_t onnx_type) {
  for (const auto& [ours, theirs] : kOnnxTypes) {
    if (theirs == onnx_type)
      return ours;
  }
  return std::nullopt;
}

void write_attribute(const std::string& name, const AttributeValue& value,
                     onnx::AttributeProto& attribute) {
  attribute.set_name(name);
  if (const auto* i = std::get_if<std::int64_t>(&value)) {
    attribute.set_type(onnx::AttributeProto::INT);
    attribute.set_i(*i);
  } else if (const auto* f = std::get_if<double>(&value)) {
    attribute.set_type(onnx::AttributeProto::FLOAT);
    attribute.set_f(static_cast<float>(*f));
  } else if (const auto* s = std::get_if<std::string>(&value)) {
    attribute.set_type(onnx::AttributeProto::STRING);
    attribute.set_s(*s);
  } else if (const auto* is = std::get_if<Integers>(&value)) {
    attribute.set_type(onnx::AttributeProto::INTS);
    for (const std::int64_t item : *is)
      attribute.add_ints(item);
  } else if (const auto* fs = std::get_if<std::vector<double>>(&value)) {
    attribute.set_type(onnx::AttributeProto::FLOATS);
    for (const double item : *fs)
      attribute.add_floats(static_cast<float>(item));
  } else {
    attribute.set_type(onnx::AttributeProto::STRINGS);
    for (const auto& item : std::get<std::vector<std::string>>(value))
      attribute.add_strings(item);
  }
}

} // namespace monet::onnx_file
