// Energy, area and delay of arrays that compute in memory, digital or analog, by component.
// pricing.cpp and the cost model call it.
#include "monet/hardware/imc_array.hpp"

#include <algorithm>
#include <cmath>
#include <ranges>

namespace monet {

namespace {

constexpr std::array<std::pair<std::string_view, double ImcParts::*>, 9> kParts{
    {{"local_bl_precharging", &ImcParts::precharge},
     {"cells", &ImcParts::cells},
     {"dacs", &ImcParts::dacs},
     {"adcs", &ImcParts::adcs},
     {"mults", &ImcParts::multipliers},
     {"analog_bl_addition", &ImcParts::bitlines},
     {"adders_regular", &ImcParts::adder_trees},
     {"adders_pv", &ImcParts::place_values},
     {"accumulators", &ImcParts::accumulators}}};

// Reference: 28 nm, 0.9 V. Energy is capacitance times the square of the voltage.
constexpr double kVolts = 0.9;
constexpr double kSquareVolts = kVolts * kVolts;
constexpr double kNandPf = 0.7e-3;
constexpr double kXorPf = 1.5 * kNandPf;
constexpr double kFlipFlopPf = 3 * kNandPf;
constexpr double kWordlinePf = 0.35e-3; ///< per cell
constexpr double kBitlinePf = 0.35e-3;  ///< per cell
constexpr double kNandMm2 = 0.614e-6;
constexpr double kXorMm2 = 2.4 * kNandMm2;
constexpr double kFlipFlopMm2 = 6 * kNandMm2;
constexpr double kNandNs = 0.0478;
constexpr double kXorNs = 2.4 * kNandNs;

constexpr double kAdderPj = (3 * kNandPf + 2 * kXorPf) * kSquareVolts;
constexpr double kAdderMm2 = 3 * kNandMm2 + 2 * kXorMm2;
constexpr double kHalfActivePj = 2 * kXorPf * kSquareVolts; ///< an adder with one input at rest
constexpr double kMultiplierPj = 0.5 * kNandPf * kSquareVolts;
constexpr double kFlipFlopPj = kFlipFlopPf * kSquareVolts;
constexpr double kSumNs = 2 * kXorNs;                ///< input to sum
constexpr double kCarryOutNs = kXorNs + 2 * kNandNs; ///< input to carry
constexpr double kCarryNs = 2 * kNandNs;             ///< carry to carry

double number(std::int64_t value) {
  return static_cast<double>(value);
}

/// Adder counts and widths of an array.
struct Circuits {
  bool analog;
  double levels;      ///< depth of an adder tree: log2 of the rows
  double serial;      ///< input bits applied at once
  double tree_bits;   ///< width of a tree's result
  double tree_adders; ///< one-bit adders of one tree
  double place_inputs;
  double place_bits;   ///< width of one of these inputs
  double place_adders; ///< one-bit adders per column
  double sum_bits;     ///< accumulator width; 0: no accumulator
};

Circuits circuits_of(const ImcArray& a) {
  Circuits c{};
  c.analog = a.kind == ImcKind::analog;
  c.serial = number(a.serial_bits);
  const double weight = number(a.weight_bits);
  if (!c.analog) {
    c.levels = std::log2(number(a.rows));
    c.tree_bits = weight + c.levels;
    c.tree_adders = number(a.rows) * (weight + 1) - (weight + c.levels + 1);
  }
  c.place_inputs = c.analog ? weight : c.serial;
  c.place_bits = c.analog ? number(a.adc_bits) : c.tree_bits;
  if (c.place_inputs > 1) {
    c.place_adders =
        c.place_bits * (c.place_inputs - 1) + c.place_inputs * (std::log2(c.place_inputs) - 0.5);
  }
  if (a.serial_bits != a.activation_bits)
    c.sum_bits = number(a.activation_bits) + weight + (c.analog ? number(a.adc_bits) : c.levels);
  return c;
}

double adc_pj(const ImcArray& a) {
  const double bits = number(a.adc_bits);
  return a.adc_bits == 0 ? 0 : (100 * bits + 0.001 * std::pow(4, bits)) * kSquareVolts / 1000;
}

double adc_mm2(const ImcArray& a) {
  const double bits = number(a.adc_bits);
  return a.adc_bits <= 1 ? 0 : std::pow(10, -0.0369 * bits + 1.206) * std::pow(2, bits) * 1e-6;
}

double adc_ns(const ImcArray& a) {
  return number(a.adc_bits) * (0.00653 * number(a.rows) + 0.640);
}

double dac_pj(const ImcArray& a) {
  return a.serial_bits == 1 ? 0 : 0.05 * number(a.serial_bits) * kSquareVolts;
}

/// Energy of an adder tree with `used` of its `rows` inputs active. Full subtrees switch
/// completely, adders on the path of a single value switch by half, and idle subtrees cost nothing.
double tree_pj(const ImcArray& a, const Circuits& c, std::int64_t used) {
  if (used < 1)
    return 0;
  if (used >= a.rows)
    return c.tree_adders * kAdderPj;
  const double weight = number(a.weight_bits);
  double full = 0;
  double half = 0;
  std::int64_t left = used;
  for (std::int64_t subtree = a.rows / 2; left > 0 && subtree > 0; subtree /= 2) {
    const double levels = std::log2(number(subtree));
    if (left <= 1 && subtree == 1) {
      half += weight;
      left = 0;
    } else if (left > subtree) {
      full += number(subtree) * (weight + 1) - 1;
      left -= subtree;
    } else if (left < subtree) {
      half += weight + levels;
    } else {
      full += number(subtree) * (weight + 1) - (weight + levels + 1);
      half += weight + levels;
      left = 0;
    }
  }
  return full * kAdderPj + half * kHalfActivePj;
}

/// Energy of `times` activations of the array, split into its parts.
ImcParts energy_of(const ImcArray& a, double rows, double columns, double tree, double times) {
  const Circuits c = circuits_of(a);
  const double weight = number(a.weight_bits);
  const double all_rows = number(a.rows);
  ImcParts pj;
  if (c.analog) {
    pj.dacs = dac_pj(a) * rows * times;
    pj.adcs = adc_pj(a) * weight * columns * times;
    pj.multipliers = kMultiplierPj * weight * number(a.columns) * rows * times;
    pj.bitlines = kBitlinePf * kSquareVolts * weight * columns * all_rows * times;
  } else {
    pj.multipliers = kMultiplierPj * c.serial * weight * number(a.columns) * all_rows * times;
    pj.adder_trees = tree * c.serial * columns * times;
  }
  pj.place_values = kAdderPj * c.place_adders * columns * times;
  pj.accumulators = (kAdderPj + kFlipFlopPj) * c.sum_bits * columns * times;
  return pj;
}

} // namespace

std::string_view name_of(ImcKind kind) {
  return kind == ImcKind::analog ? "analog" : "digital";
}

double ImcParts::total() const {
  double others = 0;
  for (const auto& [name, part] : kParts | std::views::drop(1))
    others += this->*part;
  return others + precharge; // the only part that depends on the loop order
}

std::array<std::pair<std::string_view, double>, 9> ImcParts::named() const {
  std::array<std::pair<std::string_view, double>, 9> figures;
  std::ranges::transform(kParts, figures.begin(), [&](const auto& part) {
    return std::pair(part.first, this->*part.second);
  });
  return figures;
}

ImcParts& ImcParts::operator+=(const ImcParts& other) {
  for (const auto& [name, part] : kParts)
    this->*part += other.*part;
  return *this;
}

ImcParts operator*(ImcParts parts, double factor) {
  for (const auto& [name, part] : kParts)
    parts.*part *= factor;
  return parts;
}

ImcParts imc_area_mm2(const ImcArray& a) {
  const Circuits c = circuits_of(a);
  const double weight = number(a.weight_bits);
  const double columns = number(a.columns) * number(a.macros);
  const double elements = columns * number(a.rows);
  ImcParts mm2;
  mm2.cells = elements * a.cell_area_mm2;
  mm2.multipliers = kNandMm2 * weight * elements * (c.analog ? 1 : c.serial);
  if (c.analog)
    mm2.adcs = adc_mm2(a) * weight * columns;
  else
    mm2.adder_trees = kAdderMm2 * c.tree_adders * c.serial * columns;
  mm2.place_values = kAdderMm2 * c.place_adders * columns;
  mm2.accumulators = (kAdderMm2 + kFlipFlopMm2) * c.sum_bits * columns;
  return mm2;
}

ImcParts imc_clock_ns(const ImcArray& a) {
  const Circuits c = circuits_of(a);
  ImcParts ns;
  if (c.analog)
    ns.adcs = adc_ns(a);
  else if (a.rows > 1)
    ns.adder_trees = (c.levels - 1) * kSumNs + kCarryOutNs + (c.tree_bits - 2) * kCarryNs;
  ns.multipliers = kNandNs;
  const double n = c.place_inputs;
  if (n > 1)
    ns.place_values = (std::log2(n) - 1) * kSumNs + kCarryOutNs + (n - 1) * kCarryNs;
  if (c.sum_bits > 0) {
    const double there = n > 1 ? n + c.place_bits : c.place_bits; // bits of the addend
    ns.accumulators = kCarryOutNs + (c.sum_bits - there - 1) * kCarryNs;
  }
  return ns;
}

ImcParts imc_peak_energy_pj(const ImcArray& a) {
  const Circuits c = circuits_of(a);
  return energy_of(a, number(a.rows), number(a.columns), c.tree_adders * kAdderPj,
                   number(a.macros));
}

ImcPeak imc_peak(const ImcArray& a) {
  constexpr double kPicoToTera = 1000; // operations per nanosecond -> 1e12 per second
  const double macs =
      number(a.columns) * number(a.rows) * number(a.macros) / number(a.cycles_per_wave());
  ImcPeak peak;
  peak.tops = 2 * macs / imc_clock_ns(a).total() / kPicoToTera;
  peak.tops_per_w = 2 * macs / imc_peak_energy_pj(a).total();
  peak.tops_per_mm2 = peak.tops / imc_area_mm2(a).total();
  return peak;
}

ImcParts imc_energy_pj(const ImcArray& a, const ImcWork& work) {
  const Circuits c = circuits_of(a);
  ImcParts pj = energy_of(a, number(work.rows), number(work.columns), tree_pj(a, c, work.rows),
                          work.waves * number(a.cycles_per_wave()));
  pj.precharge = imc_precharge_pj(a, work.weight_reads);
  return pj;
}

double imc_precharge_pj(const ImcArray& a, double weight_reads) {
  if (a.group_depth() <= 1)
    return 0;
  const double cells = kBitlinePf * number(a.group_depth());
  return number(a.weight_bits) * (kWordlinePf + cells) * kSquareVolts * weight_reads;
}

/// Minimum energy of one MAC: the energy per MAC of the fully used array. A full array shares the
/// array's and the columns' energy among the most MACs. Rows cost the same in an analog array, and
/// no partly used adder tree is cheaper per row.
double min_imc_energy_pj(const ImcArray& a) {
  const ImcParts wave = imc_energy_pj(a, {a.rows, a.columns, 1, 0});
  constexpr double kBelow = 1 - 1e-12;
  return wave.total() / (number(a.rows) * number(a.columns)) * kBelow;
}

} // namespace monet
