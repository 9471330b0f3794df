// Parses the equations and relations of ZigZag workloads and orders layers; layers_yaml.cpp and
// layers_onnx.cpp use it.
#include "core_cost/files/layer_equation.hpp"

#include "base/shared/text.hpp"

#include <algorithm>

namespace monet::core_cost_detail {

namespace {

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// Reads words and signs, and skips blanks.
class Scanner {
public:
  explicit Scanner(std::string_view text) : text_(text) {}

  std::string word() {
    skip_blanks();
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_word(text_[at_]))
      ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }
  bool sign(char c) {
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != c)
      return false;
    ++at_;
    return true;
  }
  bool done() {
    skip_blanks();
    return at_ == text_.size();
  }

private:
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t'))
      ++at_;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

std::optional<EquationOperand> scan_operand(Scanner& scanner) {
  EquationOperand operand{scanner.word(), {}};
  if (operand.name.empty())
    return std::nullopt;
  while (scanner.sign('[')) {
    std::string index = upper(scanner.word());
    if (!scanner.sign(']'))
      return std::nullopt;
    if (!index.empty()) // W[] is a scalar
      operand.indices.push_back(std::move(index));
  }
  return operand;
}

/// Scans "ox" or "2*ox"; returns false for any other text.
bool scan_term(Scanner& scanner, std::string& dim, std::int64_t& coefficient) {
  dim = scanner.word();
  coefficient = 1;
  if (scanner.sign('*')) {
    coefficient = number_in<std::int64_t>(dim).value_or(0);
    if (coefficient < 1)
      return false;
    dim = scanner.word();
  }
  dim = upper(dim);
  return !dim.empty();
}

} // namespace

std::string upper(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'a' && c <= 'z')
      c = static_cast<char>(c - 'a' + 'A');
  }
  return result;
}

std::vector<EquationOperand> scan_equation(std::string_view text) {
  Scanner scanner(text);
  const auto output = scan_operand(scanner);
  scanner.sign('+');
  if (!output || !scanner.sign('='))
    return {};
  const auto first = scan_operand(scanner);
  if (!first || !(scanner.sign('*') || scanner.sign('+')))
    return {};
  const auto second = scan_operand(scanner);
  if (!second || !scanner.done())
    return {};
  return {*output, *first, *second};
}

std::optional<Relation> scan_relation(std::string_view text) {
  Scanner scanner(text);
  Relation relation;
  relation.lhs = upper(scanner.word());
  const bool read =
      !relation.lhs.empty() && scanner.sign('=') &&
      scan_term(scanner, relation.first, relation.first_coefficient) && scanner.sign('+') &&
      scan_term(scanner, relation.second, relation.second_coefficient) && scanner.done();
  return read ? std::optional(relation) : std::nullopt;
}

std::vector<std::size_t> by_generation(const std::vector<std::vector<std::size_t>>& parents) {
  std::vector<std::vector<std::size_t>> children(parents.size());
  std::vector<std::size_t> waiting(parents.size());
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < parents.size(); ++i) {
    std::vector<std::size_t> different = parents[i];
    std::ranges::sort(different);
    different.erase(std::unique(different.begin(), different.end()), different.end());
    waiting[i] = different.size();
    for (const std::size_t parent : different)
      children[parent].push_back(i);
    if (different.empty())
      order.push_back(i);
  }
  for (std::size_t next = 0; next < order.size(); ++next) {
    for (const std::size_t child : children[order[next]]) {
      if (--waiting[child] == 0)
        order.push_back(child);
    }
  }
  return order;
}

} // namespace monet::core_cost_detail
