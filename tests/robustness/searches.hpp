// What a question asks of the searches, and what their answers are held against.
#pragma once

#include "robustness/question.hpp"

#include "monet/core_cost/mapping_file.hpp"
#include "monet/model/model_step.hpp"

namespace monet::testing {

/// A question, read.
struct Asked {
  TrainingGraph graph; ///< with its views
  TrainingGraph step;
  Chip chip;
  MappingFile mapping;
  StepOptions options;
  StepMode mode = StepMode::layer_by_layer;
  CoreCostCache costs;
};

/// As `monet schedule --verify` models it.
ModelledStep model(Asked& asked, StepMode mode, const TrainingGraph& step);

/// A few evaluations of the search. InternalError where the best is not what it is said to be.
void search(Search search, Asked& asked, Random& random);

} // namespace monet::testing
