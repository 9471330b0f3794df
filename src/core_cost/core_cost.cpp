// core_cost(), the entry to the cost model of one core: selects array or lane costs and validates
// the problem.
#include "monet/core_cost/core_cost.hpp"

#include "core_cost/input_gradient/input_gradient.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace monet {

namespace {

constexpr std::array<std::string_view, 3> kPooling{"MaxPool", "AveragePool", "GlobalAveragePool"};

/// Whether the type is a pooling or its gradient ("MaxPoolGrad").
bool is_pooling(std::string_view op_type) {
  return std::ranges::any_of(kPooling, [&](std::string_view name) {
    return op_type == name || (op_type.starts_with(name) && op_type.substr(name.size()) == "Grad");
  });
}

} // namespace

Cycles LatencyParts::whole() const {
  constexpr double kMax = 0x1p53;
  const double cycles = total();
  if (!(cycles <= kMax))
    throw InfeasibleError(fmt::format("a tile takes {:.3g} cycles, more than 2^53", cycles));
  return {static_cast<std::int64_t>(cycles)};
}

double OffchipRate::cycles(const OffchipTraffic& traffic) const {
  const auto over = [](Bits bits, double rate) {
    return rate > 0 ? static_cast<double>(bits.value) / rate : 0;
  };
  const double read = over(traffic.read, read_bits_per_cycle);
  const double write = over(traffic.write, write_bits_per_cycle);
  return shared ? read + write : std::max(read, write);
}

double OffchipRate::energy_pj(const OffchipTraffic& traffic) const {
  return static_cast<double>(traffic.read.value) * read_pj_per_bit +
         static_cast<double>(traffic.write.value) * write_pj_per_bit;
}

std::pair<double, double> merit(Objective objective, double latency, double energy) {
  switch (objective) {
  case Objective::latency:
    return {latency, energy};
  case Objective::energy:
    return {energy, latency};
  case Objective::edp:
    return {latency * energy, 0};
  default:
    throw InternalError("no objective of a mapping on a core");
  }
}

CoreCost core_cost(const CoreProblem& problem, const Core& core, const CoreCostOptions& options) {
  return core_cost_detail::core_cost_with(
      problem, core, options,
      [](const CoreProblem& part, const Core& on, const CoreCostOptions& as_is) {
        return core_cost(part, on, as_is);
      });
}

bool can_run(const Core& core, ComputeKind compute, std::string_view op_type) {
  if (core.kind == CoreKind::offchip)
    return false;
  if (core.imc != nullptr && compute != ComputeKind::mac)
    return false; // the core has no lanes
  if (!core.operator_types.empty())
    return std::ranges::find(core.operator_types, op_type) != core.operator_types.end();
  if (compute == ComputeKind::mac)
    return core.kind == CoreKind::array;
  switch (core.kind) {
  case CoreKind::array:
    return core.runs_vector_operators;
  case CoreKind::vector:
    return true;
  case CoreKind::pooling:
    return is_pooling(op_type);
  case CoreKind::offchip:
    return false;
  }
  return false;
}

} // namespace monet
