// Fills the lists of a timeline while tiles are placed; what rows have in common is stored once.
// Bounds what a schedule under way comes to at least.
#pragma once

#include "schedule/cost/intern_table.hpp"
#include "schedule/placement/network.hpp"

#include "monet/schedule/bounds.hpp"
#include "monet/schedule/schedule.hpp"
#include "monet/schedule/timeline.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace monet {

/// Lower bounds of latency and energy of the finished schedule, which rise while tiles are placed:
/// what every tile costs on its core, every stream and the compulsory traffic are known before, and
/// what has been booked stays.
class FloorTracker {
public:
  FloorTracker(const TileGraph& tiles, const TrainingGraph& step, const Chip& chip,
               const TileCosts& costs);

  void add_transfer(const TransferRequest& request, const Booking& booking);
  /// A run of a tile; runs of a core come one after another.
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
    std::int64_t least = 0;  ///< bits of all tensors
    std::int64_t booked = 0; ///< bits in transfers so far
    void add(const TransferRequest& request, Bits bits);
  };

  const Chip& chip_;
  OffchipPort port_;
  Direction reads_;
  Direction writes_;
  std::int64_t runs_ = 0;           ///< energy of all tiles, in units of the ledger
  std::int64_t moves_ = 0;          ///< of all transfers so far
  std::vector<std::int64_t> end_;   ///< per core, of its last run
  std::vector<std::int64_t> rest_;  ///< per core, cycles of the runs to come
  std::int64_t last_end_ = 0;       ///< of runs and transfers
  double leakage_pj_per_cycle_ = 0; ///< of all cores
};

class TimelineWriter {
public:
  /// Tells it of every transfer.
  void watch(FloorTracker& floor) { floor_ = &floor; }
  /// A new row of Timeline::costs; its index.
  std::uint32_t add_cost(RunCost cost);
  void add_run(const TileRun& run) { timeline_.runs.push_back(run); }
  void add_transfer(const TransferRequest& request, const Booking& booking);
  /// How many rows are expected. Lists that turn out longer grow as far as the runs so far let
  /// expect, not to twice their size.
  void expect(std::size_t runs, std::size_t transfers, std::size_t stays);
  void add_stay(CoreId memory, TensorId tensor, Bits bits, Cycles start, Cycles end);

  /// Most bits that the stays so far take in the memory at one time.
  std::int64_t max_held(CoreId memory) const;

  /// The lists in their order. Phases and live memory are not filled in.
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

/// Fills phases, live, peak and makespan from runs and transfers (liveness.cpp).
void add_phases(const TrainingGraph& step, Timeline& timeline);
void add_liveness(const TrainingGraph& step, Timeline& timeline);

} // namespace monet
