#include "reference/stream/schedule/memory.hpp"

#include <algorithm>

namespace monet::stream {

namespace {

/// Index of the first time not before (or, with `after`, behind) a time that may be fractional.
std::size_t first_index(const std::vector<std::int64_t>& times, double time, bool after) {
  const auto at = std::partition_point(times.begin(), times.end(), [&](std::int64_t t) {
    const auto known = static_cast<double>(t);
    return after ? known <= time : known < time;
  });
  return static_cast<std::size_t>(at - times.begin());
}

} // namespace

double Usage::room_from(double when, std::int64_t bits, std::int64_t capacity) const {
  for (;;) {
    const std::size_t next = first_index(times_, when, true);
    if (next == times_.size())
      return when; // not checked: the reference evicts later if need be
    const std::size_t from = next == 0 ? 0 : next - 1;
    std::size_t fullest = from;
    for (std::size_t i = from; i < bits_.size(); ++i) {
      if (bits_[i] >= bits_[fullest])
        fullest = i;
    }
    if (bits_[fullest] + bits <= capacity)
      return when;
    if (fullest + 1 == bits_.size())
      return static_cast<double>(times_[fullest]);
    when = static_cast<double>(times_[fullest + 1]);
  }
}

std::int64_t Usage::at(double time) const {
  const std::size_t next = first_index(times_, time, true);
  return bits_[next == 0 ? 0 : next - 1];
}

std::optional<std::int64_t> Usage::most_from(double time) const {
  const std::size_t first = first_index(times_, time, false);
  if (first == bits_.size())
    return std::nullopt;
  return *std::max_element(bits_.begin() + static_cast<std::ptrdiff_t>(first), bits_.end());
}

void Usage::add(double time, std::int64_t bits) {
  const std::size_t index = first_index(times_, time, false);
  const bool known = index < times_.size() && static_cast<double>(times_[index]) == time;
  for (std::size_t i = index; i < bits_.size(); ++i)
    bits_[i] += bits;
  if (known)
    return;
  const auto offset = static_cast<std::ptrdiff_t>(index);
  const std::int64_t before = index == 0 ? 0 : bits_[index - 1];
  constexpr double kLatest = 9e18; // far beyond what any costs add up to; the cast must be defined
  times_.insert(times_.begin() + offset, static_cast<std::int64_t>(std::min(time, kLatest)));
  bits_.insert(bits_.begin() + offset, before + bits);
}

std::int64_t Usage::peak() const {
  return *std::ranges::max_element(bits_);
}

const Storage::Holding* Storage::find(std::uint32_t content, std::uint32_t memory) const {
  for (std::uint32_t h = holdings_of_[content]; h != kNil; h = pool_[h].next_of_content) {
    if (pool_[h].memory == memory)
      return &pool_[h];
  }
  return nullptr;
}

const Storage::Holding* Storage::oldest(std::uint32_t content) const {
  const Holding* best = nullptr;
  for (std::uint32_t h = holdings_of_[content]; h != kNil; h = pool_[h].next_of_content) {
    const Holding& holding = pool_[h];
    if (best == nullptr || holding.available < best->available ||
        (holding.available == best->available && holding.memory < best->memory))
      best = &holding;
  }
  return best;
}

void Storage::insert(const Holding& holding) {
  std::uint32_t index = static_cast<std::uint32_t>(pool_.size());
  if (free_.empty()) {
    pool_.push_back(holding);
  } else {
    index = free_.back();
    free_.pop_back();
    pool_[index] = holding;
  }
  Holding& placed = pool_[index];
  placed.next_of_content = holdings_of_[placed.content];
  holdings_of_[placed.content] = index;
  placed.next_in_memory = kNil;
  placed.previous_in_memory = last_[placed.memory];
  (last_[placed.memory] == kNil ? first_[placed.memory]
                                : pool_[last_[placed.memory]].next_in_memory) = index;
  last_[placed.memory] = index;
}

void Storage::erase(std::uint32_t content, std::uint32_t memory) {
  std::uint32_t* link = &holdings_of_[content];
  while (*link != kNil && pool_[*link].memory != memory)
    link = &pool_[*link].next_of_content;
  if (*link == kNil)
    return;
  const std::uint32_t index = *link;
  const Holding& gone = pool_[index];
  *link = gone.next_of_content;
  (gone.previous_in_memory == kNil ? first_[memory]
                                   : pool_[gone.previous_in_memory].next_in_memory) =
      gone.next_in_memory;
  (gone.next_in_memory == kNil ? last_[memory] : pool_[gone.next_in_memory].previous_in_memory) =
      gone.previous_in_memory;
  free_.push_back(index);
}

} // namespace monet::stream
