// Writes the JSON of `monet formats` (docs/formats.schema.json); formats_table.cpp prints tables
// from it.
#include "report/shared/formats_result.hpp"
#include "report/shared/json_list.hpp"
#include "report/shared/text.hpp"
#include "report/shared/written.hpp"

#include "monet/numerics/blocks.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace monet {

namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxListedBits = 8; ///< width of formats whose values are all listed

/// Number as JSON; infinities and NaN, which JSON lacks, are strings.
Json number_json(double value) {
  return std::isfinite(value)
             ? Json(value)
             : Json(fmt::format("{}", std::isnan(value) ? std::abs(value) : value));
}

/// Code in hexadecimal, with leading zeros for `bits` bits.
std::string hex(std::uint64_t code, int bits) {
  return fmt::format("0x{:0{}X}", code, (bits + 3) / 4);
}

/// Code in binary, with blanks between sign, exponent and mantissa, or with the point of a
/// fixed-point format.
std::string binary(const NumberFormat& format, std::uint64_t code) {
  std::string digits = fmt::format("{:0{}b}", code, format.bits());
  const auto split = [&](int from_right, char between) {
    if (from_right > 0 && from_right < format.bits())
      digits.insert(digits.end() - from_right, between);
  };
  if (!format.floating) {
    split(format.mantissa_bits, '.');
    return digits;
  }
  const auto mantissa = static_cast<std::size_t>(format.mantissa_bits);
  const auto exponent = static_cast<std::size_t>(format.exponent_bits);
  std::string text = digits.substr(0, 1) + " " + digits.substr(1, exponent);
  if (mantissa > 0)
    text += " " + digits.substr(1 + exponent);
  return text;
}

/// First and last positive code of NaN; null if the format has no NaN.
Json nan_codes(const NumberFormat& format) {
  const auto last = encode(format, std::numeric_limits<double>::quiet_NaN());
  if (!last)
    return nullptr;
  const auto infinity = encode(format, std::numeric_limits<double>::infinity());
  const std::uint64_t first = infinity && format.top == TopCodes::ieee ? *infinity + 1 : *last;
  return Json::array({hex(first, format.bits()), hex(*last, format.bits())});
}

Json element_json(const NumberFormat& format) {
  const auto infinity = encode(format, std::numeric_limits<double>::infinity());
  const bool has_subnormals = format.floating && format.mantissa_bits > 0;
  Json json = {{"kind", format.floating ? "floating" : "fixed"}, {"bits", format.bits()}};
  if (format.floating) {
    json["exponent_bits"] = format.exponent_bits;
    json["mantissa_bits"] = format.mantissa_bits;
    json["bias"] = format.bias();
  } else {
    json["signed"] = format.has_sign;
    json["whole_bits"] = format.whole_bits;
    json["fraction_bits"] = format.mantissa_bits;
  }
  json["largest"] = largest_number(format);
  json["lowest"] = lowest_number(format);
  json["smallest_normal"] = smallest_normal(format);
  json["smallest_subnormal"] = has_subnormals ? Json(smallest_number(format)) : Json(nullptr);
  json["infinity_code"] = infinity ? Json(hex(*infinity, format.bits())) : Json(nullptr);
  json["nan_codes"] = nan_codes(format);
  return json;
}

Json blocks_json(const BlockScaling& blocks) {
  return {{"rows", blocks.rows},
          {"columns", blocks.columns},
          {"scale", blocks.scale ? name_of(*blocks.scale) : "e8m0"},
          {"scale_bits", scale_bits(blocks)},
          {"scale_mode", blocks.scale ? Json(nullptr) : Json(name_of(blocks.mode))},
          {"tensor_scale", blocks.of_tensor}};
}

/// Other common names of the same format.
Json other_names(const NamedTensorFormat& named) {
  Json names = Json::array();
  for (const std::string& name : common_tensor_format_names()) {
    if (name != named.name && parse_tensor_format(name) == named.format)
      names.push_back(name);
  }
  return names;
}

Json format_json(const NamedTensorFormat& named, bool with_values) {
  const NumberFormat& element = named.format.element;
  Json json = {{"name", valid_utf8(named.name)},
               {"other_names", other_names(named)},
               {"element", name_of(element)}};
  json.update(element_json(element));
  json["bits_per_element"] = bits_per_element(named.format);
  json["blocks"] = named.format.blocks ? blocks_json(*named.format.blocks) : Json(nullptr);
  if (!with_values || element.bits() > kMaxListedBits)
    return json;
  Json values = Json::array();
  for (std::uint64_t code = 0; code < std::uint64_t{1} << element.bits(); ++code)
    values.push_back(number_json(decode(element, code)));
  json["values"] = std::move(values);
  return json;
}

/// Name of a rounding, with the number of random bits if it is stochastic: "stochastic:13".
std::string rounding_text(const Rounding& rounding) {
  std::string text(name_of(rounding.mode));
  if (rounding.mode == RoundTo::stochastic)
    text += fmt::format(":{}", rounding.random_bits);
  return text;
}

Json rounding_json(const Rounding& rounding) {
  return {{"mode", rounding_text(rounding)},
          {"seed", rounding.seed},
          {"saturate", rounding.saturate},
          {"flush_subnormals", rounding.flush_subnormals},
          {"symmetric", rounding.symmetric}};
}

/// Members that begin every answer about one format.
Json head_json(const char* kind, const QuantisedResult& result) {
  const auto& blocks = result.format.format.blocks;
  return {{"schema_version", 1},
          {"kind", kind},
          {"format", valid_utf8(result.format.name)},
          {"element", name_of(result.format.format.element)},
          {"blocks", blocks ? blocks_json(*blocks) : Json(nullptr)},
          {"rounding", rounding_json(result.rounding)},
          {"full_range", result.full_range}};
}

/// JSON of an optional number; null if it is empty, as for a ratio to an error of 0.
Json optional_json(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json errors_json(const Deviation& deviation) {
  return {{"largest_absolute", number_json(deviation.largest_absolute)},
          {"largest_relative", number_json(deviation.largest_relative)},
          {"rms", number_json(deviation.rms)},
          {"sqnr_db", optional_json(deviation.sqnr_db)}};
}

} // namespace

Json formats_json(std::span<const NamedTensorFormat> formats, bool with_values,
                  const Provenance& provenance) {
  Json list = json_list(
      formats, [&](const NamedTensorFormat& one) { return format_json(one, with_values); });
  return written(ResultSchema::formats, {{"schema_version", 1},
                                         {"kind", "formats"},
                                         {"formats", std::move(list)},
                                         {"provenance", provenance_json(provenance)}});
}

Json rounded_json(const QuantisedResult& result, const Provenance& provenance) {
  const TensorFormat& format = result.format.format;
  const QuantisedTensor& after = *result.after;
  Json numbers = Json::array();
  for (std::size_t i = 0; i < result.before.size(); ++i) {
    const auto code = element_code(format, after.elements[i]);
    Json one = {{"number", number_json(result.before[i])}, {"value", number_json(after.values[i])}};
    if (format.blocks) {
      one["element"] = number_json(after.elements[i]);
      one["block"] = static_cast<std::int64_t>(i) / format.blocks->columns;
    }
    one["code"] = code ? Json(hex(*code, format.element.bits())) : Json(nullptr);
    one["binary"] = code ? Json(binary(format.element, *code)) : Json(nullptr);
    const bool finite = std::isfinite(result.before[i]) && std::isfinite(after.values[i]);
    one["error"] = finite ? Json(after.values[i] - result.before[i]) : Json(nullptr);
    numbers.push_back(std::move(one));
  }
  Json json = head_json("rounded", result);
  json["numbers"] = std::move(numbers);
  json["scales"] = json_list(after.scales, [&](double scale) {
    return Json{{"value", number_json(scale)},
                {"code", hex(scale_code(*format.blocks, scale), scale_bits(*format.blocks))}};
  });
  json["tensor_scale"] = after.tensor_scale;
  json["provenance"] = provenance_json(provenance);
  return written(ResultSchema::formats, std::move(json));
}

Json quantised_json(const QuantisedResult& result, const Provenance& provenance) {
  const TensorFormat& format = result.format.format;
  const Deviation errors = deviation(result.before, result.after->values);
  const bool symmetric = format.blocks ? !result.full_range : result.rounding.symmetric;
  const BeyondRange beyond = beyond_range(result.before, *result.after, format, symmetric);
  Json json = head_json("quantised", result);
  json["shape"] = result.shape;
  json["scale_shape"] = format.blocks ? Json(result.after->scale_shape) : Json(nullptr);
  json["tensor_scale"] = result.after->tensor_scale;
  json["counts"] = {{"numbers", errors.numbers},         {"inexact", errors.inexact},
                    {"saturated", beyond.saturated},     {"overflowed", beyond.overflowed},
                    {"flushed_to_zero", errors.flushed}, {"nan", errors.nan},
                    {"infinite", errors.infinite}};
  json["errors"] = errors_json(errors);
  json["provenance"] = provenance_json(provenance);
  return written(ResultSchema::formats, std::move(json));
}

Json product_json(const ProductResult& result, const Provenance& provenance) {
  const Mac& mac = result.unit;
  const auto [m, n, k] = result.shape;
  const bool has_product = !result.blocks && mac.multiplier != Multiplier::exact &&
                           !(mac.fma && mac.multiplier == Multiplier::rounded);
  const double macs = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  constexpr double kGiga = 1e9;
  Json unit = {{"multiplier", name_of(mac.multiplier)},
               {"product", has_product ? Json(name_of(mac.product)) : Json(nullptr)},
               {"operands", mac.operands ? Json(name_of(*mac.operands)) : Json(nullptr)},
               {"sum", mac.sum ? name_of(*mac.sum) : "exact"},
               {"hybrid", result.hybrid},
               {"fma", mac.fma},
               {"lanes", mac.lanes},
               {"rounding", rounding_json(mac.rounding)}};
  Json json = {{"schema_version", 1}, {"kind", "product"}, {"unit", std::move(unit)}};
  json["format"] = result.blocks ? Json(valid_utf8(result.blocks->name)) : Json(nullptr);
  json["blocks"] = result.blocks ? blocks_json(*result.blocks->format.blocks) : Json(nullptr);
  json["shape"] = {{"m", m}, {"n", n}, {"k", k}};
  json["seconds"] = result.seconds;
  json["gmacs_per_second"] =
      result.seconds > 0 ? Json(macs / result.seconds / kGiga) : Json(nullptr);
  json["counts"] = {{"numbers", result.deviation.numbers},
                    {"inexact", result.deviation.inexact},
                    {"nan", result.deviation.nan},
                    {"infinite", result.deviation.infinite}};
  json["errors"] = errors_json(result.deviation);
  json["provenance"] = provenance_json(provenance);
  return written(ResultSchema::formats, std::move(json));
}

} // namespace monet
