// Prints the tables of `monet formats` from the JSON of formats_json.cpp.
#include "base/shared/text.hpp"
#include "report/shared/formats_result.hpp"
#include "report/shared/text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace monet {

namespace {

using Json = nlohmann::ordered_json;
using TextRow = std::vector<std::string>;

std::string word(const Json& json) {
  return json.is_null() ? "-" : printable(json.get<std::string>());
}

/// Number with all its digits if they are few, else with seven. Other values (null, infinities,
/// NaN) are words.
std::string number_text(const Json& json) {
  constexpr std::size_t kFew = 10;
  if (!json.is_number())
    return word(json);
  const std::string all = fmt::format("{}", json.get<double>());
  return all.size() <= kFew ? all : fmt::format("{:.7g}", json.get<double>());
}

/// Number with all its digits; other values are words.
std::string exact_text(const Json& json) {
  return json.is_number() ? fmt::format("{}", json.get<double>()) : word(json);
}

std::string count_text(const Json& json) {
  return group_digits(json.get<std::int64_t>());
}

bool is_floating(const Json& format) {
  return format.at("kind") == "floating";
}

/// Numbers of bits of a format's parts: "4/3" for exponent and mantissa, "8.13" before and after
/// the point.
std::string split_text(const Json& format) {
  const bool floating = is_floating(format);
  return fmt::format("{}{}{}", format.at(floating ? "exponent_bits" : "whole_bits").get<int>(),
                     floating ? "/" : ".",
                     format.at(floating ? "mantissa_bits" : "fraction_bits").get<int>());
}

/// First positive code of NaN, followed by dots if there are more codes.
std::string nan_text(const Json& codes) {
  if (codes.is_null())
    return "-";
  return word(codes[0]) + (codes[0] == codes[1] ? "" : "..");
}

std::string shape_text(const Json& shape) {
  if (shape.empty())
    return "one number";
  std::string text;
  for (const Json& size : shape)
    text += fmt::format("{}{}", text.empty() ? "" : " x ", size.get<std::int64_t>());
  return text;
}

std::string block_text(const Json& blocks) {
  return fmt::format("{} x {}", blocks.at("rows").get<std::int64_t>(),
                     blocks.at("columns").get<std::int64_t>());
}

/// Format in words: "fp8_e4m3 in blocks of 1 x 32 with scales in e8m0 (floor)".
std::string in_blocks(const std::string& element, const Json& blocks) {
  if (blocks.is_null())
    return element;
  std::string text = fmt::format("{} in blocks of {} with scales in {}", element,
                                 block_text(blocks), word(blocks.at("scale")));
  if (!blocks.at("scale_mode").is_null())
    text += fmt::format(" ({})", word(blocks.at("scale_mode")));
  return text + (blocks.at("tensor_scale").get<bool>() ? " and one of the tensor in fp32" : "");
}

std::string rounded_how(const Json& rounding) {
  std::string text = "rounding " + word(rounding.at("mode"));
  const auto add = [&](const char* key, const char* what) {
    if (rounding.at(key).get<bool>())
      text += std::string(", ") + what;
  };
  add("saturate", "saturating");
  add("flush_subnormals", "subnormal numbers flushed");
  add("symmetric", "symmetric");
  return text;
}

std::string plain_table(const Json& formats) {
  std::vector<TextRow> rows{
      {"format", "bits", "E/M", "largest", "least normal", "subnormal", "infinity", "NaN"}};
  for (const Json& format : formats) {
    if (format.at("blocks").is_null())
      rows.push_back({word(format.at("name")), fmt::format("{}", format.at("bits").get<int>()),
                      split_text(format), number_text(format.at("largest")),
                      number_text(format.at("smallest_normal")),
                      number_text(format.at("smallest_subnormal")),
                      word(format.at("infinity_code")), nan_text(format.at("nan_codes"))});
  }
  return rows.size() > 1 ? aligned_table(rows) : "";
}

std::string blocks_table(const Json& formats) {
  std::vector<TextRow> rows{
      {"in blocks", "element", "block", "scale", "scale bits", "bits per element"}};
  for (const Json& format : formats) {
    const Json& blocks = format.at("blocks");
    if (!blocks.is_null())
      rows.push_back({word(format.at("name")), word(format.at("element")), block_text(blocks),
                      word(blocks.at("scale")) +
                          (blocks.at("tensor_scale").get<bool>() ? ", fp32 of the tensor" : ""),
                      fmt::format("{}", blocks.at("scale_bits").get<int>()),
                      number_text(format.at("bits_per_element"))});
  }
  return rows.size() > 1 ? aligned_table(rows) : "";
}

/// Table of a format's values, with eight codes per row.
std::string values_table(const Json& values, int bits) {
  constexpr std::size_t kColumns = 8;
  TextRow head{"code"};
  for (std::size_t i = 0; i < std::min(kColumns, values.size()); ++i)
    head.push_back(fmt::format("+{}", i));
  std::vector<TextRow> rows{head};
  for (std::size_t code = 0; code < values.size(); code += kColumns) {
    rows.push_back({fmt::format("0x{:0{}X}", code, (bits + 3) / 4)});
    for (std::size_t i = 0; i + 1 < head.size(); ++i)
      rows.back().push_back(number_text(values[code + i]));
  }
  return aligned_table(rows);
}

std::string one_in_full(const Json& format) {
  const Json& blocks = format.at("blocks");
  const bool floating = is_floating(format);
  const int bits = format.at("bits").get<int>();
  std::string text = word(format.at("name"));
  if (format.at("element") != format.at("name") || !blocks.is_null())
    text += ": " + in_blocks(word(format.at("element")), blocks);
  text += "\n";
  std::vector<TextRow> rows{{"of an element", ""}};
  rows.push_back({"bits", fmt::format("{}", bits)});
  if (floating) {
    rows.push_back({"exponent / mantissa bits", split_text(format)});
    rows.push_back({"bias", fmt::format("{}", format.at("bias").get<int>())});
  } else {
    rows.push_back({"bits before.after the point", split_text(format)});
  }
  rows.push_back({"largest number", exact_text(format.at("largest"))});
  rows.push_back({"lowest number", exact_text(format.at("lowest"))});
  rows.push_back({floating ? "smallest normal number" : "smallest number above 0",
                  exact_text(format.at("smallest_normal"))});
  if (floating) {
    const Json& nan = format.at("nan_codes");
    rows.push_back({"smallest subnormal number", exact_text(format.at("smallest_subnormal"))});
    rows.push_back({"code of infinity", word(format.at("infinity_code"))});
    rows.push_back({"codes of NaN", nan.is_null() || nan[0] == nan[1]
                                        ? nan_text(nan)
                                        : word(nan[0]) + " to " + word(nan[1])});
  }
  if (!blocks.is_null()) {
    rows.push_back({"bits of a scale", fmt::format("{}", blocks.at("scale_bits").get<int>())});
    rows.push_back({"bits per element", exact_text(format.at("bits_per_element"))});
  }
  text += aligned_table(rows);
  std::vector<std::string> others = format.at("other_names").get<std::vector<std::string>>();
  if (!others.empty())
    text += fmt::format("the same as {}\n", fmt::join(others, ", "));
  if (format.contains("values"))
    text += "\n" + values_table(format.at("values"), bits);
  return text;
}

void add_errors(std::vector<TextRow>& rows, const Json& errors) {
  rows.push_back({"largest error", number_text(errors.at("largest_absolute"))});
  rows.push_back({"  as a part of the number", number_text(errors.at("largest_relative"))});
  rows.push_back({"root mean square error", number_text(errors.at("rms"))});
  const Json& ratio = errors.at("sqnr_db");
  rows.push_back(
      {"signal to noise", ratio.is_null() ? "-" : fmt::format("{:.2f} dB", ratio.get<double>())});
}

std::string unit_text(const Json& json) {
  const Json& unit = json.at("unit");
  const std::string multiplier = word(unit.at("multiplier"));
  const Json& product = unit.at("product");
  std::string text;
  if (product.is_null())
    text = "exact products";
  else if (multiplier == "rounded")
    text = "products in " + word(product);
  else
    text = fmt::format("products of {} by {}", word(product), multiplier);
  if (!json.at("blocks").is_null())
    text += " of " + in_blocks(word(json.at("format")), json.at("blocks"));
  if (!unit.at("operands").is_null())
    text += " of operands in " + word(unit.at("operands"));
  const int lanes = unit.at("lanes").get<int>();
  if (lanes > 1)
    text += fmt::format(", {} at a time", lanes);
  const std::string sum = word(unit.at("sum"));
  text += sum == "exact" ? ", exact sums" : ", sums in " + sum;
  if (unit.at("fma").get<bool>())
    text += ", fused";
  if (unit.at("hybrid").get<bool>())
    text += " (hybrid, unverified)";
  return text + ", " + rounded_how(unit.at("rounding"));
}

} // namespace

std::string formats_table(const Json& json) {
  const Json& formats = json.at("formats");
  const std::string plain = plain_table(formats);
  const std::string blocks = blocks_table(formats);
  return plain + (plain.empty() || blocks.empty() ? "" : "\n") + blocks;
}

std::string formats_in_full(const Json& json) {
  std::string text;
  for (const Json& format : json.at("formats"))
    text += (text.empty() ? "" : "\n") + one_in_full(format);
  return text;
}

std::string rounded_table(const Json& json) {
  const bool blocks = !json.at("blocks").is_null();
  TextRow head{"number", "value", "code", "binary", "error"};
  if (blocks)
    head.insert(head.begin() + 1, {"block", "element"});
  std::vector<TextRow> rows{head};
  for (const Json& one : json.at("numbers")) {
    TextRow row{exact_text(one.at("number")), exact_text(one.at("value")), word(one.at("code")),
                word(one.at("binary")), number_text(one.at("error"))};
    if (blocks)
      row.insert(row.begin() + 1, {fmt::format("{}", one.at("block").get<std::int64_t>()),
                                   exact_text(one.at("element"))});
    rows.push_back(std::move(row));
  }
  std::string text = fmt::format("{}, {}\n", in_blocks(word(json.at("element")), json.at("blocks")),
                                 rounded_how(json.at("rounding"))) +
                     aligned_table(rows);
  std::size_t block = 0;
  for (const Json& scale : json.at("scales"))
    text += fmt::format("scale of block {}: {} ({})\n", block++, exact_text(scale.at("value")),
                        word(scale.at("code")));
  if (blocks && json.at("blocks").at("tensor_scale").get<bool>())
    text += "scale of the tensor: " + exact_text(json.at("tensor_scale")) + "\n";
  return text;
}

std::string quantised_table(const Json& json) {
  const Json& counts = json.at("counts");
  const auto numbers = counts.at("numbers").get<std::int64_t>();
  const auto part = [&](const char* key) {
    const auto count = counts.at(key).get<std::int64_t>();
    return count == 0
               ? "0"
               : fmt::format("{} ({:.2f} %)", group_digits(count),
                             100 * static_cast<double>(count) / static_cast<double>(numbers));
  };
  std::vector<TextRow> rows{{shape_text(json.at("shape")), count_text(counts.at("numbers"))}};
  rows.push_back({"inexact", part("inexact")});
  rows.push_back({"saturated", part("saturated")});
  rows.push_back({"overflowed", part("overflowed")});
  rows.push_back({"flushed to zero", part("flushed_to_zero")});
  rows.push_back({"NaN", part("nan")});
  rows.push_back({"infinite", part("infinite")});
  add_errors(rows, json.at("errors"));
  std::string text = fmt::format("{}, {}\n", in_blocks(word(json.at("element")), json.at("blocks")),
                                 rounded_how(json.at("rounding"))) +
                     aligned_table(rows);
  if (!json.at("blocks").is_null() && json.at("blocks").at("tensor_scale").get<bool>())
    text += "scale of the tensor: " + exact_text(json.at("tensor_scale")) + "\n";
  return text;
}

std::string product_table(const Json& json) {
  const Json& shape = json.at("shape");
  const Json& counts = json.at("counts");
  std::vector<TextRow> rows{
      {"against the exact product",
       fmt::format("{} x {} x {}", shape.at("m").get<std::int64_t>(),
                   shape.at("k").get<std::int64_t>(), shape.at("n").get<std::int64_t>())}};
  rows.push_back({"outputs", count_text(counts.at("numbers"))});
  rows.push_back({"inexact", count_text(counts.at("inexact"))});
  rows.push_back({"NaN", count_text(counts.at("nan"))});
  rows.push_back({"infinite", count_text(counts.at("infinite"))});
  add_errors(rows, json.at("errors"));
  std::string text = unit_text(json) + "\n" + aligned_table(rows);
  if (!json.at("gmacs_per_second").is_null())
    text += fmt::format("emulated in {:.3g} s: {:.3g} GMAC/s\n", json.at("seconds").get<double>(),
                        json.at("gmacs_per_second").get<double>());
  return text;
}

} // namespace monet
