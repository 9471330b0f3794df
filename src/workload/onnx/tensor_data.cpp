#include "workload/onnx/tensor_data.hpp"

#include "base/shared/half.hpp"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

namespace monet::onnx_file {

static_assert(std::endian::native == std::endian::little, "raw_data is little-endian");

namespace {

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
