// Options that several subcommands share: network, core costs, fusion and transfers.
#pragma once

#include "monet/core_cost/core_cost.hpp"
#include "monet/schedule/schedule.hpp"
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

struct CostArguments {
  std::string objective = "latency";
  int lpf_limit = CoreCostOptions{}.lpf_limit;

  void add_to(Command& command);
  /// Adds --core-objective, `auto` by default, for searches that have a separate --objective.
  void add_to_search(Command& command);
  CoreCostOptions options() const; ///< auto counts as latency

private:
  void add_limit(Command& command);
};

/// Options for fusing operators, ordering tiles and moving data.
struct RuleArguments {
  std::string mode = "auto";
  std::string stacks = "auto";
  std::string halo = "cached";
  std::string priority = "latency";
  std::vector<std::string> stream_like;

  void add_to(Command& command);
  void check() const; ///< throws UsageError for stacks without fusion
  void apply(Experiment& experiment) const;
};

/// Options for one step on one chip, instead of an experiment file.
struct StepArguments {
  std::string hardware;
  std::string workload;
  std::string mapping = "auto";
  std::string training;
  NetworkArguments network;
  CostArguments cost;
  RuleArguments rules;

  /// Adds all options except those of `cost`. `required` applies to --hardware and --workload.
  void add_to(Command& command, bool required = false);
  Experiment experiment() const; ///< throws InputError for the training file
};

/// Reads a training.yaml. Throws InputError with located problems.
TrainingOptions load_training_options(const std::string& path);
/// Reads the steps of a training.yaml that is a list of them; empty for a single step.
std::vector<AlternateStep> load_alternate_steps(const std::string& path);

} // namespace monet::cli
