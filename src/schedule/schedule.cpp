// Core costs first, each distinct problem once and in parallel; then the tiles in time.
#include "monet/schedule/schedule.hpp"

#include "schedule/event_scheduler.hpp"
#include "schedule/tile_classes.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/parallel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <string>

namespace monet {

namespace {

/// One problem on one core at one share of the off-chip memory.
struct Solved {
  CoreProblem problem;
  const Core* core = nullptr;
  OffchipRate rate;
  const CoreCost* cost = nullptr;
  std::exception_ptr infeasible;
};

/// Every distinct problem of a step, and which of them each class of tiles may choose from.
class CostTable {
public:
  CostTable(const TileGraph& tiles, const TrainingGraph& step, const Chip& chip)
      : tiles_(tiles), step_(step), chip_(chip), classes_(classify_tiles(tiles, step.graph)) {
    std::map<std::string, std::uint32_t> kinds;
    for (const Core& core : chip.cores) {
      const auto next = static_cast<std::uint32_t>(kinds.size());
      core_kind_.push_back(kinds.emplace(signature(core), next).first->second);
    }
    choices_.resize(classes_.example.size());
    for (std::size_t first = 0; first < choices_.size();) {
      std::size_t last = first + 1;
      while (last < choices_.size() && tile_of(last).op == tile_of(first).op)
        ++last;
      add_operator(first, last);
      first = last;
    }
  }

  void solve(CoreCostCache& costs, const ScheduleOptions& options) {
    parallel_for(solved_.size(), options.jobs, [&](std::size_t i) {
      Solved& s = solved_[i];
      CoreCostOptions with_rate = options.core_cost;
      with_rate.offchip = s.rate;
      try {
        s.cost = &costs.get(s.problem, *s.core, with_rate);
      } catch (const InfeasibleError&) {
        s.infeasible = std::current_exception();
      }
    });
  }

  TileCosts take_best(Objective objective) {
    TileCosts costs;
    for (std::size_t c = 0; c < choices_.size(); ++c)
      costs.rows.push_back(best(c, objective));
    costs.row_of = std::move(classes_.class_of);
    return costs;
  }

private:
  const Tile& tile_of(std::size_t c) const { return tiles_.tiles[classes_.example[c].index()]; }

  /// The choice with the best merit, the first on ties. When none is feasible, the first one says
  /// why.
  TileCost best(std::size_t c, Objective objective) const {
    const Solved* best = nullptr;
    for (const std::size_t i : choices_[c]) {
      const Solved& s = solved_[i];
      if (s.cost == nullptr)
        continue;
      if (best == nullptr || value(s, objective) < value(*best, objective))
        best = &s;
    }
    if (best == nullptr)
      throw_infeasible(c);
    return {&best->problem, best->cost};
  }

  /// Why the first choice has no mapping, and of which operator.
  [[noreturn]] void throw_infeasible(std::size_t c) const {
    try {
      std::rethrow_exception(solved_[choices_[c].front()].infeasible);
    } catch (const InfeasibleError& error) {
      throw InfeasibleError(
          fmt::format("'{}': {}", step_.graph.op(tile_of(c).op).name, error.what()));
    }
  }

  /// Classes [first, last) of one operator.
  void add_operator(std::size_t first, std::size_t last) {
    std::vector<std::vector<CoreProblem>> choices;
    std::vector<CoreId> streaming;
    for (std::size_t c = first; c < last; ++c) {
      choices.push_back(choices_of(first, c, choices));
      const CoreId core = tile_of(c).core;
      const bool known = std::find(streaming.begin(), streaming.end(), core) != streaming.end();
      if (!known && streams(choices.back().front()))
        streaming.push_back(core);
    }
    for (std::size_t c = first; c < last; ++c) {
      for (CoreProblem& problem : choices[c - first])
        choices_[c].push_back(add(tile_of(c).core, std::move(problem), streaming));
    }
  }

  /// Those of an earlier class that differs in nothing but the number of its core, or new ones.
  std::vector<CoreProblem> choices_of(std::size_t first, std::size_t c,
                                      const std::vector<std::vector<CoreProblem>>& earlier) const {
    const CoreId core = tile_of(c).core;
    constexpr std::size_t kMostCompared = 64;
    for (std::size_t e = first; e < c && e < first + kMostCompared; ++e) {
      if (classes_.shape[e] == classes_.shape[c] &&
          core_kind_[tile_of(e).core.index()] == core_kind_[core.index()])
        return earlier[e - first];
    }
    const TileId example = classes_.example[c];
    return streaming_choices(tile_of(c), tiles_.ranges(example), step_, chip_);
  }

  std::size_t add(CoreId core, CoreProblem problem, const std::vector<CoreId>& streaming) {
    OffchipRate rate;
    std::string key = std::to_string(core_kind_[core.index()]) + ' ' + signature(problem);
    if (streams(problem)) {
      rate = offchip_rate(chip_, core, streaming);
      key += signature(rate);
    }
    const auto [entry, added] = known_.emplace(std::move(key), solved_.size());
    if (added)
      solved_.push_back({std::move(problem), &chip_.cores[core.index()], rate, nullptr, nullptr});
    return entry->second;
  }

  /// As the mapping is judged; what stays on the core has to be brought and taken away once, too.
  static std::pair<double, double> value(const Solved& s, Objective objective) {
    OffchipTraffic all;
    for (std::size_t i = 0; i < s.problem.operands.size(); ++i) {
      const ProblemOperand& operand = s.problem.operands[i];
      std::int64_t stays = operand.offchip ? 0 : operand.bits;
      for (const std::int64_t extent : operand.extents)
        stays *= extent;
      (operand.mode == AccessMode::read ? all.read : all.write).value += stays;
      all.read += s.cost->offchip[i].read;
      all.write += s.cost->offchip[i].write;
    }
    return merit(objective, std::max(s.cost->parts.total(), s.rate.cycles(all)),
                 s.cost->energy().value + s.rate.energy_pj(all));
  }

  const TileGraph& tiles_;
  const TrainingGraph& step_;
  const Chip& chip_;
  TileClasses classes_;
  std::vector<std::uint32_t> core_kind_; ///< per core: equal cores have equal numbers
  std::map<std::string, std::size_t, std::less<>> known_;
  std::deque<Solved> solved_;
  std::vector<std::vector<std::size_t>> choices_; ///< [class]: indices into solved_
};

} // namespace

bool TransferRules::*transfer_rule_named(std::string_view name) {
  if (name == "links")
    return &TransferRules::share_links;
  if (name == "multicast")
    return &TransferRules::multicast;
  if (name == "overlap")
    return &TransferRules::exact_overlap;
  return name == "routing" ? &TransferRules::free_routing : nullptr;
}

Timeline schedule(const TileGraph& tiles, const TrainingGraph& step, const Chip& chip,
                  CoreCostCache& costs, const ScheduleOptions& options) {
  CostTable table(tiles, step, chip);
  table.solve(costs, options);
  return place_tiles(tiles, step, chip, table.take_best(options.core_cost.objective),
                     options.priority, options.rules);
}

} // namespace monet
