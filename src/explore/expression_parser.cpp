#include "explore/expression_parser.hpp"

#include "monet/base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

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
         std::all_of(text.begin(), text.end(), [](char c) { return is_letter(c) || is_digit(c); });
}

std::string Expression::Parser::parse() {
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

Expression::Parser::Index Expression::Parser::add(Op op, std::vector<Index> children) {
  if (out_.nodes_.size() >= kMostNodes)
    throw Failure{"it is too long"};
  out_.nodes_.push_back({op, 0, {}, std::move(children)});
  return static_cast<Index>(out_.nodes_.size() - 1);
}

Expression::Parser::Index Expression::Parser::add_value(ParameterValue value) {
  const Index node = add(Op::constant, {});
  out_.nodes_[node].value = std::move(value);
  return node;
}

void Expression::Parser::skip_spaces() {
  while (at_ < out_.text_.size() &&
         (out_.text_[at_] == ' ' || out_.text_[at_] == '\t' || out_.text_[at_] == '\n'))
    ++at_;
}

bool Expression::Parser::take(std::string_view token) {
  skip_spaces();
  if (!std::string_view(out_.text_).substr(at_).starts_with(token))
    return false;
  at_ += token.size();
  return true;
}

std::string_view Expression::Parser::word() const {
  std::size_t end = at_;
  while (end < out_.text_.size() && (is_letter(out_.text_[end]) || is_digit(out_.text_[end])))
    ++end;
  return std::string_view(out_.text_).substr(at_, end - at_);
}

bool Expression::Parser::take_word(std::string_view expected) {
  skip_spaces();
  if (word() != expected)
    return false;
  at_ += expected.size();
  return true;
}

void Expression::Parser::expect(std::string_view token) {
  if (!take(token))
    throw Failure{fmt::format("'{}' is missing", token)};
}

Expression::Parser::Index Expression::Parser::disjunction() {
  if (++depth_ > kDeepest)
    throw Failure{"it is nested too deeply"};
  Index left = conjunction();
  while (take_word("or"))
    left = add(Op::logical_or, {left, conjunction()});
  --depth_;
  return left;
}

Expression::Parser::Index Expression::Parser::conjunction() {
  Index left = inversion();
  while (take_word("and"))
    left = add(Op::logical_and, {left, inversion()});
  return left;
}

Expression::Parser::Index Expression::Parser::inversion() {
  bool inverted = false;
  bool any = false;
  while (take_word("not")) {
    inverted = !inverted;
    any = true;
  }
  Index operand = comparison();
  if (inverted)
    return add(Op::logical_not, {operand});
  return any ? add(Op::logical_not, {add(Op::logical_not, {operand})}) : operand;
}

Expression::Parser::Index Expression::Parser::comparison() {
  const Index left = sum();
  constexpr std::pair<std::string_view, Op> kComparisons[] = {
      {"==", Op::equal},         {"!=", Op::not_equal}, {"<=", Op::less_equal},
      {">=", Op::greater_equal}, {"<", Op::less},       {">", Op::greater}};
  for (const auto& [token, op] : kComparisons) {
    if (take(token))
      return add(op, {left, sum()});
  }
  return left;
}

Expression::Parser::Index Expression::Parser::sum() {
  Index left = product();
  for (;;) {
    if (take("+"))
      left = add(Op::add, {left, product()});
    else if (take("-"))
      left = add(Op::subtract, {left, product()});
    else
      return left;
  }
}

Expression::Parser::Index Expression::Parser::product() {
  Index left = sign();
  for (;;) {
    if (take("*"))
      left = add(Op::multiply, {left, sign()});
    else if (take("/"))
      left = add(Op::divide, {left, sign()});
    else if (take("%"))
      left = add(Op::modulo, {left, sign()});
    else
      return left;
  }
}

Expression::Parser::Index Expression::Parser::sign() {
  int minuses = 0;
  while (take("-"))
    ++minuses;
  const Index operand = raised();
  return minuses % 2 == 0 ? operand : add(Op::negate, {operand});
}

Expression::Parser::Index Expression::Parser::raised() {
  const Index base = primary();
  if (!take("^"))
    return base;
  if (++depth_ > kDeepest)
    throw Failure{"it is nested too deeply"};
  const Index exponent = sign();
  --depth_;
  return add(Op::power, {base, exponent});
}

Expression::Parser::Index Expression::Parser::primary() {
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

Expression::Parser::Index Expression::Parser::literal() {
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

Expression::Parser::Index Expression::Parser::name_or_call() {
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

Expression::Parser::Index Expression::Parser::call(std::string_view name) {
  struct Function {
    std::string_view name;
    Op op;
    std::size_t least;
    std::size_t most;
  };
  constexpr std::size_t kAny = 64;
  constexpr Function kFunctions[] = {
      {"min", Op::least, 1, kAny},     {"max", Op::most, 1, kAny}, {"floor", Op::floor, 1, 1},
      {"ceil", Op::ceil, 1, 1},        {"round", Op::round, 1, 1}, {"abs", Op::absolute, 1, 1},
      {"sqrt", Op::square_root, 1, 1}, {"log2", Op::log2, 1, 1},   {"if", Op::choose, 3, 3}};
  const auto function = std::find_if(std::begin(kFunctions), std::end(kFunctions),
                                     [&](const Function& f) { return f.name == name; });
  if (function == std::end(kFunctions)) {
    std::vector<std::string> known;
    for (const Function& f : kFunctions)
      known.emplace_back(f.name);
    hint_ = nearest_name_hint(name, known);
    throw Failure{fmt::format("unknown function '{}'", name)};
  }
  std::vector<Index> arguments;
  do {
    arguments.push_back(disjunction());
  } while (take(","));
  expect(")");
  if (arguments.size() < function->least || arguments.size() > function->most)
    throw Failure{fmt::format("{} takes {} argument{}, not {}", name, function->least,
                              function->least == 1 ? "" : "s", arguments.size())};
  return add(function->op, std::move(arguments));
}

} // namespace monet
