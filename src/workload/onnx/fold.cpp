// Evaluates nodes with constant inputs: table of folded operators, and those that move numbers.
// onnx_reader.cpp calls it after inference has set the shapes of outputs.
#include "workload/onnx/fold_kernels.hpp"
#include "workload/shared/op_types.hpp"

#include <algorithm>
#include <numeric>

namespace monet::onnx_file {

namespace {

/// Folds Reshape, Squeeze, Unsqueeze, Flatten and Identity, which keep the numbers unchanged.
bool fold_same(const Node&, const Inputs& in, Value& out) {
  if (in.get(0) == nullptr)
    return false;
  out.values = in.get(0)->values;
  return out.values.has_value();
}

bool fold_strided(const Inputs& in, Value& out, const Integers& strides, std::int64_t origin) {
  const Value* source = in.get(0);
  if (source == nullptr || !source->values)
    return false;
  std::visit(
      [&](const auto& list) { out.values = gather_strided(list, out.shape, strides, origin); },
      *source->values);
  return true;
}

bool fold_transpose(const Node& node, const Inputs& in, Value& out) {
  const auto own = strides_of(in.get(0)->shape);
  auto perm = node.attributes.integers("perm");
  if (perm.empty()) {
    for (std::size_t i = own.size(); i-- > 0;)
      perm.push_back(static_cast<std::int64_t>(i));
  }
  Integers strides;
  for (const std::int64_t axis : perm)
    strides.push_back(own[static_cast<std::size_t>(axis)]);
  return fold_strided(in, out, strides, 0);
}

bool fold_expand(const Node&, const Inputs& in, Value& out) {
  return fold_strided(in, out, broadcast_strides(in.get(0)->shape, out.shape), 0);
}

bool fold_slice(const Node&, const Inputs& in, Value& out) {
  const auto& shape = in.get(0)->shape;
  const Integers* starts = in.integers(1);
  if (starts == nullptr)
    return false;
  Integers axes(starts->size());
  std::iota(axes.begin(), axes.end(), 0);
  if (in.integers(3) != nullptr)
    axes = *in.integers(3);
  const Integers steps = in.integers(4) != nullptr ? *in.integers(4) : Integers(axes.size(), 1);
  auto strides = strides_of(shape);
  std::int64_t origin = 0;
  const auto rank = static_cast<std::int64_t>(shape.size());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<std::size_t>(axes[i] < 0 ? axes[i] + rank : axes[i]);
    std::int64_t start = (*starts)[i] < 0 ? (*starts)[i] + shape[axis] : (*starts)[i];
    start = std::clamp<std::int64_t>(
        start, 0, std::max<std::int64_t>(steps[i] > 0 ? shape[axis] : shape[axis] - 1, 0));
    origin += start * strides[axis];
    strides[axis] = steps[i] * strides[axis];
  }
  return fold_strided(in, out, strides, origin);
}

/// Attribute `axis`, converted to a non-negative axis.
std::int64_t axis_of(const Node& node, std::size_t rank) {
  const std::int64_t axis = node.attributes.integer("axis", 0);
  return axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis;
}

bool fold_gather(const Node& node, const Inputs& in, Value& out) {
  const Value* data = in.get(0);
  const Integers* indices = in.integers(1);
  if (!data || !data->values || !indices || data->shape.empty())
    return false;
  const auto at = data->shape.begin() + axis_of(node, data->shape.size());
  const std::int64_t outer = checked_product(std::vector(data->shape.begin(), at));
  const std::int64_t inner = checked_product(std::vector(at + 1, data->shape.end()));
  const std::int64_t length = *at;
  for (const std::int64_t index : *indices) {
    if (index < -length || index >= length)
      return false;
  }
  std::visit(
      [&](const auto& source) {
        auto result = source;
        result.clear();
        for (std::int64_t o = 0; o < outer; ++o) {
          for (const std::int64_t index : *indices) {
            const std::int64_t from = (o * length + (index < 0 ? index + length : index)) * inner;
            result.insert(result.end(), source.begin() + from, source.begin() + from + inner);
          }
        }
        out.values = std::move(result);
      },
      *data->values);
  return true;
}

bool fold_concat(const Node& node, const Inputs& in, Value& out) {
  const auto at = out.shape.begin() + axis_of(node, out.shape.size());
  const std::int64_t outer = checked_product(std::vector(out.shape.begin(), at));
  const auto append = [&](auto& result) {
    using List = std::remove_reference_t<decltype(result)>;
    for (std::int64_t o = 0; o < outer; ++o) {
      for (const Value* part : in.list) {
        const auto* list = part && part->values ? std::get_if<List>(&*part->values) : nullptr;
        if (list == nullptr)
          return false;
        const auto chunk =
            static_cast<std::int64_t>(list->size()) / std::max<std::int64_t>(outer, 1);
        result.insert(result.end(), list->begin() + o * chunk, list->begin() + (o + 1) * chunk);
      }
    }
    return true;
  };
  if (is_floating(out.type)) {
    Reals reals;
    if (!append(reals))
      return false;
    out.values = std::move(reals);
  } else {
    Integers integers;
    if (!append(integers))
      return false;
    out.values = std::move(integers);
  }
  return true;
}

bool fold_constant_of_shape(const Node& node, const Inputs&, Value& out) {
  const auto value = node.tensors.find("value");
  double fill = 0.0;
  if (value != node.tensors.end() && value->second.values) {
    fill = std::visit(
        [](const auto& list) { return list.empty() ? 0.0 : static_cast<double>(list[0]); },
        *value->second.values);
  }
  out.values = as_stored(out.type, Reals(total(out.shape), fill));
  return true;
}

bool fold_tile(const Node&, const Inputs& in, Value& out) {
  const Value* source = in.get(0);
  if (source == nullptr || !source->values || source->shape.size() != out.shape.size())
    return false;
  const auto own = strides_of(source->shape);
  const auto steps = strides_of(out.shape);
  std::visit(
      [&](const auto& list) {
        auto result = list;
        result.resize(total(out.shape));
        for (std::size_t i = 0; i < result.size(); ++i) {
          std::int64_t from = 0;
          for (std::size_t axis = 0; axis < steps.size(); ++axis) {
            from += static_cast<std::int64_t>(i) / steps[axis] % out.shape[axis] %
                    source->shape[axis] * own[axis];
          }
          result[i] = list[static_cast<std::size_t>(from)];
        }
        out.values = std::move(result);
      },
      *source->values);
  return true;
}

using Folder = bool (*)(const Node&, const Inputs&, Value&);

/// Indices of nonzero elements, axis by axis.
bool fold_nonzero(const Node&, const Inputs& in, Value& out) {
  const auto numbers = in.reals(0);
  if (!numbers)
    return false;
  const auto& shape = in.get(0)->shape;
  const auto strides = strides_of(shape);
  Integers places;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    for (std::size_t i = 0; i < numbers->size(); ++i) {
      if ((*numbers)[i] != 0)
        places.push_back(static_cast<std::int64_t>(i) / strides[axis] % shape[axis]);
    }
  }
  out.values = std::move(places);
  return true;
}

struct FoldRule {
  OpType op_type;
  Folder fold;
  std::size_t inputs; ///< minimum number of inputs
};

constexpr FoldRule kRules[] = {
    {ops::Cast, fold_cast, 1},        {ops::CastLike, fold_cast, 2},
    {ops::Concat, fold_concat, 1},    {ops::ConstantOfShape, fold_constant_of_shape, 1},
    {ops::Expand, fold_expand, 2},    {ops::Flatten, fold_same, 1},
    {ops::Gather, fold_gather, 2},    {ops::Identity, fold_same, 1},
    {ops::NonZero, fold_nonzero, 1},  {ops::Range, fold_range, 3},
    {ops::ReduceMax, fold_reduce, 1}, {ops::ReduceMean, fold_reduce, 1},
    {ops::ReduceMin, fold_reduce, 1}, {ops::ReduceProd, fold_reduce, 1},
    {ops::ReduceSum, fold_reduce, 1}, {ops::Reshape, fold_same, 2},
    {ops::Slice, fold_slice, 3},      {ops::Squeeze, fold_same, 1},
    {ops::Tile, fold_tile, 2},        {ops::Transpose, fold_transpose, 1},
    {ops::Trilu, fold_trilu, 1},      {ops::Unsqueeze, fold_same, 2},
    {ops::Where, fold_where, 3},
};

/// Ones on a diagonal, independent of the input's numbers.
bool fold_eye(const Node& node, Value& out) {
  if (out.shape.size() != 2)
    return false;
  Reals numbers(total(out.shape), 0.0);
  const std::int64_t columns = out.shape[1];
  const std::int64_t above = node.attributes.integer("k", 0);
  for (std::int64_t row = 0; row < out.shape[0]; ++row) {
    if (above > columns || above < -out.shape[0] || row + above < 0 || row + above >= columns)
      continue;
    numbers[static_cast<std::size_t>(row * columns + row + above)] = 1.0;
  }
  out.values = as_stored(out.type, std::move(numbers));
  return true;
}

bool fold_shape(const Node& node, const Inputs& in, Value& out) {
  if (in.get(0) == nullptr)
    return false;
  const auto& shape = in.get(0)->shape;
  if (node.op_type == ops::EyeLike)
    return fold_eye(node, out);
  if (node.op_type == ops::Size) {
    out.values = Integers{checked_product(shape)};
    return true;
  }
  const auto rank = static_cast<std::int64_t>(shape.size());
  const auto bound = [&](std::int64_t at) {
    return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  const std::int64_t begin = bound(node.attributes.integer("start", 0));
  const std::int64_t end = std::max(begin, bound(node.attributes.integer("end", rank)));
  out.values = Integers(shape.begin() + begin, shape.begin() + end);
  return true;
}

bool fold_literal(const Node& node, Value& out) {
  const auto tensor = node.tensors.find("value");
  if (tensor != node.tensors.end()) {
    out.values = tensor->second.values;
    return out.values.has_value();
  }
  const auto& all = node.attributes.all();
  if (all.size() != 1)
    return false;
  const AttributeValue& value = all.begin()->second;
  if (const auto* i = std::get_if<std::int64_t>(&value))
    out.values = Integers{*i};
  if (const auto* is = std::get_if<Integers>(&value))
    out.values = *is;
  if (const auto* f = std::get_if<double>(&value))
    out.values = Reals{*f};
  if (const auto* fs = std::get_if<Reals>(&value))
    out.values = *fs;
  return out.values.has_value();
}

/// Folds Split, the only folded operator with several outputs: consecutive slices along one axis.
bool fold_split(const Node& node, const Values& values, std::vector<Value>& outputs) {
  const auto source = values.find(node.inputs.at(0));
  if (source == values.end() || !source->second.values)
    return false;
  const auto own = strides_of(source->second.shape);
  const auto axis = static_cast<std::size_t>(axis_of(node, own.size()));
  std::int64_t origin = 0;
  for (Value& out : outputs) {
    if (!fold_strided(Inputs{{&source->second}}, out, own, origin))
      return false;
    origin += out.shape[axis] * own[axis];
  }
  return true;
}

} // namespace

bool fold_constant(const Node& node, const Values& values, std::vector<Value>& outputs) {
  if (!node.domain.empty() || outputs.empty())
    return false;
  for (const Value& output : outputs) {
    if (checked_product(output.shape) > kMaxComputedElements)
      return false;
  }
  if (node.op_type == ops::Split)
    return fold_split(node, values, outputs);
  if (outputs.size() != 1)
    return false;
  Value& out = outputs.front();
  if (node.op_type == ops::Constant)
    return fold_literal(node, out);
  Inputs in;
  for (std::size_t i = 0; i < node.inputs.size(); ++i)
    in.list.push_back(input_value(node, i, values));
  if (node.op_type == ops::Shape || node.op_type == ops::Size || node.op_type == ops::EyeLike)
    return fold_shape(node, in, out);
  const auto known = [&](std::size_t inputs) {
    return in.list.size() >= inputs &&
           std::all_of(in.list.begin(), in.list.begin() + static_cast<std::ptrdiff_t>(inputs),
                       [](const Value* value) { return value != nullptr && value->values; });
  };
  for (const FoldRule& rule : kRules) {
    if (rule.op_type == node.op_type)
      return known(rule.inputs) && rule.fold(node, in, out);
  }
  return (in.list.size() == 2 && known(2) && fold_binary(node, in, out)) ||
         (known(1) && fold_unary(node, in, out));
}

} // namespace monet::onnx_file
