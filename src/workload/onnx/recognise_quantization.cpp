// Recognises QuantizeLinear, an optional Clip, DequantizeLinear: the fake quantisation of
// quantisation-aware training, which rounds numbers to a grid and keeps them real.
#include "base/shared/checked.hpp"
#include "workload/onnx/recognise.hpp"
#include "workload/shared/op_types.hpp"

#include <algorithm>
#include <cmath>

namespace monet::onnx_file {

namespace {

struct Range {
  std::int64_t low = 0;
  std::int64_t high = 0;
};

std::optional<Range> range_of(ElementType type) {
  switch (type.kind()) {
  case ElementType::Kind::int8:
    return Range{-128, 127};
  case ElementType::Kind::uint8:
    return Range{0, 255};
  case ElementType::Kind::int16:
    return Range{-32768, 32767};
  case ElementType::Kind::uint16:
    return Range{0, 65535};
  default:
    return std::nullopt;
  }
}

/// Whether input `i` of both nodes is the same tensor, or holds the same numbers.
bool same_setting(const Chains& chains, const Node& a, const Node& b, std::size_t i) {
  const bool has_a = i < a.inputs.size() && !a.inputs[i].empty();
  const bool has_b = i < b.inputs.size() && !b.inputs[i].empty();
  if (!has_a || !has_b)
    return has_a == has_b;
  Chains::Members ignored;
  if (chains.source(a.inputs[i], ignored) == chains.source(b.inputs[i], ignored))
    return true;
  const Value& left = chains.value(a.inputs[i]);
  const Value& right = chains.value(b.inputs[i]);
  return left.values && right.values && left.shape == right.shape && left.values == right.values;
}

} // namespace

bool recognise_fake_quantization(Chains& chains, std::size_t at) {
  const Node& back = chains.node(at);
  if (!back.domain.empty() || back.op_type != ops::DequantizeLinear)
    return false;
  auto range = range_of(chains.value(back.inputs[0]).type);
  Chains::Members members{at};
  std::string rounded = back.inputs[0];
  if (const Node* clip = chains.made_by(rounded, ops::Clip, members); clip && range) {
    const auto low = clip->inputs.size() > 1 ? chains.number(clip->inputs[1]) : std::nullopt;
    const auto high = clip->inputs.size() > 2 ? chains.number(clip->inputs[2]) : std::nullopt;
    range->low =
        std::max<std::int64_t>(range->low, low ? saturated_integer(std::round(*low)) : range->low);
    range->high = std::min<std::int64_t>(range->high,
                                         high ? saturated_integer(std::round(*high)) : range->high);
    rounded = clip->inputs[0];
  }
  const Node* forth = chains.made_by(rounded, ops::QuantizeLinear, members);
  if (!range || forth == nullptr || !same_setting(chains, *forth, back, 1) ||
      !same_setting(chains, *forth, back, 2) ||
      forth->attributes.integer("axis", 1) != back.attributes.integer("axis", 1))
    return false;
  Chains::Replacement by{ops::FakeQuantize,
                         kMonetDomain,
                         forth->inputs,
                         {{"axis", forth->attributes.integer("axis", 1)},
                          {"quant_min", range->low},
                          {"quant_max", range->high}}};
  // If other nodes read the integers, the original nodes stay as well.
  chains.replace(at, chains.closed(members, at) ? members : Chains::Members{at}, std::move(by));
  return true;
}

} // namespace monet::onnx_file
