// Folding of arithmetic, comparisons, reductions and ranges. Integers are exact (64 bits,
// wrapping); everything else is computed in double.
#include "workload/onnx/fold_kernels.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace monet::onnx_file {

namespace {

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
  if (op == "Cos")
    return std::cos(a);
  if (op == "Sin")
    return std::sin(a);
  if (op == "Tanh")
    return std::tanh(a);
  if (op == "Erf")
    return std::erf(a);
  if (op == "Sigmoid")
    return 1.0 / (1.0 + std::exp(-a));
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

} // namespace

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

} // namespace monet::onnx_file
