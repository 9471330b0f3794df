// Brings pieces to where tiles need them (data_mover.cpp) and makes room for them
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

class DataMover {
public:
  DataMover(const TileGraph& tiles, const TrainingGraph& step, const Chip& chip,
            const TransferRules& rules, Network& network, Residency& memory, const Pieces& pieces,
            TimelineWriter& timeline);

  /// For whom things are moved, and when it could start: names in messages, energies, next uses.
  void serve(TileId tile, std::int64_t start);

  /// What of the need is in the pool: sets `copy` and `missing`.
  void look_up(OperandRequest& need);
  /// Sees to it that all needs are in the tile's pool, and pins them; the cycle from which they
  /// are.
  std::int64_t gather(std::span<OperandRequest> needs);
  /// Sees to it that a piece is in the off-chip memory; the cycle from which it is.
  std::int64_t store(PieceId piece);
  /// Makes room in the tile's pool; the first cycle from which on it is there, which need not be
  /// before `by`. `tensor` is named when there is none.
  std::int64_t make_room(Bits bits, TensorId tensor, std::int64_t by);
  /// Gives up a copy, after moving it to another core or off-chip where it is the only one.
  void evict(CopyId id);
  /// A transfer of an operand between the tile's core and the off-chip memory while it runs.
  struct Streamed {
    Booking booking;
    std::int64_t arrival = 0; ///< of the last bit
  };
  Streamed stream(std::size_t operand, Bits bits, bool write, std::int64_t ready);
  /// Cycles for which such a transfer takes its links at least.
  std::int64_t streaming_time(std::size_t operand, Bits bits, bool write);

  /// The tile has read the piece.
  void read_done(PieceId piece, std::optional<CopyId> copy);
  /// The tile has made the piece; `copy` is where it lies, none when it flowed out between `start`
  /// and `end`.
  void made(PieceId piece, std::optional<CopyId> copy, const KindOutput& output, std::int64_t start,
            std::int64_t end);
  void touch_offchip(PieceId piece, std::int64_t end) { offchip_.touch(piece, end); }
  void finish(Bits offchip_capacity);

private:
  /// Another pool that gets what is fetched, for a tile of its own.
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
  // Of read_of_parts(), kept for their storage.
  std::vector<Interval> ranges_;
  std::vector<Box> parts_;
  Box piece_;
  std::vector<Receiver> receivers_;
  std::vector<CoreId> also_;             ///< their cores
  std::vector<std::uint32_t> next_read_; ///< per pool: of other_room(), kept for its storage
  std::vector<std::uint32_t> turn_ends_; ///< per turn: the last rank of its tiles
  std::vector<bool> forgets_;            ///< per pool: nothing stays for the next turn
  TileId tile_;
  std::int64_t start_ = 0; ///< of the tile, as far as it is known
  OpId op_;
  PoolId pool_;
  CoreId core_; ///< that transfers to and from the pool use
};

} // namespace monet
