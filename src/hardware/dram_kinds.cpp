#include "monet/hardware/memory_model.hpp"

#include <algorithm>
#include <array>

namespace monet {

namespace {

// Channels as JEDEC has them at the fastest common rate: 16 bits at 4266 MT/s (JESD209-4), 16 at
// 6400 (JESD209-5), 64 at 3200 (JESD79-4), 32 at 6400 (JESD79-5), 128 at 3600 (JESD235D), 64 at
// 6400 (JESD238).
constexpr std::array<DramKind, 6> kKinds{
    {{"lpddr4", 14.0, 8.532, "H. Ha, thesis, Stanford 2018: 14.0 pJ/bit, 32 Gb device"},
     {"lpddr5", 9.8, 12.8, "derived: 30 % below LPDDR4, as Samsung announced in July 2018"},
     {"ddr4", 20.3, 25.6, "Jouppi et al., ISCA 2021, table 2: 1300 pJ for 64 bits"},
     {"ddr5", 17.1, 25.6, "derived: DDR4 at 1.1 V in place of 1.2 V, squared"},
     {"hbm2e", 5.5, 57.6,
      "Jouppi et al., ISCA 2021, table 2: 250 to 450 pJ for 64 bits, the middle"},
     {"hbm3", 4.6, 51.2, "derived: HBM2 at 1.1 V in place of 1.2 V, squared"}}};

} // namespace

std::span<const DramKind> dram_kinds() {
  return kKinds;
}

const DramKind* find_dram_kind(std::string_view name) {
  const auto found = std::find_if(kKinds.begin(), kKinds.end(),
                                  [&](const DramKind& kind) { return kind.name == name; });
  return found == kKinds.end() ? nullptr : &*found;
}

} // namespace monet
