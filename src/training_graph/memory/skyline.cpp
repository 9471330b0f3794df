// Skyline: the state and bounds of the exact allocation search in skyline_search.cpp.
#include "training_graph/memory/skyline_search.hpp"

#include <algorithm>
#include <functional>

namespace monet {

Skyline::Skyline(const SkylineProblem& problem, const std::vector<std::size_t>& sorted)
    : items_(problem.items), capacity_(problem.capacity), in_section_(problem.sections),
      floor_(problem.sections, 0), total_(problem.sections, 0), open_(problem.sections, 0),
      least_(problem.items.size(), 0), offset_(problem.items.size(), -1),
      is_dirty_(problem.sections, false) {
  for (const std::size_t i : sorted) {
    for (std::size_t s = items_[i].first; s < items_[i].last; ++s) {
      in_section_[s].push_back(i);
      total_[s] += items_[i].size;
      ++open_[s];
    }
    mark(i);
  }
}

void Skyline::mark(std::size_t item) {
  for (std::size_t s = items_[item].first; s < items_[item].last; ++s) {
    if (is_dirty_[s])
      continue;
    is_dirty_[s] = true;
    dirty_.push_back(s);
  }
}

void Skyline::raise_least(std::size_t item, std::int64_t least) {
  if (least_[item] >= least)
    return;
  trail_.push_back({Undo::least, item, least_[item]});
  least_[item] = least;
  mark(item);
}

void Skyline::raise(std::size_t section, std::int64_t floor) {
  trail_.push_back({Undo::floor, section, floor_[section]});
  floor_[section] = floor;
  work_ += static_cast<std::int64_t>(in_section_[section].size());
  for (const std::size_t i : in_section_[section]) {
    if (is_open(i))
      raise_least(i, floor);
  }
}

void Skyline::place(std::size_t item) {
  const SkylineItem& placed = items_[item];
  trail_.push_back({Undo::placed, item, 0});
  offset_[item] = least_[item];
  const std::int64_t top = least_[item] + placed.size;
  for (std::size_t s = placed.first; s < placed.last; ++s) {
    total_[s] -= placed.size;
    --open_[s];
  }
  for (std::size_t s = placed.first; s < placed.last; ++s)
    raise(s, top);
  mark(item);
}

void Skyline::undo(std::size_t changes) {
  while (trail_.size() > changes) {
    const Change change = trail_.back();
    trail_.pop_back();
    switch (change.what) {
    case Undo::floor:
      floor_[change.index] = change.before;
      break;
    case Undo::least:
      least_[change.index] = change.before;
      break;
    case Undo::placed:
      offset_[change.index] = -1;
      for (std::size_t s = items_[change.index].first; s < items_[change.index].last; ++s) {
        total_[s] += items_[change.index].size;
        ++open_[s];
      }
      break;
    }
  }
  for (const std::size_t s : dirty_)
    is_dirty_[s] = false;
  dirty_.clear();
}

namespace {

constexpr std::size_t kMaxSums = 48; // stacks of step_up() beyond which nothing is concluded

/// Adds to `sums`, all below `wanted`, what one more size makes of them; returns the least sum that
/// reaches `wanted`.
std::int64_t add_size(std::vector<std::int64_t>& sums, std::int64_t size, std::int64_t wanted) {
  std::int64_t reached = kNever;
  const std::size_t before = sums.size();
  for (std::size_t i = 0; i < before; ++i) {
    const std::int64_t sum = sums[i] + size;
    if (sum >= wanted) {
      reached = std::min(reached, sum);
    } else {
      sums.push_back(sum);
    }
  }
  if (sums.size() > kMaxSums / 2) {
    std::sort(sums.begin(), sums.end());
    sums.erase(std::unique(sums.begin(), sums.end()), sums.end());
  }
  return reached;
}

} // namespace

/// The lowest buffer of a section among those that cannot begin at its floor lies on a stack of
/// those that can. Raises all of them to the lowest such stack that leaves no more space unused
/// than there is to spare; false if no such stack exists.
bool Skyline::step_up(std::size_t section) {
  const std::int64_t floor = floor_[section];
  std::int64_t wall = kNever;
  for (const auto& [least, size] : jobs_) {
    if (least > floor)
      wall = std::min(wall, least);
  }
  const std::int64_t slack = capacity_ - floor - total_[section];
  const std::int64_t wanted = wall - floor - slack;
  if (wall == kNever || wanted <= 0)
    return true;
  std::int64_t stack = kNever;
  sums_.assign(1, 0);
  for (const auto& [least, size] : jobs_) {
    if (least > floor)
      continue;
    stack = std::min(stack, add_size(sums_, size, wanted));
    if (sums_.size() > kMaxSums)
      return true;
  }
  if (stack == kNever)
    return false;
  for (const std::size_t i : in_section_[section]) {
    if (is_open(i) && least_[i] > floor)
      raise_least(i, floor + stack);
  }
  return true;
}

/// Checks the open buffers of a section and raises its floor. Those that cannot begin below a
/// height, stacked from there, must stay below the capacity. False if they do not.
bool Skyline::settle(std::size_t section) {
  if (open_[section] == 0)
    return true;
  std::int64_t lowest = kNever;
  jobs_.clear();
  work_ += static_cast<std::int64_t>(in_section_[section].size());
  for (const std::size_t i : in_section_[section]) {
    if (!is_open(i))
      continue;
    lowest = std::min(lowest, least_[i]);
    jobs_.emplace_back(least_[i], items_[i].size);
  }
  if (lowest > floor_[section])
    raise(section, lowest);
  if (floor_[section] + total_[section] > capacity_)
    return false;
  std::sort(jobs_.begin(), jobs_.end(), std::greater<>());
  std::int64_t above = 0;
  for (const auto& [least, size] : jobs_) {
    above += size;
    if (least + above > capacity_)
      return false;
  }
  return step_up(section);
}

bool Skyline::settle() {
  while (!dirty_.empty()) {
    const std::size_t section = dirty_.back();
    dirty_.pop_back();
    is_dirty_[section] = false;
    if (!settle(section)) {
      failed_section_ = section;
      return false;
    }
  }
  return true;
}

} // namespace monet
