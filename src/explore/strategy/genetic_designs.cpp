// The genetic strategy: NSGA-II (optimise/shared/nsga2.hpp) over parameter values, for several
// fronts at once. Each front ranks the same designs by its objectives; the fronts take turns in
// selecting parents and survivors. The exploration loop (explore.cpp) drives it.
#include "explore/strategy/design_fronts.hpp"
#include "explore/strategy/design_repair.hpp"
#include "explore/strategy/main_effects.hpp"
#include "explore/strategy/strategies.hpp"
#include "optimise/shared/nsga2.hpp"

#include "monet/base/errors.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace monet {

namespace {

constexpr std::size_t kPopulation = 48;
constexpr std::size_t kIdle = 25; ///< idle generations that end a run without budget
constexpr double kCrossover = 0.9;
constexpr std::size_t kChildren = 16;     ///< generated per evaluated child
constexpr std::size_t kRemembered = 2048; ///< latest results, for fitting effects

struct Member {
  std::vector<std::uint32_t> choices;
  bool feasible = false;
  std::vector<Objectives> points; ///< per front; empty if infeasible
};

class GeneticDesigns : public Strategy {
public:
  GeneticDesigns(DesignSet designs, const StrategyOptions& options)
      : open_(std::move(designs)), budget_(options.budget), random_(options.seed, 0x6E5A),
        fronts_(open_.designs().fronts.size()) {
    internal_check(!fronts_.empty(), "a genetic search without a front to look for");
    for (const FrontRequest& front : open_.designs().fronts) {
      effects_.emplace_back(front.objectives.size(), MainEffects(open_.designs().values));
      logs_.emplace_back(front.objectives.size());
    }
  }

  std::vector<DesignId> ask() override {
    const std::uint64_t left =
        budget_ == 0 ? kPopulation : budget_ - std::min(budget_, open_.taken());
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(kPopulation, left));
    batch_.clear();
    if (count == 0 || (budget_ == 0 && idle_ >= kIdle))
      return {};
    std::vector<std::vector<std::uint32_t>> genomes;
    if (open_.taken() == 0)
      genomes = spread();
    for (std::size_t i = 0; i < count; ++i) {
      const std::vector<std::uint32_t> genome = i < genomes.size() ? genomes[i] : best_child();
      const std::optional<DesignId> id = open_.nearby(genome, random_);
      if (!id) {
        exhausted_ = true;
        break;
      }
      open_.take(*id);
      batch_.push_back(*id);
    }
    return batch_;
  }

  void tell(std::span<const DesignResult> results) override {
    internal_check(results.size() == batch_.size(), "results of other designs than asked for");
    bool better = false;
    for (std::size_t i = 0; i < results.size(); ++i) {
      Member& member = members_.emplace_back();
      member.choices = open_.designs().choices(batch_[i]);
      member.feasible = results[i].feasible;
      if (member.feasible)
        remembered_.push_back(member.choices);
      for (std::size_t f = 0; f < fronts_.size() && member.feasible; ++f) {
        member.points.push_back(objective_values(results[i], open_.designs().fronts[f]));
        better = fronts_[f].add(member.points.back()) || better;
        for (std::size_t k = 0; k < logs_[f].size(); ++k)
          logs_[f][k].push_back(std::log(std::max(member.points.back()[k], 1e-300)));
      }
    }
    idle_ = better ? 0 : idle_ + 1;
    fit_effects();
    select();
  }

  std::uint64_t excluded() const override { return open_.excluded(); }
  std::string ended_early() const override {
    return exhausted_ && open_.taken() < budget_
               ? "no new design that satisfies the constraints was found"
               : "";
  }

private:
  /// An initial population in which each parameter's values are equally frequent.
  std::vector<std::vector<std::uint32_t>> spread() {
    const auto& values = open_.designs().values;
    std::vector<std::vector<std::uint32_t>> genomes(kPopulation,
                                                    std::vector<std::uint32_t>(values.size()));
    std::vector<std::size_t> order(kPopulation);
    for (std::size_t p = 0; p < values.size(); ++p) {
      std::iota(order.begin(), order.end(), std::size_t{0});
      for (std::size_t i = kPopulation; i > 1; --i)
        std::swap(order[i - 1], order[random_.below(i)]);
      for (std::size_t i = 0; i < kPopulation; ++i)
        genomes[i][p] =
            static_cast<std::uint32_t>(std::uint64_t{order[i]} * values[p] / kPopulation);
    }
    return genomes;
  }

  void fit_effects() {
    const std::size_t count = std::min(remembered_.size(), kRemembered);
    const auto latest = std::span(remembered_).last(count);
    for (std::size_t f = 0; f < fronts_.size(); ++f)
      for (std::size_t k = 0; k < logs_[f].size(); ++k)
        effects_[f][k].fit(latest, std::span(logs_[f][k]).last(count));
  }

  const Member& parent(std::size_t front) {
    const std::size_t a = random_.below(members_.size());
    const std::size_t b = random_.below(members_.size());
    return members_[rankings_[front].before(b, a) ? b : a];
  }

  std::vector<std::uint32_t> child(std::size_t front) {
    if (members_.empty())
      return open_.random_choices(random_);
    Genome mixed{parent(front).choices, {}};
    if (random_.chance(kCrossover)) {
      Genome other{parent(front).choices, {}};
      cross(mixed, other, random_);
    }
    std::vector<std::uint32_t>& genome = mixed.choices;
    for (std::size_t p = 0; p < genome.size(); ++p)
      if (random_.chance(1 / static_cast<double>(genome.size())))
        genome[p] = mutated(genome[p], open_.designs().values[p]);
    return genome;
  }

  /// The most promising of several children for a random front: the one with the least weighted sum
  /// of objectives, estimated from main effects, with random weights.
  std::vector<std::uint32_t> best_child() {
    const std::size_t front = random_.below(fronts_.size());
    std::vector<double> weights;
    for (std::size_t k = 0; k < effects_[front].size(); ++k)
      weights.push_back(-std::log(1 - random_.unit())); // uniform on the simplex
    std::vector<std::uint32_t> best;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < kChildren; ++i) {
      std::vector<std::uint32_t> genome = child(front);
      double value = 0;
      for (std::size_t k = 0; k < weights.size(); ++k)
        value += weights[k] * effects_[front][k].at(genome);
      if (value < least && (best.empty() || open_.open(open_.designs().id_of(genome)))) {
        least = value;
        best = std::move(genome);
      }
    }
    return best;
  }

  /// A mutated value: the next or previous one, since most parameters are ordered, or a random one.
  std::uint32_t mutated(std::uint32_t value, std::uint32_t values) {
    const std::uint64_t way = random_.below(4);
    if (way == 0 && value > 0)
      return value - 1;
    if (way == 1 && value + 1 < values)
      return value + 1;
    return static_cast<std::uint32_t>(random_.below(values));
  }

  /// Selects the next population from parents and children; the fronts take turns.
  void select() {
    rank();
    if (members_.size() <= kPopulation)
      return;
    std::vector<Member> kept;
    for (const std::size_t i : survivors(rankings_, kPopulation))
      kept.push_back(std::move(members_[i]));
    members_ = std::move(kept);
    rank();
  }

  void rank() {
    rankings_.clear();
    for (std::size_t f = 0; f < fronts_.size(); ++f) {
      std::vector<Evaluation> evaluations;
      for (const Member& member : members_)
        evaluations.push_back(member.feasible ? Evaluation{member.points[f], 0}
                                              : Evaluation{{}, 1});
      // Equal points would displace different ones.
      rankings_.emplace_back(evaluations, Ranking::Equals::first_counts);
    }
  }

  OpenDesigns open_;
  std::uint64_t budget_;
  RandomStream random_;
  std::vector<FrontPoints> fronts_; ///< of all results
  std::vector<Member> members_;     ///< the population, plus the last batch during selection
  std::vector<Ranking> rankings_;   ///< of the members, per front
  std::vector<std::vector<MainEffects>> effects_;      ///< [front][objective]
  std::vector<std::vector<std::uint32_t>> remembered_; ///< choices of feasible results
  std::vector<std::vector<std::vector<double>>> logs_; ///< [front][objective][remembered result]
  std::vector<DesignId> batch_;
  std::size_t idle_ = 0;
  bool exhausted_ = false;
};

} // namespace

std::unique_ptr<Strategy> genetic_strategy(DesignSet designs, const StrategyOptions& options) {
  return std::make_unique<GeneticDesigns>(std::move(designs), options);
}

} // namespace monet
