// Options that several subcommands share: network, core costs, fusion and transfers.
#pragma once

#include "monet/core_cost/core_cost.hpp"
#include "monet/explore/step_settings.hpp"
#include "monet/training_graph/training.hpp"
#include "monet/workload/onnx_reader.hpp"

#include <optional>
#include <string>
#include <vector>

namespace monet::cli {

struct Command;
struct Experiment;

struct NetworkArguments {
  std::optional<std::int64_t> batch;
  std::vector<std::string> dimensions; ///< "name=value"
  std::string precision;               ///< for inference; empty: from the file

  void add_to(Command& command);
  OnnxReadOptions options() const; ///< throws UsageError for a malformed --dim
  Precision precision_or_files() const;
};

/// Reads a network (read_onnx()). Throws InputError if no input can have the requested batch.
Graph read_network(const std::string& path, const OnnxReadOptions& options);

/// Throws UsageError for stacks without fusion.
void check_stacks(const ScheduleKeys& keys);

/// Options for one step on one chip, instead of an experiment file.
struct StepArguments {
  std::string hardware;
  std::string workload;
  std::string mapping = "auto";
  std::string training;
  NetworkArguments network;
  CoreCostOptions cost;
  ScheduleKeys rules;

  /// Adds all options except those of `cost`. `required` applies to --hardware and --workload.
  void add_to(Command& command, bool required = false);
  Experiment experiment() const; ///< throws InputError for the training file
};

/// Reads a training.yaml. Throws InputError with located problems.
/// Parses the YAML of an option such as --precision. Every place in it is the option `name`.
YamlNode parse_option_value(std::string_view text, const std::string& name);
TrainingOptions load_training_options(const std::string& path);
/// Reads the steps of a training.yaml that is a list of them; empty for a single step.
std::vector<AlternateStep> load_alternate_steps(const std::string& path);

} // namespace monet::cli
