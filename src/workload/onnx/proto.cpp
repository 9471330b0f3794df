#include "workload/onnx/proto.hpp"

#include "monet/base/errors.hpp"

namespace monet::onnx_file {

onnx::TensorProto::DataType onnx_type(ElementType type) {
  switch (type) {
  case ElementType::fp64:
    return onnx::TensorProto::DOUBLE;
  case ElementType::fp32:
  case ElementType::tf32:
    return onnx::TensorProto::FLOAT;
  case ElementType::fp16:
    return onnx::TensorProto::FLOAT16;
  case ElementType::bf16:
    return onnx::TensorProto::BFLOAT16;
  case ElementType::int64:
    return onnx::TensorProto::INT64;
  case ElementType::int32:
    return onnx::TensorProto::INT32;
  case ElementType::int16:
    return onnx::TensorProto::INT16;
  case ElementType::int8:
  case ElementType::qint8:
    return onnx::TensorProto::INT8;
  case ElementType::uint64:
    return onnx::TensorProto::UINT64;
  case ElementType::uint32:
    return onnx::TensorProto::UINT32;
  case ElementType::uint16:
    return onnx::TensorProto::UINT16;
  case ElementType::uint8:
  case ElementType::fp8_e4m3:
  case ElementType::fp8_e5m2:
  case ElementType::mxint8:
  case ElementType::mxfp8_e5m2:
  case ElementType::mxfp8_e4m3:
  case ElementType::mxfp6_e3m2:
  case ElementType::mxfp6_e2m3:
  case ElementType::mxfp4_e2m1:
    return onnx::TensorProto::UINT8;
  case ElementType::boolean:
  case ElementType::bit: // ONNX has no packed type
    return onnx::TensorProto::BOOL;
  case ElementType::string:
    return onnx::TensorProto::STRING;
  }
  throw InternalError("element type without an ONNX type");
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
  } else if (const auto* is = std::get_if<std::vector<std::int64_t>>(&value)) {
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
