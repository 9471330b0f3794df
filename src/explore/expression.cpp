#include "explore/expression.hpp"

#include "explore/expression_parser.hpp"

#include <fmt/format.h>

#include <cmath>

namespace monet {

std::string text_of(double number) {
  if (number == std::floor(number) && std::abs(number) < 1e15)
    return fmt::format("{}", static_cast<std::int64_t>(number));
  return fmt::format("{}", number);
}

ParameterValue number_value(double number) {
  return {true, number, text_of(number)};
}

void Expression::fail(const std::string& what) const {
  throw InputError(where_, fmt::format("'{}': {}", text_, what));
}

void Expression::mark_slots(std::vector<bool>& used) const {
  for (const Node& node : nodes_) {
    if (node.op == Op::slot)
      used.at(node.slot) = true;
  }
}

ParameterValue Expression::evaluate(const Values& values) const {
  return evaluate(root_, values);
}

double Expression::number(const Values& values) const {
  return number(root_, values);
}

std::int64_t Expression::count(const Values& values, std::int64_t most) const {
  const double value = number(values);
  if (value != std::floor(value) || value < 0 || value > static_cast<double>(most))
    fail(fmt::format("must be a whole number from 0 to {}, is {}", most, text_of(value)));
  return static_cast<std::int64_t>(value);
}

ParameterValue Expression::evaluate(std::uint32_t index, const Values& values) const {
  const Node& node = nodes_[index];
  switch (node.op) {
  case Op::constant:
    return node.value;
  case Op::slot:
    return values.at(node.slot);
  case Op::choose:
    return evaluate(node.children[number(node.children[0], values) != 0 ? 1 : 2], values);
  default:
    return number_value(number(index, values));
  }
}

double Expression::number(std::uint32_t index, const Values& values) const {
  const Node& node = nodes_[index];
  switch (node.op) {
  case Op::constant:
  case Op::slot: {
    const ParameterValue& value = node.op == Op::slot ? values.at(node.slot) : node.value;
    if (!value.is_number)
      fail(fmt::format("'{}' is a name, not a number", value.text));
    return value.number;
  }
  case Op::choose:
    return number(node.children[number(node.children[0], values) != 0 ? 1 : 2], values);
  case Op::logical_and:
    return number(node.children[0], values) != 0 && number(node.children[1], values) != 0 ? 1 : 0;
  case Op::logical_or:
    return number(node.children[0], values) != 0 || number(node.children[1], values) != 0 ? 1 : 0;
  case Op::equal:
  case Op::not_equal: {
    const ParameterValue a = evaluate(node.children[0], values);
    const ParameterValue b = evaluate(node.children[1], values);
    if (a.is_number != b.is_number)
      fail(fmt::format("'{}' and '{}' are a number and a name", a.text, b.text));
    const bool same = a.is_number ? a.number == b.number : a.text == b.text;
    return same == (node.op == Op::equal) ? 1 : 0;
  }
  default:
    break;
  }
  const double value = node.children.size() == 2 && node.op != Op::least && node.op != Op::most
                           ? arithmetic(node, values)
                           : function(node, values);
  if (!std::isfinite(value))
    fail("is no finite number");
  return value;
}

double Expression::arithmetic(const Node& node, const Values& values) const {
  const double a = number(node.children[0], values);
  const double b = number(node.children[1], values);
  switch (node.op) {
  case Op::add:
    return a + b;
  case Op::subtract:
    return a - b;
  case Op::multiply:
    return a * b;
  case Op::divide:
  case Op::modulo:
    if (b == 0)
      fail("divides by zero");
    return node.op == Op::divide ? a / b : a - b * std::floor(a / b);
  case Op::power:
    return std::pow(a, b);
  case Op::less:
    return a < b ? 1 : 0;
  case Op::less_equal:
    return a <= b ? 1 : 0;
  case Op::greater:
    return a > b ? 1 : 0;
  case Op::greater_equal:
    return a >= b ? 1 : 0;
  default:
    throw InternalError("an operation without a rule");
  }
}

double Expression::function(const Node& node, const Values& values) const {
  const double a = number(node.children[0], values);
  switch (node.op) {
  case Op::negate:
    return -a;
  case Op::logical_not:
    return a == 0 ? 1 : 0;
  case Op::least:
  case Op::most: {
    double best = a;
    for (std::size_t i = 1; i < node.children.size(); ++i) {
      const double other = number(node.children[i], values);
      best = node.op == Op::least ? std::min(best, other) : std::max(best, other);
    }
    return best;
  }
  case Op::floor:
    return std::floor(a);
  case Op::ceil:
    return std::ceil(a);
  case Op::round:
    return std::round(a);
  case Op::absolute:
    return std::abs(a);
  case Op::square_root:
    return std::sqrt(a);
  case Op::log2:
    return std::log2(a);
  default:
    throw InternalError("a function without a rule");
  }
}

Expression Expression::parse(std::string_view text, const SourceLoc& where,
                             const std::vector<std::string>& names, ProblemList& problems) {
  Expression expression;
  expression.text_ = text;
  expression.where_ = where;
  Parser parser(expression, names);
  if (const std::string problem = parser.parse(); !problem.empty()) {
    problems.add(where, fmt::format("'{}' is no expression: {}", text, problem), parser.hint());
    expression.nodes_.assign(1, Node{Op::constant, 0, number_value(0), {}});
    expression.root_ = 0;
  }
  return expression;
}

} // namespace monet
