// Networks that are training steps already.
#pragma once

#include "monet/workload/foreign.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace monet::cli {

/// recognise_training_step(). InputError when the file is such a step and `differentiate` is set.
Graph recognise(Graph network, bool differentiate, ForeignReport& report);

/// What was recognised, what was not, and why.
nlohmann::ordered_json foreign_json(const ForeignReport& report);
std::string foreign_table(const ForeignReport& report);

} // namespace monet::cli
