// Minimum cycles and energy of off-chip traffic, over the memory's ports and links; step_bounds.cpp
// prices reads and writes with it.
#pragma once

#include "schedule/shared/bounds.hpp"

#include "monet/hardware/chip.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace monet {

/// Minimum cycles and energy to move bits into and out of the off-chip memory.
class OffchipTime {
public:
  explicit OffchipTime(const Chip& chip) : port_(offchip_port(chip)), there_(chip.offchip) {
    if (!there_)
      return;
    for (const Link& link : chip.links) {
      const auto end = std::ranges::find(link.cores, *chip.offchip);
      if (end == link.cores.end())
        continue;
      const auto width = static_cast<double>(link.bandwidth_bits_per_cycle);
      const bool forward = link.reach == LinkReach::forward;
      const bool out = forward ? end == link.cores.begin() : link.reach != LinkReach::offchip_write;
      const bool in = forward ? end != link.cores.begin() : link.reach != LinkReach::offchip_read;
      from_ += out ? width : 0;
      to_ += in ? width : 0;
      both_ += width;
      const double pj = link.energy_pj_per_bit + link.energy_pj_per_cycle / width;
      if (out)
        read_pj_ = std::min(read_pj_, pj);
      if (in)
        write_pj_ = std::min(write_pj_, pj);
    }
  }

  double cycles(double read, double written) const {
    if (!there_)
      return 0;
    const auto over = [](double bits, double rate) { return rate > 0 ? bits / rate : 0; };
    return std::max({port_.min_cycles(read, written), over(read, from_), over(written, to_),
                     over(read + written, both_)});
  }
  /// Energy in pJ on links.
  double links_pj(double read, double written) const {
    return (std::isfinite(read_pj_) ? read * read_pj_ : 0) +
           (std::isfinite(write_pj_) ? written * write_pj_ : 0);
  }
  double ports_pj(double read, double written) const {
    return there_ ? port_.energy_pj(read, written) : 0;
  }

private:
  OffchipPort port_;
  std::optional<CoreId> there_;
  double from_ = 0, to_ = 0,
         both_ = 0; ///< bits per cycle of its outgoing, incoming and shared links
  double read_pj_ = kInfinite, write_pj_ = kInfinite;
  static constexpr double kInfinite = std::numeric_limits<double>::infinity();
};

} // namespace monet
