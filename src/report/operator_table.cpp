// Generates the table of supported operators that `monet graph --operators` prints
// (docs/reference/operators.md).
#include "report/shared/operator_table.hpp"

#include "workload/shared/fusion.hpp"
#include "workload/shared/operators.hpp"

#include "monet/base/errors.hpp"
#include "monet/execute/execute.hpp"
#include "monet/training_graph/training.hpp"

#include <fmt/core.h>

namespace monet {

namespace {

constexpr std::string_view kIntroduction =
    R"(# Operators

This page lists the ONNX operators that MONET reads. `monet graph --operators` generates it; a test compares both.

An operator that is not listed is an input error with the name of its node. Operators on constants alone (shapes,
indices, scalars) are folded when the network is read. Chains and layers that are read as other operators (LSTM,
GRU, GELU chains, ...) are described in [the training graph](../explanation/training-graph.md).

| column | value | meaning |
|---|---|---|
| forward | `nest` | a loop nest that is mapped and costed |
| | `view` | folded into the accesses of its readers; a copy where the access is not affine |
| gradient | `yes` | the operator has a gradient |
| | `stops here` | the outputs do not depend differentiably on the inputs |
| | `no` | a training step through it is an error with the name of the node |
| fusion | `folded` | fused with its readers |
| | `tiles` | any loop may be cut |
| | `rows` | loops that a result depends on as a whole (statistics, softmax) stay in one tile |
| | `indexed` | one operand is indexed by data and must be whole |
| | `whole` | as `indexed`; an operand without an affine map must also be whole |
| executed | `yes` | `monet graph --execute` computes it |

The column *fusion* has the worst case of how the operator runs tile by tile with its neighbours.

| operator | domain | forward | gradient | fusion | executed |
|---|---|---|---|---|---|
)";

std::string_view text_of(GradientSupport support) {
  switch (support) {
  case GradientSupport::yes:
    return "yes";
  case GradientSupport::stops:
    return "stops here";
  case GradientSupport::no:
    return "no";
  }
  throw InternalError("gradient support without a text");
}

} // namespace

std::string operator_table() {
  std::string text(kIntroduction);
  int operators = 0;
  int gradients = 0;
  int executed = 0;
  for (const OperatorRow& rule : all_rows()) {
    const GradientSupport gradient = gradient_support(rule.domain, rule.op_type);
    // MONET's own operators are listed only if they have a gradient and ONNX has no operator of the
    // same name: a network may contain only these.
    const bool ours = rule.domain == kMonetDomain;
    if (ours && (gradient != GradientSupport::yes || find_row("", rule.op_type) != nullptr))
      continue;
    const bool runs = is_executable({.op_type = rule.op_type, .domain = std::string(rule.domain)});
    text += fmt::format("| {} | {} | {} | {} | {} | {} |\n", rule.op_type.name(),
                        rule.domain.empty() ? "ai.onnx" : rule.domain, rule.view ? "view" : "nest",
                        text_of(gradient), rule.view ? "folded" : name_of(rule.fusion),
                        runs ? "yes" : "no");
    ++operators;
    gradients += gradient == GradientSupport::yes ? 1 : 0;
    executed += runs ? 1 : 0;
  }
  return text + fmt::format("\n{} operators forward, {} of them with a gradient, {} executed.\n",
                            operators, gradients, executed);
}

} // namespace monet
