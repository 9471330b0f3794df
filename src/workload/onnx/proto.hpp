// ONNX's protobuf messages, the numbers in them, and our types as they have them.
#pragma once

#include "monet/workload/graph.hpp"

#include <optional>
#include <string>

namespace onnx {
class AttributeProto;
class GraphProto;
class ModelProto;
class TensorProto;
} // namespace onnx

namespace monet::onnx_file {

/// TensorProto's number of the nearest type that ONNX 1.12 has: fp8 as bytes, tf32 as its storage.
int onnx_type(ElementType type);
/// Our type for ONNX's number of a type; nullopt for those that we do not have.
std::optional<ElementType> element_type(std::int64_t onnx_type);

void write_attribute(const std::string& name, const AttributeValue& value,
                     onnx::AttributeProto& attribute);

/// InputError when the bytes are no model with a graph.
onnx::ModelProto parse_proto(std::string_view bytes, const std::string& origin);

/// Floating initialisers of the message (numbers in external data are not looked at) that equal an
/// earlier one bit for bit, or its transpose; those of fewer than 4 elements, or of one number
/// everywhere, are left out. None is tied yet.
std::vector<EqualWeights> find_equal_weights(const onnx::GraphProto& graph);

/// Little-endian numbers one after the other; nullopt for strings. An incomplete one at the end is
/// left out.
std::optional<ConstantValues> raw_numbers(std::string_view raw, ElementType type);
/// Numbers that are in the message itself: raw, or in the field of their type.
std::optional<ConstantValues> stored_numbers(const onnx::TensorProto& tensor, ElementType type);

/// What a single-precision number was before it was rounded: the decimal that was written, where it
/// has at most six digits (0.1, 1e-5), otherwise the number itself (0.16666667). Settings are
/// decimals in the programs that export them.
double as_written(float value);

/// A repeated field of a message as a vector.
template <class Number, class Field>
std::vector<Number> from_field(const Field& field) {
  std::vector<Number> numbers;
  numbers.reserve(static_cast<std::size_t>(field.size()));
  for (const auto& item : field)
    numbers.push_back(static_cast<Number>(item));
  return numbers;
}

} // namespace monet::onnx_file
