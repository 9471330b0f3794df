// Results of `monet formats` as JSON (docs/formats.schema.json) and tables.
#pragma once

#include "monet/numerics/blocks.hpp"
#include "monet/numerics/mac.hpp"
#include "monet/report/result.hpp"

#include <nlohmann/json_fwd.hpp>

#include <span>
#include <string>
#include <vector>

namespace monet {

/// A tensor format and its name.
struct NamedTensorFormat {
  std::string name;
  TensorFormat format;
};

/// JSON of formats: for each, its numbers, codes for infinity and NaN, blocks, and other names
/// among the common ones. `with_values` adds the values of all codes of formats of at most 8 bits.
nlohmann::ordered_json formats_json(std::span<const NamedTensorFormat> formats, bool with_values,
                                    const Provenance& provenance);
/// Table of formats for a terminal, at most 120 columns wide: a line per format, with block formats
/// in a separate part.
std::string formats_table(const nlohmann::ordered_json& json);
/// Full description of each format, for a terminal.
std::string formats_in_full(const nlohmann::ordered_json& json);

/// Result of quantise() for a tensor of `shape`. The pointers and spans are borrowed for writing.
struct QuantisedResult {
  NamedTensorFormat format;
  Rounding rounding;
  bool full_range = false;
  std::span<const std::int64_t> shape;
  std::span<const double> before;
  const QuantisedTensor* after = nullptr;
};

/// JSON of single numbers with their codes, and of the scales of their blocks.
nlohmann::ordered_json rounded_json(const QuantisedResult& result, const Provenance& provenance);
/// Table of rounded_json() for a terminal.
std::string rounded_table(const nlohmann::ordered_json& json);

/// JSON of a quantised tensor from a file: counts and errors.
nlohmann::ordered_json quantised_json(const QuantisedResult& result, const Provenance& provenance);
/// Table of quantised_json() for a terminal.
std::string quantised_table(const nlohmann::ordered_json& json);

/// Result of a product on an emulated unit.
struct ProductResult {
  GemmShape shape;
  Mac unit;
  std::optional<NamedTensorFormat> blocks; ///< block format of both operands; nullopt: no blocks
  bool hybrid = false;
  double seconds = 0;
  Deviation deviation; ///< from the exact product
};
/// JSON of a product on an emulated unit.
nlohmann::ordered_json product_json(const ProductResult& result, const Provenance& provenance);
/// Table of product_json() for a terminal.
std::string product_table(const nlohmann::ordered_json& json);

} // namespace monet
