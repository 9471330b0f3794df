#include "schedule/place/schedule_floor.hpp"

#include <algorithm>

namespace monet {

FloorTracker::FloorTracker(const TileGraph& tiles, const TrainingGraph& step, const Chip& chip,
                           const TileCosts& costs)
    : chip_(chip), port_(offchip_port(chip)), end_(chip.cores.size(), 0),
      rest_(chip.cores.size(), 0) {
  const CompulsoryTraffic compulsory = compulsory_traffic(step.graph);
  for (const std::int64_t bits : compulsory.read)
    reads_.tensors.push_back({bits});
  for (const std::int64_t bits : compulsory.written)
    writes_.tensors.push_back({bits});
  for (std::size_t t = 0; t < tiles.tiles.size(); ++t) {
    const Tile& tile = tiles.tiles[t];
    const CoreCost& cost = *costs.rows[costs.row_of[t]].cost;
    runs_ += (Energy::from(cost.compute_energy) + Energy::from(cost.memory_energy)).units;
    rest_[tile.core.index()] += std::max<std::int64_t>(1, cost.latency.value);
    const auto& operands = step.graph.op(tile.op).nest.operands;
    for (std::size_t k = 0; k < cost.offchip.size(); ++k) {
      reads_.tensors[operands[k].tensor.index()].streamed += cost.offchip[k].read.value;
      writes_.tensors[operands[k].tensor.index()].streamed += cost.offchip[k].write.value;
    }
  }
  for (Direction* direction : {&reads_, &writes_}) {
    for (const Traffic& of : direction->tensors)
      direction->least += of.least();
  }
  for (std::size_t c = 0; c < chip.cores.size(); ++c)
    leakage_pj_per_cycle_ += leakage_per_cycle(chip, CoreId(c));
}

void FloorTracker::Direction::add(const TransferRequest& request, Bits bits) {
  booked += bits.value;
  if (request.kind == TransferKind::stream) // those were counted before
    return;
  Traffic& of = tensors[request.tensor.index()];
  least -= of.least();
  of.fetched += bits.value;
  least += of.least();
}

void FloorTracker::add_transfer(const TransferRequest& request, const Booking& booking) {
  moves_ += booking.link_energy.units + booking.onchip_energy.units + booking.offchip_energy.units;
  last_end_ = std::max(last_end_, booking.end);
  if (request.from == chip_.offchip)
    reads_.add(request, booking.bits);
  if (request.to == chip_.offchip)
    writes_.add(request, booking.bits);
}

void FloorTracker::add_run(const TileRun& run, std::int64_t least_cycles) {
  end_[run.core.index()] = run.end.value;
  rest_[run.core.index()] -= least_cycles;
  last_end_ = std::max(last_end_, run.end.value);
}

ScheduleFloor FloorTracker::floor() const {
  ScheduleFloor floor;
  std::int64_t cycles = last_end_;
  for (std::size_t c = 0; c < end_.size(); ++c)
    cycles = std::max(cycles, end_[c] + rest_[c]);
  if (chip_.offchip)
    cycles = std::max(cycles, port_cycles(port_, reads_.least, writes_.least));
  floor.latency = {cycles};
  // What is to come is rounded to 1/64 pJ per transfer, of one bit at least, and per core.
  constexpr double kRounding = 0.5 / Energy::kUnitsPerPicojoule;
  const auto to_come = [](const Direction& direction, double pj_per_bit) {
    return static_cast<double>(std::max<std::int64_t>(0, direction.least - direction.booked)) *
           std::max(0.0, pj_per_bit - kRounding);
  };
  const double offchip =
      to_come(reads_, port_.read_pj_per_bit) + to_come(writes_, port_.write_pj_per_bit);
  const double leakage = leakage_pj_per_cycle_ * static_cast<double>(cycles) -
                         kRounding * static_cast<double>(end_.size());
  constexpr double kSums = 1 - 1e-12; // of doubles
  floor.energy = {kSums * (static_cast<double>(runs_ + moves_) / Energy::kUnitsPerPicojoule +
                           offchip + std::max(0.0, leakage))};
  return floor;
}

} // namespace monet
