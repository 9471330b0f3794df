// Recursive descent over the text of an Expression.
#pragma once

#include "explore/expression.hpp"

namespace monet {

class Expression::Parser {
public:
  Parser(Expression& out, const std::vector<std::string>& names) : out_(out), names_(names) {}

  /// What is wrong with the text; empty when it was parsed.
  std::string parse();
  const std::string& hint() const { return hint_; }

private:
  using Index = std::uint32_t;
  struct Failure {
    std::string what;
  };
  static constexpr int kDeepest = 64;
  static constexpr std::size_t kMostNodes = 4096;

  Index disjunction();
  Index conjunction();
  Index inversion();
  Index comparison();
  Index sum();
  Index product();
  Index sign();
  Index raised();
  Index primary();
  Index literal();
  Index name_or_call();
  Index call(std::string_view name);

  Index add(Op op, std::vector<Index> children);
  Index add_value(ParameterValue value);
  void skip_spaces();
  bool take(std::string_view token);
  bool take_word(std::string_view word);
  void expect(std::string_view token);
  std::string_view word() const;

  Expression& out_;
  const std::vector<std::string>& names_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::string hint_;
};

} // namespace monet
