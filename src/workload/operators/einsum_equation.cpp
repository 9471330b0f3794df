// Parses Einsum equations; the rules of einsum.cpp and the expansion of long equations call it.
#include "workload/shared/einsum_equation.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace monet {

namespace {

constexpr std::string_view kEllipsis = "...";
constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

bool is_letter(char c) {
  return kLetters.find(c) != std::string_view::npos;
}

std::vector<std::string> split_terms(std::string_view text) {
  std::vector<std::string> terms(1);
  for (const char c : text) {
    if (c == ',')
      terms.emplace_back();
    else
      terms.back() += c;
  }
  return terms;
}

/// Checks that a term has only letters and at most one ellipsis; returns the problem, or an empty
/// string.
std::string check_term(const std::string& term) {
  std::string rest = term;
  if (const auto at = rest.find(kEllipsis); at != std::string::npos)
    rest.erase(at, kEllipsis.size());
  for (const char c : rest) {
    if (!is_letter(c))
      return fmt::format("'{}' in '{}' is not a letter", c, term);
  }
  return {};
}

bool has_ellipsis(const std::string& term) {
  return term.find(kEllipsis) != std::string::npos;
}

/// Letters that occur exactly once, in alphabetical order.
std::string implicit_result(const std::vector<std::string>& terms) {
  std::string result;
  if (std::ranges::any_of(terms, has_ellipsis))
    result = kEllipsis;
  for (const char letter : kLetters) {
    std::ptrdiff_t uses = 0;
    for (const std::string& term : terms)
      uses += std::ranges::count(term, letter);
    if (uses == 1)
      result += letter;
  }
  return result;
}

} // namespace

std::string parse_einsum(std::string_view text, std::span<const std::size_t> ranks,
                         EinsumEquation& equation) {
  std::string plain(text);
  std::erase(plain, ' ');
  const auto arrow = plain.find("->");
  const std::vector<std::string> terms = split_terms(plain.substr(0, arrow));
  std::string result =
      arrow == std::string::npos ? implicit_result(terms) : plain.substr(arrow + 2);
  if (terms.size() != ranks.size())
    return fmt::format("{} operands are described, {} are given", terms.size(), ranks.size());
  std::size_t covered = 0; // maximum number of axes of an ellipsis
  for (std::size_t i = 0; i < terms.size(); ++i) {
    if (auto wrong = check_term(terms[i]); !wrong.empty())
      return wrong;
    const std::size_t named = terms[i].size() - (has_ellipsis(terms[i]) ? kEllipsis.size() : 0);
    if (named > ranks[i] || (!has_ellipsis(terms[i]) && named < ranks[i]))
      return fmt::format("'{}' does not describe {} axes", terms[i], ranks[i]);
    if (has_ellipsis(terms[i]))
      covered = std::max(covered, ranks[i] - named);
  }
  if (auto wrong = check_term(result); !wrong.empty())
    return wrong;
  std::string spare;
  for (const char letter : kLetters) {
    if (spare.size() < covered && plain.find(letter) == std::string::npos)
      spare += letter;
  }
  if (spare.size() < covered)
    return "the operands have too many axes";
  const auto without_ellipsis = [&](std::string term, std::size_t axes) {
    if (const auto at = term.find(kEllipsis); at != std::string::npos)
      term.replace(at, kEllipsis.size(), spare.substr(spare.size() - axes));
    return term;
  };
  equation.operands.clear();
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const std::size_t named = terms[i].size() - (has_ellipsis(terms[i]) ? kEllipsis.size() : 0);
    equation.operands.push_back(without_ellipsis(terms[i], ranks[i] - named));
  }
  equation.result = without_ellipsis(result, covered);
  for (const char letter : equation.result) {
    const bool once = std::ranges::count(equation.result, letter) == 1;
    const bool known = std::ranges::any_of(equation.operands, [&](const auto& term) {
      return term.find(letter) != std::string::npos;
    });
    if (!once || !known)
      return fmt::format("letter '{}' of the result {}", letter,
                         once ? "is in no operand" : "occurs twice");
  }
  return {};
}

std::string einsum_sizes(const EinsumEquation& equation,
                         std::span<const std::vector<std::int64_t>> shapes,
                         std::vector<std::int64_t>& sizes) {
  sizes.assign(128, 0);
  std::vector<bool> seen(128, false);
  for (std::size_t i = 0; i < equation.operands.size(); ++i) {
    const std::string& letters = equation.operands[i];
    for (std::size_t axis = 0; axis < letters.size(); ++axis) {
      const auto letter = static_cast<std::size_t>(letters[axis]);
      const std::int64_t size = shapes[i][axis];
      if (seen[letter] && sizes[letter] != size && sizes[letter] != 1 && size != 1)
        return fmt::format("'{}' has {} and {} elements", letters[axis], sizes[letter], size);
      sizes[letter] = !seen[letter] || sizes[letter] == 1 ? size : sizes[letter];
      seen[letter] = true;
    }
  }
  return {};
}

} // namespace monet
