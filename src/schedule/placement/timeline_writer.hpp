// Fills the lists of a timeline while tiles are placed; equal costs and places are stored once.
// Also bounds the latency and energy of the schedule under way from below.
#pragma once

#include "schedule/cost/intern_table.hpp"
#include "schedule/placement/network.hpp"
#include "schedule/shared/bounds.hpp"

#include "monet/schedule/schedule.hpp"
#include "monet/schedule/timeline.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace monet {

/// Lower bounds on the latency and energy of the finished schedule, which rise while tiles are
/// placed. The costs of all tiles, all streams and the compulsory traffic are known beforehand, and
/// bookings are never undone.
class FloorTracker {
public:
  FloorTracker(const TileGraph& tiles, const TrainingGraph& step, const Chip& chip,
               const TileCosts& costs);

  void add_transfer(const TransferRequest& request, const Booking& booking);
  /// Adds a run; the runs of a core must be added in order. `min_cycles` is the tile's minimum
  /// latency.
  void add_run(const TileRun& run, std::int64_t min_cycles);
  ScheduleFloor floor() const;

private:
  /// Bits between one tensor and the off-chip memory in one direction.
  struct Traffic {
    std::int64_t compulsory = 0, streamed = 0, fetched = 0;
    std::int64_t least() const { return std::max(compulsory, streamed + fetched); }
  };
  struct Direction {
    std::vector<Traffic> tensors;
    std::int64_t least = 0;  ///< lower bound on the bits of all tensors
    std::int64_t booked = 0; ///< bits of transfers so far
    void add(const TransferRequest& request, Bits bits);
  };

  const Chip& chip_;
  OffchipPort port_;
  Direction reads_;
  Direction writes_;
  std::int64_t runs_ = 0;           ///< energy of all tiles, in units of Energy
  std::int64_t moves_ = 0;          ///< energy of all transfers so far
  std::vector<std::int64_t> end_;   ///< per core: end of its last run
  std::vector<std::int64_t> rest_;  ///< per core: minimum cycles of later runs
  std::int64_t last_end_ = 0;       ///< of runs and transfers so far
  double leakage_pj_per_cycle_ = 0; ///< of all cores
};

/// Collects the runs, transfers and stays of a timeline.
class TimelineWriter {
public:
  /// Reports every transfer to `floor`.
  void watch(FloorTracker& floor) { floor_ = &floor; }
  /// Adds a row to Timeline::costs and returns its index.
  std::uint32_t add_cost(RunCost cost);
  void add_run(const TileRun& run) { timeline_.runs.push_back(run); }
  void add_transfer(const TransferRequest& request, const Booking& booking);
  /// Reserves space for the expected numbers of rows. Lists that become longer grow in proportion
  /// to the runs still expected, rather than to twice their size.
  void expect(std::size_t runs, std::size_t transfers, std::size_t stays);
  void add_stay(CoreId memory, TensorId tensor, Bits bits, Cycles start, Cycles end);

  /// Maximum bits that the stays so far occupy in the memory at one time.
  std::int64_t max_held(CoreId memory) const;

  /// Returns the timeline with sorted lists, without phases and live memory.
  Timeline finish(const Network& network);

private:
  template <class Row>
  void make_room(std::vector<Row>& rows) const;

  FloorTracker* floor_ = nullptr;
  std::size_t expected_runs_ = 0;
  Timeline timeline_;
  InternTable transfer_costs_;
  InternTable places_;
};

/// Compute phases and makespan, and live memory and its peak, from runs and transfers
/// (liveness.cpp).
void add_phases(const TrainingGraph& step, Timeline& timeline);
void add_liveness(const TrainingGraph& step, Timeline& timeline);

} // namespace monet
