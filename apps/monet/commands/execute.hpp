// `monet graph --execute`: runs the step numerically and tells losses and norms.
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
  std::string memory_limit = "80%"; ///< of the machine's, or as bytes

  void add_to(Command& command);
};

/// Numbers come from --numbers, then from the network file's initialisers, and are generated where
/// there are none.
Json execute_step(const TrainingGraph& step, const std::string& network,
                  const ExecuteArguments& arguments, Session& session);
/// Steps that take turns, each as often in a row as `repeat` says; an iteration is a turn of all.
/// Results are saved in a folder for each step.
Json execute_alternating(const std::vector<TrainingGraph>& graphs,
                         const std::vector<AlternateStep>& steps, const std::string& network,
                         const ExecuteArguments& arguments, Session& session);
/// What execute_alternating() gave, for people.
std::string alternating_table(const Json& execution);
/// What execute_step() gave, for people.
std::string execution_table(const Json& execution);

} // namespace monet::cli
