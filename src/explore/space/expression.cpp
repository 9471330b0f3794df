// Parses and evaluates the expressions of space files. The readers of space files and YamlTemplate
// call this.
#include "explore/space/expression.hpp"

#include "base/shared/text.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>

namespace monet {

namespace {

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

} // namespace

bool is_name(std::string_view text) {
  return !text.empty() && is_letter(text.front()) &&
         std::ranges::all_of(text, [](char c) { return is_letter(c) || is_digit(c); });
}

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
  const double value = applied(node, values);
  if (!std::isfinite(value))
    fail("is not a finite number");
  return value;
}

double Expression::applied(const Node& node, const Values& values) const {
  double value = number(node.children[0], values);
  if (node.op == Op::unary)
    return node.apply(value, 0);
  for (std::size_t i = 1; i < node.children.size(); ++i) {
    const double other = number(node.children[i], values);
    if (node.op == Op::quotient && other == 0)
      fail("divides by zero");
    value = node.apply(value, other);
  }
  return value;
}

/// A recursive-descent parser of expressions.
class Expression::Parser {
public:
  Parser(Expression& out, const std::vector<std::string>& names) : out_(out), names_(names) {}

  /// Parses the text. Returns an error message; empty on success.
  std::string parse() {
    try {
      out_.root_ = disjunction();
      skip_spaces();
      if (at_ != out_.text_.size())
        throw Failure{fmt::format("unexpected '{}'", out_.text_.substr(at_, 20))};
    } catch (const Failure& failure) {
      return failure.what;
    }
    return {};
  }
  const std::string& hint() const { return hint_; }

private:
  using Index = std::uint32_t;
  struct Failure {
    std::string what;
  };
  struct Operator {
    std::string_view token;
    Op op;
    Apply apply;
  };
  static constexpr int kDeepest = 64;
  static constexpr std::size_t kMaxNodes = 4096;

  Index add(Op op, std::vector<Index> children, Apply apply = nullptr) {
    if (out_.nodes_.size() >= kMaxNodes)
      throw Failure{"it is too long"};
    out_.nodes_.push_back({op, 0, {}, std::move(children), apply});
    return static_cast<Index>(out_.nodes_.size() - 1);
  }

  Index add_value(ParameterValue value) {
    const Index node = add(Op::constant, {});
    out_.nodes_[node].value = std::move(value);
    return node;
  }

  void skip_spaces() {
    while (at_ < out_.text_.size() &&
           (out_.text_[at_] == ' ' || out_.text_[at_] == '\t' || out_.text_[at_] == '\n'))
      ++at_;
  }

  bool take(std::string_view token) {
    skip_spaces();
    if (!std::string_view(out_.text_).substr(at_).starts_with(token))
      return false;
    at_ += token.size();
    return true;
  }

  /// Consumes the next token if it is one of `operators`; otherwise returns null.
  const Operator* take_one(std::span<const Operator> operators) {
    const auto taken =
        std::ranges::find_if(operators, [&](const Operator& one) { return take(one.token); });
    return taken == operators.end() ? nullptr : &*taken;
  }

  std::string_view word() const {
    std::size_t end = at_;
    while (end < out_.text_.size() && (is_letter(out_.text_[end]) || is_digit(out_.text_[end])))
      ++end;
    return std::string_view(out_.text_).substr(at_, end - at_);
  }

  bool take_word(std::string_view expected) {
    skip_spaces();
    if (word() != expected)
      return false;
    at_ += expected.size();
    return true;
  }

  void expect(std::string_view token) {
    if (!take(token))
      throw Failure{fmt::format("'{}' is missing", token)};
  }

  Index disjunction() {
    if (++depth_ > kDeepest)
      throw Failure{"it is nested too deeply"};
    Index left = conjunction();
    while (take_word("or"))
      left = add(Op::logical_or, {left, conjunction()});
    --depth_;
    return left;
  }

  Index conjunction() {
    Index left = inversion();
    while (take_word("and"))
      left = add(Op::logical_and, {left, inversion()});
    return left;
  }

  Index inversion() {
    constexpr Apply kNot = [](double a, double) { return a == 0 ? 1.0 : 0.0; };
    int nots = 0;
    while (take_word("not"))
      ++nots;
    Index operand = comparison();
    for (int i = 0; i < (nots > 0 ? 2 - nots % 2 : 0); ++i)
      operand = add(Op::unary, {operand}, kNot);
    return operand;
  }

  Index comparison() {
    static constexpr Operator kComparisons[] = {
        {"==", Op::equal, nullptr},
        {"!=", Op::not_equal, nullptr},
        {"<=", Op::fold, [](double a, double b) { return a <= b ? 1.0 : 0.0; }},
        {">=", Op::fold, [](double a, double b) { return a >= b ? 1.0 : 0.0; }},
        {"<", Op::fold, [](double a, double b) { return a < b ? 1.0 : 0.0; }},
        {">", Op::fold, [](double a, double b) { return a > b ? 1.0 : 0.0; }}};
    const Index left = sum();
    const Operator* taken = take_one(kComparisons);
    return taken == nullptr ? left : add(taken->op, {left, sum()}, taken->apply);
  }

  Index sum() {
    static constexpr Operator kSums[] = {{"+", Op::fold, [](double a, double b) { return a + b; }},
                                         {"-", Op::fold, [](double a, double b) { return a - b; }}};
    Index left = product();
    while (const Operator* taken = take_one(kSums))
      left = add(taken->op, {left, product()}, taken->apply);
    return left;
  }

  Index product() {
    static constexpr Operator kProducts[] = {
        {"*", Op::fold, [](double a, double b) { return a * b; }},
        {"/", Op::quotient, [](double a, double b) { return a / b; }},
        {"%", Op::quotient, [](double a, double b) { return a - b * std::floor(a / b); }}};
    Index left = sign();
    while (const Operator* taken = take_one(kProducts))
      left = add(taken->op, {left, sign()}, taken->apply);
    return left;
  }

  Index sign() {
    int minuses = 0;
    while (take("-"))
      ++minuses;
    const Index operand = raised();
    return minuses % 2 == 0 ? operand
                            : add(Op::unary, {operand}, [](double a, double) { return -a; });
  }

  Index raised() {
    const Index base = primary();
    if (!take("^"))
      return base;
    if (++depth_ > kDeepest)
      throw Failure{"it is nested too deeply"};
    const Index exponent = sign();
    --depth_;
    return add(Op::fold, {base, exponent}, [](double a, double b) { return std::pow(a, b); });
  }

  Index primary() {
    skip_spaces();
    if (at_ == out_.text_.size())
      throw Failure{"something is missing at its end"};
    if (take("(")) {
      const Index inner = disjunction();
      expect(")");
      return inner;
    }
    const char c = out_.text_[at_];
    if (is_letter(c))
      return name_or_call();
    return literal();
  }

  Index literal() {
    const std::string_view rest = std::string_view(out_.text_).substr(at_);
    if (rest.front() == '\'') {
      const std::size_t end = rest.find('\'', 1);
      if (end == std::string_view::npos)
        throw Failure{"a ' is missing"};
      at_ += end + 1;
      return add_value({false, 0, std::string(rest.substr(1, end - 1))});
    }
    double number = 0;
    const auto [stop, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (error != std::errc{} || !(is_digit(rest.front()) || rest.front() == '.'))
      throw Failure{fmt::format("unexpected '{}'", rest.substr(0, 20))};
    at_ += static_cast<std::size_t>(stop - rest.data());
    return add_value(number_value(number));
  }

  Index name_or_call() {
    const std::string_view name = word();
    at_ += name.size();
    if (take("("))
      return call(name);
    const auto found = std::find(names_.rbegin(), names_.rend(), name);
    if (found == names_.rend()) {
      hint_ = nearest_name_hint(name, names_);
      throw Failure{fmt::format("unknown name '{}'", name)};
    }
    const Index node = add(Op::slot, {});
    out_.nodes_[node].slot = static_cast<std::uint32_t>(names_.rend() - found - 1);
    return node;
  }

  Index call(std::string_view name) {
    struct Function {
      std::string_view name;
      Op op;
      std::size_t least;
      std::size_t most;
      Apply apply;
    };
    constexpr std::size_t kAny = 64;
    static constexpr Function kFunctions[] = {
        {"min", Op::fold, 1, kAny, [](double a, double b) { return std::min(a, b); }},
        {"max", Op::fold, 1, kAny, [](double a, double b) { return std::max(a, b); }},
        {"floor", Op::unary, 1, 1, [](double a, double) { return std::floor(a); }},
        {"ceil", Op::unary, 1, 1, [](double a, double) { return std::ceil(a); }},
        {"round", Op::unary, 1, 1, [](double a, double) { return std::round(a); }},
        {"abs", Op::unary, 1, 1, [](double a, double) { return std::abs(a); }},
        {"sqrt", Op::unary, 1, 1, [](double a, double) { return std::sqrt(a); }},
        {"log2", Op::unary, 1, 1, [](double a, double) { return std::log2(a); }},
        {"if", Op::choose, 3, 3, nullptr}};
    const auto* const function = std::ranges::find(kFunctions, name, &Function::name);
    if (function == std::end(kFunctions)) {
      hint_ = nearest_name_hint(name, names_of(kFunctions));
      throw Failure{fmt::format("unknown function '{}'", name)};
    }
    std::vector<Index> arguments;
    do {
      arguments.push_back(disjunction());
    } while (take(","));
    expect(")");
    if (arguments.size() < function->least || arguments.size() > function->most)
      throw Failure{fmt::format("{} needs {} argument{}, not {}", name, function->least,
                                function->least == 1 ? "" : "s", arguments.size())};
    return add(function->op, std::move(arguments), function->apply);
  }

  Expression& out_;
  const std::vector<std::string>& names_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::string hint_;
};

Expression Expression::parse(std::string_view text, const SourceLoc& where,
                             const std::vector<std::string>& names, ProblemList& problems) {
  Expression expression;
  expression.text_ = text;
  expression.where_ = where;
  Parser parser(expression, names);
  if (const std::string problem = parser.parse(); !problem.empty()) {
    problems.add(where, fmt::format("'{}' is not an expression: {}", text, problem), parser.hint());
    expression.nodes_.assign(1, Node{Op::constant, 0, number_value(0), {}, nullptr});
    expression.root_ = 0;
  }
  return expression;
}

void Expression::add_slots(std::set<std::size_t>& slots) const {
  for (const Node& node : nodes_) {
    if (node.op == Op::slot)
      slots.insert(node.slot);
  }
}

} // namespace monet
