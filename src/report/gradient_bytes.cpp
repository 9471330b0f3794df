#include "report/gradient_bytes.hpp"

#include "monet/report/text.hpp"
#include "monet/workload/operators.hpp"

#include <nlohmann/json.hpp>

#include <map>

namespace monet {

namespace {

using Json = nlohmann::ordered_json;

struct GradientBits {
  bool paired = false;
  Bits x, w, dy, dx, dw, other;

  /// Where bits of a tensor count that are moved for one of the gradients.
  Bits& of(const GradientTensors& tensors, TensorId moved) {
    if (moved == tensors.dy)
      return dy;
    if (moved == tensors.x)
      return x;
    if (moved == tensors.w)
      return w;
    if (moved == tensors.dx)
      return dx;
    return moved == tensors.dw ? dw : other;
  }
};

} // namespace

Json gradient_bytes_json(const StepResult& result, const Chip& chip) {
  const Graph& graph = result.step->graph;
  std::map<OpId, GradientBits> rows; // by product
  for (const Operator& op : graph.operators()) {
    const auto tensors = op.forward_op ? gradient_tensors(op) : std::nullopt;
    if (tensors)
      rows[*op.forward_op].paired |= tensors->dx && tensors->dw;
  }
  for (const Transfer& transfer : result.timeline->transfers) {
    const Operator& op = graph.op(transfer.op);
    const Route& route = result.timeline->route_of(transfer);
    if (!op.forward_op || !chip.offchip ||
        (route.from != *chip.offchip && route.to.front() != *chip.offchip))
      continue;
    if (const auto tensors = gradient_tensors(op))
      rows[*op.forward_op].of(*tensors, transfer.tensor) += result.timeline->bits_of(transfer);
  }
  Json json = Json::array();
  for (const auto& [product, bits] : rows) {
    json.push_back({{"layer", valid_utf8(graph.op(product).name)},
                    {"paired", bits.paired},
                    {"x_bytes", bytes_of(bits.x)},
                    {"w_bytes", bytes_of(bits.w)},
                    {"dy_bytes", bytes_of(bits.dy)},
                    {"dx_bytes", bytes_of(bits.dx)},
                    {"dw_bytes", bytes_of(bits.dw)},
                    {"other_bytes", bytes_of(bits.other)}});
  }
  return json;
}

} // namespace monet
