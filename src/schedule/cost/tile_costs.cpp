// Costs of tiles: solves each distinct core problem once, in parallel, and caches the results per
// operator. The scheduler places tiles by these costs.
#include "monet/schedule/tile_costs.hpp"

#include "base/shared/parallel.hpp"
#include "hardware/shared/array_modes.hpp"
#include "schedule/cost/tile_classes.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/stop.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <string>
#include <utility>

namespace monet {

namespace {

/// A problem on one core with one share of the off-chip memory, and its cost.
struct Solved {
  CoreProblem problem;
  const Core* core = nullptr;
  OffchipRate rate;
  const CoreCost* cost = nullptr;
  std::exception_ptr infeasible;
};

/// Number of each core; equal cores have equal numbers.
std::vector<std::uint32_t> core_kinds(const Chip& chip) {
  std::map<std::string, std::uint32_t> known;
  std::vector<std::uint32_t> kinds;
  for (const Core& core : chip.cores) {
    const auto next = static_cast<std::uint32_t>(known.size());
    kinds.push_back(known.emplace(signature(core), next).first->second);
  }
  return kinds;
}

/// All distinct problems of some operators, and the choices of each class of tiles among them.
class CostTable {
public:
  CostTable(const TileGraph& tiles, const TrainingGraph& step, const Chip& chip,
            std::span<const OpId> ops, std::span<const std::uint32_t> core_kind)
      : tiles_(tiles), step_(step), chip_(chip), classes_(classify_tiles(tiles, step.graph, ops)),
        core_kind_(core_kind) {
    choices_.resize(classes_.example.size());
    for (std::size_t first = 0; first < choices_.size();) {
      std::size_t last = first + 1;
      while (last < choices_.size() && tile_of(last).op == tile_of(first).op)
        ++last;
      check_stop();
      add_operator(first, last);
      first = last;
    }
  }

  void solve(CoreCostCache& costs, const CoreCostOptions& options, int jobs) {
    parallel_for(solved_.size(), jobs, [&](std::size_t i) {
      Solved& s = solved_[i];
      CoreCostOptions with_rate = options;
      with_rate.offchip = s.rate;
      try {
        s.cost = &costs.get(s.problem, *s.core, with_rate);
      } catch (const InfeasibleError&) {
        s.infeasible = std::current_exception();
      }
    });
  }

  /// Costs of one operator's tiles, indexed from its first tile. Throws InfeasibleError if a class
  /// of tiles has no mapping.
  TileCosts take_best(OpId op, Objective objective) const {
    const OperatorTiling& tiling = tiles_.operators[op.index()];
    const auto row_of = std::span(classes_.class_of).subspan(tiling.first, tiling.size());
    TileCosts costs;
    const std::uint32_t first = *std::ranges::min_element(row_of);
    const std::uint32_t last = *std::ranges::max_element(row_of);
    for (std::uint32_t c = first; c <= last; ++c)
      costs.rows.push_back(best(c, objective));
    for (const std::uint32_t c : row_of)
      costs.row_of.push_back(c - first);
    return costs;
  }

  /// Moves out the problems and costs to which the results of take_best() point.
  std::deque<Solved> take_problems() { return std::move(solved_); }

private:
  const Tile& tile_of(std::size_t c) const { return tiles_.tiles[classes_.example[c].index()]; }

  /// The choice with the best merit, the first on ties. Throws the first choice's error if none is
  /// feasible.
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

  /// Throws the error of the first choice, with the operator's name.
  [[noreturn]] void throw_infeasible(std::size_t c) const {
    try {
      std::rethrow_exception(solved_[choices_[c].front()].infeasible);
    } catch (const InfeasibleError& error) {
      throw InfeasibleError(
          fmt::format("'{}': {}", step_.graph.op(tile_of(c).op).name, error.what()));
    }
  }

  /// Adds the problems of the classes [first, last), all of one operator.
  void add_operator(std::size_t first, std::size_t last) {
    std::vector<std::vector<CoreProblem>> choices;
    std::vector<CoreId> streaming;
    for (std::size_t c = first; c < last; ++c) {
      choices.push_back(choices_of(first, c, choices));
      const CoreId core = tile_of(c).core;
      const bool known = std::ranges::find(streaming, core) != streaming.end();
      if (!known && streams(choices.back().front()))
        streaming.push_back(core);
    }
    for (std::size_t c = first; c < last; ++c) {
      for (CoreProblem& problem : choices[c - first])
        choices_[c].push_back(add(tile_of(c).op, tile_of(c).core, std::move(problem), streaming));
    }
  }

  /// Choices of class `c`: those of an earlier class that differs only in the number of its core,
  /// else new ones.
  std::vector<CoreProblem> choices_of(std::size_t first, std::size_t c,
                                      const std::vector<std::vector<CoreProblem>>& earlier) const {
    const CoreId core = tile_of(c).core;
    constexpr std::size_t kMaxComparisons = 64;
    for (std::size_t e = first; e < c && e < first + kMaxComparisons; ++e) {
      if (classes_.shape[e] == classes_.shape[c] &&
          core_kind_[tile_of(e).core.index()] == core_kind_[core.index()])
        return earlier[e - first];
    }
    const TileId example = classes_.example[c];
    return streaming_choices(tile_of(c), tiles_.ranges(example), step_, chip_);
  }

  std::size_t add(OpId op, CoreId core, CoreProblem problem, const std::vector<CoreId>& streaming) {
    OffchipRate rate;
    const Core& running = in_mode_for(chip_.cores[core.index()], step_.graph, step_.graph.op(op));
    std::string key = std::to_string(core_kind_[core.index()]) + ' ' +
                      std::to_string(running.lanes()) + ' ' +
                      std::to_string(running.mac_energy_pj) + ' ' + signature(problem);
    if (streams(problem)) {
      rate = offchip_rate(chip_, core, streaming);
      key += signature(rate);
    }
    const auto [entry, added] = known_.emplace(std::move(key), solved_.size());
    if (added)
      solved_.push_back({std::move(problem), &running, rate, nullptr, nullptr});
    return entry->second;
  }

  /// Merit of a solution by the objective. Kept operands count with one transfer to or from the
  /// core.
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
  std::span<const std::uint32_t> core_kind_;
  std::map<std::string, std::size_t, std::less<>> known_;
  std::deque<Solved> solved_;
  std::vector<std::vector<std::size_t>> choices_; ///< [class]: indices into solved_
};

} // namespace

/// Costs cached by operator, cuts, cores and parts of loops.
struct TileCostCache::Impl {
  using Key = std::vector<std::int64_t>;
  struct Entry {
    std::shared_ptr<const TileCosts> costs;
    std::exception_ptr infeasible;
  };

  const TrainingGraph& step;
  const Chip& chip;
  CoreCostCache& cache;
  CoreCostOptions options;
  int jobs;
  std::vector<std::uint32_t> kinds; ///< per core
  std::shared_mutex mutex;
  std::map<Key, Entry> known;
  std::deque<std::deque<Solved>> problems; ///< the costs point into these

  static Key key_of(const TileGraph& tiles, OpId op) {
    const OperatorTiling& tiling = tiles.operators[op.index()];
    Key key{op.value, tiling.slice_cuts};
    std::uint32_t slice = 1; // tiles per slice
    for (std::size_t i = 0; i < tiling.cuts.size(); ++i) {
      key.push_back(tiling.cuts[i].dim);
      key.push_back(tiling.cuts[i].count);
      slice *= i < tiling.slice_cuts ? 1 : tiling.cuts[i].count;
    }
    for (std::uint32_t i = 0; i < slice; ++i)
      key.push_back(tiles.tiles[tiling.first + i].core.value);
    for (const auto& parts : tiling.parts) {
      for (const Interval part : parts) {
        key.push_back(part.begin);
        key.push_back(part.end);
      }
    }
    return key;
  }

  /// Entries of the operators `ops`; empty for other operators.
  std::vector<Entry> entries(const TileGraph& tiles, std::span<const OpId> ops) {
    std::vector<Entry> found(tiles.operators.size());
    std::vector<OpId> missing;
    std::vector<Key> keys;
    {
      const std::shared_lock lock(mutex);
      for (const OpId op : ops) {
        Key key = key_of(tiles, op);
        const auto entry = known.find(key);
        if (entry != known.end()) {
          found[op.index()] = entry->second;
        } else {
          missing.push_back(op);
          keys.push_back(std::move(key));
        }
      }
    }
    if (!missing.empty())
      add(tiles, missing, std::move(keys), found);
    return found;
  }

  void add(const TileGraph& tiles, std::span<const OpId> missing, std::vector<Key> keys,
           std::vector<Entry>& found) {
    CostTable table(tiles, step, chip, missing, kinds);
    table.solve(cache, options, jobs);
    for (const OpId op : missing) {
      Entry& entry = found[op.index()];
      try {
        entry.costs = std::make_shared<const TileCosts>(table.take_best(op, options.objective));
      } catch (const InfeasibleError&) {
        entry.infeasible = std::current_exception();
      }
    }
    const std::unique_lock lock(mutex);
    for (std::size_t i = 0; i < missing.size(); ++i)
      known.emplace(std::move(keys[i]),
                    found[missing[i].index()]); // an earlier entry stays; all are equal
    problems.push_back(table.take_problems());
  }
};

TileCostCache::TileCostCache(const TrainingGraph& step, const Chip& chip, CoreCostCache& costs,
                             const CoreCostOptions& options, int jobs)
    : impl_(new Impl{step, chip, costs, options, jobs, core_kinds(chip), {}, {}, {}}) {}
TileCostCache::~TileCostCache() = default;

std::shared_ptr<const TileCosts> TileCostCache::of(const TileGraph& tiles, OpId op) {
  return impl_->entries(tiles, {&op, 1})[op.index()].costs;
}

TileCosts TileCostCache::of(const TileGraph& tiles) {
  TileCosts all;
  all.row_of.reserve(tiles.tiles.size());
  for (const Impl::Entry& entry : impl_->entries(tiles, all_operators(impl_->step.graph))) {
    if (entry.infeasible)
      std::rethrow_exception(entry.infeasible);
    const auto first = static_cast<std::uint32_t>(all.rows.size());
    all.rows.insert(all.rows.end(), entry.costs->rows.begin(), entry.costs->rows.end());
    for (const std::uint32_t row : entry.costs->row_of)
      all.row_of.push_back(first + row);
  }
  return all;
}

TileCosts tile_costs(const TileGraph& tiles, const TrainingGraph& step, const Chip& chip,
                     CoreCostCache& costs, const CoreCostOptions& options, int jobs) {
  const auto cache = std::make_shared<TileCostCache>(step, chip, costs, options, jobs);
  TileCosts all = cache->of(tiles);
  all.owner = cache;
  return all;
}

} // namespace monet
