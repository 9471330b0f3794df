// Factories of the strategies, one file each; strategy.cpp selects one by name.
#pragma once

#include "monet/explore/strategy.hpp"

#include <memory>

namespace monet {

std::unique_ptr<Strategy> exhaustive_strategy(DesignSet designs, const StrategyOptions& options);
std::unique_ptr<Strategy> random_strategy(DesignSet designs, const StrategyOptions& options);
std::unique_ptr<Strategy> latin_strategy(DesignSet designs, const StrategyOptions& options);
std::unique_ptr<Strategy> climbing_strategy(DesignSet designs, const StrategyOptions& options);
std::unique_ptr<Strategy> genetic_strategy(DesignSet designs, const StrategyOptions& options);
std::unique_ptr<Strategy> racing_strategy(DesignSet designs, DesignEvaluator& evaluator,
                                          const StrategyOptions& options);

} // namespace monet
