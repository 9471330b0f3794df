// What the designs of a space of clusters cost.
#pragma once

#include "monet/explore/evaluator.hpp"

#include <memory>

namespace monet {

/// As make_evaluator() has it.
std::unique_ptr<DesignEvaluator> cluster_evaluator(const Space& space);

} // namespace monet
