// Evaluation of constant nodes: shape arithmetic, masks, position indices. Integers are exact (64
// bits, wrapping); everything else is computed in double. Outputs have their shapes already, from
// inference.
#include "workload/onnx/model.hpp"

#include "monet/base/checked.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

namespace monet::onnx_file {

namespace {

using Integers = std::vector<std::int64_t>;
using Reals = std::vector<double>;

std::size_t total(const std::vector<std::int64_t>& shape) {
  return static_cast<std::size_t>(checked_product(shape));
}

std::vector<std::int64_t> strides_of(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;)
    strides[i - 1] = strides[i] * shape[i];
  return strides;
}

/// Calls visit(output position, source position) for all elements of `shape`; the source is
/// addressed with `strides` (one per axis, 0 where broadcast) from `origin`.
template <class Visit>
void walk(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& strides,
          std::int64_t origin, Visit&& visit) {
  const std::size_t count = total(shape);
  std::vector<std::int64_t> index(shape.size(), 0);
  std::int64_t source = origin;
  for (std::size_t at = 0; at < count; ++at) {
    visit(at, static_cast<std::size_t>(source));
    for (std::size_t i = shape.size(); i-- > 0;) {
      source += strides[i];
      if (++index[i] < shape[i])
        break;
      source -= strides[i] * shape[i];
      index[i] = 0;
    }
  }
}

/// Strides that broadcast `shape` to `target`.
std::vector<std::int64_t> broadcast_strides(const std::vector<std::int64_t>& shape,
                                            const std::vector<std::int64_t>& target) {
  std::vector<std::int64_t> strides(target.size(), 0);
  const auto own = strides_of(shape);
  const std::size_t skipped = target.size() - shape.size();
  for (std::size_t i = 0; i < shape.size(); ++i) {
    strides[skipped + i] = shape[i] == 1 ? 0 : own[i];
  }
  return strides;
}

template <class Number>
std::vector<Number>
gather_strided(const std::vector<Number>& source, const std::vector<std::int64_t>& shape,
               const std::vector<std::int64_t>& strides, std::int64_t origin = 0) {
  std::vector<Number> result(total(shape));
  walk(shape, strides, origin,
       [&](std::size_t to, std::size_t from) { result[to] = source[from]; });
  return result;
}

/// The node's inputs (null where left out) with their numbers.
struct Inputs {
  std::vector<const Value*> list;

  const Value* get(std::size_t i) const { return i < list.size() ? list[i] : nullptr; }
  const Integers* integers(std::size_t i) const {
    const Value* value = get(i);
    return value && value->values ? std::get_if<Integers>(&*value->values) : nullptr;
  }
  std::optional<Reals> reals(std::size_t i) const {
    const Value* value = get(i);
    if (!value || !value->values)
      return std::nullopt;
    if (const auto* reals = std::get_if<Reals>(&*value->values))
      return *reals;
    const auto& integers = std::get<Integers>(*value->values);
    return Reals(integers.begin(), integers.end());
  }
};

std::int64_t wrap(std::uint64_t value) {
  return static_cast<std::int64_t>(value);
}

std::optional<std::int64_t> integer_binary(const std::string& op, std::int64_t a, std::int64_t b,
                                           bool floor_mod) {
  const auto ua = static_cast<std::uint64_t>(a);
  const auto ub = static_cast<std::uint64_t>(b);
  if (op == "Add")
    return wrap(ua + ub);
  if (op == "Sub")
    return wrap(ua - ub);
  if (op == "Mul")
    return wrap(ua * ub);
  if (op == "Min")
    return std::min(a, b);
  if (op == "Max")
    return std::max(a, b);
  if (op == "And")
    return (a != 0 && b != 0) ? 1 : 0;
  if (op == "Or")
    return (a != 0 || b != 0) ? 1 : 0;
  if (op == "Xor")
    return ((a != 0) != (b != 0)) ? 1 : 0;
  if (op == "Equal")
    return a == b ? 1 : 0;
  if (op == "Less")
    return a < b ? 1 : 0;
  if (op == "LessOrEqual")
    return a <= b ? 1 : 0;
  if (op == "Greater")
    return a > b ? 1 : 0;
  if (op == "GreaterOrEqual")
    return a >= b ? 1 : 0;
  if (op != "Div" && op != "Mod")
    return std::nullopt;
  if (b == 0 || (b == -1 && a == std::numeric_limits<std::int64_t>::min()))
    return std::nullopt;
  if (op == "Div")
    return a / b;
  const std::int64_t rest = a % b;
  return floor_mod && rest != 0 && ((rest < 0) != (b < 0)) ? rest + b : rest;
}

std::optional<double> real_binary(const std::string& op, double a, double b) {
  if (op == "Add")
    return a + b;
  if (op == "Sub")
    return a - b;
  if (op == "Mul")
    return a * b;
  if (op == "Div")
    return a / b;
  if (op == "Pow")
    return std::pow(a, b);
  if (op == "Min")
    return std::min(a, b);
  if (op == "Max")
    return std::max(a, b);
  if (op == "Mod")
    return std::fmod(a, b);
  if (op == "Equal")
    return a == b ? 1.0 : 0.0;
  if (op == "Less")
    return a < b ? 1.0 : 0.0;
  if (op == "LessOrEqual")
    return a <= b ? 1.0 : 0.0;
  if (op == "Greater")
    return a > b ? 1.0 : 0.0;
  if (op == "GreaterOrEqual")
    return a >= b ? 1.0 : 0.0;
  return std::nullopt;
}

std::optional<double> real_unary(const std::string& op, double a) {
  if (op == "Neg")
    return -a;
  if (op == "Abs")
    return std::fabs(a);
  if (op == "Sqrt")
    return std::sqrt(a);
  if (op == "Floor")
    return std::floor(a);
  if (op == "Ceil")
    return std::ceil(a);
  if (op == "Round")
    return std::nearbyint(a);
  if (op == "Exp")
    return std::exp(a);
  if (op == "Log")
    return std::log(a);
  if (op == "Reciprocal")
    return 1.0 / a;
  if (op == "Not")
    return a == 0.0 ? 1.0 : 0.0;
  if (op == "Sign")
    return a > 0 ? 1.0 : a < 0 ? -1.0 : 0.0;
  return std::nullopt;
}

std::int64_t saturate(double value) {
  constexpr double kEdge = 9223372036854775807.0;
  if (std::isnan(value))
    return 0;
  if (value >= kEdge)
    return std::numeric_limits<std::int64_t>::max();
  if (value <= -kEdge)
    return std::numeric_limits<std::int64_t>::min();
  return static_cast<std::int64_t>(value);
}

/// Numbers as the element type stores them: integers for integer types, doubles for the others.
ConstantValues as_stored(ElementType type, Reals numbers) {
  if (is_floating(type))
    return numbers;
  Integers integers(numbers.size());
  const bool boolean = type == ElementType::boolean;
  std::transform(numbers.begin(), numbers.end(), integers.begin(), [&](double value) {
    return boolean ? static_cast<std::int64_t>(value != 0.0) : saturate(value);
  });
  return integers;
}

bool fold_binary(const Node& node, const Inputs& in, Value& out) {
  const bool all_integers = in.integers(0) != nullptr && in.integers(1) != nullptr;
  const auto a_strides = broadcast_strides(in.get(0)->shape, out.shape);
  const auto b_strides = broadcast_strides(in.get(1)->shape, out.shape);
  bool known = true;
  if (all_integers && node.op_type != "Pow") {
    const Integers a = gather_strided(*in.integers(0), out.shape, a_strides);
    const Integers b = gather_strided(*in.integers(1), out.shape, b_strides);
    const bool floor_mod = node.attributes.integer("fmod", 0) == 0;
    Integers result(a.size());
    for (std::size_t i = 0; known && i < a.size(); ++i) {
      const auto value = integer_binary(node.op_type, a[i], b[i], floor_mod);
      known = value.has_value();
      result[i] = value.value_or(0);
    }
    if (known)
      out.values = std::move(result);
    return known;
  }
  const auto x = in.reals(0);
  const auto y = in.reals(1);
  if (!x || !y)
    return false;
  const Reals a = gather_strided(*x, out.shape, a_strides);
  const Reals b = gather_strided(*y, out.shape, b_strides);
  Reals result(a.size());
  for (std::size_t i = 0; known && i < a.size(); ++i) {
    const auto value = real_binary(node.op_type, a[i], b[i]);
    known = value.has_value();
    result[i] = value.value_or(0);
  }
  if (known)
    out.values = as_stored(out.type, std::move(result));
  return known;
}

bool fold_unary(const Node& node, const Inputs& in, Value& out) {
  auto numbers = in.reals(0);
  if (!numbers)
    return false;
  for (double& number : *numbers) {
    const auto value = real_unary(node.op_type, number);
    if (!value)
      return false;
    number = *value;
  }
  out.values = as_stored(out.type, std::move(*numbers));
  return true;
}

bool fold_cast(const Node&, const Inputs& in, Value& out) {
  if (const Integers* integers = in.integers(0); integers && !is_floating(out.type)) {
    Integers copy = *integers;
    if (out.type == ElementType::boolean) {
      for (std::int64_t& value : copy)
        value = value != 0 ? 1 : 0;
    }
    out.values = std::move(copy);
    return true;
  }
  auto numbers = in.reals(0);
  if (!numbers)
    return false;
  out.values = as_stored(out.type, std::move(*numbers));
  return true;
}

/// Reshape, Squeeze, Unsqueeze, Flatten, Identity: the numbers stay as they are.
bool fold_same(const Node&, const Inputs& in, Value& out) {
  if (in.get(0) == nullptr)
    return false;
  out.values = in.get(0)->values;
  return out.values.has_value();
}

bool fold_strided(const Inputs& in, Value& out, const std::vector<std::int64_t>& strides,
                  std::int64_t origin) {
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
  std::vector<std::int64_t> strides;
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

bool fold_gather(const Node& node, const Inputs& in, Value& out) {
  const Value* data = in.get(0);
  const Integers* indices = in.integers(1);
  if (!data || !data->values || !indices || data->shape.empty())
    return false;
  const auto rank = static_cast<std::int64_t>(data->shape.size());
  std::int64_t axis = node.attributes.integer("axis", 0);
  if (axis < 0)
    axis += rank;
  const auto at = data->shape.begin() + axis;
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
  const auto rank = static_cast<std::int64_t>(out.shape.size());
  std::int64_t axis = node.attributes.integer("axis", 0);
  if (axis < 0)
    axis += rank;
  const std::int64_t outer =
      checked_product(std::vector(out.shape.begin(), out.shape.begin() + axis));
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

bool fold_range(const Node&, const Inputs& in, Value& out) {
  if (const Integers* start = in.integers(0); start && in.integers(2)) {
    Integers numbers(total(out.shape));
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      numbers[i] =
          wrap(static_cast<std::uint64_t>((*start)[0]) +
               static_cast<std::uint64_t>(i) * static_cast<std::uint64_t>((*in.integers(2))[0]));
    }
    out.values = std::move(numbers);
    return true;
  }
  const auto start = in.reals(0);
  const auto delta = in.reals(2);
  if (!start || !delta)
    return false;
  Reals numbers(total(out.shape));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = (*start)[0] + static_cast<double>(i) * (*delta)[0];
  }
  out.values = std::move(numbers);
  return true;
}

bool fold_where(const Node&, const Inputs& in, Value& out) {
  const Integers* condition = in.integers(0);
  const auto x = in.reals(1);
  const auto y = in.reals(2);
  if (!condition || !x || !y)
    return false;
  const Integers choose =
      gather_strided(*condition, out.shape, broadcast_strides(in.get(0)->shape, out.shape));
  const auto x_strides = broadcast_strides(in.get(1)->shape, out.shape);
  const auto y_strides = broadcast_strides(in.get(2)->shape, out.shape);
  const auto pick = [&](const auto& a, const auto& b) {
    auto result = gather_strided(a, out.shape, x_strides);
    const auto other = gather_strided(b, out.shape, y_strides);
    for (std::size_t i = 0; i < result.size(); ++i)
      result[i] = choose[i] != 0 ? result[i] : other[i];
    out.values = std::move(result);
  };
  if (in.integers(1) != nullptr && in.integers(2) != nullptr) {
    pick(*in.integers(1), *in.integers(2));
  } else {
    pick(*x, *y);
  }
  return true;
}

bool fold_reduce(const Node& node, const Inputs& in, Value& out) {
  const auto numbers = in.reals(0);
  if (!numbers)
    return false;
  const auto& shape = in.get(0)->shape;
  std::vector<bool> reduced(shape.size(), true);
  Integers axes = node.attributes.integers("axes");
  if (in.integers(1) != nullptr)
    axes = *in.integers(1);
  if (in.get(1) != nullptr && in.integers(1) == nullptr)
    return false;
  if (!axes.empty()) {
    reduced.assign(shape.size(), false);
    for (const std::int64_t axis : axes) {
      reduced[static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(shape.size())
                                                : axis)] = true;
    }
  }
  std::vector<std::int64_t> kept;
  for (std::size_t i = 0; i < shape.size(); ++i)
    kept.push_back(reduced[i] ? 1 : shape[i]);
  const auto strides = broadcast_strides(kept, shape);
  const std::string& op = node.op_type;
  const double start = op == "ReduceProd"  ? 1.0
                       : op == "ReduceMax" ? -std::numeric_limits<double>::infinity()
                       : op == "ReduceMin" ? std::numeric_limits<double>::infinity()
                                           : 0.0;
  Reals result(total(kept), start);
  walk(shape, strides, 0, [&](std::size_t from, std::size_t to) {
    const double value = (*numbers)[from];
    double& sum = result[to];
    sum = op == "ReduceProd"  ? sum * value
          : op == "ReduceMax" ? std::max(sum, value)
          : op == "ReduceMin" ? std::min(sum, value)
                              : sum + value;
  });
  const double count = static_cast<double>(numbers->size()) /
                       static_cast<double>(std::max<std::size_t>(result.size(), 1));
  if (op == "ReduceMean") {
    for (double& value : result)
      value /= count;
  }
  out.values = as_stored(out.type, std::move(result));
  return true;
}

bool fold_trilu(const Node& node, const Inputs& in, Value& out) {
  auto numbers = in.reals(0);
  if (!numbers || out.shape.size() < 2)
    return false;
  const std::int64_t k = in.integers(1) != nullptr ? (*in.integers(1))[0] : 0;
  const bool upper = node.attributes.integer("upper", 1) != 0;
  const std::int64_t columns = out.shape.back();
  const std::int64_t rows = out.shape[out.shape.size() - 2];
  for (std::size_t i = 0; i < numbers->size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const std::int64_t distance = at % columns - at / columns % rows;
    if (upper ? distance < k : distance > k)
      (*numbers)[i] = 0.0;
  }
  out.values = as_stored(out.type, std::move(*numbers));
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

struct FoldRule {
  std::string_view op_type;
  Folder fold;
  std::size_t inputs; ///< that must be there
};

constexpr FoldRule kRules[] = {
    {"Abs", &fold_unary, 1},
    {"Add", &fold_binary, 2},
    {"And", &fold_binary, 2},
    {"Cast", &fold_cast, 1},
    {"CastLike", &fold_cast, 2},
    {"Ceil", &fold_unary, 1},
    {"Concat", &fold_concat, 1},
    {"ConstantOfShape", &fold_constant_of_shape, 1},
    {"Div", &fold_binary, 2},
    {"Equal", &fold_binary, 2},
    {"Exp", &fold_unary, 1},
    {"Expand", &fold_expand, 2},
    {"Flatten", &fold_same, 1},
    {"Floor", &fold_unary, 1},
    {"Gather", &fold_gather, 2},
    {"Greater", &fold_binary, 2},
    {"GreaterOrEqual", &fold_binary, 2},
    {"Identity", &fold_same, 1},
    {"Less", &fold_binary, 2},
    {"LessOrEqual", &fold_binary, 2},
    {"Log", &fold_unary, 1},
    {"Max", &fold_binary, 2},
    {"Min", &fold_binary, 2},
    {"Mod", &fold_binary, 2},
    {"Mul", &fold_binary, 2},
    {"Neg", &fold_unary, 1},
    {"Not", &fold_unary, 1},
    {"Or", &fold_binary, 2},
    {"Pow", &fold_binary, 2},
    {"Range", &fold_range, 3},
    {"Reciprocal", &fold_unary, 1},
    {"ReduceMax", &fold_reduce, 1},
    {"ReduceMean", &fold_reduce, 1},
    {"ReduceMin", &fold_reduce, 1},
    {"ReduceProd", &fold_reduce, 1},
    {"ReduceSum", &fold_reduce, 1},
    {"Reshape", &fold_same, 2},
    {"Round", &fold_unary, 1},
    {"Sign", &fold_unary, 1},
    {"Slice", &fold_slice, 3},
    {"Sqrt", &fold_unary, 1},
    {"Squeeze", &fold_same, 1},
    {"Sub", &fold_binary, 2},
    {"Tile", &fold_tile, 2},
    {"Transpose", &fold_transpose, 1},
    {"Trilu", &fold_trilu, 1},
    {"Unsqueeze", &fold_same, 2},
    {"Where", &fold_where, 3},
    {"Xor", &fold_binary, 2},
};

bool fold_shape(const Node& node, const Inputs& in, Value& out) {
  if (in.get(0) == nullptr)
    return false;
  const auto& shape = in.get(0)->shape;
  if (node.op_type == "Size") {
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

} // namespace

namespace {

/// The only folded operator of several outputs: consecutive slices along one axis.
bool fold_split(const Node& node, const Values& values, std::vector<Value>& outputs) {
  const auto source = values.find(node.inputs.at(0));
  if (source == values.end() || !source->second.values)
    return false;
  const auto own = strides_of(source->second.shape);
  const auto rank = static_cast<std::int64_t>(own.size());
  std::int64_t axis = node.attributes.integer("axis", 0);
  if (axis < 0)
    axis += rank;
  std::int64_t origin = 0;
  for (Value& out : outputs) {
    if (!fold_strided(Inputs{{&source->second}}, out, own, origin))
      return false;
    origin += out.shape[static_cast<std::size_t>(axis)] * own[static_cast<std::size_t>(axis)];
  }
  return true;
}

} // namespace

bool fold_constant(const Node& node, const Values& values, std::vector<Value>& outputs) {
  if (node.domain != "" || outputs.empty())
    return false;
  for (const Value& output : outputs) {
    if (checked_product(output.shape) > kMaxFoldedElements)
      return false;
  }
  if (node.op_type == "Split")
    return fold_split(node, values, outputs);
  if (outputs.size() != 1)
    return false;
  Value& out = outputs.front();
  if (node.op_type == "Constant")
    return fold_literal(node, out);
  Inputs in;
  for (const std::string& name : node.inputs) {
    const auto at = name.empty() ? values.end() : values.find(name);
    in.list.push_back(at == values.end() ? nullptr : &at->second);
  }
  if (node.op_type == "Shape" || node.op_type == "Size")
    return fold_shape(node, in, out);
  for (const FoldRule& rule : kRules) {
    if (rule.op_type != node.op_type)
      continue;
    if (in.list.size() < rule.inputs)
      return false;
    if (rule.fold == &fold_binary && in.list.size() != 2)
      return false;
    for (std::size_t i = 0; i < rule.inputs; ++i) {
      if (in.list[i] == nullptr || !in.list[i]->values)
        return false;
    }
    return rule.fold(node, in, out);
  }
  return false;
}

} // namespace monet::onnx_file
