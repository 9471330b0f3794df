// Transfers of the reference scheduler: moves tensors, makes room for them and reserves links for
// streams. The main loop (coala.cpp) calls this for every tile.
#include "reference/stream/schedule/coala.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace monet::stream {

namespace {

std::int64_t share(double fraction, std::int64_t bandwidth) {
  return static_cast<std::int64_t>(std::ceil(fraction * static_cast<double>(bandwidth)));
}

double access_energy(std::int64_t bits, std::int64_t word, double energy_pj) {
  return static_cast<double>(ceil_div(bits, word)) * energy_pj;
}

} // namespace

std::uint32_t Coala::memory(CoreId core, MemoryOperand operand) const {
  const std::uint32_t top = fabric_.top(core, operand);
  if (top == kNone) {
    throw InfeasibleError(fmt::format("{}: core {} ('{}') has no memory for operand {}", place(),
                                      core.index(), chip_.cores[core.index()].name,
                                      name_of(operand)));
  }
  return top;
}

void Coala::does_not_fit(std::uint32_t object, std::uint32_t memory, std::int64_t missing,
                         std::string_view why) const {
  const TopMemory& top = fabric_.memories()[memory];
  throw InfeasibleError(fmt::format(
      "{}: {} of {} bits does not fit into '{}' of core {} ({} bits): {}; {} bits are missing",
      place(), workload_.name_of(tensor_of(object)), objects_[object].bits, top.name,
      top.cores.front().index(), top.capacity.value, why, missing));
}

void Coala::add_to_memory(std::uint32_t object, std::uint32_t memory, double since,
                          double available) {
  const Object& what = objects_[object];
  if (storage_.contains(what.content, memory))
    return;
  // Like the reference, this checks only recorded times from `since` on, not `since` itself.
  const std::int64_t capacity = fabric_.memories()[memory].capacity.value;
  const std::optional<std::int64_t> later = usage_[memory].max_from(since);
  const bool overfull = later && *later + what.bits > capacity;
  if (overfull && fabric_.memories()[memory].cores.front() == offchip_)
    does_not_fit(object, memory, *later + what.bits - capacity, "it is full");
  if (overfull) {
    note("overfull memories",
         fmt::format(
             "{} leaves '{}' of core {} with {} bits too many later on; the reference stops "
             "here, and the memory is overfull",
             workload_.name_of(tensor_of(object)), fabric_.memories()[memory].name,
             fabric_.memories()[memory].cores.front().index(), *later + what.bits - capacity));
  }
  storage_.insert({object, what.content, memory, since, available});
  usage_[memory].add(since, what.bits);
}

void Coala::remove_from_memory(std::uint32_t content, std::uint32_t memory, double time) {
  const Storage::MemoryContent* holding = storage_.find(content, memory);
  if (holding == nullptr)
    return; // already removed after it was sent on
  usage_[memory].add(time, -objects_[holding->object].bits);
  storage_.erase(content, memory);
}

/// Remaining uses of an object in a memory. A memory without readers (where the tensor was made or
/// passed through) counts the remaining uses of all memories that lack the tensor.
std::int64_t Coala::priority(std::uint32_t object, std::uint32_t memory) const {
  if (object >= workload_.tensors.size())
    return 0; // parts are not counted
  std::int64_t elsewhere = 0;
  for (const Priorities::Count& count : priorities_.of(object)) {
    if (count.memory == memory)
      return count.left;
    if (!storage_.contains(objects_[object].content, count.memory))
      elsewhere += count.left;
  }
  return elsewhere;
}

/// The copy to be sent: that of `sender` if given and present, otherwise the oldest.
const Storage::MemoryContent* Coala::source_of(std::uint32_t object,
                                               std::optional<CoreId> sender) const {
  const std::uint32_t content = objects_[object].content;
  const Storage::MemoryContent* own =
      sender ? storage_.find(content, memory(*sender, own_operand(object))) : nullptr;
  return own != nullptr ? own : storage_.oldest(content);
}

/// Transfers an object. Returns the time from which it is in the receiver's memory; `earliest` if
/// it is there already.
double Coala::transfer(const Move& move, double earliest, std::optional<CoreId> sender) {
  const auto [object, receiver, operand, fraction, cause] = move;
  if (present(object, receiver))
    return earliest;
  const Storage::MemoryContent* held = source_of(object, sender);
  if (held == nullptr) {
    note("tensors that are nowhere",
         workload_.name_of(tensor_of(object)) +
             " is in no memory any more; the reference stops here, and it is treated as off-chip");
    const double since = std::max(earliest, 0.0);
    add_to_memory(object, memory(offchip_, own_operand(object)), since, since);
    held = source_of(object, sender);
  }
  const double ready = make_space(object, receiver, operand, std::max(earliest, held->available));
  held = source_of(object, sender); // evictions may have removed the copy
  internal_check(held != nullptr, "a tensor was evicted while it was wanted");
  const CoreId from = fabric_.memories()[held->memory].cores.front();
  if (from == receiver) {
    note("moves within a core", workload_.name_of(tensor_of(object)) +
                                    " is in another outermost memory of the same core; the "
                                    "reference stops here, and the move has no duration");
    add_to_memory(object, memory(receiver, operand), ready, ready);
    return ready;
  }
  const std::uint32_t source = held->memory;
  const double end = send(move, from, ready);
  if (from != offchip_ && !present(object, from)) {
    note("tensors in another memory",
         workload_.name_of(tensor_of(object)) +
             " leaves a memory of its core that is not the one of outputs; the reference stops "
             "here, and it leaves that memory");
  }
  // A passed-on copy is dropped if it has no remaining uses there.
  const bool made_here = from == workload_.tiles[tensor_of(object).tile].core;
  if (from != offchip_ && !made_here && priority(object, source) == 0)
    remove_from_memory(objects_[object].content, source, end);
  return end;
}

/// Books the links from one core to another in the first free window from `ready` on, and adds the
/// energy. Returns the time of arrival.
double Coala::send(const Move& move, CoreId from, double ready) {
  const auto [object, receiver, operand, fraction, cause] = move;
  const std::span<const LinkId> path = fabric_.path(from, receiver);
  if (path.empty()) {
    throw InfeasibleError(fmt::format("{}: no route for {} from core {} to core {}", place(),
                                      workload_.name_of(tensor_of(object)), from.index(),
                                      receiver.index()));
  }
  requests_.clear();
  std::int64_t slowest = std::numeric_limits<std::int64_t>::max();
  for (const LinkId link : path) {
    const std::int64_t wanted = share(fraction, links_[link.index()].bandwidth());
    slowest = std::min(slowest, wanted);
    requests_.push_back({link.index(), wanted});
  }
  const std::int64_t bits = objects_[object].bits;
  const double duration = static_cast<double>(ceil_div(bits, slowest));
  LinkEvent event;
  event.sender = from;
  event.receiver = receiver;
  event.start = first_common_window(links_, requests_, ready, duration);
  event.end = event.start + duration;
  add_to_memory(object, memory(receiver, operand), event.start, event.end);
  const auto term = static_cast<std::size_t>(
      cause.value_or(from == offchip_ ? Cause::offchip : Cause::core_to_core));
  result_.energy.link_pj[term] += book_path(object, path, event, fraction);
  const TopMemory& read = fabric_.memories()[memory(from, own_operand(object))];
  const TopMemory& written = fabric_.memories()[memory(receiver, operand)];
  result_.energy.memory_pj[term] += access_energy(bits, read.read_bits, read.read_pj) +
                                    access_energy(bits, written.write_bits, written.write_pj);
  return event.end;
}

/// Books all links of a path; a link that occurs twice is booked once. Returns the energy of the
/// new bookings.
double Coala::book_path(std::uint32_t object, std::span<const LinkId> path, LinkEvent event,
                        double fraction) {
  double energy = 0;
  bool all_new = true;
  event.kind = LinkEvent::Kind::transfer;
  for (const LinkId link : path) {
    const Link& known = chip_.links[link.index()];
    const bool offchip = known.reach != LinkReach::forward && known.reach != LinkReach::any_pair;
    event.link = link;
    event.bandwidth = share(fraction, known.bandwidth_bits_per_cycle);
    event.energy_pj = (event.end - event.start) *
                      (offchip ? chip_.unit_energy_cost : known.energy_pj_per_cycle) * fraction;
    if (book(event, object)) {
      energy += event.energy_pj;
    } else {
      all_new = false;
    }
  }
  if (all_new)
    last_link_end_ = std::max(last_link_end_, event.end);
  return energy;
}

/// Books a link event. Returns false and books nothing if it is empty, or if the object already has
/// an event on the link with the same start, which then serves both.
bool Coala::book(const LinkEvent& event, std::uint32_t object) {
  if (event.start == event.end)
    return false;
  for (std::uint32_t e = objects_[object].last_event; e != Storage::kNil; e = previous_event_[e]) {
    if (result_.events[e].link == event.link && result_.events[e].start == event.start)
      return false;
  }
  links_[event.link.index()].book(event.start, event.end, event.bandwidth);
  previous_event_.push_back(objects_[object].last_event);
  objects_[object].last_event = static_cast<std::uint32_t>(result_.events.size());
  result_.events.push_back(event);
  result_.events.back().tensor = objects_[object].tensor;
  result_.events.back().bits = {objects_[object].bits};
  return true;
}

/// Makes space for an object and returns the time from which it may arrive. As in the reference,
/// free time is searched in the memory of `operand`, but victims are chosen in the memory of the
/// object's own operand and removed from the former.
double Coala::make_space(std::uint32_t object, CoreId core, MemoryOperand operand, double when) {
  const std::uint32_t target = memory(core, operand);
  const std::uint32_t own = memory(core, own_operand(object));
  const std::int64_t bits = objects_[object].bits;
  const double room =
      usage_[target].room_from(when, bits, fabric_.memories()[target].capacity.value);
  const std::int64_t capacity = fabric_.memories()[own].capacity.value;
  if (bits > capacity)
    does_not_fit(object, own, bits - capacity, "it is larger than the memory");
  const std::int64_t need = bits - (capacity - usage_[own].at(room));
  if (need <= 0)
    return std::max(room, when);
  if (core == offchip_)
    does_not_fit(object, own, need, "nothing can be evicted from the off-chip memory");
  const std::vector<std::uint32_t> out = victims(own, room, need);
  if (out.empty())
    does_not_fit(object, own, need, "too little can be evicted");
  for (const std::uint32_t victim : out) {
    const double end =
        remove(victim, core, operand, when, fraction_of(tensor_of(victim).layer), Cause::eviction);
    when = std::max(when, end);
  }
  return std::max(room, when);
}

/// The least important objects that together free `need` bits, ordered by remaining uses times
/// size, then size, then age. Empty if all together are too small.
std::vector<std::uint32_t> Coala::victims(std::uint32_t memory, double when, std::int64_t need) {
  candidates_.clear();
  std::int64_t all = 0;
  storage_.for_each_in(memory, [&](const Storage::MemoryContent& holding) {
    if (holding.since > when || needed(holding.object))
      return;
    const std::int64_t bits = objects_[holding.object].bits;
    all += bits;
    candidates_.push_back(
        {static_cast<double>(priority(holding.object, memory)) * static_cast<double>(bits), bits,
         candidates_.size(), holding.object});
  });
  std::vector<std::uint32_t> chosen;
  if (all < need)
    return chosen;
  // Only few of many candidates are needed, so a heap is faster than sorting.
  std::make_heap(candidates_.begin(), candidates_.end(), std::greater<>());
  for (std::int64_t freed = 0; freed < need; candidates_.pop_back()) {
    std::pop_heap(candidates_.begin(), candidates_.end(), std::greater<>());
    freed += candidates_.back().bits;
    chosen.push_back(candidates_.back().object);
  }
  return chosen;
}

/// Removes an object from a core's memory. With `write_back`, it is first written off-chip unless
/// present there. Returns the time of removal.
double Coala::remove(std::uint32_t object, CoreId core, MemoryOperand operand, double when,
                     double fraction, std::optional<Cause> write_back) {
  if (write_back && !present(object, offchip_)) {
    const double end = transfer({object, offchip_, operand, fraction, write_back}, 0, core);
    when = std::max(when, end);
  }
  remove_from_memory(objects_[object].content, memory(core, operand), when);
  return when;
}

/// Reserves bandwidth of the off-chip links for all streamed operands while the tile runs. Returns
/// the time at which the tile may start.
double Coala::block(const Tile& tile, double start, double duration) {
  if (streamed_.empty())
    return start;
  const TileCost& cost = costs_.of(tile_);
  blocked_.clear();
  const auto add = [&](std::span<const LinkId> path, bool output) {
    for (std::size_t i = 0; i < path.size(); ++i) {
      if (std::find(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(i), path[i]) !=
          path.begin() + static_cast<std::ptrdiff_t>(i))
        continue;
      for (const MemoryOperand operand : streamed_) {
        if ((operand == MemoryOperand::O) != output)
          continue;
        for (std::size_t o = 0; o < kOperands; ++o) {
          if (memory_of(static_cast<Operand>(o)) != operand || tile.tensors[o] == kNone)
            continue;
          blocked_.push_back({path[i], operand, tile.tensors[o],
                              cost.offchip_bandwidth[static_cast<std::size_t>(operand)]});
        }
      }
    }
  };
  add(fabric_.path(tile.core, offchip_), true);
  add(fabric_.path(offchip_, tile.core), false);
  start = find_block_window(start, duration);
  LinkEvent event;
  event.kind = LinkEvent::Kind::block;
  event.start = start;
  event.end = start + duration;
  for (const Blocked& blocked : blocked_) {
    const bool output = blocked.operand == MemoryOperand::O;
    event.link = blocked.link;
    event.bandwidth = blocked.bandwidth;
    event.energy_pj = costs_.of(tensor_of(blocked.object).tile).offchip_pj;
    event.sender = output ? tile.core : offchip_;
    event.receiver = output ? offchip_ : tile.core;
    if (book(event, blocked.object))
      last_link_end_ = std::max(last_link_end_, event.end);
  }
  return start;
}

/// The first window for the reservations in blocked_. Requests of a link are summed; if the sum
/// exceeds its bandwidth, they are scaled down, each rounded down.
double Coala::find_block_window(double start, double duration) const {
  requests_.clear();
  for (std::size_t i = 0; i < blocked_.size(); ++i) {
    const std::size_t link = blocked_[i].link.index();
    if (std::ranges::any_of(requests_,
                            [link](const LinkRequest& known) { return known.link == link; }))
      continue;
    std::int64_t sum = 0;
    for (const Blocked& other : blocked_)
      sum += other.link.index() == link ? other.bandwidth : 0;
    if (sum > links_[link].bandwidth()) {
      const double scale = static_cast<double>(links_[link].bandwidth()) / static_cast<double>(sum);
      sum = 0;
      for (const Blocked& other : blocked_) {
        if (other.link.index() == link)
          sum +=
              static_cast<std::int64_t>(std::floor(scale * static_cast<double>(other.bandwidth)));
      }
    }
    requests_.push_back({link, sum});
  }
  return first_common_window(links_, requests_, start, duration);
}

} // namespace monet::stream
