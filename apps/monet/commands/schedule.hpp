// Arguments of `monet schedule`, and its alternative model.
#pragma once

#include "commands/commands.hpp"
#include "options/network_options.hpp"

#include <string>
#include <vector>

namespace monet::cli {

struct ScheduleArguments {
  StepArguments step;
  std::string model = "monet";
  std::vector<std::string> core_costs;
  std::string pooling = "stream";
  std::string json;
  int jobs = 1;
  bool verify = false;

  /// Whether the reference engine fuses, since it has no automatic mode.
  bool is_fused() const { return step.rules.mode == StepMode::fused || has_stacks(); }
  bool has_stacks() const { return step.rules.has_stacks(); }
};

/// Runs `--model stream-coala`. Throws UsageError in a build without the reference engines.
int run_stream(const ScheduleArguments& arguments, Session& session);

} // namespace monet::cli
