// ONNX's protobuf messages, their numbers, and the mapping between ONNX's and MONET's types.
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

/// ONNX's number of the nearest type in ONNX 1.12: fp8 becomes bytes, tf32 its storage type.
int onnx_type(ElementType type);
/// MONET's type for ONNX's type number; nullopt if MONET lacks the type.
std::optional<ElementType> element_type(std::int64_t onnx_type);

void write_attribute(const std::string& name, const AttributeValue& value,
                     onnx::AttributeProto& attribute);

/// Parses a model; throws InputError if the bytes are not a model with a graph.
onnx::ModelProto parse_proto(std::string_view bytes, const std::string& origin);
/// Throws InputError that says what the bytes are, which are no complete ONNX model.
[[noreturn]] void report_unreadable(std::string_view bytes, const std::string& origin);

/// Floating initialisers in the message that equal an earlier one bit for bit, or its transpose.
/// Skips external data, fewer than 4 elements, and constant tensors. No pair is tied yet.
std::vector<EqualWeights> find_equal_weights(const onnx::GraphProto& graph);

/// Decodes consecutive little-endian numbers; nullopt for strings. An incomplete number at the end
/// is ignored.
std::optional<ConstantValues> raw_numbers(std::string_view raw, ElementType type);
/// Numbers stored in the message, raw or in the field of their type.
std::optional<ConstantValues> stored_numbers(const onnx::TensorProto& tensor, ElementType type);

/// Decimal from which a single-precision number was rounded, if it has at most six digits (0.1,
/// 1e-5); otherwise the number itself (0.16666667). Exporting programs define settings as decimals.
double as_written(float value);

/// Converts a repeated field to a vector.
template <class Number, class Field>
std::vector<Number> from_field(const Field& field) {
  std::vector<Number> numbers;
  numbers.reserve(static_cast<std::size_t>(field.size()));
  for (const auto& item : field)
    numbers.push_back(static_cast<Number>(item));
  return numbers;
}

} // namespace monet::onnx_file
