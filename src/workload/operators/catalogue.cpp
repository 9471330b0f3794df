// The catalogue of operators: expands operators.def and finds an operator's row; readers and graph
// generators call it to build nests.
#include "workload/operators/contract.hpp"
#include "workload/operators/families.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

namespace monet {

namespace {

// Macros of operators.def.
#define ONNX(type, ...) OperatorRow{.domain = "", .op_type = ops::type, __VA_ARGS__},
#define MONET(type, ...) OperatorRow{.domain = kMonetDomain, .op_type = ops::type, __VA_ARGS__},
#define MICROSOFT(type, ...)                                                                       \
  OperatorRow{.domain = "com.microsoft", .op_type = ops::type, __VA_ARGS__},
#define NAMED(type)
#define ONNX_ALSO ONNX
#define MONET_ALSO MONET
#define MICROSOFT_ALSO MICROSOFT

std::vector<OperatorRow> collect() {
  using enum Fusion;
  using enum GradientForm;
  using enum OperatorRow::Chain;
  using enum OperatorRow::Kept;
  using enum OperatorRow::Trait;
  std::vector<OperatorRow> all{
#include "workload/operators/operators.def"
  };
  constexpr auto kOperator = [](const OperatorRow& row) {
    return std::pair(row.domain, row.op_type.name());
  };
  std::ranges::sort(all, {}, kOperator);
  internal_check(std::ranges::adjacent_find(all, {}, kOperator) == all.end(),
                 "two rows for one operator");
  return all;
}

/// All rows, and those of each type by its place.
class Catalogue {
public:
  Catalogue() : all_(collect()) {
    for (const OperatorRow& row : all_)
      by_place_.at(static_cast<std::size_t>(row.op_type.place())).push_back(&row);
  }

  const std::vector<OperatorRow>& all() const { return all_; }
  std::span<const OperatorRow* const> of(OpType type) const {
    if (type.place() < 0)
      return {};
    return by_place_.at(static_cast<std::size_t>(type.place()));
  }

private:
  std::vector<OperatorRow> all_;
  std::array<std::vector<const OperatorRow*>, static_cast<std::size_t>(ops::Place::count)>
      by_place_;
};

const Catalogue& catalogue() {
  static const Catalogue kCatalogue;
  return kCatalogue;
}

} // namespace

const std::vector<OperatorRow>& all_rows() {
  return catalogue().all();
}

const OperatorRow* find_row(std::string_view domain, OpType op_type) {
  for (const OperatorRow* row : catalogue().of(op_type)) {
    if (row->domain == domain)
      return row;
  }
  return nullptr;
}

const OperatorRow* find_row(OpType op_type) {
  const auto rows = catalogue().of(op_type);
  return rows.empty() ? nullptr : rows.front();
}

const OperatorRow& row_of(const Operator& op) {
  const OperatorRow* row = find_row(op.domain, op.op_type);
  if (row == nullptr)
    throw InternalError(
        fmt::format("no loop nest for '{}' of domain '{}'", op.op_type.name(), op.domain));
  return *row;
}

bool has_trait(OpType op_type, OperatorRow::Trait trait) {
  const OperatorRow* row = find_row(op_type);
  return row != nullptr && (row->traits & trait) == trait;
}

bool has_view_rule(const Operator& op) {
  const OperatorRow* row = find_row(op.domain, op.op_type);
  return row != nullptr && row->view;
}

void build_nest(Graph& graph, OpId id) {
  Operator& op = graph.op(id);
  const OperatorRow& row = row_of(op);
  check_contract(graph, op);
  if (row.check != nullptr)
    row.check(graph, op);
  if (row.nest == nullptr)
    return;
  op.nest = row.nest(graph, op);
  try {
    static_cast<void>(iterations(op.nest));
  } catch (const InputError&) {
    throw InputError(location_of(graph, op), "the number of iterations overflows 64 bits");
  }
}

SourceLoc location_of(const Graph& graph, const Operator& op, std::string_view detail) {
  const std::string domain = op.domain.empty() ? "" : op.domain + ".";
  std::string element = fmt::format("node '{}' ({}{})", op.name, domain, op.op_type.name());
  if (!detail.empty())
    element += fmt::format(", {}", detail);
  return {graph.origin, 0, 0, element};
}

} // namespace monet
