// Our types as ONNX's protobuf has them, for the writer and for libonnx's inference functions.
#pragma once

#include "monet/workload/graph.hpp"

namespace onnx {
class AttributeProto;
}

namespace monet::onnx_file {

/// TensorProto's number of the nearest type that ONNX 1.12 has: fp8 as bytes, tf32 as its storage.
int onnx_type(ElementType type);
/// Our type for ONNX's number of a type; nullopt for those that we do not have.
std::optional<ElementType> element_type(std::int64_t onnx_type);

void write_attribute(const std::string& name, const AttributeValue& value,
                     onnx::AttributeProto& attribute);

} // namespace monet::onnx_file
