// `monet graph --execute`: runs the step numerically and reports losses and norms.
#pragma once

#include "console.hpp"

#include "monet/training_graph/training.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace monet::cli {

struct Command;

struct ExecuteArguments {
  bool execute = false;
  std::string arithmetic = "fp64";
  std::uint64_t seed = 0;
  int steps = 1;
  int jobs = 1;
  std::vector<std::string> numbers; ///< "tensor=file.npy"
  std::string save;                 ///< folder for results as .npy
  std::string memory_limit = "80%"; ///< percentage of the machine's memory, or bytes

  void add_to(Command& command);
};

/// Executes a step. Numbers come from --numbers, else from the initialisers of the network's file,
/// else they are generated.
Json execute_step(const TrainingGraph& step, const std::string& network,
                  const ExecuteArguments& arguments, Session& session);
/// Executes alternating steps, each `repeat` times in succession; an iteration runs all of them.
/// Results are saved in one folder per step.
Json execute_alternating(const std::vector<TrainingGraph>& graphs,
                         const std::vector<AlternateStep>& steps, const std::string& network,
                         const ExecuteArguments& arguments, Session& session);
/// Text for the result of execute_alternating().
std::string alternating_table(const Json& execution);
/// Text for the result of execute_step().
std::string execution_table(const Json& execution);

} // namespace monet::cli
