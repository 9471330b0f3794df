// Brings pieces to the cores that need them (data_mover.cpp) and makes room for them
// (making_room.cpp).
#pragma once

#include "schedule/placement/network.hpp"
#include "schedule/placement/pieces.hpp"
#include "schedule/placement/residency.hpp"
#include "schedule/placement/row_counter.hpp"
#include "schedule/placement/timeline_writer.hpp"

#include <optional>
#include <span>
#include <vector>

namespace monet {

/// State of a schedule in which pieces are moved; the scheduler owns it.
struct PlacementState {
  Network& network;
  Residency& memory;
  const Pieces& pieces;
  TimelineWriter& timeline;
};

/// Moves data for one tile at a time: fetches, stores, streams and evicts pieces.
class DataMover {
public:
  DataMover(const TileGraph& tiles, const TrainingGraph& step, const Chip& chip,
            const TransferRules& rules, const PlacementState& state);

  /// Selects the tile for which data are moved, and its earliest start.
  void serve(TileId tile, std::int64_t start);

  /// Finds the part of the need that is in the tile's pool; sets `copy` and `missing`.
  void look_up(OperandRequest& need);
  /// Brings all needs into the tile's pool and pins them. Returns the cycle from which all of them
  /// are available.
  std::int64_t gather(std::span<OperandRequest> needs);
  /// Writes a piece to the off-chip memory if it is not there. Returns the cycle from which it is.
  std::int64_t store(PieceId piece);
  /// Evicts copies until `bits` fit into the tile's pool, by cycle `by` if possible. Returns the
  /// first cycle from which on they fit. Throws InfeasibleError, which names `tensor`, if they do
  /// not fit.
  std::int64_t make_room(Bits bits, TensorId tensor, std::int64_t by);
  /// Removes a copy. If it is the only one, it is first moved to another core or off-chip.
  void evict(CopyId id);
  /// A transfer of an operand between the tile's core and the off-chip memory while it runs.
  struct Streamed {
    Booking booking;
    std::int64_t arrival = 0; ///< of the last bit
  };
  Streamed stream(std::size_t operand, Bits bits, bool write, std::int64_t ready);
  /// Minimum cycles for which such a transfer occupies its links.
  std::int64_t streaming_time(std::size_t operand, Bits bits, bool write);

  /// Records that the tile has read the piece.
  void read_done(PieceId piece, std::optional<CopyId> copy);
  /// Records that the tile has made the piece. `copy` is its copy in memory; nullopt if the piece
  /// was streamed off-chip between `start` and `end`.
  void made(PieceId piece, std::optional<CopyId> copy, const KindOutput& output, std::int64_t start,
            std::int64_t end);
  void touch_offchip(PieceId piece, std::int64_t end) { offchip_.touch(piece, end); }
  void finish(Bits offchip_capacity);

private:
  /// Another pool that receives fetched data, for one of its tiles.
  struct Receiver {
    PoolId pool;
    TileId reader;
  };

  Bits read_of_parts(TensorId tensor, TileId maker);
  Booking book(const TransferRequest& request, std::int64_t ready);
  std::int64_t make_room_to_fetch(Bits bits, TensorId tensor, std::int64_t rows);
  TransferRequest stream_request(std::size_t operand, Bits bits, bool write);
  void fetch(OperandRequest& need);
  std::size_t fetch_together(std::span<OperandRequest> needs);
  Booking bring(std::span<OperandRequest> needs, Bits bits, CoreId from, std::int64_t ready,
                std::int64_t rows);
  void receive(OperandRequest& need, const Booking& booking);
  std::int64_t find_receivers(std::span<const OperandRequest> needs, Bits bits, CoreId from,
                              std::int64_t ready, std::int64_t latest);
  std::optional<TileId> next_reader(PieceId piece, PoolId pool) const;
  bool wants(const OperandRequest& need, PoolId pool, TileId reader);
  bool may_grow(CopyId id, const OperandRequest& need, TileId reader);
  bool drop_if_in_parts(std::optional<CopyId>& copy);
  void receive_too(const OperandRequest& need, const Receiver& receiver, const Booking& booking);
  std::optional<CopyId> nearest_copy(const OperandRequest& need, std::int64_t space) const;
  std::int64_t write(CopyId id, TransferKind kind);
  bool spare(CopyId id) const;
  std::optional<PoolId> other_room(const Copy& copy, TransferRequest request);
  std::optional<CopyId> move_to_a_core(CopyId id);
  void release_if_unused(CopyId id);
  void find_turns();
  bool beyond_this_turn(const Copy& copy) const;
  bool read_in_this_turn(PieceId piece) const;
  void release_for_this_turn(CopyId id);
  void retire(PieceId piece);
  bool only_offchip(const OperandRequest& need) const;
  CoreId gateway(CopyId id) const { return memory_.pool(memory_.copy(id).pool).gateway; }

  const TileGraph& tiles_;
  const Graph& graph_;
  const Chip& chip_;
  TransferRules rules_;
  Network& network_;
  Residency& memory_;
  const Pieces& pieces_;
  TimelineWriter& timeline_;
  OffchipMemory offchip_;
  RowCounter rows_;
  std::vector<TileId> part_readers_;
  // Buffers of read_of_parts().
  std::vector<Interval> ranges_;
  std::vector<Box> parts_;
  Box piece_;
  std::vector<Receiver> receivers_;
  std::vector<CoreId> also_;             ///< cores of receivers_
  std::vector<std::uint32_t> next_read_; ///< per pool: buffer of other_room()
  std::vector<std::uint32_t> turn_ends_; ///< per turn: highest rank of its tiles
  std::vector<bool> forgets_;            ///< per pool: keeps nothing for the next turn
  TileId tile_;
  std::int64_t start_ = 0; ///< earliest start of the tile
  OpId op_;
  PoolId pool_;
  CoreId core_; ///< core that transfers to and from the pool use
};

} // namespace monet
