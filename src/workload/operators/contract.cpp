// Parses the operands of the catalogue's rows, and checks those of an operator; verification of
// graphs calls it.
#include "workload/operators/contract.hpp"

#include "base/shared/text.hpp"
#include "workload/operators/families.hpp"
#include "workload/shared/update_formula.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>

namespace monet {

namespace {

OperandKind kind_of(char letter) {
  constexpr std::string_view kLetters = "ribwns"; // in the order of OperandKind
  const std::size_t kind = kLetters.find(letter);
  internal_check(kind != kLetters.npos, "a signature has a letter that stands for nothing");
  return static_cast<OperandKind>(kind);
}

std::vector<OperandContract> parse_operands(std::string_view list) {
  std::vector<OperandContract> operands;
  for (const char letter : list) {
    if (letter == ' ')
      continue;
    if (letter == '?') {
      operands.back().optional = true;
    } else if (letter == '*') {
      operands.back().optional = operands.back().any_count = true;
    } else if (letter == '0') {
      operands.back().may_be_empty = true;
    } else {
      operands.push_back({kind_of(letter)});
    }
  }
  return operands;
}

bool is_truth(ElementType type) {
  return type == ElementType::boolean || type == ElementType::bit;
}

bool fits(ElementType type, OperandKind kind) {
  const bool real = is_floating(type);
  switch (kind) {
  case OperandKind::real:
    return real;
  case OperandKind::integer:
    return !real && !is_truth(type);
  case OperandKind::truth:
    return is_truth(type);
  case OperandKind::whole:
    return !real;
  default:
    return true;
  }
}

std::string_view words_for(OperandKind kind) {
  // Indexed by OperandKind.
  static constexpr std::array<std::string_view, 6> kWords{
      "real numbers", "integers", "truth values", "integers or truth values", "numbers", "numbers"};
  return kWords.at(static_cast<std::size_t>(kind));
}

/// Checks one list of operands of an operator.
class ContractCheck {
public:
  ContractCheck(const Graph& graph, const Operator& op) : graph_(graph), op_(op) {}

  void check(const std::vector<OperandContract>& rows,
             const std::vector<std::optional<TensorId>>& operands, std::string_view side) {
    for (std::size_t i = 0; i < std::max(rows.size(), operands.size()); ++i) {
      const OperandContract* row = row_for(rows, i);
      const bool there = i < operands.size() && operands[i];
      const auto detail = [&] { return fmt::format("{} {}", side, i); };
      if (row == nullptr && there)
        refuse(fmt::format("at most {} are expected", rows.size()), detail());
      if (row != nullptr && !there && !row->optional)
        refuse("it is missing", detail());
      if (row != nullptr && there)
        check_operand(*row, graph_.tensor(*operands[i]), detail);
    }
  }

private:
  static const OperandContract* row_for(const std::vector<OperandContract>& rows, std::size_t i) {
    if (i < rows.size())
      return &rows[i];
    return !rows.empty() && rows.back().any_count ? &rows.back() : nullptr;
  }

  template <class Detail>
  void check_operand(const OperandContract& row, const Tensor& tensor, Detail detail) {
    if (tensor.type == ElementType::string)
      refuse(fmt::format("'{}' holds strings, numbers are expected", tensor.name), detail());
    OperandKind kind = row.kind;
    if (kind == OperandKind::number && !real_)
      real_ = is_floating(tensor.type);
    if (kind == OperandKind::same)
      kind = real_.value_or(true) ? OperandKind::real : OperandKind::whole;
    if (!fits(tensor.type, kind)) {
      refuse(fmt::format("'{}' is {}, {} are expected", tensor.name, name_of(tensor.type),
                         words_for(kind)),
             detail());
    }
    if (!row.may_be_empty && std::ranges::find(tensor.shape, 0) != tensor.shape.end())
      refuse(fmt::format("'{}' has no elements", tensor.name), detail());
  }

  [[noreturn]] void refuse(const std::string& what, const std::string& detail) const {
    throw InputError(location_of(graph_, op_, detail), what);
  }

  const Graph& graph_;
  const Operator& op_;
  std::optional<bool> real_; ///< of the first `number` operand
};

/// Operands by row of the catalogue, parsed.
const Contract& contract_of(const OperatorRow& row) {
  static const auto kContracts = [] {
    std::vector<Contract> contracts;
    for (const OperatorRow& each : all_rows()) {
      const std::size_t arrow = each.operands.find('>');
      contracts.push_back({parse_operands(each.operands.substr(0, arrow)),
                           parse_operands(each.operands.substr(arrow + 1))});
    }
    return contracts;
  }();
  return kContracts[static_cast<std::size_t>(&row - all_rows().data())];
}

} // namespace

void check_contract(const Graph& graph, const Operator& op) {
  const Contract& contract = contract_of(row_of(op));
  const auto is_there = [](const auto& operand) { return operand.has_value(); };
  if (std::ranges::none_of(op.outputs, is_there))
    throw InputError(location_of(graph, op), "it has no result");
  ContractCheck checker(graph, op);
  checker.check(contract.inputs, op.inputs, "input");
  checker.check(contract.outputs, op.outputs, "output");
}

} // namespace monet
