// The subcommands of `monet optimise`, each in a file of its own.
#pragma once

#include "commands/commands.hpp"
#include "options/optimise_options.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace monet::cli {

void add_optimise_allocation(Command& optimise);
void add_optimise_fusion(Command& optimise);
void add_optimise_checkpointing(Command& optimise);
void add_optimise_joint(Command& optimise);
void add_optimise_parallelism(Command& optimise);

/// Options of `monet optimise fusion --model einsum`.
struct EinsumArguments {
  std::vector<std::int64_t> matmuls; ///< sizes of a chain in place of a workload
  std::optional<std::int64_t> buffer_bits;
  std::optional<std::int64_t> bits; ///< per element
  bool front = false;
  bool unfused = false;
  bool resident = false;
  bool reference_rules = false;
  std::optional<int> max_fused_loops;

  void add_to(Command& command);
};

/// Options of `monet optimise fusion` beside the common ones.
struct FusionArguments {
  std::string model = "monet"; ///< or einsum
  std::string objective = "latency";
  EinsumArguments einsum;
  std::string method = "cost";
  bool original = false;        ///< tries the original study's plans, too
  std::int64_t evaluations = 0; ///< 0: the search's default
  std::string stacks_out;       ///< file; empty: none
};
/// `--model einsum`. UsageError in a build without the reference engines.
int optimise_einsum(const OptimiseArguments& common, const FusionArguments& own, Session& session);

/// Options of `monet optimise checkpointing` beside the common ones.
struct CheckpointingArguments {
  std::string log; ///< an operator log instead of a step
  std::string budget;
  bool sweep = false;
  std::string objective = "latency";
  std::string memory = "peak";      ///< or stored
  std::string method = "automatic"; ///< or heuristics, genetic
  int steps = 10;                   ///< budgets of a sweep
  std::string least;                ///< the last budget of a sweep; empty: the least possible
  std::size_t population = 100;
  std::size_t generations = 50;
  std::vector<std::string> keep;
  std::vector<std::string> recompute;
  std::string output;
};
/// `--log`.
int optimise_log(const OptimiseArguments& common, const CheckpointingArguments& own,
                 Session& session);

/// `monet run` of an experiment with `optimise:`: models it as it is, makes the searches one after
/// the other (checkpointing, fusion, allocation), and writes the step that they lead to.
int run_optimised(const Experiment& experiment, const std::string& folder, Session& session);

} // namespace monet::cli
