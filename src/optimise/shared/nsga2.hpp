// NSGA-II (Deb, Pratap, Agarwal, Meyarivan 2002) over genomes of discrete genes: fast
// non-dominated sorting, crowding distance, binary tournaments, parents and children compete.
// It is a heuristic without bounds, for problems too large for exact methods and as a comparison.
#pragma once

#include "base/shared/pareto.hpp"
#include "base/shared/rng.hpp"

#include "monet/optimise/search.hpp"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace monet {

/// Number of genes of each kind in a genome. Unused kinds stay empty.
struct GenomeShape {
  std::vector<std::uint32_t> choices; ///< gene i is in [0, choices[i]), unordered
  std::uint32_t bits = 0;             ///< independent binary genes
};

struct Genome {
  std::vector<std::uint32_t> choices;
  std::vector<std::uint8_t> bits; ///< 0 or 1

  friend auto operator<=>(const Genome&, const Genome&) = default;
};

/// Genome with every choice 0 and every bit 0.
Genome first_genome(const GenomeShape& shape);
/// Random genome, uniform over all genomes.
Genome random_genome(const GenomeShape& shape, RandomStream& random);
bool fits(const GenomeShape& shape, const Genome& genome);

/// Objectives and constraint violation of a genome. Infeasible genomes (violation > 0) never beat
/// feasible ones. Among them the smaller violation wins and the objectives, which may be empty, are
/// ignored.
struct Evaluation {
  Objectives objectives; ///< minimised, finite
  double violation = 0;  ///< amount by which constraints fail
};

struct Nsga2Problem {
  GenomeShape shape;
  std::size_t objectives = 2; ///< 1 to kMaxObjectives
                              /// Called once per genome, concurrently on several threads.
  std::function<Evaluation(const Genome&)> evaluate;
};

struct Nsga2Options {
  std::size_t population = 100;
  std::size_t generations = 50; ///< number of times children are made
  double crossover = 0.9;       ///< share of child pairs mixed from both parents
  double mutation = 1.0;        ///< average number of mutated genes per child
  std::vector<Genome> initial;  ///< part of the first population; random genomes fill the rest
};

struct Individual {
  Genome genome;
  Evaluation evaluation;
};

/// One entry of the trace: the state of the search after `evaluations`.
struct Generation {
  std::size_t evaluations = 0;
  std::size_t front = 0; ///< number of non-dominated points
  double hypervolume = 0;
  Objectives least; ///< minimum of each objective; empty while nothing is feasible
};

struct Nsga2Result {
  /// Non-dominated evaluated genomes, one per point, in lexicographic order of the objectives. If
  /// nothing is feasible, the genome with minimum violation.
  std::vector<Individual> front;
  std::vector<Generation> trace; ///< one per generation, the initial population first
  /// Reference point of the trace's hypervolumes: the extent of the first feasible population plus
  /// a tenth; empty if nothing was ever feasible.
  Objectives reference;
  std::size_t evaluations = 0;
  bool feasible = false;    ///< whether the front is feasible
  bool exhausted = false;   ///< no new genome was found, so the search ended early
  bool interrupted = false; ///< the control ended it; the front covers what was evaluated
};

/// Runs NSGA-II. Results depend on the seed, not on the number of jobs. No genome is evaluated
/// twice: children equal to a known genome are made again. The first genome is always evaluated.
/// Throws InternalError for a genome or an evaluation that does not fit the problem.
Nsga2Result nsga2(const Nsga2Problem& problem, const Nsga2Options& options,
                  const SearchControl& control);

// Parts for tests, for searches that make their own children, and for searches for several fronts.

/// Uniform crossover: swaps each gene with probability 1/2.
void cross(Genome& a, Genome& b, RandomStream& random);
/// Non-dominated ranks of a population: 0 for its front, 1 for the front without rank 0, and so on.
std::vector<std::uint32_t> front_ranks(std::span<const Evaluation> population);
/// Deb's crowding distances of the points of one front; infinite at the ends of an objective.
std::vector<double> crowding_distances(std::span<const Objectives> front);

/// Order of a population: by rank, then by crowding distance within the rank.
class Ranking {
public:
  enum class Equals {
    all_count,
    first_counts
  }; ///< first_counts: duplicates of a point rank after all points
  explicit Ranking(std::span<const Evaluation> population, Equals equals = Equals::all_count);

  std::size_t size() const { return rank_.size(); }
  bool before(std::size_t a, std::size_t b) const {
    return rank_[a] != rank_[b] ? rank_[a] < rank_[b] : crowding_[a] > crowding_[b];
  }

private:
  std::vector<std::uint32_t> rank_;
  std::vector<double> crowding_; ///< 0 for infeasible points
};

/// Selects at most `count` individuals by several rankings in turn; each selects its first
/// remaining individual.
std::vector<std::size_t> survivors(std::span<const Ranking> rankings, std::size_t count);

} // namespace monet
