// Expressions over the parameters of a space: "columns * rows", "if(kind == 'big', 4, 1)".
#pragma once

#include "monet/base/errors.hpp"
#include "monet/explore/space.hpp"

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

/// Values by slot: parameters, then values derived by `let`, then counters of loops.
using Values = std::vector<ParameterValue>;

ParameterValue number_value(double number);
/// Whether a text is a valid name in expressions: letters, digits and _, not starting with a digit.
bool is_name(std::string_view text);
/// The shortest text that reads back as the same number, for example 12 instead of 12.000000.
std::string text_of(double number);

/// An expression of numbers, 'names', + - * / % ^, comparisons, and, or, not, min, max, floor,
/// ceil, round, abs, sqrt, log2 and if(condition, then, else). True is 1.
class Expression {
public:
  /// Parses `text`. `names` are the names of the slots; the last of equal names counts. Adds a
  /// problem and returns a constant 0 if the text is not an expression.
  static Expression parse(std::string_view text, const SourceLoc& where,
                          const std::vector<std::string>& names, ProblemList& problems);

  /// The expression's value. Throws InputError with the location for a division by zero, a name in
  /// place of a number, or a result that is not finite.
  ParameterValue evaluate(const Values& values) const;
  double number(const Values& values) const;
  bool truth(const Values& values) const { return number(values) != 0; }
  /// The expression's number. Throws InputError unless it is an integer from 0 to `most`.
  std::int64_t count(const Values& values, std::int64_t most) const;

  const std::string& text() const { return text_; }
  /// Adds the slots that the value depends on.
  void add_slots(std::set<std::size_t>& slots) const;

private:
  enum class Op : std::uint8_t {
    constant,
    slot,
    equal,
    not_equal,
    logical_and,
    logical_or,
    choose,
    unary,    ///< a function of one number
    fold,     ///< a binary function, applied from left to right
    quotient, ///< like fold; divisors must not be 0
  };
  /// A function of a node; `b` is unused for `unary`.
  using Apply = double (*)(double a, double b);
  struct Node {
    Op op = Op::constant;
    std::uint32_t slot = 0;
    ParameterValue value;
    std::vector<std::uint32_t> children;
    Apply apply = nullptr; ///< for unary, fold and quotient
  };
  class Parser;

  ParameterValue evaluate(std::uint32_t node, const Values& values) const;
  double number(std::uint32_t node, const Values& values) const;
  double applied(const Node& node, const Values& values) const;
  [[noreturn]] void fail(const std::string& what) const;

  std::string text_;
  SourceLoc where_;
  std::vector<Node> nodes_;
  std::uint32_t root_ = 0;
};

} // namespace monet
