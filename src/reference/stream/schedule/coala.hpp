// Coala: state and steps of the reference scheduler. One object schedules one workload.
#pragma once

#include "reference/stream/schedule/fabric.hpp"
#include "reference/stream/schedule/link_activity.hpp"
#include "reference/stream/schedule/memory.hpp"

#include "monet/reference/stream_tiles.hpp"

#include <compare>
#include <map>
#include <optional>
#include <queue>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace monet::stream {

class Coala {
public:
  Coala(const Workload& workload, const Chip& chip, const Costs& costs);
  Result run();

private:
  /// A tensor, or the part of a tensor that one tile needs. The first objects are the workload's
  /// tensors.
  struct Object {
    std::uint32_t tensor = 0;
    std::uint32_t content = 0;                ///< objects of equal content share memory
    std::uint32_t last_event = Storage::kNil; ///< latest link event
    std::int64_t bits = 0;
  };
  struct OperandRequest {
    std::uint32_t object = 0; ///< the tensor or a part of it
    std::uint32_t tensor = 0;
    MemoryOperand operand = MemoryOperand::I1; ///< memory operand in the tile's core
  };
  struct Move {
    std::uint32_t object = 0;
    CoreId receiver;
    MemoryOperand operand = MemoryOperand::I1; ///< memory operand in the receiver
    double fraction = 1;                       ///< share of the bandwidth of links
    std::optional<Cause> cause = std::nullopt; ///< nullopt: follows from the sender
  };
  struct Cut {
    std::vector<Interval> ranges; ///< per axis of the operand
    double ratio = 1;             ///< bits of the whole over bits of the part
  };
  struct Candidate { ///< candidate for eviction; the smallest is evicted first
    double importance = 0;
    std::int64_t bits = 0;
    std::size_t age = 0;
    std::uint32_t object = 0;
    friend auto operator<=>(const Candidate&, const Candidate&) = default;
  };
  struct Blocked {
    LinkId link;
    MemoryOperand operand = MemoryOperand::O;
    std::uint32_t object = 0;
    std::int64_t bandwidth = 0;
  };

  // coala.cpp: scheduling of a tile
  void schedule_tile(std::uint32_t tile);
  void list_needs(const Tile& tile, std::uint32_t index);
  void cut_needs(std::uint32_t index);
  std::optional<Cut> cut_of(const Tensor& whole, std::uint32_t tile) const;
  std::uint32_t part_of(std::uint32_t tensor, std::uint32_t tile);
  void reconsider_streams(const Tile& tile);
  void synchronise_cores(std::uint32_t tile);
  double clear_memories(CoreId core, double time, double fraction);
  double fetch_needs(CoreId core, double time, double fraction);
  void release(const Tile& tile, std::uint32_t index, double end, double fraction);
  void drop_used_up(std::uint32_t tensor, double end);

  // transfers.cpp: transfers and memory contents
  double transfer(const Move& move, double earliest, std::optional<CoreId> sender);
  const Storage::MemoryContent* source_of(std::uint32_t object, std::optional<CoreId> sender) const;
  double send(const Move& move, CoreId from, double ready);
  double make_space(std::uint32_t object, CoreId core, MemoryOperand operand, double when);
  std::vector<std::uint32_t> victims(std::uint32_t memory, double when, std::int64_t need);
  double remove(std::uint32_t object, CoreId core, MemoryOperand operand, double when,
                double fraction, std::optional<Cause> write_back);
  double block(const Tile& tile, double start, double duration);
  double find_block_window(double start, double duration) const;
  bool book(const LinkEvent& event, std::uint32_t object);
  double book_path(std::uint32_t object, std::span<const LinkId> path, LinkEvent event,
                   double fraction);
  void add_to_memory(std::uint32_t object, std::uint32_t memory, double since, double available);
  void remove_from_memory(std::uint32_t content, std::uint32_t memory, double time);
  std::int64_t priority(std::uint32_t object, std::uint32_t memory) const;

  const Tensor& tensor_of(std::uint32_t object) const {
    return workload_.tensors[objects_[object].tensor];
  }
  MemoryOperand own_operand(std::uint32_t object) const {
    return memory_of(tensor_of(object).operand);
  }
  std::uint32_t memory(CoreId core, MemoryOperand operand) const;
  bool present(std::uint32_t object, CoreId core) const {
    return storage_.contains(objects_[object].content, memory(core, own_operand(object)));
  }
  bool needed(std::uint32_t object) const { return needed_by_[object] == tile_; }
  bool streams(MemoryOperand operand) const;
  double fraction_of(std::uint32_t layer) const {
    return 1.0 / static_cast<double>(workload_.layers[layer].inter_splits);
  }
  std::string place() const; ///< the tile being scheduled, for messages
  [[noreturn]] void does_not_fit(std::uint32_t object, std::uint32_t memory, std::int64_t missing,
                                 std::string_view why) const;
  void note(const char* name, const std::string& what);

  const Workload& workload_;
  const Chip& chip_;
  const Costs& costs_;
  Fabric fabric_;
  Priorities priorities_;
  CoreId offchip_;
  std::vector<LinkActivity> links_;
  Storage storage_;
  std::vector<Usage> usage_; ///< per memory
  std::vector<Object> objects_;
  std::vector<std::uint32_t> previous_event_; ///< per event: previous event of the object
  std::vector<std::uint32_t> first_axis_;     ///< per layer, into axis_names_
  std::vector<std::uint32_t> axis_names_;     ///< per layer and axis: number of its name
  std::vector<std::uint32_t> last_rank_;      ///< per layer: greatest rank of its tiles
  std::vector<bool> takes_part_;              ///< per core: whether any tile runs on it
  std::vector<double> idle_from_;             ///< per core
  std::vector<std::uint32_t> waiting_for_;    ///< per tile: predecessors not yet scheduled
  std::vector<bool> scheduled_;               ///< per tile
  using Ready = std::pair<std::uint32_t, std::uint32_t>; ///< rank, tile
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready_;

  // State of the tile being scheduled.
  std::uint32_t tile_ = 0;
  std::vector<OperandRequest> needs_;
  std::vector<std::uint32_t> needed_by_; ///< per object: the last tile that needed it
  /// Contents of parts, by origin and ranges.
  std::map<std::tuple<std::uint32_t, Operand, std::vector<Interval>>, std::uint32_t> parts_;
  std::vector<MemoryOperand> streamed_;
  std::vector<Blocked> blocked_;
  std::vector<Candidate> candidates_;
  mutable std::vector<LinkRequest> requests_;

  double last_link_end_ = 0;
  Result result_;
};

} // namespace monet::stream
