// What the off-chip memory holds: every tensor without a producer from the start, pieces from their
// write on.
#pragma once

#include "schedule/place/pieces.hpp"
#include "schedule/place/residency.hpp"
#include "schedule/place/timeline_writer.hpp"

#include <optional>
#include <vector>

namespace monet {

class OffchipMemory {
public:
  /// All must outlive this. What is there from the start is written down.
  OffchipMemory(const Graph& graph, CoreId memory, const Pieces& pieces, Residency& states,
                TimelineWriter& timeline);

  /// Cycle from which the piece can be read; 0 for a part of a tensor without producer; none while
  /// it is only on cores.
  std::optional<std::int64_t> stored_at(PieceId piece) const;
  /// The piece arrives between the cycles.
  void store(PieceId piece, TensorId tensor, Bits bits, std::int64_t start, std::int64_t end);
  /// A transfer reads the piece until `end`.
  void touch(PieceId piece, std::int64_t end);
  /// Nobody reads the piece any more; what the step leaves behind stays.
  void retire(PieceId piece);

  /// What is still there stays. InfeasibleError when `capacity` was exceeded.
  void finish(Bits capacity);

private:
  struct Stored {
    TensorId tensor;
    Bits bits;
    std::int64_t start = 0;
    std::int64_t end = 0;
    std::int64_t busy_until = 0;
    bool there = true;
  };
  void write_stay(const Stored& stored, Cycles end);

  const Graph& graph_;
  CoreId memory_;
  const Pieces& pieces_;
  Residency& states_; ///< knows the place of each piece in stored_
  TimelineWriter& timeline_;
  std::vector<bool> required_; ///< per tensor
  std::vector<Stored> stored_;
  std::vector<std::uint32_t> free_; ///< places in stored_ to be used again
  std::int64_t ever_ = 0;           ///< bits of everything that ever was there
};

} // namespace monet
