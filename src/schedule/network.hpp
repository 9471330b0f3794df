// Transfers over links and the off-chip memory's ports: when they fit, how long they take, what
// they cost.
#pragma once

#include "schedule/link_timeline.hpp"

#include "monet/hardware/chip.hpp"
#include "monet/schedule/timeline.hpp"

#include <vector>

namespace monet {

/// A transfer that is wanted; `operand` is the memory operand it is stored as at the receiving
/// core.
struct TransferRequest {
  TransferKind kind = TransferKind::fetch;
  TensorId tensor;
  OpId op;
  CoreId from;
  CoreId to;
  Bits bits;
  MemoryOperand operand = MemoryOperand::I1;
};

class Network {
public:
  explicit Network(const Chip& chip);

  CoreId offchip() const { return *chip_.offchip; }
  /// A route exists; routes never pass through the off-chip memory.
  bool direct(CoreId from, CoreId to) const;
  /// ceil(bits / narrowest link or port on the way).
  std::int64_t duration(CoreId from, CoreId to, Bits bits) const;
  /// First time >= ready at which the whole route is idle long enough.
  std::int64_t earliest(CoreId from, CoreId to, Bits bits, std::int64_t ready) const;
  /// Books the route at earliest(ready) and fills in everything else.
  Transfer reserve(const TransferRequest& request, std::int64_t ready);

private:
  struct Path {
    std::vector<std::size_t> resources; ///< links by id, then the ports
    std::int64_t bits_per_cycle = 0;
    bool direct = false;
  };
  const Path& path(CoreId from, CoreId to) const;
  Path make_path(CoreId from, CoreId to) const;
  void add_energy(const TransferRequest& request, Transfer& transfer) const;

  const Chip& chip_;
  OffchipPort port_;
  std::vector<LinkTimeline>
      timelines_;           ///< links, then the read port and (when separate) the write port
  std::vector<Path> paths_; ///< [from * cores + to]
};

} // namespace monet
