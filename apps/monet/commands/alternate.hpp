// `monet run` of steps that take turns on one chip.
#pragma once

#include "console.hpp"
#include "options/experiment.hpp"

#include <string>

namespace monet::cli {

/// Models each step into a folder of its own and writes iteration.json: what a turn of all of them
/// takes.
int run_alternating(const Experiment& experiment, const std::string& folder, Session& session);

} // namespace monet::cli
