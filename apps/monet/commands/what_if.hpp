// Changes of an experiment that could make its step faster, each modelled again, for monet explain.
#pragma once

#include "pipeline.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace monet::cli {

/// The step after one change.
struct WhatIf {
  std::string change;     ///< "off-chip bandwidth x2"
  StepFigures figures;    ///< valid if `why_not` is empty
  std::int64_t steps = 1; ///< number of present steps whose work one step does
  std::string why_not;    ///< reason why the step cannot run after the change; else empty
};

/// Models the experiment after each change that applies to it. Prices per access, operation and bit
/// stay as they are; plans are chosen anew in the experiment's mode.
std::vector<WhatIf> model_changes(const Experiment& experiment, const ModelInputs& inputs,
                                  Session& session);

nlohmann::ordered_json what_if_json(const std::vector<WhatIf>& changes);
/// Table of the changes and the present step. Latency and energy are for the samples of the present
/// step.
std::string what_if_table(const std::vector<WhatIf>& changes, const StepFigures& present);

} // namespace monet::cli
