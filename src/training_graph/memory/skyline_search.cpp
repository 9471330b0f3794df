// Exact allocation search below a height; static_allocator.cpp calls it.
#include "training_graph/memory/skyline_search.hpp"

#include "base/shared/rng.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>
#include <unordered_set>

namespace monet {

namespace {

constexpr std::size_t kRememberedStates = 1U << 21U;
constexpr double kNoise = 0.1; // see order_of()

/// Sections [begin, end) of the problem.
struct Range {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// A choice of what comes next in a section, or several ranges that are all to be solved.
struct Frame {
  bool all = false;
  std::size_t trail = 0;          ///< changes made before the frame
  std::vector<std::size_t> items; ///< choices
  std::vector<Range> ranges;      ///< parts, or the one range of the choice
  std::size_t next = 0;
  std::size_t section = 0;       ///< where nothing is placed when the choices are used up
  std::int64_t skip_to = kNever; ///< its floor then; kNever = not possible
  std::uint64_t state = 0;       ///< remembered when the choice fails
};

/// Buffers sorted by one of several criteria, largest first; a seed other than 0 shuffles those
/// that are nearly equal.
std::vector<std::size_t> order_of(const SkylineProblem& problem, int order, std::uint64_t seed) {
  const std::size_t n = problem.items.size();
  std::vector<std::int64_t> load(static_cast<std::size_t>(problem.sections), 0);
  for (const SkylineItem& item : problem.items) {
    for (std::size_t s = item.first; s < item.last; ++s)
      load[s] += item.size;
  }
  using Key = std::tuple<double, double, double>;
  std::vector<Key> keys(n);
  for (std::size_t i = 0; i < n; ++i) {
    const SkylineItem& item = problem.items[i];
    const double noise = seed == 0 ? 1.0 : 1.0 + kNoise * random_unit(seed, i);
    const auto size = noise * static_cast<double>(item.size);
    const auto width = noise * static_cast<double>(item.last - item.first);
    const double area = width * static_cast<double>(item.size);
    const double total = noise * static_cast<double>(*std::max_element(
                                     load.begin() + static_cast<std::ptrdiff_t>(item.first),
                                     load.begin() + static_cast<std::ptrdiff_t>(item.last)));
    const std::array<Key, kSkylineOrders> all{Key{width, size, total}, Key{area, width, total},
                                              Key{size, width, total}, Key{total, width, area},
                                              Key{total, area, size},  Key{total, size, width}};
    keys[i] = all[static_cast<std::size_t>(order)];
  }
  std::vector<std::size_t> sorted(n);
  std::iota(sorted.begin(), sorted.end(), std::size_t{0});
  std::ranges::stable_sort(sorted, [&](std::size_t a, std::size_t b) { return keys[a] > keys[b]; });
  return sorted;
}

class Search {
public:
  Search(const SkylineProblem& problem, int order, std::vector<double>& failures,
         std::uint64_t seed)
      : state_(problem, order_of(problem, order, seed)), failures_(&failures),
        run_(problem.sections, 0), fitting_(problem.sections + 1, 0) {}

  SkylineResult run(SkylineLimits limits);
  std::int64_t work() const { return state_.work() + work_; }
  std::int64_t nodes() const { return nodes_; }
  const std::vector<std::int64_t>& offsets() const { return state_.offsets(); }

private:
  bool enter(Range range);
  bool choose(Range range, Frame& frame);
  bool next_choice(Frame& frame);
  bool settle();
  void drop_solved();
  void drop_failed();
  std::vector<Range> parts_of(Range range) const;
  void find_runs(Range range);
  std::size_t find_section(Range range);
  std::int64_t skip_level(Range range, std::size_t section) const;
  std::uint64_t state_of(Range range) const;

  /// The buffer lies within a local valley.
  bool fits(std::size_t item) const {
    const std::size_t run = run_[state_.item(item).first];
    return run == run_[state_.item(item).last - 1] && valley_[run];
  }

  Skyline state_;
  std::vector<Frame> stack_;
  std::unordered_set<std::uint64_t> failed_;
  std::vector<double>* failures_; ///< per section, over several searches
  std::int64_t nodes_ = 0;
  std::int64_t work_ = 0; ///< without the state's own
  // For the range under consideration:
  std::vector<std::size_t> run_; ///< per section: its run of equal floors
  std::vector<bool> valley_;     ///< per run: both neighbours are higher
  std::vector<int> fitting_;     ///< per section: buffers that fit there now
};

bool Search::settle() {
  if (state_.settle())
    return true;
  ++(*failures_)[state_.failed_section()];
  return false;
}

/// Ranges of sections with buffers left that no such buffer joins.
std::vector<Range> Search::parts_of(Range range) const {
  std::vector<Range> parts;
  std::size_t reach = 0;
  for (std::size_t s = range.begin; s < range.end; ++s) {
    if (state_.open(s) == 0)
      continue;
    if (parts.empty() || s >= reach)
      parts.push_back({s, s});
    for (const std::size_t i : state_.in_section(s)) {
      if (state_.is_open(i))
        reach = std::max(reach, state_.item(i).last);
    }
    parts.back().end = reach;
  }
  return parts;
}

void Search::find_runs(Range range) {
  valley_.clear();
  for (std::size_t s = range.begin; s < range.end; ++s) {
    if (s == range.begin) {
      valley_.push_back(true);
    } else if (state_.floor(s) < state_.floor(s - 1)) {
      valley_.back() = false;
      valley_.push_back(true);
    } else if (state_.floor(s) > state_.floor(s - 1)) {
      valley_.push_back(false);
    }
    run_[s] = valley_.size() - 1;
  }
}

/// The section of a valley with the fewest possibilities; one where searches have failed often
/// counts as having fewer.
std::size_t Search::find_section(Range range) {
  std::fill(fitting_.begin() + static_cast<std::ptrdiff_t>(range.begin),
            fitting_.begin() + static_cast<std::ptrdiff_t>(range.end) + 1, 0);
  for (std::size_t s = range.begin; s < range.end; ++s) {
    for (const std::size_t i : state_.in_section(s)) {
      if (state_.item(i).first != s || !state_.is_open(i) || !fits(i))
        continue;
      ++fitting_[s];
      --fitting_[state_.item(i).last];
    }
  }
  std::size_t best = range.end;
  std::tuple<double, std::int64_t, std::int64_t> best_key;
  int fitting = 0;
  for (std::size_t s = range.begin; s < range.end; ++s) {
    fitting += fitting_[s];
    if (!valley_[run_[s]])
      continue;
    const std::int64_t slack = state_.slack(s);
    const int more_ways = fitting + (slack > 0 ? 1 : 0) - 1;
    const std::tuple key{more_ways / (*failures_)[s], slack, state_.floor(s)};
    if (best == range.end || key < best_key) {
      best = s;
      best_key = key;
    }
  }
  return best;
}

/// The lowest offset at which a buffer of the section can begin when none begins at its floor.
std::int64_t Search::skip_level(Range range, std::size_t section) const {
  const std::int64_t floor = state_.floor(section);
  std::int64_t level = kNever;
  std::int64_t on_top = kNever; // of another buffer of the valley that does not cover the section
  for (std::size_t s = range.begin; s < range.end; ++s) {
    for (const std::size_t i : state_.in_section(s)) {
      if (state_.item(i).first != s || !state_.is_open(i))
        continue;
      if (state_.item(i).first > section || state_.item(i).last <= section) {
        on_top = std::min(on_top, state_.least(i) + state_.item(i).size);
      } else if (state_.least(i) > floor) {
        level = std::min(level, state_.least(i));
      }
    }
  }
  return std::min(level, std::max(on_top, floor + 1));
}

std::uint64_t Search::state_of(Range range) const {
  std::uint64_t hash = random_bits(range.begin, range.end);
  for (std::size_t s = range.begin; s < range.end; ++s) {
    hash = random_bits(hash, static_cast<std::uint64_t>(state_.floor(s)));
    for (const std::size_t i : state_.in_section(s)) {
      if (state_.item(i).first == s && state_.is_open(i))
        hash = random_bits(hash, i);
    }
  }
  return hash;
}

/// False when nothing can come next somewhere, or the state has failed before.
bool Search::choose(Range range, Frame& frame) {
  for (std::size_t s = range.begin; s < range.end; ++s)
    work_ += static_cast<std::int64_t>(state_.in_section(s).size());
  frame.state = state_of(range);
  if (failed_.count(frame.state) > 0)
    return false;
  find_runs(range);
  const std::size_t section = find_section(range);
  frame.section = section;
  frame.ranges = {range};
  for (const std::size_t i : state_.in_section(section)) {
    if (!state_.is_open(i) || !fits(i))
      continue;
    const bool twin = std::ranges::any_of(frame.items, [&](std::size_t j) {
      return state_.item(i).first == state_.item(j).first &&
             state_.item(i).last == state_.item(j).last &&
             state_.item(i).size == state_.item(j).size;
    });
    if (!twin)
      frame.items.push_back(i);
  }
  const std::int64_t slack = state_.slack(section);
  if (slack > 0) {
    const std::int64_t level = skip_level(range, section);
    if (level - state_.floor(section) <= slack)
      frame.skip_to = level;
  }
  return !frame.items.empty() || frame.skip_to != kNever;
}

/// Makes the frame's next choice and what follows from it; false if no choice is left.
bool Search::next_choice(Frame& frame) {
  while (true) {
    state_.undo(frame.trail);
    if (frame.next < frame.items.size()) {
      ++nodes_;
      state_.place(frame.items[frame.next++]);
    } else if (frame.skip_to != kNever) {
      ++nodes_;
      state_.raise(frame.section, frame.skip_to);
      frame.skip_to = kNever;
    } else {
      return false;
    }
    if (settle())
      return true;
  }
}

/// Pushes what is to be solved in the range. False when it cannot be; nothing is pushed then, nor
/// when nothing is left to do.
bool Search::enter(Range range) {
  std::vector<Range> parts = parts_of(range);
  if (parts.empty())
    return true;
  Frame frame;
  frame.trail = state_.changes();
  if (parts.size() > 1) {
    frame.all = true;
    std::ranges::sort(parts, [](const Range& a, const Range& b) {
      return std::tuple(a.end - a.begin, a.begin) < std::tuple(b.end - b.begin, b.begin);
    });
    frame.ranges = std::move(parts);
  } else if (!choose(parts.front(), frame)) {
    return false;
  }
  stack_.push_back(std::move(frame));
  return true;
}

/// Drops what is solved: choices, and ranges that are all needed once none is left.
void Search::drop_solved() {
  while (!stack_.empty() &&
         (!stack_.back().all || stack_.back().next == stack_.back().ranges.size()))
    stack_.pop_back();
}

/// Drops a failed frame, and with it the ranges that were all needed, down to a choice.
void Search::drop_failed() {
  do {
    const Frame& failed = stack_.back();
    state_.undo(failed.trail);
    if (!failed.all && failed_.size() < kRememberedStates)
      failed_.insert(failed.state);
    stack_.pop_back();
  } while (!stack_.empty() && stack_.back().all);
}

SkylineResult Search::run(SkylineLimits limits) {
  if (!settle() || !enter({0, state_.sections()}))
    return SkylineResult::impossible;
  while (!stack_.empty()) {
    if (nodes_ >= limits.nodes || work() >= limits.work)
      return SkylineResult::gave_up;
    const std::size_t depth = stack_.size();
    Frame& frame = stack_.back();
    bool alive = true;
    if (!frame.all) {
      alive = next_choice(frame);
      if (alive && !enter(frame.ranges.front()))
        continue; // the next choice, if there is one
    } else if (frame.next < frame.ranges.size()) {
      alive = enter(frame.ranges[frame.next++]);
    }
    if (stack_.size() > depth)
      continue;
    if (alive) {
      drop_solved();
      continue;
    }
    drop_failed();
    if (stack_.empty())
      return SkylineResult::impossible;
  }
  return SkylineResult::found;
}

/// 1 2 1 4 1 2 1 8 ...: how long the n-th search (from 1) may last before the next begins anew; the
/// idea is Luby, Sinclair and Zuckerman's (1993).
std::int64_t share_of(std::int64_t n) {
  return n & -n;
}

} // namespace

SkylineAnswer search_skyline(const SkylineProblem& problem, SkylineLimits limits) {
  SkylineAnswer answer;
  const auto left = [&] { return answer.nodes < limits.nodes && answer.work < limits.work; };
  const auto base = 2 * static_cast<std::int64_t>(problem.items.size()) + 64;
  std::vector<std::vector<double>> failures(kSkylineOrders,
                                            std::vector<double>(problem.sections, 1.0));
  for (std::int64_t round = 0; left(); ++round) {
    for (int order = 0; order < kSkylineOrders && left(); ++order) {
      const std::int64_t seed = round == 0 ? 0 : round * kSkylineOrders + order;
      Search search(problem, order, failures[static_cast<std::size_t>(order)],
                    static_cast<std::uint64_t>(seed));
      answer.result = search.run({std::min(base * share_of(round + 1), limits.nodes - answer.nodes),
                                  limits.work - answer.work});
      answer.nodes += search.nodes();
      answer.work += search.work();
      if (answer.result == SkylineResult::gave_up)
        continue;
      if (answer.result == SkylineResult::found)
        answer.offsets = search.offsets();
      return answer;
    }
  }
  return answer;
}

} // namespace monet
