// Fills the lists of a timeline while tiles are placed; what rows have in common is stored once.
#pragma once

#include "schedule/cost/intern_table.hpp"
#include "schedule/place/network.hpp"

#include "monet/schedule/timeline.hpp"

#include <cstdint>
#include <vector>

namespace monet {

class FloorTracker;

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
  std::int64_t most_held(CoreId memory) const;

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
