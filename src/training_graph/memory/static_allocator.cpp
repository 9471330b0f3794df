// Places buffers with known lifetimes: first-fit, repair, then exact search.
#include "base/shared/checked.hpp"
#include "training_graph/memory/skyline_search.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/units.hpp"
#include "monet/training_graph/liveness.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

namespace monet {

namespace {

constexpr std::size_t kLargeProblem = 4000;        // buffers; beyond, one order is enough
constexpr std::int64_t kMaxIncidences = 8'000'000; // buffers times sections the search may hold

bool is_real(const BufferRequest& request) {
  return request.size > 0 && request.start < request.end;
}
std::int64_t aligned(std::int64_t offset, std::int64_t alignment) {
  return ceil_div(offset, alignment) * alignment;
}
bool alive_together(const BufferRequest& a, const BufferRequest& b) {
  return a.start < b.end && b.start < a.end;
}

void check(std::span<const BufferRequest> requests) {
  std::int64_t total = 0;
  for (const BufferRequest& request : requests) {
    internal_check(request.size >= 0 && request.alignment >= 1, "a buffer has no such size");
    internal_check(!request.offset ||
                       (*request.offset >= 0 && *request.offset % request.alignment == 0),
                   "a buffer's place is not aligned");
    total = checked_add(total, checked_add(request.size, request.alignment));
  }
}

/// Times after which a step follows that no other has all buffers of: something has just begun and
/// something ends next. Every other step is a part of one of them.
std::vector<std::int64_t> crowded_steps(std::span<const BufferRequest> requests) {
  std::vector<std::pair<std::int64_t, bool>> events; // time, begins
  for (const BufferRequest& request : requests) {
    if (!is_real(request))
      continue;
    events.emplace_back(request.start, true);
    events.emplace_back(request.end, false);
  }
  std::sort(events.begin(), events.end()); // ends before beginnings
  std::vector<std::int64_t> steps;
  for (std::size_t i = 0; i + 1 < events.size(); ++i) {
    if (events[i].second && !events[i + 1].second)
      steps.push_back(events[i].first);
  }
  return steps;
}

std::vector<SkylineItem> items_of(std::span<const BufferRequest> requests,
                                  const std::vector<std::int64_t>& steps) {
  std::vector<SkylineItem> items(requests.size());
  const auto place = [&](std::int64_t time) {
    return static_cast<std::size_t>(std::lower_bound(steps.begin(), steps.end(), time) -
                                    steps.begin());
  };
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (is_real(requests[i]))
      items[i] = {place(requests[i].start), place(requests[i].end), requests[i].size};
  }
  return items;
}

/// Sum of sizes at every step, each a multiple of the alignment but for one, the topmost.
std::int64_t bound_of(std::span<const BufferRequest> requests,
                      const std::vector<SkylineItem>& items, std::size_t steps,
                      std::int64_t alignment) {
  std::vector<std::int64_t> change(steps + 1, 0);
  for (const SkylineItem& item : items) {
    const std::int64_t size = aligned(item.size, alignment);
    change[item.first] += size;
    change[item.last] -= size;
  }
  std::partial_sum(change.begin(), change.end(), change.begin());
  std::int64_t most = 0;
  for (const std::int64_t load : change)
    most = std::max(most, load - (alignment - 1));
  for (const BufferRequest& request : requests)
    most = std::max(most, is_real(request) ? request.offset.value_or(0) + request.size : 0);
  return most;
}

std::vector<std::size_t> real_ones(std::span<const BufferRequest> requests) {
  std::vector<std::size_t> real;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (is_real(requests[i]))
      real.push_back(i);
  }
  return real;
}

/// Placed buffers by the magnitude of their lives and then by start: finds those alive during a
/// short life without visiting all others.
class LifeIndex {
public:
  void add(const BufferRequest& request, std::size_t i) {
    starts_.at(magnitude(request)).emplace(request.start, i);
  }
  void find_alive(const BufferRequest& wanted, std::span<const BufferRequest> requests,
                  std::vector<std::size_t>& found) const {
    found.clear();
    for (std::size_t m = 0; m < starts_.size(); ++m) {
      if (starts_[m].empty())
        continue;
      const std::int64_t longest = (std::int64_t{1} << m) - 1;
      for (auto at = starts_[m].lower_bound(wanted.start - longest);
           at != starts_[m].end() && at->first < wanted.end; ++at) {
        if (alive_together(requests[at->second], wanted))
          found.push_back(at->second);
      }
    }
  }

private:
  /// A life is shorter than 2 to the power of its magnitude.
  static std::size_t magnitude(const BufferRequest& request) {
    return static_cast<std::size_t>(
        std::bit_width(static_cast<std::uint64_t>(request.end - request.start)));
  }

  std::array<std::multimap<std::int64_t, std::size_t>, 63> starts_;
};

/// Whether few of the buffers are alive at once.
bool is_sparse(std::span<const BufferRequest> requests, const std::vector<std::size_t>& order) {
  constexpr double kMinRatio = 32;
  double lives = 0;
  std::int64_t end = 1;
  for (const std::size_t i : order) {
    lives += static_cast<double>(requests[i].end - requests[i].start);
    end = std::max(end, requests[i].end);
  }
  return lives * kMinRatio < static_cast<double>(end) * static_cast<double>(order.size());
}

/// Places buffers in the given order, each at the lowest offset that is free during its life.
class FirstFit {
public:
  FirstFit(std::span<const BufferRequest> requests, const std::vector<std::size_t>& order)
      : requests_(requests), offsets_(requests.size(), 0), is_sparse_(is_sparse(requests, order)) {
    for (const std::size_t i : order)
      place(i);
  }
  const std::vector<std::int64_t>& offsets() const { return offsets_; }
  std::int64_t height() const { return height_; }

private:
  void place(std::size_t i) {
    const BufferRequest& wanted = requests_[i];
    const std::int64_t at = wanted.offset ? *wanted.offset : lowest_offset(wanted);
    offsets_[i] = at;
    height_ = std::max(height_, at + wanted.size);
    if (is_sparse_) {
      index_.add(wanted, i);
      return;
    }
    const auto above = std::upper_bound(
        placed_.begin(), placed_.end(), at,
        [&](std::int64_t offset, std::size_t other) { return offset < offsets_[other]; });
    placed_.insert(above, i);
  }

  std::int64_t lowest_offset(const BufferRequest& wanted) {
    if (is_sparse_) {
      index_.find_alive(wanted, requests_, placed_);
      std::ranges::sort(placed_, {}, [&](std::size_t other) { return offsets_[other]; });
    }
    std::int64_t at = 0;
    for (const std::size_t other : placed_) {
      if (!alive_together(requests_[other], wanted))
        continue;
      if (at + wanted.size <= offsets_[other])
        break;
      at = std::max(at, aligned(offsets_[other] + requests_[other].size, wanted.alignment));
    }
    return at;
  }

  std::span<const BufferRequest> requests_;
  std::vector<std::int64_t> offsets_;
  std::vector<std::size_t> placed_; ///< by offset; of sparse problems only those alive at the time
  LifeIndex index_;                 ///< of sparse problems
  bool is_sparse_;
  std::int64_t height_ = 0;
};

constexpr std::size_t kFirstFitOrders = 6;
constexpr std::int64_t kRepairs = 100; // see repair()

std::array<std::int64_t, 2> key_of(const BufferRequest& request, std::size_t order) {
  const std::int64_t life = request.end - request.start;
  switch (order) {
  case 0:
    return {request.size, life};
  case 1:
    return {life, request.size};
  case 2: // size * life without overflow: by size class, then life
    return {request.size / std::max<std::int64_t>(1, 1'000'000 / std::max<std::int64_t>(life, 1)),
            request.size};
  case 3:
    return {-request.start, life};
  case 4:
    return {request.end, life};
  default:
    return {-request.start, request.size};
  }
}

void first_fit(std::span<const BufferRequest> requests, std::int64_t enough, Allocation& best) {
  std::vector<std::size_t> order = real_ones(requests);
  const std::size_t orders = order.size() > kLargeProblem ? 2 : kFirstFitOrders;
  for (std::size_t k = 0; k < orders; ++k) {
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      const bool fixed_a = requests[a].offset.has_value();
      const bool fixed_b = requests[b].offset.has_value();
      if (fixed_a != fixed_b)
        return fixed_a;
      return key_of(requests[a], k) > key_of(requests[b], k);
    });
    const FirstFit fit(requests, order);
    if (k == 0 || fit.height() < best.height) {
      best.offsets = fit.offsets();
      best.height = fit.height();
    }
    if (best.height <= enough)
      return;
  }
}

/// Places buffers again and again, those first that stuck out above the bound most recently.
void repair(std::span<const BufferRequest> requests, std::int64_t enough, std::int64_t max_work,
            Allocation& best) {
  std::vector<std::size_t> order = real_ones(requests);
  const auto cost = static_cast<std::int64_t>(order.size() * order.size());
  const std::int64_t rounds =
      std::min<std::int64_t>(kRepairs, max_work / std::max<std::int64_t>(cost, 1));
  std::vector<std::int64_t> urgency(requests.size(), 0);
  std::vector<std::int64_t> offsets = best.offsets;
  for (std::int64_t round = 1; round <= rounds && best.height > enough; ++round) {
    for (const std::size_t i : order) {
      if (offsets[i] + requests[i].size > enough)
        urgency[i] = round;
    }
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      const auto key = [&](std::size_t i) {
        return std::tuple(requests[i].offset.has_value(), urgency[i], requests[i].size);
      };
      return key(a) > key(b);
    });
    const FirstFit fit(requests, order);
    offsets = fit.offsets();
    if (fit.height() < best.height) {
      best.offsets = offsets;
      best.height = fit.height();
    }
  }
}

/// The exact search of one problem at several capacities, in units of the sizes' common divisor.
class ExactSearch {
public:
  ExactSearch(std::vector<SkylineItem> items, std::size_t steps, std::int64_t alignment,
              const AllocationOptions& options)
      : left_{options.max_nodes, options.max_work} {
    std::int64_t incidences = 1;
    problem_.sections = steps;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (items[i].size == 0)
        continue;
      items[i].size = aligned(items[i].size, alignment);
      unit_ = std::gcd(unit_, items[i].size);
      problem_.items.push_back(items[i]);
      request_.push_back(i);
      incidences += static_cast<std::int64_t>(items[i].last - items[i].first);
    }
    for (SkylineItem& item : problem_.items)
      item.size /= unit_;
    if (incidences > kMaxIncidences)
      left_.nodes = 0;
  }

  /// Tries to stay within `height`; `best` is replaced when that succeeds.
  SkylineResult try_height(std::int64_t height, Allocation& best,
                           std::span<const BufferRequest> requests) {
    problem_.capacity = height / unit_;
    const SkylineAnswer answer = search_skyline(problem_, left_);
    left_.nodes -= answer.nodes;
    left_.work -= answer.work;
    best.nodes += answer.nodes;
    if (answer.result != SkylineResult::found)
      return answer.result;
    best.height = 0;
    for (std::size_t k = 0; k < request_.size(); ++k) {
      best.offsets[request_[k]] = answer.offsets[k] * unit_;
      best.height = std::max(best.height, answer.offsets[k] * unit_ + requests[request_[k]].size);
    }
    return answer.result;
  }

  bool may_go_on() const { return left_.nodes > 0 && left_.work > 0; }
  std::int64_t unit() const { return unit_; }

private:
  SkylineProblem problem_;
  std::vector<std::size_t> request_; ///< per item
  std::int64_t unit_ = 0;
  SkylineLimits left_;
};

/// Looks for the least height between the bound and what is known, beginning at `enough`.
void improve(ExactSearch& search, std::span<const BufferRequest> requests, std::int64_t alignment,
             std::int64_t enough, bool only_enough, Allocation& best) {
  // Sizes are rounded up to the alignment, the topmost as well: less than that may be lost.
  std::int64_t height = aligned(enough, alignment);
  while (search.may_go_on() && best.height > best.lower_bound) {
    const SkylineResult result = search.try_height(height, best, requests);
    if (result == SkylineResult::gave_up)
      return;
    if (result == SkylineResult::impossible) {
      if (alignment > 1)
        return;
      best.lower_bound = std::max(best.lower_bound, (height / search.unit() + 1) * search.unit());
    }
    if (only_enough)
      return;
    height = best.lower_bound + (best.height - best.lower_bound) / 2;
  }
}

/// Alignment of all, when it is the same for all and nothing has a given place.
std::optional<std::int64_t> common_alignment(std::span<const BufferRequest> requests) {
  std::optional<std::int64_t> common;
  for (const BufferRequest& request : requests) {
    if (!is_real(request))
      continue;
    if (request.offset || (common && *common != request.alignment))
      return std::nullopt;
    common = request.alignment;
  }
  return common;
}

} // namespace

std::int64_t max_live(std::span<const BufferRequest> requests) {
  const std::vector<std::int64_t> steps = crowded_steps(requests);
  return bound_of({}, items_of(requests, steps), steps.size(), 1);
}

Allocation allocate(std::span<const BufferRequest> requests, const AllocationOptions& options) {
  check(requests);
  const std::vector<std::int64_t> steps = crowded_steps(requests);
  const std::vector<SkylineItem> items = items_of(requests, steps);
  const auto alignment = common_alignment(requests);
  Allocation best;
  best.offsets.assign(requests.size(), 0);
  best.lower_bound = bound_of(requests, items, steps.size(), alignment.value_or(1));
  best.lower_bound = std::max(best.lower_bound, bound_of({}, items, steps.size(), 1));
  if (steps.empty()) {
    best.proven = true;
    return best;
  }
  const std::int64_t enough = std::max(best.lower_bound, options.capacity.value_or(0));
  first_fit(requests, enough, best);
  repair(requests, enough, options.max_work, best);
  if (alignment && best.height > enough && options.capacity.value_or(enough) >= enough) {
    ExactSearch search(items, steps.size(), *alignment, options);
    improve(search, requests, *alignment, enough, options.capacity.has_value(), best);
  }
  best.proven = best.height <= best.lower_bound ||
                (options.capacity &&
                 (best.height <= *options.capacity || best.lower_bound > *options.capacity));
  return best;
}

void verify(std::span<const BufferRequest> requests, const Allocation& allocation) {
  internal_check(allocation.offsets.size() == requests.size(), "a buffer has no offset");
  std::vector<std::size_t> by_start;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const BufferRequest& request = requests[i];
    const std::int64_t offset = allocation.offsets[i];
    if (!is_real(request))
      continue;
    internal_check(offset >= 0 && offset % request.alignment == 0 &&
                       offset + request.size <= allocation.height,
                   fmt::format("buffer {} is misplaced", i));
    internal_check(!request.offset || offset == *request.offset,
                   fmt::format("buffer {} is not where it has to be", i));
    by_start.push_back(i);
  }
  std::sort(by_start.begin(), by_start.end(),
            [&](std::size_t a, std::size_t b) { return requests[a].start < requests[b].start; });
  // The buffers alive, by offset: a new one may only overlap its neighbours.
  std::set<std::pair<std::int64_t, std::size_t>> alive;
  std::set<std::pair<std::int64_t, std::size_t>> by_end;
  for (const std::size_t i : by_start) {
    while (!by_end.empty() && by_end.begin()->first <= requests[i].start) {
      const std::size_t gone = by_end.begin()->second;
      alive.erase({allocation.offsets[gone], gone});
      by_end.erase(by_end.begin());
    }
    const std::int64_t offset = allocation.offsets[i];
    const auto above = alive.lower_bound({offset, 0});
    internal_check(above == alive.end() || offset + requests[i].size <= above->first,
                   fmt::format("buffer {} overlaps the one above", i));
    internal_check(above == alive.begin() ||
                       std::prev(above)->first + requests[std::prev(above)->second].size <= offset,
                   fmt::format("buffer {} overlaps the one below", i));
    alive.insert({offset, i});
    by_end.insert({requests[i].end, i});
  }
  internal_check(allocation.height >= max_live(requests), "more is alive than the height holds");
}

} // namespace monet
