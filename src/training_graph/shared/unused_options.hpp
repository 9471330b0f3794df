// options_without_effect(): options of a training step that have no effect on it.
#pragma once

#include "monet/training_graph/options.hpp"
#include "monet/training_graph/training.hpp"

#include <string>
#include <vector>

namespace monet {

/// Training options without one of their keys.
struct OptionLeftOut {
  std::string key; ///< as in a training file: "precision: accumulate"
  TrainingOptions options;
};

/// Returns one entry for each option that differs from its default. Losses and numbers of
/// optimisers (rates, betas) are excluded, since they matter whenever the step is executed.
std::vector<OptionLeftOut> each_option_left_out(const TrainingOptions& options);

/// Returns the keys without which make_training_graph(network, options) makes the same `step`.
/// Returns an empty list if the step has more than 5,000 operators, since each key requires another
/// graph.
std::vector<std::string> options_without_effect(const Graph& network,
                                                const TrainingOptions& options,
                                                const TrainingGraph& step);

} // namespace monet
