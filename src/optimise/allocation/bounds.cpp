// Lower bounds on the figures of core allocations, for all plans or for all that share a begun
// plan; the allocation search uses them to skip plans.
#include "optimise/allocation/loads.hpp"
#include "optimise/bounds/shared_links.hpp"
#include "optimise/shared/step_bounds.hpp"
#include "workload/shared/operators.hpp"

#include "monet/base/units.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace monet {

namespace {

/// Rounds a lower bound up to an integer without exceeding its exact value; the relative error of
/// sums of doubles is below 1e-11.
std::int64_t whole(double value) {
  return std::max<std::int64_t>(0,
                                static_cast<std::int64_t>(std::ceil(value * (1 - 1e-11) - 1e-6)));
}

/// Lower bound on live bytes at the end of some operator in any schedule: tensors it reads or
/// makes, and tensors surely begun before and surely read after.
class LeastLiveBytes {
public:
  LeastLiveBytes(const TrainingGraph& step, const AllocationLoads& loads)
      : graph_(step.graph), words_((graph_.operators().size() + 63) / 64) {
    const std::size_t count = graph_.operators().size();
    before_.assign(count * words_, 0);
    for (std::size_t op = 0; op < count; ++op) {
      set(op, op);
      for (const std::uint32_t from : loads.reads_all_of[op]) {
        for (std::size_t w = 0; w < words_; ++w)
          before_[op * words_ + w] |= before_[from * words_ + w];
      }
    }
  }

  std::int64_t most() const {
    const std::size_t count = graph_.operators().size();
    std::vector<std::int64_t> bytes(count, 0);
    for (std::size_t t = 0; t < graph_.tensors().size(); ++t)
      add(TensorId(t), bytes);
    return bytes.empty() ? 0 : *std::ranges::max_element(bytes);
  }

private:
  void set(std::size_t op, std::size_t of) {
    before_[op * words_ + of / 64] |= std::uint64_t{1} << (of % 64);
  }
  /// Whether `first` is `op`, or all elements of `first` are surely made before `op` ends.
  bool comes_before(std::size_t first, std::size_t op) const {
    return ((before_[op * words_ + first / 64] >> (first % 64)) & 1U) != 0;
  }

  void add(TensorId id, std::vector<std::int64_t>& bytes) const {
    const Tensor& tensor = graph_.tensor(id);
    const std::int64_t size = bytes_of(size_of(tensor));
    if (tensor.alias_of || size == 0 || lies_in_host(graph_, id))
      return;
    const bool kept = tensor.kind == TensorKind::parameter || tensor.kind == TensorKind::buffer ||
                      tensor.kind == TensorKind::optimizer_state ||
                      std::ranges::find(graph_.outputs, id) != graph_.outputs.end();
    for (std::size_t op = 0; op < bytes.size(); ++op) {
      const bool begun = !tensor.producer || comes_before(tensor.producer->index(), op);
      const bool makes = tensor.producer && tensor.producer->index() == op;
      const bool used = kept || makes || std::ranges::any_of(tensor.consumers, [&](OpId reader) {
                          return comes_before(op, reader.index());
                        });
      if (begun && used)
        bytes[op] += size;
    }
  }

  const Graph& graph_;
  std::size_t words_;
  std::vector<std::uint64_t> before_; ///< [operator]: bit set of its predecessors
};

/// Whether no two slices compute the same iterations.
bool made_once(const TileGraph& tiles, const Graph& graph) {
  for (std::size_t op = 0; op < tiles.operators.size(); ++op) {
    const LoopNest& nest = graph.operators()[op].nest;
    for (std::size_t d = 0; d < nest.dims.size(); ++d) {
      std::int64_t sum = 0;
      for (const Interval part : tiles.operators[op].parts[d])
        sum += part.size();
      if (sum > nest.dims[d].size)
        return false;
    }
  }
  return true;
}

/// Lower bound in cycles for any tiles on the cores that operators may run on.
double latency_of_step(AllocationEvaluator& evaluator) {
  StepBoundOptions options;
  const Graph& graph = evaluator.step().graph;
  options.made_once = made_once(evaluator.tiles(evaluator.automatic()), graph);
  for (std::size_t op = 0; op < graph.operators().size(); ++op)
    options.cores.push_back(evaluator.planner().cores(OpId(op)));
  const double crossing = busiest_link_cycles(evaluator.step(), evaluator.chip(), options.cores);
  const StepBounds bounds = step_bounds(evaluator.step(), evaluator.chip(), options);
  return std::max(static_cast<double>(bounds.latency().value), crossing);
}

} // namespace

struct AllocationBounds::Impl {
  AllocationEvaluator& evaluator;
  double min_latency = 0; ///< cycles, for any tiles
  AllocationLoads loads;
  std::int64_t peak = 0;
  std::vector<std::vector<double>> weights; ///< weight vectors over resources; each sums to one
  /// [weights][operator]: minimum weighted cycles, summed over this operator and all after it.
  std::vector<std::vector<double>> min_after;
  std::vector<double>
      energy_least_after;               ///< [operator]: minimum Energy::units, summed as min_after
  std::vector<double> bits_least_after; ///< [operator]: minimum port bits, summed as min_after
  std::vector<std::size_t> even;        ///< per operator, its choice under the best weights

  Impl(AllocationEvaluator& e, const SearchControl& control)
      : evaluator(e), min_latency(latency_of_step(e)), loads(allocation_loads(e, control)),
        peak(LeastLiveBytes(e.step(), loads).most()) {
    if (!loads.complete)
      return;
    add_weights();
    for (const auto& w : weights) {
      std::vector<double> after(loads.of.size() + 1, 0);
      for (std::size_t op = loads.of.size(); op-- > 0;)
        after[op] = after[op + 1] + best_of(op, w).first;
      min_after.push_back(std::move(after));
    }
    energy_least_after = min_sums([](const ChoiceLoad& load) { return energy_of(load); });
    bits_least_after = min_sums([](const ChoiceLoad& load) { return load.port_bits; });
  }

  /// Per operator: the minimum measure over its choices, summed over it and all operators after it.
  template <class Measure>
  std::vector<double> min_sums(Measure&& measure) const {
    std::vector<double> after(loads.of.size() + 1, 0);
    for (std::size_t op = loads.of.size(); op-- > 0;)
      after[op] = after[op + 1] + min_of(op, measure);
    return after;
  }

  /// Minimum measure over the operator's feasible choices.
  template <class Measure>
  double min_of(std::size_t op, const Measure& measure) const {
    double least = std::numeric_limits<double>::infinity();
    for (const ChoiceLoad& load : loads.of[op]) {
      if (load.feasible)
        least = std::min(least, measure(load));
    }
    return least;
  }

  static double energy_of(const ChoiceLoad& load) {
    return static_cast<double>(load.energy) + load.port_energy;
  }

  static double weighted(const ChoiceLoad& load, const std::vector<double>& w) {
    double sum = 0;
    for (std::size_t r = 0; r < w.size(); ++r)
      sum += w[r] * load.cycles[r];
    return sum;
  }

  /// Minimum weighted cycles over the operator's choices, and that choice.
  std::pair<double, std::size_t> best_of(std::size_t op, const std::vector<double>& w) const {
    std::pair<double, std::size_t> best{std::numeric_limits<double>::infinity(), 0};
    for (std::size_t c = 0; c < loads.of[op].size(); ++c) {
      if (!loads.of[op][c].feasible)
        continue;
      const double sum = weighted(loads.of[op][c], w);
      if (sum < best.first)
        best = {sum, c};
    }
    return best;
  }

  /// Adds weights of resources under which the minimum weighted work of all operators is large. For
  /// weights that sum to one, it is a lower bound on the busiest resource of any plan. Adds each
  /// resource alone, and the best weights of a multiplicative search.
  void add_weights() {
    constexpr int kRounds = 200;
    const std::size_t n = loads.resources;
    for (std::size_t r = 0; r < n; ++r) {
      weights.emplace_back(n, 0.0);
      weights.back()[r] = 1;
    }
    std::vector<double> now(n, 1.0 / static_cast<double>(n));
    std::vector<double> best = now;
    double most = -1;
    for (int round = 0; round < kRounds; ++round) {
      std::vector<double> work(n, 0);
      double bound = 0;
      std::vector<std::size_t> chosen;
      for (std::size_t op = 0; op < loads.of.size(); ++op) {
        const auto [sum, choice] = best_of(op, now);
        bound += sum;
        chosen.push_back(choice);
        if (loads.of[op][choice].feasible) {
          for (std::size_t r = 0; r < n; ++r)
            work[r] += loads.of[op][choice].cycles[r];
        }
      }
      if (bound > most) {
        most = bound;
        best = now;
        even = chosen;
      }
      const double busiest = *std::ranges::max_element(work);
      if (!(busiest > 0) || !std::isfinite(bound))
        break;
      double sum = 0;
      const double step = 1.0 / std::sqrt(1.0 + round);
      for (std::size_t r = 0; r < n; ++r) {
        now[r] = std::max(now[r] * std::exp(step * (work[r] / busiest - 1)), 1e-9);
        sum += now[r];
      }
      for (double& w : now)
        w /= sum;
    }
    // Keeps the sum slightly below one despite rounding.
    for (double& w : best)
      w *= 1 - 1e-12;
    weights.push_back(best);
  }

  /// Lower bound in cycles from the longest chain of dependent operators.
  double chain(std::span<const std::uint32_t> begin) const {
    const std::size_t count = loads.of.size();
    std::vector<double> start(count, 0);
    std::vector<double> end(count, 0);
    double others = 0; // end of the operators that are not waiting updates
    double last = 0;
    for (const bool updates : {false, true}) {
      for (std::size_t op = 0; op < count; ++op) {
        if (loads.waits[op] != updates)
          continue;
        add_to_chain(op, begin, updates ? others : 0, start, end);
        last = std::max(last, end[op]);
      }
      others = last;
    }
    return last;
  }

  void add_to_chain(std::size_t op, std::span<const std::uint32_t> begin, double earliest,
                    std::vector<double>& start, std::vector<double>& end) const {
    const bool fixed = op < begin.size();
    const std::size_t first = fixed ? begin[op] : 0;
    const std::size_t last = fixed ? first + 1 : loads.of[op].size();
    double starts = std::numeric_limits<double>::infinity();
    double ends = starts;
    double shortest = starts;
    for (std::size_t c = first; c < last; ++c) {
      const ChoiceLoad& load = loads.of[op][c];
      if (!load.feasible)
        continue;
      double s = earliest;
      for (const std::uint32_t from : load.after_some)
        s = std::max(s, start[from] + shortest_of(from, begin));
      for (const std::uint32_t from : load.after_all)
        s = std::max(s, end[from]);
      starts = std::min(starts, s);
      ends = std::min(ends, s + load.busiest(loads.cores));
      shortest = std::min(shortest, static_cast<double>(load.shortest_tile));
    }
    for (const std::uint32_t from : loads.reads_all_of[op])
      ends = std::max(ends, end[from] + shortest);
    start[op] = starts;
    end[op] = ends;
  }

  double shortest_of(std::size_t op, std::span<const std::uint32_t> begin) const {
    const auto shortest = [](const ChoiceLoad& load) {
      return static_cast<double>(load.shortest_tile);
    };
    return op < begin.size() ? shortest(loads.of[op][begin[op]]) : min_of(op, shortest);
  }

  bool feasible(std::span<const std::uint32_t> begin) const {
    for (std::size_t op = 0; op < begin.size(); ++op) {
      if (!loads.of[op][begin[op]].feasible)
        return false;
    }
    return true;
  }

  /// Lower bound in cycles; infinite if no plan is feasible.
  double latency(std::span<const std::uint32_t> begin) const {
    const auto& must = loads.compulsory.cycles;
    double most = std::max(*std::ranges::max_element(must), min_latency);
    if (!loads.complete)
      return static_cast<double>(whole(most));
    if (!feasible(begin) || std::isinf(energy_least_after.front()))
      return std::numeric_limits<double>::infinity();
    most = std::max(most, chain(begin));
    for (std::size_t w = 0; w < weights.size(); ++w) {
      double sum = min_after[w][begin.size()];
      for (std::size_t op = 0; op < begin.size(); ++op)
        sum += weighted(loads.of[op][begin[op]], weights[w]);
      most = std::max(most, sum);
    }
    return static_cast<double>(whole(most));
  }

  /// Lower bound on bits to and from the off-chip memory.
  double bits(std::span<const std::uint32_t> begin) const {
    if (!loads.complete)
      return static_cast<double>(whole(loads.compulsory.port_bits));
    double sum = bits_least_after[begin.size()];
    for (std::size_t op = 0; op < begin.size(); ++op)
      sum += loads.of[op][begin[op]].port_bits;
    return static_cast<double>(whole(sum));
  }

  /// Lower bound in Energy::units, from a lower bound on cycles.
  double energy(std::span<const std::uint32_t> begin, double cycles) const {
    if (std::isinf(cycles))
      return cycles;
    const Chip& chip = evaluator.chip();
    double sum = 0;
    for (std::size_t c = 0; c < chip.cores.size(); ++c) {
      const Picojoules lost{leakage_per_cycle(chip, CoreId(c)) * std::floor(cycles)};
      sum += static_cast<double>(Energy::from(lost).units);
    }
    if (!loads.complete)
      return static_cast<double>(whole(sum + loads.compulsory.port_energy));
    sum += energy_least_after[begin.size()];
    for (std::size_t op = 0; op < begin.size(); ++op)
      sum += energy_of(loads.of[op][begin[op]]);
    return static_cast<double>(whole(sum));
  }
};

AllocationBounds::AllocationBounds(AllocationEvaluator& evaluator, const SearchControl& control)
    : impl_(std::make_unique<Impl>(evaluator, control)) {}
AllocationBounds::~AllocationBounds() = default;

double AllocationBounds::bound(Objective objective) const {
  return bound(objective, {});
}

double AllocationBounds::bound(Objective objective, std::span<const std::uint32_t> begin) const {
  const double cycles = impl_->latency(begin);
  if (objective == Objective::latency || std::isinf(cycles))
    return cycles;
  if (objective == Objective::memory)
    return static_cast<double>(impl_->peak);
  if (objective == Objective::dram)
    return impl_->bits(begin);
  const double picojoules = impl_->energy(begin, cycles) / Energy::kUnitsPerPicojoule;
  return objective == Objective::energy ? picojoules : picojoules * cycles * (1 - 1e-15);
}

AllocationPlan AllocationBounds::balanced() const {
  AllocationPlan plan = impl_->evaluator.automatic();
  for (std::size_t op = 0; op < impl_->even.size(); ++op)
    plan[op] = static_cast<std::uint32_t>(impl_->even[op]);
  return plan;
}

AllocationPlan AllocationBounds::fastest() const {
  AllocationPlan plan = impl_->evaluator.automatic();
  for (std::size_t op = 0; op < plan.size(); ++op) {
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t c = 0; c < impl_->loads.of[op].size(); ++c) {
      const ChoiceLoad& load = impl_->loads.of[op][c];
      if (!load.feasible)
        continue;
      const double most = *std::ranges::max_element(load.cycles);
      if (most < least) {
        least = most;
        plan[op] = static_cast<std::uint32_t>(c);
      }
    }
  }
  return plan;
}

} // namespace monet
