// Finds and books free bandwidth on a link, bus or port, or on several at once. network.cpp plans
// transfers with it.
#include "schedule/placement/link_timeline.hpp"

#include "monet/base/errors.hpp"

#include <algorithm>
#include <limits>

namespace monet {

namespace {

constexpr std::int64_t kForever = std::numeric_limits<std::int64_t>::max();

} // namespace

LinkTimeline::LinkTimeline(std::int64_t bandwidth) : bandwidth_(bandwidth) {
  limits_ = {0, bandwidth / 2, bandwidth - (bandwidth + 3) / 4, bandwidth - 1};
  Block first;
  first.steps.push_back({0, 0});
  first.bounds.longest.fill(kForever);
  Group group;
  group.bounds = first.bounds;
  group.blocks.push_back(std::move(first));
  groups_.push_back(std::move(group));
}

std::size_t LinkTimeline::find_step(const Block& block, std::int64_t time) {
  std::size_t found = 0;
  for (std::size_t left = block.steps.size(); left > 1;) { // without unpredictable branches
    const std::size_t half = left / 2;
    found += block.steps[found + half].time <= time ? half : 0;
    left -= half;
  }
  return found;
}

/// Sets last_ to the step at `time` if the block found last contains it, else returns false.
/// Consecutive searches are near each other.
bool LinkTimeline::find_in_last_block(std::int64_t time) const {
  if (last_.group >= groups_.size() || last_.block >= groups_[last_.group].blocks.size())
    return false;
  const Block& known = groups_[last_.group].blocks[last_.block];
  const std::vector<Step>& steps = known.steps;
  if (time < known.begin || time >= steps.back().time)
    return false;
  if (last_.step + 1 >= steps.size() || steps[last_.step].time > time ||
      steps[last_.step + 1].time <= time)
    last_.step = find_step(known, time);
  return true;
}

/// The step in force at the time.
LinkTimeline::Cursor LinkTimeline::find(std::int64_t time) const {
  // Most searches are at the end.
  const Block& newest = groups_.back().blocks.back();
  if (newest.steps.back().time <= time)
    return {groups_.size() - 1, groups_.back().blocks.size() - 1, newest.steps.size() - 1};
  if (find_in_last_block(time))
    return last_;
  const auto group =
      std::partition_point(groups_.begin() + 1, groups_.end(),
                           [&](const Group& g) { return g.blocks.front().begin <= time; }) -
      1;
  const auto block = std::partition_point(group->blocks.begin() + 1, group->blocks.end(),
                                          [&](const Block& b) { return b.begin <= time; }) -
                     1;
  last_ = {static_cast<std::size_t>(group - groups_.begin()),
           static_cast<std::size_t>(block - group->blocks.begin()), find_step(*block, time)};
  return last_;
}

/// Moves to the next step; false at the last one.
bool LinkTimeline::advance(Cursor& at) const {
  const Group& group = groups_[at.group];
  if (at.step + 1 < group.blocks[at.block].steps.size()) {
    ++at.step;
    return true;
  }
  if (at.block + 1 == group.blocks.size() && at.group + 1 == groups_.size())
    return false;
  at.step = 0;
  if (++at.block == group.blocks.size()) {
    at.block = 0;
    ++at.group;
  }
  return true;
}

/// Moves to the first step before `end` with more than `limit` booked; false if none exists.
bool LinkTimeline::find_blocked(Cursor& at, std::int64_t limit, std::int64_t end) const {
  for (;;) {
    if (at.step == 0) {
      // Skips whole groups and blocks with enough free bandwidth.
      while (at.block == 0 && at.group + 1 < groups_.size() &&
             groups_[at.group].bounds.max_used <= limit)
        ++at.group;
      const Group& group = groups_[at.group];
      while (at.block + 1 < group.blocks.size() && group.blocks[at.block].bounds.max_used <= limit)
        ++at.block;
    }
    const Step& here = step(at);
    if (here.time >= end)
      return false;
    if (here.used > limit)
      return true;
    if (!advance(at))
      return false;
  }
}

/// Moves from a blocked step to the first step with at most `limit` booked. Skips blocks known to
/// have no run of `length`. It ends at the last step at the latest, which is free without end.
void LinkTimeline::find_run(Cursor& at, std::int64_t limit, std::int64_t length,
                            std::size_t of_class) {
  const auto found = [&] {
    if (block(at).bounds.longest[of_class] < length)
      return false;
    const std::vector<Step>& steps = block(at).steps;
    while (at.step < steps.size() && steps[at.step].used > limit)
      ++at.step;
    return at.step < steps.size();
  };
  while (!found()) {
    at.step = 0;
    if (++at.block < groups_[at.group].blocks.size())
      continue;
    at.block = 0;
    ++at.group;
    while (groups_[at.group].bounds.longest[of_class] < length)
      ++at.group;
  }
}

std::int64_t LinkTimeline::first_fit(std::int64_t from, std::int64_t length, std::int64_t share) {
  const std::int64_t limit = bandwidth_ - share;
  std::size_t of_class = 0;
  while (limits_[of_class] < limit)
    ++of_class;
  Cursor at = find(from);
  Cursor here = at; // current block; blocks are left when nothing in them fits
  bool entered = false;
  const auto moved = [&] {
    if (same_block(here, at))
      return;
    if (entered && block(here).bounds.longest[of_class] >= length)
      tighten(here); // its bound was too high
    here = at;
    entered = true;
  };
  std::int64_t start = from;
  for (;;) {
    if (step(at).used > limit) {
      moved();
      find_run(at, limit, length, of_class);
      moved();
      start = step(at).time;
    }
    const Cursor begin = at;
    if (!find_blocked(at, limit, start + length)) {
      last_ = begin; // the next search is near this time
      return start;
    }
  }
}

std::int64_t LinkTimeline::free_until(std::int64_t start, std::int64_t share) const {
  Cursor at = find(start);
  if (!find_blocked(at, bandwidth_ - share, kForever))
    return kForever;
  return std::max(start, step(at).time);
}

/// Cycles from this step on in which the class finds enough free bandwidth.
std::int64_t LinkTimeline::run_length(Cursor at, std::size_t of_class) const {
  const std::int64_t start = step(at).time;
  return find_blocked(at, limits_[of_class], kForever) ? step(at).time - start : kForever;
}

/// Sets the bounds of a block and its group to their smallest valid values.
void LinkTimeline::tighten(Cursor at) {
  Group& group = groups_[at.group];
  Block& here = group.blocks[at.block];
  here.bounds = {};
  for (const Step& s : here.steps)
    here.bounds.max_used = std::max(here.bounds.max_used, s.used);
  for (std::size_t c = 0; c < kClasses; ++c) {
    bool before = false; // the step before is part of a run
    for (std::size_t i = 0; i < here.steps.size(); ++i) {
      const bool enough = here.steps[i].used <= limits_[c];
      if (enough && !before) {
        const std::int64_t length = run_length({at.group, at.block, i}, c);
        here.bounds.longest[c] = std::max(here.bounds.longest[c], length);
      }
      before = enough;
    }
  }
  group.bounds = {};
  for (const Block& b : group.blocks) {
    group.bounds.max_used = std::max(group.bounds.max_used, b.bounds.max_used);
    for (std::size_t c = 0; c < kClasses; ++c)
      group.bounds.longest[c] = std::max(group.bounds.longest[c], b.bounds.longest[c]);
  }
}

/// Raises the bounds for a run that may now begin at this step.
void LinkTimeline::note_run(Cursor at) {
  const bool last = is_last(at); // begins a run without end
  for (std::size_t c = 0; c < kClasses; ++c) {
    if (step(at).used > limits_[c])
      continue;
    const std::int64_t length = last ? kForever : run_length(at, c);
    for (Bounds* bounds : {&block(at).bounds, &groups_[at.group].bounds})
      bounds->longest[c] = std::max(bounds->longest[c], length);
  }
}

/// Splits a block, and its group, with too many steps. True if steps have moved to other blocks.
bool LinkTimeline::split_if_full(Cursor at) {
  Group& group = groups_[at.group];
  Block& full = group.blocks[at.block];
  if (full.steps.size() <= kMaxSteps)
    return false;
  // The later part keeps growing: it receives fewer steps.
  const std::size_t kept = kMaxSteps * 3 / 4;
  Block later;
  later.bounds = full.bounds;
  later.steps.reserve(kMaxSteps + 1);
  later.steps.assign(full.steps.begin() + kept, full.steps.end());
  later.begin = later.steps.front().time;
  full.steps.resize(kept);
  group.blocks.insert(group.blocks.begin() + static_cast<std::ptrdiff_t>(at.block) + 1,
                      std::move(later));
  if (group.blocks.size() <= kMaxBlocks)
    return true;
  Group second;
  second.bounds = group.bounds;
  const auto middle = group.blocks.begin() + kMaxBlocks * 3 / 4;
  second.blocks.assign(std::make_move_iterator(middle),
                       std::make_move_iterator(group.blocks.end()));
  group.blocks.erase(middle, group.blocks.end());
  groups_.insert(groups_.begin() + static_cast<std::ptrdiff_t>(at.group) + 1, std::move(second));
  return true;
}

/// Splits the step in force at `time` there, and moves to the step that begins at `time`.
void LinkTimeline::cut_after(Cursor& at, std::int64_t time) {
  if (step(at).time == time)
    return;
  const std::int64_t used = step(at).used;
  std::vector<Step>& steps = block(at).steps;
  steps.insert(steps.begin() + static_cast<std::ptrdiff_t>(at.step) + 1, {time, used});
  if (split_if_full(at))
    at = find(time);
  else
    ++at.step;
}

/// Removes a step at which nothing changes. Only within a block, so that no block becomes empty.
void LinkTimeline::merge_with_previous(Cursor at) {
  std::vector<Step>& steps = block(at).steps;
  if (at.step > 0 && steps[at.step - 1].used == steps[at.step].used)
    steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(at.step));
}

void LinkTimeline::book(std::int64_t start, std::int64_t end, std::int64_t share) {
  Cursor first = find(start);
  cut_after(first, start);
  Cursor at = first;
  for (Cursor next = at; advance(next) && step(next).time <= end;)
    at = next;
  const std::size_t groups = groups_.size();
  const std::size_t blocks = groups_[first.group].blocks.size();
  cut_after(at, end);
  if (groups != groups_.size() || blocks != groups_[first.group].blocks.size())
    first = find(start); // steps have moved
  for (at = first; step(at).time < end; advance(at)) {
    Step& here = step(at);
    here.used += share;
    internal_check(here.used <= bandwidth_, "more bandwidth is booked than there is");
    for (Bounds* bounds : {&block(at).bounds, &groups_[at.group].bounds})
      bounds->max_used = std::max(bounds->max_used, here.used);
  }
  note_run(at);
  merge_with_previous(at);
  merge_with_previous(first);
}

std::int64_t first_common_fit(std::vector<LinkTimeline>& timelines,
                              std::span<const std::uint32_t> wanted, std::int64_t from,
                              std::int64_t length, std::int64_t share) {
  for (std::size_t agreed = 0, i = 0; agreed < wanted.size(); i = (i + 1) % wanted.size()) {
    const std::int64_t at = timelines[wanted[i]].first_fit(from, length, share);
    agreed = at == from ? agreed + 1 : 1;
    from = at;
  }
  return from;
}

} // namespace monet
