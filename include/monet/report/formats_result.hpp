// What `monet formats` shows and has done, as JSON (docs/formats.schema.json) and as tables.
#pragma once

#include "monet/numerics/blocks.hpp"
#include "monet/numerics/deviation.hpp"
#include "monet/numerics/mac.hpp"
#include "monet/report/result.hpp"

#include <nlohmann/json_fwd.hpp>

#include <span>
#include <string>
#include <vector>

namespace monet {

struct NamedTensorFormat {
  std::string name;
  TensorFormat format;
};

/// `formats`, each with its numbers, its codes for infinity and NaN, its blocks and other names
/// among the common ones; with the values of all codes of formats of at most 8 bits if asked to.
nlohmann::ordered_json formats_json(std::span<const NamedTensorFormat> formats, bool with_values,
                                    const Provenance& provenance);
/// A line for each, those in blocks apart. At most 120 columns wide.
std::string formats_table(const nlohmann::ordered_json& json);
/// Each in full.
std::string formats_in_full(const nlohmann::ordered_json& json);

/// Numbers that quantise() has rounded as a tensor of `shape`, borrowed for writing.
struct QuantisedResult {
  NamedTensorFormat format;
  Rounding rounding;
  bool full_range = false;
  std::span<const std::int64_t> shape;
  std::span<const double> before;
  const QuantisedTensor* after = nullptr;
};

/// Single numbers with their codes, and the scales of their blocks.
nlohmann::ordered_json rounded_json(const QuantisedResult& result, const Provenance& provenance);
std::string rounded_table(const nlohmann::ordered_json& json);

/// A tensor from a file: counts and errors.
nlohmann::ordered_json quantised_json(const QuantisedResult& result, const Provenance& provenance);
std::string quantised_table(const nlohmann::ordered_json& json);

/// A product by an emulated unit, borrowed for writing.
struct ProductResult {
  GemmShape shape;
  Mac unit;
  std::optional<NamedTensorFormat> blocks; ///< of both operands
  bool hybrid = false;
  double seconds = 0;
  Deviation deviation; ///< from the exact product
};
nlohmann::ordered_json product_json(const ProductResult& result, const Provenance& provenance);
std::string product_table(const nlohmann::ordered_json& json);

} // namespace monet
