// Subcommands of `monet optimise`; each is in a separate file.
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
  std::vector<std::int64_t> matmuls; ///< sizes of a chain, in place of a workload
  std::optional<std::int64_t> buffer_bits;
  std::optional<std::int64_t> bits; ///< bits per element
  bool front = false;
  bool unfused = false;
  bool resident = false;
  bool reference_rules = false;
  std::optional<int> max_fused_loops;

  void add_to(Command& command);
};

/// Options of `monet optimise fusion` in addition to the common ones.
struct FusionArguments {
  std::string model = "monet"; ///< "monet" or "einsum"
  EinsumArguments einsum;
  FusionOptions search;
  std::string stacks_out; ///< file; may be empty
};
/// Runs `--model einsum`. Throws UsageError in a build without the reference engines.
int optimise_einsum(const OptimiseArguments& common, const FusionArguments& own, Session& session);

/// Runs `--log`.
int optimise_log(const OptimiseArguments& common, const CheckpointingArguments& own,
                 Session& session);

/// Runs an experiment with `optimise:` for `monet run`. Models it without searches, runs the
/// searches in sequence (checkpointing, fusion, allocation), and writes the step that results.
int run_optimised(const Experiment& experiment, const std::string& folder, Session& session);

} // namespace monet::cli
