// Options of searches that the command line and experiment files share: limits, and those of
// checkpointing.
#pragma once

#include "options/memory_budget.hpp"

#include "monet/base/options.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace monet::cli {

/// Limits of any search.
struct SearchLimits {
  std::uint64_t seed = 1;
  double time_limit = 0; ///< seconds; 0: none
};
inline constexpr OptionRow<SearchLimits> kSearchLimits[] = {
    {"seed", option_field<&SearchLimits::seed>, "Seed of the search's random numbers"},
    {"time_limit",
     option_field<&SearchLimits::time_limit>,
     "Time limit of the search in seconds; 0: no limit",
     {.range = NumberRange{0, 1e7}, .type = "SECONDS"}},
};

/// Options of a search for checkpoints.
struct CheckpointingArguments {
  std::string log; ///< operator log in place of a step
  std::string budget;
  bool sweep = false;
  int steps = 10;    ///< number of budgets in a sweep
  std::string least; ///< last budget of a sweep; empty: the minimum possible
  std::string memory = "peak";
  std::string objective = "latency";
  std::string method = "automatic";
  std::size_t population = 100;
  std::size_t generations = 50;
  std::vector<std::string> keep;
  std::vector<std::string> recompute;
  std::string output;
  SourceLoc where; ///< of its section in an experiment file
};
inline constexpr std::array<std::string_view, 2> kCheckpointMemories{"peak", "stored"};
inline constexpr std::array<std::string_view, 2> kCheckpointObjectives{"latency", "energy"};
inline constexpr std::array<std::string_view, 12> kCheckpointMethods{
    "automatic", "heuristics", "chain",     "genetic", "search", "sqrt",
    "greedy",    "dtr",        "dtr-local", "msps",    "lru",    "largest"};
inline constexpr OptionRow<CheckpointingArguments> kCheckpointingOptions[] = {
    {"log",
     option_field<&CheckpointingArguments::log>,
     "Operator log; replaces a step",
     {.place = OptionPlace::command, .type = "LOG"}},
    {"budget",
     option_field<&CheckpointingArguments::budget>,
     "Memory budget: bytes, MiB, or a percentage of the memory when everything is kept",
     {.type = "BUDGET", .required = true, .problem = budget_problem}},
    {"sweep",
     option_field<&CheckpointingArguments::sweep>,
     "Compute a front over several budgets; replaces --budget",
     {.place = OptionPlace::command}},
    {"steps",
     option_field<&CheckpointingArguments::steps>,
     "Number of budgets of a sweep in addition to 100 %",
     {.place = OptionPlace::command, .range = NumberRange{1, 1000}}},
    {"least",
     option_field<&CheckpointingArguments::least>,
     "Last budget of a sweep; default: the proven minimum",
     {.place = OptionPlace::command, .type = "BUDGET"}},
    {"memory", option_choice<kCheckpointMemories, &CheckpointingArguments::memory>,
     "Memory that the budget limits: peak of live bytes, or activations stored for the backward "
     "pass"},
    {"objective", option_choice<kCheckpointObjectives, &CheckpointingArguments::objective>,
     "Cost of recomputation to minimise"},
    {"method",
     option_choice<kCheckpointMethods, &CheckpointingArguments::method>,
     "automatic: best search, with a bound; chain: dynamic programming over blocks; genetic: "
     "NSGA-II; heuristics: published ones; all others require --log",
     {.place = OptionPlace::command}},
    {"population",
     option_field<&CheckpointingArguments::population>,
     "Population size of NSGA-II",
     {.place = OptionPlace::command, .range = NumberRange{2, 100000}}},
    {"generations",
     option_field<&CheckpointingArguments::generations>,
     "Number of generations of NSGA-II",
     {.place = OptionPlace::command, .range = NumberRange{0, 1000000}}},
    {"keep",
     option_field<&CheckpointingArguments::keep>,
     "Tensors (pattern) that stay stored; may be repeated",
     {.place = OptionPlace::command, .type = "PATTERN", .repeated = true}},
    {"recompute",
     option_field<&CheckpointingArguments::recompute>,
     "Tensors (pattern) that are always recomputed; may be repeated",
     {.place = OptionPlace::command, .type = "PATTERN", .repeated = true}},
};

} // namespace monet::cli
