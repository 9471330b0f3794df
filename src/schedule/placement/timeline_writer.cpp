// Writes the lists of a timeline, bounds the schedule under way, and derives events and energies
// from finished timelines. The event scheduler and DataMover feed it.
#include "schedule/placement/timeline_writer.hpp"

#include "base/shared/checked.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>

namespace monet {

std::string_view name_of(TransferKind kind) {
  static constexpr std::array<std::string_view, 4> kNames{"fetch", "stream", "write_back", "spill"};
  return kNames.at(static_cast<std::size_t>(kind));
}

std::vector<MemoryEvent> memory_events(const Timeline& timeline) {
  std::vector<MemoryEvent> events;
  events.reserve(2 * timeline.stays.size());
  for (const ResidencyInterval& stay : timeline.stays) {
    const MemorySlot& place = timeline.place_of(stay);
    events.push_back({stay.start, place.memory, stay.tensor, place.bits});
    if (stay.end != ResidencyInterval::kKept)
      events.push_back({stay.end, place.memory, stay.tensor, {-place.bits.value}});
  }
  const auto key = [](const MemoryEvent& e) {
    return std::tuple(e.time, e.delta.value > 0, e.memory, e.tensor, e.delta);
  };
  std::ranges::sort(events,
                    [&](const MemoryEvent& a, const MemoryEvent& b) { return key(a) < key(b); });
  return events;
}

EnergySplit energy_of(const Timeline& timeline) {
  EnergySplit split;
  for (const TileRun& run : timeline.runs) {
    const RunCost& cost = timeline.cost_of(run);
    split.compute += cost.compute;
    split.onchip_memory += cost.memory;
  }
  for (const Transfer& transfer : timeline.transfers) {
    const TransferCost& cost = timeline.cost_of(transfer);
    split.links += cost.link_energy;
    split.offchip += cost.offchip_energy;
    split.onchip_memory += cost.onchip_energy;
  }
  for (const Energy& leakage : timeline.leakage)
    split.leakage += leakage;
  return split;
}

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
  if (request.kind == TransferKind::stream) // counted beforehand
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

void FloorTracker::add_run(const TileRun& run, std::int64_t min_cycles) {
  end_[run.core.index()] = run.end.value;
  rest_[run.core.index()] -= min_cycles;
  last_end_ = std::max(last_end_, run.end.value);
}

ScheduleFloor FloorTracker::floor() const {
  ScheduleFloor floor;
  std::int64_t cycles = last_end_;
  for (std::size_t c = 0; c < end_.size(); ++c)
    cycles = std::max(cycles, end_[c] + rest_[c]);
  if (chip_.offchip)
    cycles = std::max(cycles, port_.min_cycles(reads_.least, writes_.least));
  floor.latency = {cycles};
  // Later energies are rounded to 1/64 pJ per transfer (at least one bit) and per core.
  constexpr double kRounding = 0.5 / Energy::kUnitsPerPicojoule;
  const auto to_come = [](const Direction& direction, double pj_per_bit) {
    return static_cast<double>(std::max<std::int64_t>(0, direction.least - direction.booked)) *
           std::max(0.0, pj_per_bit - kRounding);
  };
  const double offchip =
      to_come(reads_, port_.read_pj_per_bit) + to_come(writes_, port_.write_pj_per_bit);
  const double leakage = leakage_pj_per_cycle_ * static_cast<double>(cycles) -
                         kRounding * static_cast<double>(end_.size());
  constexpr double kSums = 1 - 1e-12; // rounding of sums of doubles
  floor.energy = {kSums * (static_cast<double>(runs_ + moves_) / Energy::kUnitsPerPicojoule +
                           offchip + std::max(0.0, leakage))};
  return floor;
}

std::uint32_t TimelineWriter::add_cost(RunCost cost) {
  timeline_.costs.push_back(std::move(cost));
  return static_cast<std::uint32_t>(timeline_.costs.size() - 1);
}

void TimelineWriter::add_transfer(const TransferRequest& request, const Booking& booking) {
  if (floor_ != nullptr)
    floor_->add_transfer(request, booking);
  auto& costs = timeline_.transfer_costs;
  const TransferCost cost{booking.route,          booking.bits,          booking.link_energy,
                          booking.offchip_energy, booking.onchip_energy, booking.rows};
  const auto words = [](const TransferCost& c) {
    return std::tuple(c.bits.value, c.link_energy.units, c.offchip_energy.units,
                      c.onchip_energy.units, c.route, c.rows);
  };
  std::uint64_t hash = mix(cost.route, cost.bits.value);
  hash = mix(hash, cost.link_energy.units);
  hash = mix(hash, cost.onchip_energy.units);
  const auto next = static_cast<std::uint32_t>(costs.size());
  const std::uint32_t index = transfer_costs_.find(
      hash, next, [&](std::uint32_t known) { return words(costs[known]) == words(cost); });
  if (index == next)
    costs.push_back(cost);
  make_room(timeline_.transfers);
  timeline_.transfers.push_back(
      {{booking.start}, {booking.end}, request.tensor, request.op, index, request.kind});
}

void TimelineWriter::add_stay(CoreId memory, TensorId tensor, Bits bits, Cycles start, Cycles end) {
  if (start == end) // sums that are not read once rounded to their result
    return;
  auto& places = timeline_.places;
  const MemorySlot place{memory, bits};
  const auto next = static_cast<std::uint32_t>(places.size());
  const std::uint32_t index =
      places_.find(mix(memory.value, bits.value), next,
                   [&](std::uint32_t known) { return places[known] == place; });
  if (index == next)
    places.push_back(place);
  make_room(timeline_.stays);
  timeline_.stays.push_back({start, end, tensor, index});
}

void TimelineWriter::expect(std::size_t runs, std::size_t transfers, std::size_t stays) {
  expected_runs_ = runs;
  timeline_.runs.reserve(runs);
  timeline_.transfers.reserve(transfers + transfers / 4 + 64);
  timeline_.stays.reserve(stays + stays / 32 + 64);
}

template <class Row>
void TimelineWriter::make_room(std::vector<Row>& rows) const {
  if (rows.size() < rows.capacity())
    return;
  const double part = static_cast<double>(timeline_.runs.size() + 1) /
                      static_cast<double>(std::max(expected_runs_, timeline_.runs.size()) + 1);
  const auto rest = static_cast<double>(rows.size()) * (1 / part - 1);
  rows.reserve(rows.size() + rows.size() / 16 + 64 +
               static_cast<std::size_t>(std::min(rest, static_cast<double>(rows.size()))));
}

std::int64_t TimelineWriter::max_held(CoreId memory) const {
  std::vector<std::pair<std::int64_t, std::int64_t>> changes; // (cycle, bits)
  for (const ResidencyInterval& stay : timeline_.stays) {
    const MemorySlot& place = timeline_.place_of(stay);
    if (place.memory != memory)
      continue;
    changes.emplace_back(stay.start.value, place.bits.value);
    if (stay.end != ResidencyInterval::kKept)
      changes.emplace_back(stay.end.value, -place.bits.value);
  }
  std::sort(changes.begin(), changes.end());
  std::int64_t held = 0;
  std::int64_t most = 0;
  for (const auto& [cycle, bits] : changes) {
    held = checked_add(held, bits);
    most = std::max(most, held);
  }
  return most;
}

Timeline TimelineWriter::finish(const Network& network) {
  timeline_.routes = network.routes();
  std::sort(timeline_.runs.begin(), timeline_.runs.end(), [](const TileRun& a, const TileRun& b) {
    return std::pair(a.start, a.tile) < std::pair(b.start, b.tile);
  });
  const auto key = [](const Transfer& t) {
    return std::tuple(t.start, t.end, t.kind, t.op, t.tensor, t.cost);
  };
  std::sort(timeline_.transfers.begin(), timeline_.transfers.end(),
            [&](const Transfer& a, const Transfer& b) { return key(a) < key(b); });
  return std::move(timeline_);
}

} // namespace monet
