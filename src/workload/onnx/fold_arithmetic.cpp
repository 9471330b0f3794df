// Folds arithmetic, comparisons, reductions and ranges; part of the table in fold.cpp. Integers are
// exact (64 bits, wrapping); other types are computed in double.
#include "base/shared/checked.hpp"
#include "workload/onnx/fold_kernels.hpp"
#include "workload/shared/operators.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>

namespace monet::onnx_file {

namespace {

std::int64_t wrap(std::uint64_t value) {
  return static_cast<std::int64_t>(value);
}

using Wide = std::uint64_t;

template <class Number>
Number smaller(Number a, Number b) {
  return std::min(a, b);
}
template <class Number>
Number larger(Number a, Number b) {
  return std::max(a, b);
}
/// 1 if the relation holds, otherwise 0.
template <class Relation, class Number>
Number compare(Number a, Number b) {
  return static_cast<Number>(Relation{}(a, b));
}

/// Binary operator by number type; a function is null if the operator does not support the type.
struct Binary {
  OpType op_type;
  std::int64_t (*whole)(std::int64_t, std::int64_t);
  double (*real)(double, double);
};

constexpr Binary kBinary[]{
    {ops::Add, [](auto a, auto b) { return wrap(Wide(a) + Wide(b)); },
     [](double a, double b) { return a + b; }},
    {ops::Sub, [](auto a, auto b) { return wrap(Wide(a) - Wide(b)); },
     [](double a, double b) { return a - b; }},
    {ops::Mul, [](auto a, auto b) { return wrap(Wide(a) * Wide(b)); },
     [](double a, double b) { return a * b; }},
    {ops::Div, [](auto a, auto b) { return a / b; }, [](double a, double b) { return a / b; }},
    {ops::Mod, [](auto a, auto b) { return a % b; },
     [](double a, double b) { return std::fmod(a, b); }},
    {ops::Pow, nullptr, [](double a, double b) { return std::pow(a, b); }},
    {ops::Min, smaller<std::int64_t>, smaller<double>},
    {ops::Max, larger<std::int64_t>, larger<double>},
    {ops::And, [](auto a, auto b) -> std::int64_t { return a != 0 && b != 0; }, nullptr},
    {ops::Or, [](auto a, auto b) -> std::int64_t { return a != 0 || b != 0; }, nullptr},
    {ops::Xor, [](auto a, auto b) -> std::int64_t { return (a != 0) != (b != 0); }, nullptr},
    {ops::BitwiseAnd, [](auto a, auto b) { return a & b; }, nullptr},
    {ops::BitwiseOr, [](auto a, auto b) { return a | b; }, nullptr},
    {ops::BitwiseXor, [](auto a, auto b) { return a ^ b; }, nullptr},
    {ops::Equal, compare<std::equal_to<>, std::int64_t>, compare<std::equal_to<>, double>},
    {ops::Less, compare<std::less<>, std::int64_t>, compare<std::less<>, double>},
    {ops::LessOrEqual, compare<std::less_equal<>, std::int64_t>,
     compare<std::less_equal<>, double>},
    {ops::Greater, compare<std::greater<>, std::int64_t>, compare<std::greater<>, double>},
    {ops::GreaterOrEqual, compare<std::greater_equal<>, std::int64_t>,
     compare<std::greater_equal<>, double>},
};

struct Unary {
  OpType op_type;
  double (*of)(double);
};

constexpr Unary kUnary[]{
    {ops::Neg, [](double a) { return -a; }},
    {ops::Abs, [](double a) { return std::fabs(a); }},
    {ops::Sqrt, [](double a) { return std::sqrt(a); }},
    {ops::Floor, [](double a) { return std::floor(a); }},
    {ops::Ceil, [](double a) { return std::ceil(a); }},
    {ops::Round, [](double a) { return std::nearbyint(a); }},
    {ops::Exp, [](double a) { return std::exp(a); }},
    {ops::Log, [](double a) { return std::log(a); }},
    {ops::Cos, [](double a) { return std::cos(a); }},
    {ops::Sin, [](double a) { return std::sin(a); }},
    {ops::Tanh, [](double a) { return std::tanh(a); }},
    {ops::Erf, [](double a) { return std::erf(a); }},
    {ops::Sigmoid, [](double a) { return 1.0 / (1.0 + std::exp(-a)); }},
    {ops::Reciprocal, [](double a) { return 1.0 / a; }},
    {ops::Not, [](double a) { return a == 0.0 ? 1.0 : 0.0; }},
    {ops::Sign, [](double a) { return a > 0   ? 1.0
                                      : a < 0 ? -1.0
                                              : 0.0; }},
};

template <class Row, std::size_t kRows>
const Row* row_of(const Row (&table)[kRows], OpType op_type) {
  const Row* row = std::ranges::find(table, op_type, &Row::op_type);
  return row == std::end(table) ? nullptr : row;
}

/// Quotient or remainder of integers; nullopt for division by zero and for overflow.
std::optional<std::int64_t> divide(const Binary& row, std::int64_t a, std::int64_t b,
                                   bool floor_mod) {
  if (b == 0 || (b == -1 && a == std::numeric_limits<std::int64_t>::min()))
    return std::nullopt;
  const std::int64_t result = row.whole(a, b);
  const bool below = row.op_type == ops::Mod && floor_mod && result != 0 && (result < 0) != (b < 0);
  return below ? result + b : result;
}

} // namespace

ConstantValues as_stored(ElementType type, Reals numbers) {
  if (is_floating(type))
    return numbers;
  Integers integers(numbers.size());
  const bool boolean = type == ElementType::boolean;
  std::transform(numbers.begin(), numbers.end(), integers.begin(), [&](double value) {
    return boolean ? static_cast<std::int64_t>(value != 0.0) : saturated_integer(value);
  });
  return integers;
}

bool fold_binary(const Node& node, const Inputs& in, Value& out) {
  const Binary* row = row_of(kBinary, node.op_type);
  if (row == nullptr)
    return false;
  const auto a_strides = broadcast_strides(in.get(0)->shape, out.shape);
  const auto b_strides = broadcast_strides(in.get(1)->shape, out.shape);
  if (in.integers(0) != nullptr && in.integers(1) != nullptr && node.op_type != ops::Pow) {
    const Integers a = gather_strided(*in.integers(0), out.shape, a_strides);
    const Integers b = gather_strided(*in.integers(1), out.shape, b_strides);
    const bool floor_mod = node.attributes.integer("fmod", 0) == 0;
    const bool divides = node.op_type == ops::Div || node.op_type == ops::Mod;
    Integers result(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      const auto value = divides ? divide(*row, a[i], b[i], floor_mod) : row->whole(a[i], b[i]);
      if (!value)
        return false;
      result[i] = *value;
    }
    out.values = std::move(result);
    return true;
  }
  const auto x = in.reals(0);
  const auto y = in.reals(1);
  if (!x || !y || row->real == nullptr)
    return false;
  Reals result = gather_strided(*x, out.shape, a_strides);
  const Reals b = gather_strided(*y, out.shape, b_strides);
  std::transform(result.begin(), result.end(), b.begin(), result.begin(), row->real);
  out.values = as_stored(out.type, std::move(result));
  return true;
}

bool fold_unary(const Node& node, const Inputs& in, Value& out) {
  const Unary* row = row_of(kUnary, node.op_type);
  auto numbers = in.reals(0);
  if (row == nullptr || !numbers)
    return false;
  std::transform(numbers->begin(), numbers->end(), numbers->begin(), row->of);
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
  Integers kept;
  for (std::size_t i = 0; i < shape.size(); ++i)
    kept.push_back(reduced[i] ? 1 : shape[i]);
  const auto strides = broadcast_strides(kept, shape);
  const OpType op = node.op_type;
  const double start = op == ops::ReduceProd  ? 1.0
                       : op == ops::ReduceMax ? -std::numeric_limits<double>::infinity()
                       : op == ops::ReduceMin ? std::numeric_limits<double>::infinity()
                                              : 0.0;
  Reals result(total(kept), start);
  walk(shape, strides, 0, [&](std::size_t from, std::size_t to) {
    const double value = (*numbers)[from];
    double& sum = result[to];
    sum = op == ops::ReduceProd  ? sum * value
          : op == ops::ReduceMax ? std::max(sum, value)
          : op == ops::ReduceMin ? std::min(sum, value)
                                 : sum + value;
  });
  const double count = static_cast<double>(numbers->size()) /
                       static_cast<double>(std::max<std::size_t>(result.size(), 1));
  if (op == ops::ReduceMean) {
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
