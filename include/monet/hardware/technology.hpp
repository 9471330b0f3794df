// How figures known at one technology node carry over to others. docs/explanation/hardware-costs.md
// has the sources.
#pragma once

namespace monet {

/// Nodes the models answer for, in nm.
inline constexpr double kSmallestNode = 3;
inline constexpr double kLargestNode = 90;

/// Energy of logic relative to 45 nm at each node's nominal voltage: the equations of Stillmaker
/// and Baas (Integration 58, 2017) down to 22 nm, below with the wires' law of sram_energy_scale.
double logic_energy_scale(double node_nm);
/// Area of logic relative to 45 nm: Stillmaker and Baas down to 7 nm, then the densities of TSMC's
/// N5 and N3E.
double logic_area_scale(double node_nm);
/// Energy of an SRAM access below 22 nm relative to 22 nm: bit lines and word lines are as long as
/// the side of a cell, so length times the square of the nominal voltage. 1 from 22 nm up.
double sram_energy_scale(double node_nm);
/// Area of the smallest six-transistor cell below 22 nm relative to 22 nm. 1 from 22 nm up.
double sram_area_scale(double node_nm);
/// pJ for one bit over one millimetre of wire: 0.121 at 40 nm and 0.078 at 10 nm (Keckler et al.,
/// IEEE Micro 31(5), 2011), and on that power law elsewhere.
double wire_pj_per_bit_mm(double node_nm);

} // namespace monet
