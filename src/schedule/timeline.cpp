#include "monet/schedule/timeline.hpp"

#include "monet/base/errors.hpp"

namespace monet {

std::string_view name_of(TransferKind kind) {
  switch (kind) {
  case TransferKind::fetch:
    return "fetch";
  case TransferKind::stream:
    return "stream";
  case TransferKind::write_back:
    return "write_back";
  case TransferKind::spill:
    return "spill";
  }
  throw InternalError("transfer kind without a name");
}

EnergySplit energy_of(const Timeline& timeline) {
  EnergySplit split;
  for (const TileRun& run : timeline.runs) {
    split.compute += run.compute;
    split.onchip_memory += run.memory;
  }
  for (const Transfer& transfer : timeline.transfers) {
    split.links += transfer.link_energy;
    split.offchip += transfer.offchip_energy;
    split.onchip_memory += transfer.onchip_energy;
  }
  return split;
}

} // namespace monet
