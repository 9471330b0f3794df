// Our types as ONNX's protobuf has them, for the writer and for libonnx's inference functions.
#pragma once

#include "monet/workload/graph.hpp"

#include <onnx/onnx_pb.h>

#include <string>

namespace monet::onnx_file {

/// The nearest type that ONNX 1.12 has: fp8 as bytes, tf32 as its storage.
onnx::TensorProto::DataType onnx_type(ElementType type);

void write_attribute(const std::string& name, const AttributeValue& value,
                     onnx::AttributeProto& attribute);

} // namespace monet::onnx_file
