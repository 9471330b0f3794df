// Finds the first cycle from which on a memory has room. residency.cpp has one profile per pool.
#include "schedule/placement/memory_profile.hpp"

#include "monet/base/errors.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace monet {

void MemoryProfile::sum_up(Block& block) {
  block.stale = false;
  block.change = 0;
  block.most = std::numeric_limits<std::int64_t>::min();
  for (auto step = block.steps.rbegin(); step != block.steps.rend(); ++step) {
    block.change += step->change;
    block.most = std::max(block.most, -block.change);
  }
}

void MemoryProfile::add(std::int64_t time, std::int64_t change) {
  if (change == 0)
    return;
  held_ += change;
  last_.limit = -1;
  if (blocks_.empty())
    blocks_.emplace_back();
  // Most times are near the last ones: finds the last block that begins no later.
  std::size_t b = blocks_.size() - 1;
  while (b > 0 && blocks_[b].steps.front().time > time)
    --b;
  Block& block = blocks_[b];
  auto at = block.steps.end();
  while (at != block.steps.begin() && (at - 1)->time > time)
    --at;
  if (at != block.steps.begin() && (at - 1)->time == time) {
    (at - 1)->change += change;
  } else {
    block.steps.insert(at, {time, change});
  }
  block.stale = true;
  if (block.steps.size() <= kMaxSteps)
    return;
  Block later;
  later.steps.assign(block.steps.begin() + kMaxSteps / 2, block.steps.end());
  block.steps.resize(kMaxSteps / 2);
  later.stale = true;
  blocks_.insert(blocks_.begin() + static_cast<std::ptrdiff_t>(b) + 1, std::move(later));
  if (blocks_.size() > kMaxBlocks)
    forget();
}

std::int64_t MemoryProfile::below_from(std::int64_t limit) const {
  internal_check(held_ <= limit, "more is held for ever than is asked for");
  if (last_.limit != limit)
    last_ = {limit, search(limit)};
  return last_.from;
}

std::int64_t MemoryProfile::search(std::int64_t limit) const {
  std::int64_t after = held_;
  for (auto block = blocks_.rbegin(); block != blocks_.rend(); ++block) {
    if (block->stale)
      sum_up(*block);
    if (after + block->most <= limit) {
      after -= block->change;
      continue;
    }
    for (auto step = block->steps.rbegin();; ++step) {
      after -= step->change;
      if (after > limit)
        return step->time;
    }
  }
  return 0;
}

/// Replaces the older half of the blocks by a falling staircase: at each time, the maximum from
/// then on. If the staircase has many steps, neighbours are merged at the later time.
void MemoryProfile::forget() {
  const std::size_t older = blocks_.size() / 2;
  std::int64_t after = held_;
  for (std::size_t b = older; b < blocks_.size(); ++b) {
    if (blocks_[b].stale)
      sum_up(blocks_[b]);
    after -= blocks_[b].change;
  }
  std::vector<Step> stairs; // from the last to the first
  std::int64_t most = after;
  std::int64_t now = after;
  for (std::size_t b = older; b-- > 0;) {
    for (auto step = blocks_[b].steps.rbegin(); step != blocks_[b].steps.rend(); ++step) {
      now -= step->change;
      if (now <= most)
        continue;
      stairs.push_back({step->time, most - now});
      most = now;
    }
  }
  while (stairs.size() > kMaxSteps / 2) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < stairs.size(); i += 2) {
      const std::int64_t other = i + 1 < stairs.size() ? stairs[i + 1].change : 0;
      stairs[kept++] = {stairs[i].time, stairs[i].change + other};
    }
    stairs.resize(kept);
  }
  blocks_.erase(blocks_.begin(), blocks_.begin() + static_cast<std::ptrdiff_t>(older));
  Block first;
  first.steps.push_back({std::numeric_limits<std::int64_t>::min(), most});
  first.steps.insert(first.steps.end(), stairs.rbegin(), stairs.rend());
  sum_up(first);
  blocks_.insert(blocks_.begin(), std::move(first));
}

} // namespace monet
