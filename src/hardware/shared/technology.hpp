// Scaling of energy and area between technology nodes. docs/explanation/hardware-costs.md has the
// sources.
#pragma once

namespace monet {

/// Range of nodes that the models support, in nm.
inline constexpr double kSmallestNode = 3;
inline constexpr double kLargestNode = 90;

/// Energy of logic relative to 45 nm at each node's nominal voltage: the equations of Stillmaker
/// and Baas (Integration 58, 2017) down to 22 nm; below, the wire law of sram_energy_scale().
double logic_energy_scale(double node_nm);
/// Area of logic relative to 45 nm: Stillmaker and Baas down to 7 nm; below, the densities of
/// TSMC's N5 and N3E.
double logic_area_scale(double node_nm);
/// Energy of an SRAM access relative to 22 nm, for nodes below 22 nm; 1 from 22 nm up. Bit lines
/// and word lines scale with the side of a cell, so energy scales with length times the square of
/// the nominal voltage.
double sram_energy_scale(double node_nm);
/// Area of the smallest six-transistor cell relative to 22 nm, for nodes below 22 nm; 1 from 22 nm
/// up.
double sram_area_scale(double node_nm);
/// Energy of one bit over one millimetre of wire, in pJ: 0.121 at 40 nm and 0.078 at 10 nm (Keckler
/// et al., IEEE Micro 31(5), 2011), with a power law through both points elsewhere.
double wire_pj_per_bit_mm(double node_nm);

} // namespace monet
