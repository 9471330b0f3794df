// Initial numbers of a training run.
#pragma once

#include "monet/execute/execute.hpp"
#include "monet/fit/study.hpp"

#include <cstdint>
#include <string>

namespace monet {

/// Sets numbers for every parameter, state and running statistic that has none yet. Tensors outside
/// the scheme (positions, scales of layers) keep the network file's numbers.
void set_initial_numbers(Execution& execution, const TrainingGraph& step, const TrainRecipe& recipe,
                         std::uint64_t seed);

/// Name of a tensor's .npy file.
std::string file_name_of(const std::string& tensor);

} // namespace monet
