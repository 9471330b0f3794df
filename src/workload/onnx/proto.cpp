// Converts between ONNX's protobuf messages and MONET's types and numbers; the reader and the
// writer use it.
#include "workload/onnx/proto.hpp"

#include "base/shared/half.hpp"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <utility>

namespace monet::onnx_file {

static_assert(std::endian::native == std::endian::little, "raw_data is little-endian");

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

template <class Stored, class Number>
std::vector<Number> from_raw(std::string_view raw) {
  std::vector<Number> numbers(raw.size() / sizeof(Stored));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    Stored stored;
    std::memcpy(&stored, raw.data() + i * sizeof(Stored), sizeof(Stored));
    numbers[i] = static_cast<Number>(stored);
  }
  return numbers;
}

std::vector<double> halves(const Integers& bits, bool bfloat) {
  std::vector<double> numbers;
  numbers.reserve(bits.size());
  for (const std::int64_t word : bits) {
    numbers.push_back(half_to_double(static_cast<std::uint16_t>(word), bfloat ? 8 : 5));
  }
  return numbers;
}

std::optional<ConstantValues> typed_values(const onnx::TensorProto& tensor, ElementType type) {
  switch (type.kind()) {
  case ElementType::Kind::fp32:
    return from_field<double>(tensor.float_data());
  case ElementType::Kind::fp64:
    return from_field<double>(tensor.double_data());
  case ElementType::Kind::fp16:
  case ElementType::Kind::bf16:
    return halves(from_field<std::int64_t>(tensor.int32_data()), type == ElementType::bf16);
  case ElementType::Kind::int64:
    return from_field<std::int64_t>(tensor.int64_data());
  case ElementType::Kind::uint64:
  case ElementType::Kind::uint32:
    return from_field<std::int64_t>(tensor.uint64_data());
  case ElementType::Kind::string:
    return std::nullopt;
  default:
    return from_field<std::int64_t>(tensor.int32_data());
  }
}

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

double as_written(float value) {
  constexpr std::ptrdiff_t kDigits = 6;
  std::array<char, 32> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value,
                                          std::chars_format::scientific); // shortest: 1.25e-05
  if (!std::isfinite(value) || error != std::errc{})
    return static_cast<double>(value);
  const char* const begin = text.data();
  const char* const exponent = std::find<const char*>(begin, end, 'e');
  if (std::count_if(begin, exponent, [](char c) { return c >= '0' && c <= '9'; }) > kDigits)
    return static_cast<double>(value);
  double decimal = 0.0;
  std::from_chars(begin, end, decimal);
  return decimal;
}

std::optional<ConstantValues> raw_numbers(std::string_view raw, ElementType type) {
  switch (type.kind()) {
  case ElementType::Kind::fp32:
    return from_raw<float, double>(raw);
  case ElementType::Kind::fp64:
    return from_raw<double, double>(raw);
  case ElementType::Kind::fp16:
  case ElementType::Kind::bf16:
    return halves(from_raw<std::uint16_t, std::int64_t>(raw), type == ElementType::bf16);
  case ElementType::Kind::int64:
    return from_raw<std::int64_t, std::int64_t>(raw);
  case ElementType::Kind::int32:
    return from_raw<std::int32_t, std::int64_t>(raw);
  case ElementType::Kind::int16:
    return from_raw<std::int16_t, std::int64_t>(raw);
  case ElementType::Kind::int8:
    return from_raw<std::int8_t, std::int64_t>(raw);
  case ElementType::Kind::uint64:
    return from_raw<std::uint64_t, std::int64_t>(raw);
  case ElementType::Kind::uint32:
    return from_raw<std::uint32_t, std::int64_t>(raw);
  case ElementType::Kind::uint16:
    return from_raw<std::uint16_t, std::int64_t>(raw);
  case ElementType::Kind::uint8:
  case ElementType::Kind::boolean:
    return from_raw<std::uint8_t, std::int64_t>(raw);
  default:
    return std::nullopt;
  }
}

std::optional<ConstantValues> stored_numbers(const onnx::TensorProto& tensor, ElementType type) {
  return tensor.has_raw_data() ? raw_numbers(tensor.raw_data(), type) : typed_values(tensor, type);
}

} // namespace monet::onnx_file
