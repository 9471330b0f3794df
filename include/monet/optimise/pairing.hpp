// Which products of a step compute both their gradients in one operator: layer by layer, by what
// the whole step comes to.
#pragma once

#include "monet/optimise/search.hpp"
#include "monet/optimise/step_mode.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace monet {

/// The step, views folded, in which these products, by name, are paired and no others.
using PairedStepMaker = std::function<TrainingGraph(const std::vector<std::string>&)>;

struct PairingOptions {
  StepMode mode = StepMode::automatic;
  Objective objective = Objective::latency;
  std::int64_t evaluations = 40; ///< steps that are chosen a way for
};

struct PairingResult {
  std::vector<std::string> paired; ///< ascending
  StepFigures figures;             ///< as choose_step() runs that step
  struct Trial {
    std::size_t paired = 0; ///< products
    StepFigures figures;
  };
  std::vector<Trial> trials; ///< that could be scheduled: none paired, all of them, mixtures
  bool interrupted = false;  ///< a limit ended it
};

/// Of `products` (ascending) those to pair, so that choose_step() comes to the least. Products
/// whose gradients have equal loops are first decided together, each kind for itself from the
/// better of none and all; then one by one, as far as evaluations go. Never worse than none and
/// than all, which no limit ends. The same answer for any control.jobs; cut short, the best so far.
/// InfeasibleError, of the step without pairs, where none can be scheduled.
PairingResult choose_pairs(const PairedStepMaker& make, const std::vector<std::string>& products,
                           const Chip& chip, const StepOptions& step, CoreCostCache& costs,
                           const PairingOptions& options, const SearchControl& control);

} // namespace monet
