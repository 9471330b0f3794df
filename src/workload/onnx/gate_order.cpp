// Traces inputs of recurrent layers back to parameters with reordered gates; recurrent.cpp uses it.
#include "workload/onnx/gate_order.hpp"

#include "workload/shared/op_types.hpp"

#include <algorithm>

namespace monet::onnx_file {

namespace {

constexpr int kMakersDepth = 8; ///< maximum length of a chain of nodes

} // namespace

GateSources::GateSources(const Model& model, const Values& values) : values_(values) {
  for (const Node& node : model.nodes) {
    if (node.domain.empty() && node.outputs.size() == 1)
      makers_.emplace(node.outputs[0], &node);
  }
}

const Node* GateSources::maker(const std::string& name) const {
  const auto found = makers_.find(name);
  return found == makers_.end() ? nullptr : found->second;
}

std::optional<Integers> GateSources::integers(const Node& node, std::size_t input) const {
  const Value* value = input_value(node, input, values_);
  const auto* list = value ? integers_of(value->values) : nullptr;
  return list ? std::optional(*list) : std::nullopt;
}

std::optional<std::string> GateSources::below_unsqueeze(const std::string& name) const {
  const Node* node = maker(name);
  if (node == nullptr || node->op_type != ops::Unsqueeze)
    return std::nullopt;
  const auto axes = node->inputs.size() > 1 ? integers(*node, 1)
                                            : std::optional(node->attributes.integers("axes"));
  if (axes != Integers{0})
    return std::nullopt;
  return node->inputs[0];
}

bool GateSources::add_slice(const Node& node, int depth, std::vector<Rows>& rows) const {
  const auto starts = integers(node, 1);
  const auto ends = integers(node, 2);
  const auto axes = node.inputs.size() > 3 ? integers(node, 3) : std::optional(Integers{0});
  const auto steps = node.inputs.size() > 4 ? integers(node, 4) : std::optional(Integers{1});
  const Integers kFirst{0};
  const Integers kOne{1};
  if (!starts || !ends || starts->size() != 1 || ends->size() != 1 || axes != kFirst ||
      steps != kOne)
    return false;
  std::vector<Rows> whole;
  if (!add_rows(node.inputs[0], depth + 1, whole))
    return false;
  std::int64_t count = 0;
  for (const Rows& part : whole)
    count += part.count;
  const auto bound = [&](std::int64_t at) {
    return std::clamp<std::int64_t>(at < 0 ? at + count : at, 0, count);
  };
  std::int64_t begin = bound((*starts)[0]);
  const std::int64_t end = bound((*ends)[0]);
  std::int64_t at = 0;
  for (const Rows& part : whole) {
    const std::int64_t from = std::max(begin, at);
    const std::int64_t to = std::min(end, at + part.count);
    if (from < to)
      rows.push_back({part.tensor, part.from + from - at, to - from});
    at += part.count;
  }
  return true;
}

bool GateSources::add_rows(const std::string& name, int depth, std::vector<Rows>& rows) const {
  const auto value = values_.find(name);
  if (depth > kMakersDepth || value == values_.end() || value->second.shape.empty())
    return false;
  const Node* node = maker(name);
  if (node == nullptr) {
    rows.push_back({name, 0, value->second.shape[0]});
    return true;
  }
  if (node->op_type == ops::Identity)
    return add_rows(node->inputs[0], depth + 1, rows);
  if (node->op_type == ops::Slice)
    return add_slice(*node, depth, rows);
  return node->op_type == ops::Concat && node->attributes.integer("axis", 0) == 0 &&
         std::ranges::all_of(node->inputs, [&](const std::string& part) {
           return add_rows(part, depth + 1, rows);
         });
}

std::optional<GateSource> GateSources::source(const std::vector<Rows>& rows, std::int64_t first,
                                              std::int64_t gates, std::int64_t hidden) const {
  GateSource result;
  std::int64_t at = 0;
  std::vector<bool> taken(static_cast<std::size_t>(gates), false);
  for (const Rows& part : rows) {
    if (part.count % hidden != 0 || part.from % hidden != 0)
      return std::nullopt;
    for (std::int64_t block = 0; block < part.count / hidden; ++block, at += hidden) {
      if (at < first || at >= first + gates * hidden)
        continue;
      const std::int64_t place = part.from / hidden + block;
      if (result.place.empty())
        result.parameter = part.tensor;
      if (result.parameter != part.tensor || place >= gates ||
          taken[static_cast<std::size_t>(place)])
        return std::nullopt;
      taken[static_cast<std::size_t>(place)] = true;
      result.place.push_back(place);
    }
  }
  const bool whole = static_cast<std::int64_t>(result.place.size()) == gates &&
                     values_.at(result.parameter).shape[0] == gates * hidden;
  return whole ? std::optional(std::move(result)) : std::nullopt;
}

std::optional<std::vector<std::vector<GateSource>>> GateSources::of(const std::string& input,
                                                                    std::int64_t directions,
                                                                    int parts, std::int64_t gates,
                                                                    std::int64_t hidden) const {
  std::vector<std::string> sides{input};
  if (directions == 2) {
    const Node* joined = maker(input);
    if (joined == nullptr || joined->op_type != ops::Concat || joined->inputs.size() != 2 ||
        joined->attributes.integer("axis", 0) != 0)
      return std::nullopt;
    sides = joined->inputs;
  }
  std::vector<std::vector<GateSource>> result;
  for (const std::string& side : sides) {
    const auto matrix = below_unsqueeze(side);
    std::vector<Rows> rows;
    if (!matrix || !add_rows(*matrix, 0, rows))
      return std::nullopt;
    std::vector<GateSource>& own = result.emplace_back();
    for (int part = 0; part < parts; ++part) {
      auto found = source(rows, part * gates * hidden, gates, hidden);
      if (!found)
        return std::nullopt;
      own.push_back(std::move(*found));
    }
  }
  return result;
}

} // namespace monet::onnx_file
