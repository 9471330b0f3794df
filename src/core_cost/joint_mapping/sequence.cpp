// Two plans one after the other, with what their seam hides.
#include "core_cost/joint_mapping/search.hpp"

#include "monet/base/stop.hpp"

#include <algorithm>
#include <limits>
#include <queue>
#include <tuple>

namespace monet::joint_mapping {
namespace {

/// Plan as its seam with a following or preceding plan depends on it. A pair is never faster if any
/// of these values grows.
struct SeamPlan {
  Choice choice;
  Wide rest = 0;             ///< time without the step at the seam and without its moves there
  std::int64_t cycles = 0;   ///< of the step at the seam
  std::int64_t hidden = 0;   ///< moved behind that step in any pair, 1/256 bit
  std::int64_t crossing = 0; ///< to move behind the other plan's step, 1/256 bit
};

bool is_no_worse(const SeamPlan& a, const SeamPlan& b) {
  return a.rest <= b.rest && a.cycles <= b.cycles && a.hidden <= b.hidden &&
         a.crossing <= b.crossing;
}

Wide time_of(const PairProblem& problem, const SeamPlan& first, const SeamPlan& second) {
  return first.rest + second.rest + longer(problem, first.cycles, second.crossing, first.hidden) +
         longer(problem, second.cycles, second.hidden, first.crossing);
}

/// Finds the plans of one product that may belong to the fastest pair.
class SeamSearch {
public:
  SeamSearch(const PairProblem& problem, const std::vector<Structure>& structures,
             const TileSpace& tiles, bool is_first)
      : problem_(problem), structures_(structures), tiles_(tiles), is_first_(is_first) {
    bounds_.reserve(structures.size());
    for (const Structure& structure : structures)
      bounds_.emplace_back(problem, structure);
  }

  /// Minimum time without transfers across the seam; `known` if no plan is below it.
  double least(double known) {
    limit_ = known;
    run([&](const SeamPlan& plan) {
      limit_ = std::min(limit_, static_cast<double>(without(plan)));
    });
    return limit_;
  }

  /// Non-dominated plans whose time without transfers across the seam is below `limit`.
  std::vector<SeamPlan> below(double limit) {
    limit_ = limit;
    std::vector<SeamPlan> front;
    run([&](const SeamPlan& plan) {
      if (std::ranges::any_of(front,
                              [&](const SeamPlan& other) { return is_no_worse(other, plan); }))
        return;
      std::erase_if(front, [&](const SeamPlan& other) { return is_no_worse(plan, other); });
      front.push_back(plan);
    });
    return front;
  }

private:
  struct Open {
    double bound = 0;
    std::uint32_t structure = 0;
    std::array<std::uint32_t, kDims> nodes{};

    friend bool operator<(const Open& a, const Open& b) {
      return std::tie(b.bound, b.structure, b.nodes) < std::tie(a.bound, a.structure, a.nodes);
    }
  };

  template <class Visit>
  void run(const Visit& visit) {
    std::priority_queue<Open> queue;
    const auto push = [&](std::uint32_t structure, const Box& box) {
      const StructureBound& bound = bounds_[structure];
      const bool stands = (structures_[structure].stands >> box.cuts & 1U) != 0;
      if (!stands || !bound.fits(box, static_cast<double>(problem_.room)))
        return;
      const double crossing = is_first_ ? bound.max_last_write(box) : bound.max_first_read(box);
      const double time =
          bound.time(box, structures_[structure].product, limit_ + crossing) - crossing;
      if (time >= limit_)
        return;
      if (box.single)
        visit(plan_of(structure, box.tile()));
      else
        queue.push({time, structure, box.nodes});
    };
    const Box all(problem_, tiles_, {0, 0, 0});
    for (std::uint32_t s = 0; s < structures_.size(); ++s)
      push(s, all);
    for (std::uint32_t turns = 1; !queue.empty() && queue.top().bound < limit_; ++turns) {
      const Open open = queue.top();
      queue.pop();
      const std::size_t dim = widest(open);
      for (const std::uint32_t half : {2U, 1U}) {
        std::array<std::uint32_t, kDims> nodes = open.nodes;
        nodes[dim] = 2 * nodes[dim] + half;
        push(open.structure, Box(problem_, tiles_, nodes));
      }
      if (turns % 1024 == 0)
        check_stop();
    }
  }

  std::size_t widest(const Open& open) const {
    const auto width = [&](std::size_t d) {
      const TileRanges::Node& node = tiles_[d][open.nodes[d]];
      return node.end - node.begin;
    };
    std::size_t widest = 0;
    for (std::size_t d = 1; d < kDims; ++d)
      widest = width(d) > width(widest) ? d : widest;
    return widest;
  }

  SeamPlan plan_of(std::uint32_t structure, const Tile& tile) const {
    const Structure& s = structures_[structure];
    const Plan plan(problem_, s, tile);
    const PlanEnds ends = plan.ends();
    SeamPlan made;
    made.choice = {s, tile, plan.time(), bounds_[structure].moved(plan.parts())};
    if (is_first_) {
      made.cycles = ends.last.cycles;
      made.hidden = ends.last_but_one.write;
      made.crossing = ends.last.write;
      made.rest = made.choice.time - longer(problem_, made.cycles, 0, made.hidden);
    } else {
      made.cycles = ends.first.cycles;
      made.hidden = ends.second.read;
      made.crossing = ends.first.read;
      made.rest = made.choice.time - longer(problem_, made.cycles, made.hidden, 0);
    }
    made.rest -= static_cast<Wide>(made.crossing) * problem_.move_units;
    return made;
  }

  Wide without(const SeamPlan& plan) const {
    return plan.choice.time - static_cast<Wide>(plan.crossing) * problem_.move_units;
  }

  const PairProblem& problem_;
  const std::vector<Structure>& structures_;
  const TileSpace& tiles_;
  bool is_first_;
  std::vector<StructureBound> bounds_;
  double limit_ = std::numeric_limits<double>::infinity();
};

} // namespace

std::optional<Chosen> best_sequence(const PairProblem& problem, const std::vector<Structure>& first,
                                    const std::vector<Structure>& second, const TileSpace& tiles,
                                    Wide known) {
  SeamSearch before(problem, first, tiles, true);
  SeamSearch after(problem, second, tiles, false);
  const double limit = static_cast<double>(known) * (1 + 1e-12); // as doubles round
  const double min_before = before.least(limit);
  const double min_after = after.least(limit - min_before);
  if (min_before + min_after >= limit)
    return std::nullopt;
  const std::vector<SeamPlan> firsts = before.below(limit - min_after);
  const std::vector<SeamPlan> seconds = after.below(limit - min_before);
  std::optional<Chosen> best;
  for (const SeamPlan& a : firsts) {
    for (const SeamPlan& b : seconds) {
      const Wide time = time_of(problem, a, b);
      if (time >= (best ? best->time() : known))
        continue;
      best = Chosen{{a.choice, b.choice}, a.choice.time + b.choice.time - time};
    }
  }
  return best;
}

} // namespace monet::joint_mapping
