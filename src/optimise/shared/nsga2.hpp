// NSGA-II (Deb, Pratap, Agarwal, Meyarivan 2002) over genomes of discrete genes: fast
// non-dominated sorting, crowding distance, binary tournaments, parents and children compete.
// A heuristic: it gives no bound. Good where exact methods end, and to compare them with.
#pragma once

#include "base/shared/pareto.hpp"

#include "monet/base/rng.hpp"
#include "monet/optimise/search.hpp"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace monet {

/// How many genes of each kind a genome has. Kinds that are not wanted stay empty.
struct GenomeShape {
  std::vector<std::uint32_t> choices; ///< gene i takes one of 0 .. choices[i] - 1, unordered
  std::uint32_t bits = 0;             ///< independent yes or no
};

struct Genome {
  std::vector<std::uint32_t> choices;
  std::vector<std::uint8_t> bits; ///< 0 or 1

  friend auto operator<=>(const Genome&, const Genome&) = default;
};

/// The first choices, and no bit.
Genome first_genome(const GenomeShape& shape);
/// Uniform over all genomes.
Genome random_genome(const GenomeShape& shape, RandomStream& random);
bool fits(const GenomeShape& shape, const Genome& genome);

/// What a genome is worth. Infeasible ones (violation > 0) never beat feasible ones; among them
/// the lesser violation wins and the objectives, which may be empty, are not looked at.
struct Evaluation {
  Objectives objectives; ///< minimised, finite
  double violation = 0;  ///< by how much constraints fail
};

struct Nsga2Problem {
  GenomeShape shape;
  std::size_t objectives = 2; ///< 1 to kMaxObjectives
  /// Called for many genomes at once on several threads, once for each.
  std::function<Evaluation(const Genome&)> evaluate;
};

struct Nsga2Options {
  std::size_t population = 100;
  std::size_t generations = 50; ///< children are made so many times
  double crossover = 0.9;       ///< share of pairs of children that are mixed from both parents
  double mutation = 1.0;        ///< share of children in which one gene is mutated on average
  std::vector<Genome> initial;  ///< in the first population, which random ones fill up
};

struct Individual {
  Genome genome;
  Evaluation evaluation;
};

/// One line of the trace: after `evaluations`, what all genomes so far come to.
struct Generation {
  std::size_t evaluations = 0;
  std::size_t front = 0; ///< points that nothing dominates
  double hypervolume = 0;
  Objectives least; ///< of each objective; empty while nothing is feasible
};

struct Nsga2Result {
  /// Of everything evaluated, what nothing dominates, one genome per point, in lexicographic order
  /// of the objectives. Without anything feasible, the one of least violation.
  std::vector<Individual> front;
  std::vector<Generation> trace; ///< one per generation, the initial population first
  /// Of the trace's hypervolumes: what the first feasible population spans, and a tenth more; empty
  /// if nothing was ever feasible.
  Objectives reference;
  std::size_t evaluations = 0;
  bool feasible = false;    ///< the front is
  bool exhausted = false;   ///< no new genome could be found: the search ended early
  bool interrupted = false; ///< by the control; the front is of what was evaluated until then
};

/// The same seed gives the same result for any number of jobs. No genome is evaluated twice:
/// children equal to one already seen are made again. The first genome is always evaluated.
/// InternalError for a genome or an evaluation that does not fit the problem.
Nsga2Result nsga2(const Nsga2Problem& problem, const Nsga2Options& options,
                  const SearchControl& control);

// Parts, for tests and for searches that make their own children, or look for several fronts.

/// Genes change places where a coin says so.
void cross(Genome& a, Genome& b, RandomStream& random);
/// Ranks of a population: 0 where nothing dominates, 1 without those, and so on.
std::vector<std::uint32_t> front_ranks(std::span<const Evaluation> population);
/// Deb's crowding distance of the points of one front; infinite at the ends of an objective.
std::vector<double> crowding_distances(std::span<const Objectives> front);

/// Who comes first in a population: by rank, then by crowding distance within the rank.
class Ranking {
public:
  enum class Equals { all_count, first_counts }; ///< others of equal points come after all points
  explicit Ranking(std::span<const Evaluation> population, Equals equals = Equals::all_count);

  std::size_t size() const { return rank_.size(); }
  bool before(std::size_t a, std::size_t b) const {
    return rank_[a] != rank_[b] ? rank_[a] < rank_[b] : crowding_[a] > crowding_[b];
  }

private:
  std::vector<std::uint32_t> rank_;
  std::vector<double> crowding_; ///< 0 where infeasible
};

/// At most `count` of a population with several rankings: these take turns, each with the first
/// that is left.
std::vector<std::size_t> survivors(std::span<const Ranking> rankings, std::size_t count);

} // namespace monet
