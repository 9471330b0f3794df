// What weights begin with.
#pragma once

#include "monet/execute/execute.hpp"
#include "monet/fit/study.hpp"

#include <cstdint>
#include <string>

namespace monet {

/// Numbers for every parameter, state and running statistic that has none yet. What a scheme says
/// nothing of (positions, scales of layers) keeps the network file's numbers.
void set_initial_numbers(Execution& execution, const TrainingGraph& step, const TrainRecipe& recipe,
                         std::uint64_t seed);

/// Name of a tensor's .npy file in a folder of them.
std::string file_name_of(const std::string& tensor);

} // namespace monet
