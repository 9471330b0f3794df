#include "schedule/place/timeline_writer.hpp"

#include "schedule/place/schedule_floor.hpp"

#include "monet/base/checked.hpp"

#include <algorithm>
#include <tuple>

namespace monet {

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
  if (start == end) // sums that nobody reads, once they are rounded to their result
    return;
  auto& places = timeline_.places;
  const Place place{memory, bits};
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

std::int64_t TimelineWriter::most_held(CoreId memory) const {
  std::vector<std::pair<std::int64_t, std::int64_t>> changes; // (cycle, bits)
  for (const Stay& stay : timeline_.stays) {
    const Place& place = timeline_.place_of(stay);
    if (place.memory != memory)
      continue;
    changes.emplace_back(stay.start.value, place.bits.value);
    if (stay.end != Stay::kKept)
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
