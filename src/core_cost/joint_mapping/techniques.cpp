// Selects the structures and tiles of each technique of the joint mapping and runs the search;
// pair_cost() calls it.
#include "core_cost/joint_mapping/search.hpp"
#include "core_cost/joint_mapping/structures.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace monet::joint_mapping {
namespace {

using Structures = std::vector<Structure>;

std::vector<Order> some_orders(const Order& order) {
  return {order};
}
std::vector<Order> every_order() {
  return {all_orders().begin(), all_orders().end()};
}

Structures singles(const PairProblem& problem, int product, const std::vector<Order>& orders,
                   DyUse dy) {
  Structures out;
  for (const Order& order : orders) {
    const Structures more = single_structures(problem, product, order, dy);
    out.insert(out.end(), more.begin(), more.end());
  }
  return out;
}

Tile smallest_tile(const TileSpace& tiles) {
  return {tiles[0].tile(0), tiles[1].tile(0), tiles[2].tile(0)};
}

/// Reports which product's smallest tiles do not fit, and by how much, or that there are too many
/// tiles.
[[noreturn]] void report_no_choice(const PairProblem& problem, const Structures& structures,
                                   const Tile& tile) {
  const Structure* smallest = nullptr;
  std::int64_t needs = std::numeric_limits<std::int64_t>::max();
  for (const Structure& s : structures) {
    if (const std::int64_t held = Shape(problem, s).held(tile); held < needs) {
      needs = held;
      smallest = &s;
    }
  }
  if (needs <= problem.room)
    throw InfeasibleError(
        fmt::format("dX and dW in alternation, each in a separate order, are modelled tile by "
                    "tile: with tiles that fit they have more than {} steps",
                    static_cast<std::int64_t>(kMaxEnumeratedTechnique)));
  BackwardOperand largest = BackwardOperand::dw;
  Wide most = 0;
  for (const int product : {kDx, kDw}) {
    for (int place = 0; place < 3 && smallest && smallest->uses(product); ++place) {
      const BackwardOperand operand = operand_of(product, place);
      const Wide bits =
          elements_of<Wide>(operand, {tile[0], tile[1], tile[2]}) * problem.held[at(operand)];
      if (bits > most) {
        most = bits;
        largest = operand;
      }
    }
  }
  throw InfeasibleError(fmt::format(
      "tiles of {} x {} x {} (m, k, n) do not fit in the {} bits that a step may use: {} bits are "
      "missing, the largest of them {}'s ({} bits)",
      tile[0], tile[1], tile[2], problem.room, needs - problem.room, name_of(largest),
      static_cast<std::int64_t>(most)));
}

class Chooser {
public:
  Chooser(const PairProblem& problem, const BackwardOptions& options)
      : problem_(problem), options_(options) {}

  Chosen named(Technique technique) {
    if (!problem_.has_dx && technique != Technique::sequential && !searches(technique))
      return named(Technique::sequential);
    switch (technique) {
    case Technique::sequential:
      return sequence(some_orders(kRowsOfDx), some_orders(kRowsOfDw), given(), true);
    case Technique::best_sequential:
      return sequence(every_order(), every_order(), searched());
    case Technique::interleave:
      return together(interleaved_structures(problem_, kRowsOfDx, kRowsOfDw, false));
    case Technique::dx_major:
      return together(both_in(by_gradients() ? kTilesOfRows : kRowsOfDx));
    case Technique::dw_major:
      return together(both_in(by_gradients() ? kTilesOfColumns : kColumnsOfDy));
    case Technique::algorithm_1:
      return named(by_rule(problem_, options_.rule));
    case Technique::best_of_three:
      return best_of_three();
    default:
      return joint();
    }
  }

private:
  static bool searches(Technique technique) {
    return technique == Technique::best_sequential || technique == Technique::joint ||
           technique == Technique::joint_update;
  }

  const TileSpace& searched() {
    if (!searched_)
      searched_ = searched_tiles(problem_, options_.tiles == TilePolicy::divisors);
    return *searched_;
  }
  const TileSpace& given() {
    if (options_.tiles != TilePolicy::array)
      return searched();
    if (!array_)
      array_ = array_tiles(problem_);
    return *array_;
  }

  Choice required(const Structures& structures, const TileSpace& tiles, bool complete) {
    auto choice = best_choice(problem_, structures, tiles, std::nullopt, {.complete = complete});
    if (!choice)
      report_no_choice(problem_, structures, smallest_tile(tiles));
    return *choice;
  }

  bool by_gradients() const { return options_.major_loops == MajorLoops::gradients; }

  Structures both_in(const Order& order) const {
    return interleaved_structures(problem_, order, order, false);
  }

  Structures kept(Structures structures) const {
    return options_.retention == Retention::steps ? kept_by_steps(std::move(structures))
                                                  : structures;
  }

  /// `given_retention`: the options determine what stays.
  Chosen sequence(const std::vector<Order>& dx, const std::vector<Order>& dw,
                  const TileSpace& tiles, bool given_retention = false) {
    Chosen chosen;
    const auto add = [&](int product, const std::vector<Order>& orders) {
      Structures structures = singles(problem_, product, orders, DyUse::separate);
      if (given_retention)
        structures = kept(std::move(structures));
      chosen.programs.push_back(required(structures, tiles, orders.size() > 1));
    };
    if (problem_.has_dx)
      add(kDx, dx);
    add(kDw, dw);
    return chosen;
  }

  Chosen together(const Structures& all) {
    const Structures structures = kept(all);
    // Walked orders with few tiles come first; small memories need many tiles.
    for (double walked = kMaxEnumerated; walked <= kMaxEnumeratedTechnique; walked *= 16) {
      if (auto choice =
              best_choice(problem_, structures, given(), std::nullopt, {.walked = walked}))
        return {{*choice}};
    }
    report_no_choice(problem_, structures, smallest_tile(given()));
  }

  Chosen best_of_three() {
    Chosen best;
    std::optional<InfeasibleError> missing;
    for (const Technique t : {Technique::interleave, Technique::dx_major, Technique::dw_major}) {
      try {
        Chosen next = named(t);
        if (best.programs.empty() || next.time() < best.time())
          best = std::move(next);
      } catch (const InfeasibleError& e) {
        missing = e;
      }
    }
    if (best.programs.empty())
      throw *missing;
    return best;
  }

  /// Tries one product after the other, each fetching all of dY, or with dY kept for both.
  void try_sequences(Chosen& best) {
    for (const auto& [before, after] :
         {std::pair(DyUse::separate, DyUse::separate), std::pair(DyUse::once, DyUse::present)}) {
      for (const int first : {kDx, kDw}) {
        if (first == kDw && problem_.update)
          continue;
        if (auto found = best_sequence(problem_, singles(problem_, first, every_order(), before),
                                       singles(problem_, 1 - first, every_order(), after),
                                       searched(), best.time()))
          best = std::move(*found);
      }
    }
  }

  Chosen joint() {
    Chosen best = sequence(every_order(), every_order(), searched());
    if (!problem_.has_dx)
      return best;
    if (!problem_.update && (options_.tiles == TilePolicy::array || !few_tiles_fit()))
      try_interleaved(best);
    // Weights would change before they are used; without time turns do not matter.
    const bool both_turns = !problem_.update && problem_.timing != TileTiming::none;
    if (auto choice = best_choice(problem_, joint_structures(problem_), searched(), best.time(),
                                  {.complete = true, .both_turns = both_turns}))
      best = {{*choice}};
    try_sequences(best);
    return best;
  }

  /// With given tiles, or in little room, `interleave` may walk further than the search does.
  void try_interleaved(Chosen& best) {
    try {
      if (Chosen next = named(Technique::interleave); next.time() < best.time())
        best = std::move(next);
    } catch (const InfeasibleError&) { // then it is not faster
    }
  }

  /// Whether interleaving has a plan within the number of tiles that the search walks.
  bool few_tiles_fit() {
    Structure least; // no operand stays longer than a step
    least.form = Form::lockstep;
    least.order = {kRowsOfDx, kRowsOfDw};
    const Shape shape(problem_, least);
    const TileSpace& space = searched();
    for (const std::int64_t m : space[0].falling()) {
      for (const std::int64_t k : space[1].falling()) {
        const double steps = static_cast<double>(ceil_div(problem_.size[0], m)) *
                             static_cast<double>(ceil_div(problem_.size[1], k));
        if (steps > kMaxEnumerated)
          break;
        for (const std::int64_t n : space[2].falling()) {
          if (steps * static_cast<double>(ceil_div(problem_.size[2], n)) > kMaxEnumerated)
            break;
          if (shape.held(Tile{m, k, n}) <= problem_.room)
            return true;
        }
      }
    }
    return false;
  }

  const PairProblem& problem_;
  const BackwardOptions& options_;
  std::optional<TileSpace> searched_;
  std::optional<TileSpace> array_;
};

} // namespace

Wide Chosen::time() const {
  Wide sum = 0;
  for (const Choice& program : programs)
    sum += program.time;
  return sum - hidden;
}

Technique by_rule(const PairProblem& problem, MajorRule rule) {
  const auto [m, k, n] = problem.size;
  const std::int64_t largest = std::max({m, k, n});
  const std::int64_t least = std::min({m, k, n});
  if (largest / 4 < least && largest < 4 * least)
    return Technique::interleave;
  bool dw_major = false;
  switch (rule) {
  case MajorRule::dimensions:
    dw_major = k > n && k > m;
    break;
  case MajorRule::sizes:
    dw_major = m > n;
    break;
  case MajorRule::columns:
    dw_major = n < k;
    break;
  }
  return dw_major ? Technique::dw_major : Technique::dx_major;
}

Chosen choose(const PairProblem& problem, Technique technique, const BackwardOptions& options) {
  return Chooser(problem, options).named(technique);
}

} // namespace monet::joint_mapping
