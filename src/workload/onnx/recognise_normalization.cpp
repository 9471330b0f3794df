// Recognises layer normalisation of opsets before 17 and RMS normalisation, from their square root;
// and group normalisation, which exporters write as instance normalisation of reshaped groups.
#include "workload/onnx/recognise.hpp"
#include "workload/shared/op_types.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

namespace monet::onnx_file {

namespace {

using Shape = Integers;

/// Mean over the last axes, which are kept with size 1.
struct Mean {
  std::string of;
  std::size_t first_axis = 0;
};

std::optional<Mean> mean_over_last_axes(const Chains& chains, const std::string& name,
                                        Chains::Members& members) {
  const Node* node = chains.made_by(name, ops::ReduceMean, members);
  if (node == nullptr || node->attributes.integer("keepdims", 1) == 0)
    return std::nullopt;
  const auto rank = static_cast<std::int64_t>(chains.value(node->inputs[0]).shape.size());
  Shape axes = node->attributes.integers("axes");
  for (std::int64_t& axis : axes)
    axis += axis < 0 ? rank : 0;
  std::sort(axes.begin(), axes.end());
  Shape last(axes.size());
  std::iota(last.begin(), last.end(), rank - static_cast<std::int64_t>(axes.size()));
  if (axes.empty() || axes != last)
    return std::nullopt;
  return Mean{node->inputs[0], static_cast<std::size_t>(axes.front())};
}

/// Value whose square `name` is.
std::optional<std::string> square_root_of(const Chains& chains, const std::string& name,
                                          Chains::Members& members) {
  if (const Node* power = chains.made_by(name, ops::Pow, members)) {
    return chains.number(power->inputs[1]) == 2.0 ? std::optional(power->inputs[0]) : std::nullopt;
  }
  const Node* product = chains.made_by(name, ops::Mul, members);
  if (product == nullptr || !chains.same(product->inputs[0], product->inputs[1], members))
    return std::nullopt;
  return product->inputs[0];
}

/// x if the value is x - mean(x), over the same axes as `like`.
std::optional<std::string> centred(const Chains& chains, const std::string& name,
                                   std::size_t first_axis, Chains::Members& members) {
  Chains::Members passed;
  const Node* difference = chains.made_by(name, ops::Sub, passed);
  if (difference == nullptr)
    return std::nullopt;
  const auto mean = mean_over_last_axes(chains, difference->inputs[1], passed);
  if (!mean || mean->first_axis != first_axis ||
      !chains.same(mean->of, difference->inputs[0], passed)) {
    return std::nullopt;
  }
  members.insert(passed.begin(), passed.end());
  return difference->inputs[0];
}

/// Row function: x (centred or not) divided by the root of a mean square.
struct Row {
  std::string x;      ///< normalised value
  std::string square; ///< squared value: x, or x - mean(x)
  bool centred = false;
  std::size_t first_axis = 0;
  double epsilon = 0;
};

/// Mean square plus epsilon under a square root.
std::optional<Row> row_below(const Chains& chains, const std::string& under_root,
                             Chains::Members& members) {
  Row row;
  std::string mean_square = under_root;
  if (const Node* sum = chains.made_by(under_root, ops::Add, members)) {
    const auto parts = chains.with_number(*sum);
    if (!parts || chains.is_trained(sum->inputs[0]) || chains.is_trained(sum->inputs[1]))
      return std::nullopt;
    mean_square = parts->first;
    row.epsilon = parts->second;
  }
  const auto mean = mean_over_last_axes(chains, mean_square, members);
  const auto square = mean ? square_root_of(chains, mean->of, members) : std::nullopt;
  if (!square)
    return std::nullopt;
  row.square = *square;
  row.first_axis = mean->first_axis;
  const auto x = centred(chains, *square, row.first_axis, members);
  row.centred = x.has_value();
  row.x = x.value_or(*square);
  return row;
}

/// Node that applies the root: numerator / root or numerator * (1/root). `root` computes the root,
/// or its inverse.
const Node* scaled_by_root(const Chains& chains, const Node& root, bool inverse,
                           std::string& numerator, Chains::Members& members) {
  const Node* reader = chains.only_reader(root.outputs[0], members);
  if (reader == nullptr || !reader->domain.empty())
    return nullptr;
  std::string by = root.outputs[0];
  if (!inverse) {
    const bool divides_one = reader->op_type == ops::Div && chains.number(reader->inputs[0]) == 1.0;
    if (reader->op_type == ops::Reciprocal || divides_one) {
      by = reader->outputs[0];
      inverse = true;
      reader = chains.only_reader(by, members);
      if (reader == nullptr || !reader->domain.empty())
        return nullptr;
    }
  }
  if (!inverse) {
    if (reader->op_type != ops::Div || !chains.same(reader->inputs[1], by, members))
      return nullptr;
    numerator = reader->inputs[0];
    return reader;
  }
  if (reader->op_type != ops::Mul)
    return nullptr;
  const bool second = chains.same(reader->inputs[1], by, members);
  numerator = reader->inputs[second ? 0 : 1];
  return reader;
}

/// Follows a result into its only reader, a Mul or Add with a fitting operand. Returns the operand
/// and moves `result` to the reader.
std::optional<std::string> applied(const Chains& chains, const Node*& result, OpType op_type,
                                   Chains::Members& members,
                                   const std::function<bool(const std::string&)>& fits) {
  Chains::Members passed;
  const Node* reader = chains.only_reader(result->outputs[0], passed);
  if (reader == nullptr || !reader->domain.empty() || reader->op_type != op_type)
    return std::nullopt;
  for (const std::size_t i : {0U, 1U}) {
    Chains::Members copies;
    if (!chains.same(reader->inputs[1 - i], result->outputs[0], copies) ||
        !fits(reader->inputs[i])) {
      continue;
    }
    members.insert(passed.begin(), passed.end());
    result = reader;
    return reader->inputs[i];
  }
  return std::nullopt;
}

/// Adds ones for an omitted scale, which layer normalisation requires.
std::string ones_like(Chains& chains, const std::string& x, const Shape& shape, std::size_t at) {
  const auto count =
      std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  const std::string flat = chains.filled(x, count, 1.0, at);
  return shape.size() == 1 ? flat : chains.reshaped(flat, shape, at);
}

} // namespace

bool recognise_row_normalization(Chains& chains, std::size_t at) {
  const Node& root = chains.node(at);
  const bool power = root.op_type == ops::Pow && root.inputs.size() == 2;
  const double exponent = power ? chains.number(root.inputs[1]).value_or(0) : 0;
  const bool inverse = exponent == -0.5;
  if (!root.domain.empty() || !(root.op_type == ops::Sqrt || inverse || exponent == 0.5))
    return false;
  Chains::Members members{at};
  const auto row = row_below(chains, root.inputs[0], members);
  if (!row)
    return false;
  std::string numerator;
  const Node* result = scaled_by_root(chains, root, inverse, numerator, members);
  if (result == nullptr)
    return false;
  if (row->centred && !chains.same(numerator, row->square, members)) {
    const auto again = centred(chains, numerator, row->first_axis, members);
    if (!again || !chains.same(*again, row->x, members))
      return false;
  } else if (!row->centred && !chains.same(numerator, row->x, members)) {
    return false;
  }
  const Value& x = chains.value(row->x);
  const Shape tail(x.shape.begin() + static_cast<std::ptrdiff_t>(row->first_axis), x.shape.end());
  const auto of_row = [&](const std::string& name) { return chains.value(name).shape == tail; };
  const auto scale = applied(chains, result, ops::Mul, members, of_row);
  const bool biased = row->centred;
  const auto bias = biased ? applied(chains, result, ops::Add, members, of_row) : std::nullopt;
  const std::size_t last = chains.index_of(*result);
  const Value& out = chains.value(result->outputs[0]);
  if (out.shape != x.shape || out.type != x.type || !chains.closed(members, last))
    return false;
  const Attributes attributes{{"axis", static_cast<std::int64_t>(row->first_axis) -
                                           static_cast<std::int64_t>(x.shape.size())},
                              {"epsilon", row->epsilon}};
  std::vector<std::string> inputs{row->x};
  if (scale || row->centred)
    inputs.push_back(scale ? *scale : ones_like(chains, row->x, tail, last));
  if (bias)
    inputs.push_back(*bias);
  chains.replace(last, members,
                 {row->centred ? ops::LayerNormalization : ops::RMSNormalization, "",
                  std::move(inputs), attributes});
  return true;
}

bool recognise_group_normalization(Chains& chains, std::size_t at) {
  const Node& normalised = chains.node(at);
  if (!normalised.domain.empty() || normalised.op_type != ops::InstanceNormalization ||
      normalised.inputs.size() != 3 || !chains.filled_with(normalised.inputs[1], 1.0) ||
      !chains.filled_with(normalised.inputs[2], 0.0)) {
    return false;
  }
  Chains::Members members{at};
  const Node* gathered = chains.made_by(normalised.inputs[0], ops::Reshape, members);
  const Node* result = chains.only_reader(normalised.outputs[0], members);
  if (gathered == nullptr || result == nullptr || result->op_type != ops::Reshape)
    return false;
  const std::string x = gathered->inputs[0];
  const Shape& shape = chains.value(x).shape;
  const Shape& grouped = chains.value(normalised.inputs[0]).shape;
  const bool fits = shape.size() >= 2 && grouped.size() >= 2 && grouped[0] == shape[0] &&
                    grouped[1] > 0 && shape[1] % grouped[1] == 0 &&
                    chains.value(result->outputs[0]).shape == shape;
  if (!fits)
    return false;
  const auto of_channels = [&](const std::string& name) {
    const Shape& own = chains.value(name).shape;
    const auto rank = shape.size();
    if (own.size() > rank || own.size() + 1 < rank)
      return false;
    const std::size_t channel = own.size() - (rank - 1);
    for (std::size_t i = 0; i < own.size(); ++i) {
      if (own[i] != (i == channel ? shape[1] : 1))
        return false;
    }
    return true;
  };
  const auto scale = applied(chains, result, ops::Mul, members, of_channels);
  const auto bias = applied(chains, result, ops::Add, members, of_channels);
  const std::size_t last = chains.index_of(*result);
  if (!chains.closed(members, last))
    return false;
  std::vector<std::string> inputs{x};
  for (const auto& operand : {scale, bias}) {
    inputs.emplace_back();
    if (operand)
      inputs.back() = chains.value(*operand).shape.size() == 1
                          ? *operand
                          : chains.reshaped(*operand, {shape[1]}, last);
  }
  const Attributes attributes{{"num_groups", grouped[1]},
                              {"epsilon", normalised.attributes.number("epsilon", 1e-5)}};
  chains.replace(last, members, {ops::GroupNormalization, "", std::move(inputs), attributes});
  return true;
}

} // namespace monet::onnx_file
