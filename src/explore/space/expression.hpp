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

/// Values by slot: parameters, then what `let` derives from them, then the counters of loops.
using Values = std::vector<ParameterValue>;

ParameterValue number_value(double number);
/// Letters, digits and _, not a digit first: what expressions can call a value.
bool is_name(std::string_view text);
/// 12 rather than 12.000000; 17 significant digits where that is what it takes.
std::string text_of(double number);

/// Numbers, 'names', + - * / % ^, comparisons, and, or, not, min, max, floor, ceil, round, abs,
/// sqrt, log2, if(condition, then, else). True is 1.
class Expression {
public:
  /// Names are slots by position; of equal names the last counts. Adds a problem and gives a
  /// constant 0 for text that is no expression.
  static Expression parse(std::string_view text, const SourceLoc& where,
                          const std::vector<std::string>& names, ProblemList& problems);

  /// InputError naming the place: division by zero, a name where a number is needed, no finite
  /// number.
  ParameterValue evaluate(const Values& values) const;
  double number(const Values& values) const;
  bool truth(const Values& values) const { return number(values) != 0; }
  /// The expression's number, which must be an integer from 0 to `most`.
  std::int64_t count(const Values& values, std::int64_t most) const;

  const std::string& text() const { return text_; }
  /// Adds those that its value depends on.
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
    unary,    ///< of one number
    fold,     ///< of the first two numbers, then of what came of them and the third ...
    quotient, ///< the same of two; the second must not be 0
  };
  /// `unary` has no second number.
  using Apply = double (*)(double a, double b);
  struct Node {
    Op op = Op::constant;
    std::uint32_t slot = 0;
    ParameterValue value;
    std::vector<std::uint32_t> children;
    Apply apply = nullptr; ///< of unary, fold and quotient
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
