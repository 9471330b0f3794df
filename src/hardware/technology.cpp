// Scales energy, area and wire cost between technology nodes.
// The arithmetic and memory models call it.
#include "hardware/shared/technology.hpp"

#include <algorithm>
#include <cmath>
#include <span>

namespace monet {

namespace {

struct NodeFigure {
  double node_nm;
  double value;
};

/// Interpolates log-log between nodes in falling order; the ends extrapolate with the nearest law.
double interpolate(std::span<const NodeFigure> list, double node_nm) {
  std::size_t i = 0;
  while (i + 2 < list.size() && node_nm < list[i + 1].node_nm)
    ++i;
  const double share =
      std::log(node_nm / list[i].node_nm) / std::log(list[i + 1].node_nm / list[i].node_nm);
  return list[i].value * std::pow(list[i + 1].value / list[i].value, share);
}

/// Energy fit a V^2 + b V + c of Stillmaker and Baas, Table 5, and the nominal voltage.
struct EnergyFit {
  double node_nm, volt, a, b, c;
  double value() const { return a * volt * volt + b * volt + c; }
};
constexpr EnergyFit kEnergyFits[] = {{90, 1.2, 4.762, -4.781, 2.092},
                                     {65, 1.1, 3.755, -4.398, 1.975},
                                     {45, 1.0, 1.103, -0.362, 0.2767},
                                     {32, 0.95, 0.9559, -0.7823, 0.471},
                                     {20, 0.9, 0.373, -0.1582, 0.04104}};

// Area factors from 45 nm (Stillmaker and Baas); N5 is 1.84 times denser, N3E 1.6 times more.
constexpr NodeFigure kLogicArea[] = {{90, 2.8},  {65, 1.5},  {45, 1.0},  {32, 0.46},
                                     {20, 0.21}, {16, 0.19}, {14, 0.17}, {10, 0.1},
                                     {7, 0.059}, {5, 0.032}, {3, 0.020}};

/// SRAM cell area in square micrometres and nominal voltage, as published by foundries at IEDM and
/// ISSCC (22 nm Intel, 16 to 3 nm TSMC).
struct CellFigure {
  double node_nm, cell_um2, volt;
};
constexpr CellFigure kCells[] = {{22, 0.092, 0.9},  {16, 0.074, 0.8}, {12, 0.074, 0.8},
                                 {10, 0.042, 0.75}, {7, 0.027, 0.75}, {5, 0.021, 0.75},
                                 {3, 0.0199, 0.75}};

/// Scale of `figure` relative to 22 nm, log-log between the two cells around a node.
template <class Figure>
double cell_scale(double node_nm, Figure figure) {
  std::size_t i = 0;
  while (i + 2 < std::size(kCells) && node_nm < kCells[i + 1].node_nm)
    ++i;
  if (node_nm >= kCells[0].node_nm)
    return 1;
  const NodeFigure around[] = {{kCells[i].node_nm, figure(kCells[i]) / figure(kCells[0])},
                               {kCells[i + 1].node_nm, figure(kCells[i + 1]) / figure(kCells[0])}};
  return interpolate(around, node_nm);
}

} // namespace

double sram_area_scale(double node_nm) {
  return cell_scale(node_nm, [](const CellFigure& cell) { return cell.cell_um2; });
}

double sram_energy_scale(double node_nm) {
  return cell_scale(node_nm, [](const CellFigure& cell) {
    return std::sqrt(cell.cell_um2) * cell.volt * cell.volt;
  });
}

double logic_energy_scale(double node_nm) {
  std::size_t i = 0;
  const double fitted = std::max(node_nm, kCells[0].node_nm);
  while (i + 2 < std::size(kEnergyFits) && fitted < kEnergyFits[i + 1].node_nm)
    ++i;
  const double base = kEnergyFits[2].value(); // 45 nm
  const NodeFigure around[] = {{kEnergyFits[i].node_nm, kEnergyFits[i].value() / base},
                               {kEnergyFits[i + 1].node_nm, kEnergyFits[i + 1].value() / base}};
  return interpolate(around, fitted) * sram_energy_scale(node_nm);
}

double logic_area_scale(double node_nm) {
  return interpolate(kLogicArea, node_nm);
}

double wire_pj_per_bit_mm(double node_nm) {
  constexpr NodeFigure kWires[] = {{40, 0.121}, {10, 0.078}};
  return interpolate(kWires, node_nm);
}

} // namespace monet
