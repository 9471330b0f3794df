// Finds the cheapest fusion plans of a step: a dynamic program over the order of operators, on the
// group prices of price.cpp.
#include "base/shared/bytes.hpp"
#include "tiling/fusion_estimate/groups.hpp"
#include "tiling/fusion_estimate/price.hpp"

#include "monet/tiling/allocation.hpp"
#include "monet/tiling/tiling.hpp"

#include <algorithm>
#include <array>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>

namespace monet {

namespace {

/// Weight of each figure of a price.
struct CoverWeights {
  double cycles = 0;
  double bits = 0;
  double tiles = 0;
  double of(const GroupPrice& price) const {
    return cycles * price.cycles + bits * price.bits + tiles * price.tiles;
  }
};

constexpr std::size_t kMaxPlans = 6;
/// Maximum rounds of measuring the slices of a plan and searching again.
constexpr int kMaxRounds = 4;

/// A way to slice a group, with its price.
struct PricedGroup {
  std::uint32_t group = 0;
  std::uint32_t way = 0;
  GroupPrice price;
};

/// Prices all groups on one chip and finds the cheapest selection of disjoint groups.
class Cover {
public:
  Cover(const NeighbourGroups& groups, const Graph& graph, const Chip& chip, const CoreLists& cores,
        const FusionCovers::PlanCycles& cycles)
      : groups_(groups), graph_(graph), pricer_(graph, chip, cores), cycles_(cycles) {}

  std::string key() const { return pricer_.key(); }

  void begin() {
    if (cycles_) {
      const std::vector<double> unfused = cycles_({});
      for (std::size_t i = 0; i < unfused.size(); ++i)
        pricer_.learn(OpId(i), {}, unfused[i]);
    }
    price_all();
  }

  const GroupPrice& all() const { return all_; }

  /// The best plan by the measurements so far, and its cycles. Groups may use the fraction `share`
  /// of the memories.
  std::pair<FusionPlan, double> search(const CoverWeights& weights, double share) {
    if (share != share_) {
      share_ = share;
      pricer_.use(share);
      price_all();
    }
    Chosen chosen = best(weights);
    for (int round = 0; cycles_ && round < kMaxRounds; ++round) {
      if (!learn(chosen, cycles_(plan(chosen))))
        break;
      price_all();
      chosen = best(weights);
    }
    return {plan(chosen), cycles_of(chosen)};
  }

private:
  using Chosen = std::vector<const PricedGroup*>; ///< in the order of operators

  bool learn(const Chosen& chosen, const std::vector<double>& cycles) {
    bool news = false;
    for (const PricedGroup* priced : chosen) {
      const NeighbourGroup& own = group(*priced);
      const GroupSlices& way = groups_.ways(own)[priced->way];
      for (std::size_t m = 0; !cycles.empty() && m < own.members.size(); ++m)
        news =
            pricer_.learn(own.members[m], way.members[m], cycles[own.members[m].index()]) || news;
    }
    return news;
  }

  Chosen best(const CoverWeights& weights) const {
    const auto& sequence = groups_.sequence();
    std::vector<double> total(sequence.size() + 1, 0.0);
    std::vector<const PricedGroup*> last(sequence.size() + 1, nullptr);
    std::vector<double> saved(sequence.size() + 1, 0.0); // prefix sums: updates run alone
    std::size_t next = 0;
    for (std::size_t end = 1; end <= sequence.size(); ++end) {
      const OpId op = sequence[end - 1];
      total[end] = total[end - 1] + weights.of(alone_[op.index()]);
      double updates = 0;
      for (const OpId update : groups_.updates_of(op))
        updates += weights.of(alone_[update.index()]);
      saved[end] = saved[end - 1] + updates;
      total[end] += updates;
      for (; next < priced_.size() && group(priced_[next]).end == end; ++next) {
        const NeighbourGroup& own = group(priced_[next]);
        const double unfused = own.updates ? 0.0 : saved[end] - saved[own.begin];
        const double with = total[own.begin] + unfused + weights.of(priced_[next].price);
        // Ties are won by the last way: smaller slices overlap better than estimated. An operator
        // that runs alone must gain something by slices.
        const double enough = own.members.size() == 1 ? 1 - 1e-9 : 1 + 1e-9;
        if (with < total[end] * enough) {
          total[end] = with;
          last[end] = &priced_[next];
        }
      }
    }
    Chosen chosen;
    for (std::size_t end = sequence.size(); end > 0;) {
      if (last[end] == nullptr) {
        --end;
        continue;
      }
      chosen.push_back(last[end]);
      end = group(*last[end]).begin;
    }
    std::ranges::reverse(chosen);
    return chosen;
  }
  const NeighbourGroup& group(const PricedGroup& priced) const {
    return groups_.groups()[priced.group];
  }

  void price_all() {
    alone_.clear();
    all_ = {};
    for (std::size_t i = 0; i < graph_.operators().size(); ++i) {
      alone_.push_back(pricer_.alone(OpId(i)));
      all_ += alone_.back();
    }
    priced_.clear();
    const auto& groups = groups_.groups();
    for (std::uint32_t g = 0; g < groups.size(); ++g) {
      const auto& ways = groups_.ways(groups[g]);
      for (std::uint32_t w = groups[g].members.size() == 1 ? 1 : 0; w < ways.size(); ++w) {
        if (const auto price = pricer_.price(groups[g], ways[w]))
          priced_.push_back({g, w, *price});
      }
    }
  }

  double cycles_of(const Chosen& chosen) const {
    double cycles = all_.cycles;
    for (const PricedGroup* priced : chosen) {
      cycles += priced->price.cycles;
      for (const OpId member : group(*priced).members)
        cycles -= alone_[member.index()].cycles;
    }
    return cycles;
  }

  FusionPlan plan(const Chosen& chosen) const {
    FusionPlan plan;
    for (const PricedGroup* priced : chosen) {
      const NeighbourGroup& own = group(*priced);
      StackSlices slices;
      for (const StackSlices::Cut& cut : groups_.ways(own)[priced->way].cuts)
        slices.cuts.push_back({own.members[cut.op.index()], cut.dim, cut.count});
      plan.stacks.push_back(own.members);
      plan.slices.emplace_back(std::move(slices));
    }
    return plan;
  }

  const NeighbourGroups& groups_;
  const Graph& graph_;
  GroupPricer pricer_;
  const FusionCovers::PlanCycles& cycles_;
  double share_ = 1;              ///< fraction of the memories that prices allow
  std::vector<GroupPrice> alone_; ///< per operator
  GroupPrice all_;
  std::vector<PricedGroup> priced_; ///< sorted by end of the group
};

struct CoverRequest {
  CoverWeights weights;
  double share = 1; ///< fraction of the memories
};

/// Requested plans: by latency, by latency and traffic, by traffic; then the first two with half of
/// the memories, and the first with a quarter.
std::array<CoverRequest, kMaxPlans> wanted(const GroupPrice& all, double tile) {
  const double cycles = 1 / std::max(1.0, all.cycles);
  const double bits = 1 / std::max(1.0, all.bits);
  return {{{{cycles, 0, tile}, 1},
           {{cycles, bits, 2 * tile}, 1},
           {{0, bits, tile}, 1},
           {{cycles, 0, tile}, 0.5},
           {{cycles, bits, 2 * tile}, 0.5},
           {{cycles, 0, tile}, 0.25}}};
}

} // namespace

struct FusionCovers::Impl {
  const TrainingGraph& step;
  NeighbourGroups groups;
  std::mutex mutex;
  std::unordered_map<std::string, Estimates> known;   ///< by GroupPricer::key()
  std::unordered_map<std::string, FusionPlan> stacks; ///< by memory_key()

  /// Key that is equal for chips with equal stacks_by_memory().
  std::string memory_key(const Chip& chip, const TilePlanner& planner, Halo halo) const {
    ByteWriter key;
    key.number(halo);
    for (std::size_t i = 0; i < step.graph.operators().size(); ++i)
      key.list(planner.cores(OpId(i)), [&](CoreId core) { key.number(core.value); });
    for (std::size_t core = 0; core < chip.cores.size(); ++core) {
      const CoreId first = chip.memory_of(CoreId(core));
      key.number(first == CoreId(core) ? chip.pool_bits(first) : 0, first.value);
    }
    return key.take();
  }

  static Estimates plans(Cover& cover, double tile, std::size_t most) {
    cover.begin();
    Estimates found;
    const auto all = wanted(cover.all(), tile);
    for (const CoverRequest& each : std::span(all).first(most)) {
      auto [plan, cycles] = cover.search(each.weights, each.share);
      if (plan.stacks.empty() || std::ranges::find(found.plans, plan) != found.plans.end())
        continue;
      found.plans.push_back(std::move(plan));
      found.cycles.push_back(cycles);
    }
    found.cycles_apart = cover.all().cycles;
    return found;
  }
};

FusionCovers::FusionCovers(const TrainingGraph& step, Halo halo)
    : impl_(new Impl{step, NeighbourGroups(step.graph, halo), {}, {}, {}}) {}
FusionCovers::~FusionCovers() = default;

FusionPlan FusionCovers::stacks_by_memory(const Chip& chip, const TilingOptions& options) const {
  if (options.mapping != nullptr || options.stacks) // these may determine slices: not cached
    return automatic_fusion(impl_->step, chip, options);
  TilingOptions own = options;
  own.mode = TilingMode::layer_by_layer;
  std::string key = impl_->memory_key(chip, TilePlanner(impl_->step, chip, own), options.halo);
  {
    const std::lock_guard lock(impl_->mutex);
    if (const auto known = impl_->stacks.find(key); known != impl_->stacks.end())
      return known->second;
  }
  FusionPlan found = automatic_fusion(impl_->step, chip, options);
  const std::lock_guard lock(impl_->mutex);
  return impl_->stacks.emplace(std::move(key), std::move(found)).first->second;
}

FusionCovers::Estimates FusionCovers::plans(const Chip& chip, const TilingOptions& options,
                                            const PlanCycles& cycles) const {
  TilingOptions own = options;
  own.mode = TilingMode::layer_by_layer;
  const TilePlanner planner(impl_->step, chip, own);
  CoreLists cores;
  for (std::size_t i = 0; i < impl_->step.graph.operators().size(); ++i)
    cores.push_back(planner.cores(OpId(i)));
  Cover cover(impl_->groups, impl_->step.graph, chip, cores, cycles);
  if (cycles)
    return Impl::plans(cover, 0, kMaxPlans);
  const std::string key = cover.key();
  {
    const std::lock_guard lock(impl_->mutex);
    if (const auto known = impl_->known.find(key); known != impl_->known.end())
      return known->second;
  }
  Estimates found = Impl::plans(cover, kTile, 1);
  const std::lock_guard lock(impl_->mutex);
  return impl_->known.emplace(key, std::move(found)).first->second;
}

} // namespace monet
