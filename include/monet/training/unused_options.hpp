// Options of a training step that change nothing of it.
#pragma once

#include "monet/training/options.hpp"
#include "monet/training/training.hpp"

#include <string>
#include <vector>

namespace monet {

/// Options of which one is as it is without its key.
struct OptionLeftOut {
  std::string key; ///< as in a training file: "precision: accumulate"
  TrainingOptions options;
};

/// One for every option that is not so already. Not of losses and of the numbers of optimisers
/// (rates, betas), which always count for who computes the step.
std::vector<OptionLeftOut> each_option_left_out(const TrainingOptions& options);

/// Keys of options without which make_training_graph(network, options) makes the same `step`. None
/// of steps of more than 5,000 operators, which take long to make.
std::vector<std::string> options_without_effect(const Graph& network,
                                                const TrainingOptions& options,
                                                const TrainingGraph& step);

} // namespace monet
