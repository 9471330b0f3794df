#include "explore/evaluate/chip_limits.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace monet {

std::string judge_chips(const Chip& chip, double count, const DesignBudgets& budgets,
                        DesignResult& result) {
  result.area_mm2 = count * chip.area_mm2();
  result.peak_power_w = count * peak_power_w(chip).value_or(0);
  const auto over = [](const char* what, double value, double budget, const char* unit) {
    return fmt::format("{} {:.4g} {} is over the budget of {:.4g} {}", what, value, unit, budget,
                       unit);
  };
  if (budgets.area_mm2 > 0 && result.area_mm2 > budgets.area_mm2)
    return over("area", result.area_mm2, budgets.area_mm2, "mm2");
  if (budgets.peak_power_w > 0 && result.peak_power_w > budgets.peak_power_w)
    return over("peak power", result.peak_power_w, budgets.peak_power_w, "W");
  if (budgets.offchip_bits_per_cycle > 0 && chip.offchip) {
    const OffchipPort port = offchip_port(chip);
    const auto bits = static_cast<double>(
        port.shared ? std::max(port.read_bits_per_cycle, port.write_bits_per_cycle)
                    : port.read_bits_per_cycle + port.write_bits_per_cycle);
    if (bits > budgets.offchip_bits_per_cycle)
      return over("off-chip bandwidth", bits, budgets.offchip_bits_per_cycle, "bits per cycle");
  }
  return {};
}

} // namespace monet
