// choose_pairs(): selects, layer by layer, the products of a step whose two gradients one operator
// computes, to optimise the whole step.
#pragma once

#include "monet/optimise/search.hpp"
#include "monet/optimise/step_mode.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace monet {

/// Function that returns the step, with views folded, in which only the named products are paired.
using PairedStepMaker = std::function<TrainingGraph(const std::vector<std::string>&)>;

/// Products whose gradients choose_pairs() pairs or not.
struct PairingProblem {
  const PairedStepMaker& make;
  const std::vector<std::string>& products; ///< names, ascending
  const Chip& chip;
  StepOptions step; ///< options of choose_step()
  CoreCostCache& costs;
};

/// Options of choose_pairs().
struct PairingOptions {
  StepMode mode = StepMode::automatic;
  Objective objective = Objective::latency;
  std::int64_t evaluations = 40; ///< maximum number of calls of choose_step()
};

/// Result of choose_pairs().
struct PairingResult {
  std::vector<std::string> paired; ///< names of the paired products, ascending
  StepFigures figures;             ///< of choose_step() with these pairs
  /// A set of pairs that was tried.
  struct Trial {
    std::size_t paired = 0; ///< number of paired products
    StepFigures figures;
  };
  /// Trials that could be scheduled: no pairs, all pairs, and mixtures.
  std::vector<Trial> trials;
  bool interrupted = false; ///< a limit ended the search
};

/// Selects the products to pair so that the result of choose_step() is best. Products whose
/// gradients have equal loops are first decided together, group by group, from the better of none
/// and all. They are then decided one by one while evaluations remain. The result is no worse than
/// none and all, which limits never interrupt. It does not depend on control.jobs; an interrupted
/// search returns the best result so far. If no step can be scheduled, throws the InfeasibleError
/// of the step without pairs.
PairingResult choose_pairs(const PairingProblem& problem, const PairingOptions& options,
                           const SearchControl& control);

} // namespace monet
