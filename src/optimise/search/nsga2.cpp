// NSGA-II, the genetic algorithm of the allocation and checkpoint searches; declared in nsga2.hpp.
#include "optimise/shared/nsga2.hpp"

#include "base/shared/parallel.hpp"

#include "monet/base/errors.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

namespace monet {

namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

bool better(const Evaluation& a, const Evaluation& b) {
  if (a.violation > 0 || b.violation > 0)
    return a.violation < b.violation;
  return dominates(a.objectives, b.objectives);
}

/// Uniform crossover: swaps each gene of a and b with probability 1/2.
template <class Gene>
void mix_uniform(std::vector<Gene>& a, std::vector<Gene>& b, RandomStream& random) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if (random.chance(0.5))
      std::swap(a[i], b[i]);
}

void mutate(const GenomeShape& shape, Genome& genome, double rate, RandomStream& random) {
  for (std::size_t i = 0; i < shape.choices.size(); ++i)
    if (shape.choices[i] > 1 && random.chance(rate)) {
      const auto other = static_cast<std::uint32_t>(random.below(shape.choices[i] - 1));
      genome.choices[i] = other + (other >= genome.choices[i] ? 1 : 0);
    }
  for (std::uint8_t& bit : genome.bits)
    if (random.chance(rate))
      bit ^= 1;
}

constexpr int kRounds = 20; // attempts to find new genomes

class Search {
public:
  Search(const Nsga2Problem& problem, const Nsga2Options& options, const SearchControl& control)
      : problem_(problem), options_(options), control_(control), seen_(ByGenome{&all_}) {
    internal_check(options.population >= 2, "nsga2: a population of at least two");
    internal_check(problem.objectives >= 1 && problem.objectives <= kMaxObjectives,
                   "nsga2: one to four objectives");
    const std::size_t genes = problem.shape.choices.size() + problem.shape.bits;
    rate_ = 1.0 / static_cast<double>(std::max<std::size_t>(1, genes));
  }

  Nsga2Result run() {
    evaluate(begin());
    select();
    record();
    std::size_t generations = 0;
    const auto propose = [&] {
      ++generations;
      Indices children = breed();
      result_.exhausted = children.empty();
      return children;
    };
    const auto judge = [&](const Indices& children) {
      evaluate(children);
      select();
      record();
    };
    const auto is_done = [&] { return interrupted_ || generations == options_.generations; };
    run_batches(control_, is_done, propose, judge);
    interrupted_ = interrupted_ || (!is_done() && !result_.exhausted);
    finish();
    return std::move(result_);
  }

private:
  using Indices = std::vector<std::size_t>; // into all_
  struct ByGenome {
    const std::vector<Individual>* all;
    bool operator()(std::size_t a, std::size_t b) const {
      return (*all)[a].genome < (*all)[b].genome;
    }
  };

  /// Adds genomes that have not been seen yet, until `out` holds `most`.
  void keep_new(std::vector<Genome>& genomes, std::size_t most, Indices& out) {
    for (Genome& genome : genomes) {
      if (out.size() >= most)
        return;
      all_.push_back({std::move(genome), {}});
      if (seen_.insert(all_.size() - 1).second)
        out.push_back(all_.size() - 1);
      else
        all_.pop_back();
    }
  }

  Indices begin() {
    Indices out;
    std::vector<Genome> genomes = options_.initial; // copied: the options belong to the caller
    for (const Genome& genome : genomes)
      internal_check(fits(problem_.shape, genome), "nsga2: a first genome of another shape");
    keep_new(genomes, genomes.size(), out);
    for (int round = 0; round < kRounds && out.size() < options_.population; ++round) {
      genomes.clear();
      for (std::size_t i = out.size(); i < options_.population; ++i) {
        RandomStream random(control_.seed, streams_++);
        genomes.push_back(random_genome(problem_.shape, random));
      }
      streams_ += genomes.size();
      keep_new(genomes, options_.population, out);
    }
    return out;
  }

  std::size_t tournament(RandomStream& random) const {
    // The population is sorted, so the lower index is the better one.
    const std::size_t a = random.below(population_.size());
    const std::size_t b = random.below(population_.size());
    return population_[std::min(a, b)];
  }

  /// Makes two children of two parents.
  void vary(std::vector<Genome>& out) {
    RandomStream random(control_.seed, streams_++);
    Genome a = all_[tournament(random)].genome;
    Genome b = all_[tournament(random)].genome;
    if (random.chance(options_.crossover))
      cross(a, b, random);
    for (Genome* child : {&a, &b}) {
      if (random.chance(options_.mutation))
        mutate(problem_.shape, *child, rate_, random);
      out.push_back(std::move(*child));
    }
  }

  Indices breed() {
    Indices out;
    std::vector<Genome> genomes;
    for (int round = 0; round < kRounds && out.size() < options_.population; ++round) {
      genomes.clear();
      while (genomes.size() < options_.population - out.size()) {
        if (round < kRounds / 2) {
          vary(genomes);
          continue;
        }
        // The parents yield no new children: adds random genomes.
        RandomStream random(control_.seed, streams_++);
        genomes.push_back(random_genome(problem_.shape, random));
      }
      streams_ += genomes.size();
      keep_new(genomes, options_.population, out);
      if (control_.interrupted())
        break;
    }
    return out;
  }

  void check(const Evaluation& evaluation) const {
    internal_check(!std::isnan(evaluation.violation) && evaluation.violation >= 0,
                   "nsga2: violation of a genome");
    if (evaluation.violation > 0)
      return;
    internal_check(evaluation.objectives.size() == problem_.objectives,
                   "nsga2: objectives of a genome");
    for (const double value : evaluation.objectives)
      internal_check(std::isfinite(value), "nsga2: an objective that is not finite");
  }

  void evaluate(const Indices& which) {
    std::vector<std::uint8_t> done(which.size());
    parallel_for(which.size(), control_.jobs, [&](std::size_t i) {
      const auto evaluate_it = [&] {
        all_[which[i]].evaluation = problem_.evaluate(all_[which[i]].genome);
        done[i] = 1;
      };
      if (which[i] == 0) { // without the first evaluation there is no result
        evaluate_it();
      } else if (!control_.interrupted()) {
        control_.finishes(evaluate_it);
      }
    });
    candidates_.clear();
    for (std::size_t i = 0; i < which.size(); ++i) {
      interrupted_ = interrupted_ || done[i] == 0;
      if (done[i] == 0)
        continue;
      check(all_[which[i]].evaluation);
      candidates_.push_back(which[i]);
      archive(which[i]);
      ++result_.evaluations;
    }
  }

  void archive(std::size_t index) {
    const Evaluation& evaluation = all_[index].evaluation;
    for (const std::size_t other : best_) {
      const Evaluation& kept = all_[other].evaluation;
      const bool equal = evaluation.violation > 0
                             ? kept.violation <= evaluation.violation
                             : kept.violation == 0 && kept.objectives == evaluation.objectives;
      if (equal || better(kept, evaluation))
        return;
    }
    std::erase_if(best_,
                  [&](std::size_t other) { return better(evaluation, all_[other].evaluation); });
    best_.push_back(index);
  }

  /// Selects the next population from the last one and its children.
  void select() {
    Indices both = population_;
    both.insert(both.end(), candidates_.begin(), candidates_.end());
    std::vector<Evaluation> evaluations;
    evaluations.reserve(both.size());
    for (const std::size_t i : both)
      evaluations.push_back(all_[i].evaluation);
    const Ranking ranking(evaluations);
    population_.clear();
    for (const std::size_t i : survivors({&ranking, 1}, options_.population))
      population_.push_back(both[i]);
  }

  void record() {
    Generation line;
    line.evaluations = result_.evaluations;
    result_.feasible = !best_.empty() && all_[best_.front()].evaluation.violation == 0;
    if (result_.feasible) {
      std::vector<Objectives> points;
      for (const std::size_t i : best_)
        points.push_back(all_[i].evaluation.objectives);
      line.front = points.size();
      line.least = points.front();
      for (const Objectives& point : points)
        for (std::size_t k = 0; k < point.size(); ++k)
          line.least[k] = std::min(line.least[k], point[k]);
      if (result_.reference.empty()) {
        result_.reference = line.least;
        for (const std::size_t i : population_)
          if (all_[i].evaluation.violation == 0)
            for (std::size_t k = 0; k < line.least.size(); ++k)
              result_.reference[k] =
                  std::max(result_.reference[k], all_[i].evaluation.objectives[k]);
        for (std::size_t k = 0; k < line.least.size(); ++k) {
          const double span = result_.reference[k] - line.least[k];
          result_.reference[k] += 0.1 * (span > 0 ? span : std::max(1.0, std::abs(line.least[k])));
        }
      }
      line.hypervolume = hypervolume(points, result_.reference);
    }
    result_.trace.push_back(line);
    control_.tell(
        {"nsga2", static_cast<std::int64_t>(line.evaluations),
         static_cast<std::int64_t>(options_.population * (options_.generations + 1)),
         line.least.empty() ? std::numeric_limits<double>::quiet_NaN() : line.least.front(),
         std::numeric_limits<double>::quiet_NaN()});
    interrupted_ = interrupted_ || control_.interrupted();
  }

  void finish() {
    result_.interrupted = interrupted_;
    for (const std::size_t i : best_)
      result_.front.push_back(all_[i]);
    std::ranges::sort(result_.front, [](const Individual& a, const Individual& b) {
      return a.evaluation.objectives < b.evaluation.objectives;
    });
  }

  const Nsga2Problem& problem_;
  const Nsga2Options& options_;
  const SearchControl& control_;
  std::vector<Individual> all_; // every individual evaluated
  std::set<std::size_t, ByGenome> seen_;
  Indices population_;            // best first
  Indices candidates_;            // newly evaluated
  std::vector<std::size_t> best_; // the front of all, or the one with minimum violation
  std::uint64_t streams_ = 0;     // number of random streams used
  double rate_ = 0;
  bool interrupted_ = false;
  Nsga2Result result_;
};

} // namespace

Genome first_genome(const GenomeShape& shape) {
  Genome genome;
  genome.choices.resize(shape.choices.size());
  genome.bits.resize(shape.bits);
  return genome;
}

Genome random_genome(const GenomeShape& shape, RandomStream& random) {
  Genome genome = first_genome(shape);
  for (std::size_t i = 0; i < shape.choices.size(); ++i)
    genome.choices[i] = static_cast<std::uint32_t>(random.below(shape.choices[i]));
  for (std::uint8_t& bit : genome.bits)
    bit = static_cast<std::uint8_t>(random.below(2));
  return genome;
}

bool fits(const GenomeShape& shape, const Genome& genome) {
  if (genome.choices.size() != shape.choices.size() || genome.bits.size() != shape.bits)
    return false;
  for (std::size_t i = 0; i < shape.choices.size(); ++i)
    if (genome.choices[i] >= shape.choices[i])
      return false;
  return std::ranges::all_of(genome.bits, [](std::uint8_t gene) { return gene <= 1; });
}

void cross(Genome& a, Genome& b, RandomStream& random) {
  mix_uniform(a.choices, b.choices, random);
  mix_uniform(a.bits, b.bits, random);
}

std::vector<std::uint32_t> front_ranks(std::span<const Evaluation> population) {
  const std::size_t n = population.size();
  std::vector<std::uint32_t> rank(n, 0);
  std::vector<std::uint32_t> above(n, 0); // number of points that dominate it
  std::vector<std::vector<std::uint32_t>> below(n);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = i + 1; j < n; ++j) {
      const bool first = better(population[i], population[j]);
      if (!first && !better(population[j], population[i]))
        continue;
      below[first ? i : j].push_back(static_cast<std::uint32_t>(first ? j : i));
      ++above[first ? j : i];
    }
  std::vector<std::size_t> front;
  for (std::size_t i = 0; i < n; ++i)
    if (above[i] == 0)
      front.push_back(i);
  for (std::uint32_t r = 0; !front.empty(); ++r) {
    std::vector<std::size_t> next;
    for (const std::size_t i : front) {
      rank[i] = r;
      for (const std::uint32_t j : below[i])
        if (--above[j] == 0)
          next.push_back(j);
    }
    front = std::move(next);
  }
  return rank;
}

std::vector<double> crowding_distances(std::span<const Objectives> front) {
  std::vector<double> distance(front.size(), 0);
  std::vector<std::size_t> order(front.size());
  for (std::size_t k = 0; !front.empty() && k < front.front().size(); ++k) {
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(
        order, [&](std::size_t a, std::size_t b) { return front[a][k] < front[b][k]; });
    const double span = front[order.back()][k] - front[order.front()][k];
    distance[order.front()] = distance[order.back()] = kInfinite;
    for (std::size_t i = 1; i + 1 < order.size() && span > 0; ++i)
      distance[order[i]] += (front[order[i + 1]][k] - front[order[i - 1]][k]) / span;
  }
  return distance;
}

Ranking::Ranking(std::span<const Evaluation> population, Equals equals)
    : rank_(front_ranks(population)), crowding_(population.size(), 0) {
  std::set<Objectives> seen;
  std::map<std::uint32_t, std::vector<std::size_t>> fronts; // feasible points by rank
  for (std::size_t i = 0; i < population.size(); ++i) {
    if (population[i].violation > 0)
      continue;
    if (equals == Equals::first_counts && !seen.insert(population[i].objectives).second)
      rank_[i] += static_cast<std::uint32_t>(population.size());
    fronts[rank_[i]].push_back(i);
  }
  for (const auto& [rank, front] : fronts) {
    std::vector<Objectives> points;
    for (const std::size_t i : front)
      points.push_back(population[i].objectives);
    const std::vector<double> distance = crowding_distances(points);
    for (std::size_t i = 0; i < front.size(); ++i)
      crowding_[front[i]] = distance[i];
  }
}

std::vector<std::size_t> survivors(std::span<const Ranking> rankings, std::size_t count) {
  const std::size_t size = rankings.front().size();
  std::vector<std::vector<std::size_t>> order(rankings.size(), std::vector<std::size_t>(size));
  for (std::size_t r = 0; r < rankings.size(); ++r) {
    std::iota(order[r].begin(), order[r].end(), std::size_t{0});
    std::ranges::stable_sort(
        order[r], [&](std::size_t a, std::size_t b) { return rankings[r].before(a, b); });
  }
  std::vector<bool> kept(size, false);
  std::vector<std::size_t> next(rankings.size(), 0);
  std::vector<std::size_t> chosen;
  for (std::size_t r = 0; chosen.size() < std::min(count, size); r = (r + 1) % rankings.size()) {
    while (kept[order[r][next[r]]])
      ++next[r];
    chosen.push_back(order[r][next[r]]);
    kept[chosen.back()] = true;
  }
  return chosen;
}

Nsga2Result nsga2(const Nsga2Problem& problem, const Nsga2Options& options,
                  const SearchControl& control) {
  return Search(problem, options, control).run();
}

} // namespace monet
