// The parts of `precision:` that only the execution of a step sees: units of products, rounding.
#include "base/shared/text.hpp"
#include "training_graph/options/reader.hpp"

#include <fmt/format.h>

#include <array>

namespace monet {

namespace {

constexpr std::array kMultipliers{Multiplier::rounded, Multiplier::exact, Multiplier::cfg1,
                                  Multiplier::cfg2,    Multiplier::cfg3,  Multiplier::cfg4,
                                  Multiplier::cfg5,    Multiplier::cfg6};
constexpr std::int64_t kMaxLanes = 256;

void read_mode(const YamlNode& node, ProblemList& problems, Rounding& rounding) {
  const auto text = as_string(node, problems);
  if (!text)
    return;
  const auto parsed = parse_rounding(*text);
  if (!parsed) {
    problems.add(node.where, fmt::format("'{}' is not a rounding mode", *text),
                 "one of: even, away, zero, stochastic, stochastic:BITS with 1 to 24 bits");
    return;
  }
  if (parsed->mode == RoundTo::hysteresis)
    problems.add(node.where, "steps do not store the previous values that hysteresis needs");
  rounding.mode = parsed->mode;
  rounding.random_bits = parsed->random_bits;
}

void read_flags(YamlMap& map, Rounding& rounding) {
  rounding.saturate = map.boolean_or("saturate", rounding.saturate);
  rounding.flush_subnormals = map.boolean_or("flush_subnormals", rounding.flush_subnormals);
  rounding.symmetric = map.boolean_or("symmetric", rounding.symmetric);
}

std::optional<NumberFormat> read_format(const YamlNode& node, ProblemList& problems) {
  const auto text = as_string(node, problems);
  if (!text)
    return std::nullopt;
  const auto format = parse_number_format(*text);
  if (!format || !fits_single(*format)) {
    problems.add(node.where,
                 format ? fmt::format("'{}' has numbers that single precision lacks", *text)
                        : fmt::format("unknown number format '{}'", *text),
                 nearest_name_hint(*text, common_format_names()));
    return std::nullopt;
  }
  return format;
}

void read_multiply(YamlMap& map, ProblemList& problems, Mac& unit) {
  unit.multiplier = Multiplier::exact;
  const YamlNode* multiply = map.find("multiply");
  if (multiply && multiply->scalar != "exact") {
    if (const auto format = read_format(*multiply, problems)) {
      unit.product = *format;
      unit.multiplier = Multiplier::rounded;
    }
  }
  const YamlNode* variant = map.find("variant");
  if (!variant)
    return;
  read_choice(*variant, problems, choices_of(kMultipliers), unit.multiplier);
  if (unit.multiplier != Multiplier::exact && (!multiply || multiply->scalar == "exact"))
    problems.add(variant->where, "a variant needs the format that it multiplies in",
                 "multiply: e5m2, for example");
}

} // namespace

std::optional<Mac> read_unit(const YamlNode& node, ProblemList& problems) {
  YamlMap map(node, problems);
  Mac unit;
  read_multiply(map, problems, unit);
  if (const YamlNode* operands = map.find("operands"))
    unit.operands = read_format(*operands, problems);
  unit.sum = kSinglePrecision;
  unit.fma = map.boolean_or("fma", false);
  unit.lanes = static_cast<int>(map.integer_or("lanes", 1));
  check_range(map, problems, "lanes", unit.lanes, 1, kMaxLanes + 1);
  read_key(map, problems, "rounding", read_mode, unit.rounding);
  read_flags(map, unit.rounding);
  if (const YamlNode* sum = map.find("accumulate")) {
    if (sum->scalar == "exact" || sum->scalar == "hybrid")
      set_accumulator(unit, *parse_accumulator(sum->scalar));
    else if (const auto format = read_format(*sum, problems))
      unit.sum = format;
  }
  map.finish();
  if (const auto why = why_not_emulated(unit))
    problems.add(node.where, *why);
  return unit;
}

void read_results_rounding(const YamlNode& node, ProblemList& problems, Rounding& rounding) {
  if (node.kind == YamlNode::Kind::scalar) {
    read_mode(node, problems, rounding);
    return;
  }
  YamlMap map(node, problems);
  read_key(map, problems, "mode", read_mode, rounding);
  read_flags(map, rounding);
  map.finish();
}

} // namespace monet
