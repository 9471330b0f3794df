// Options that several subcommands share.
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
  std::string precision;               ///< of inference; empty: as the file has it

  void add_to(Command& command);
  OnnxReadOptions options() const; ///< UsageError for a malformed --dim
  Precision precision_or_files() const;
};

/// read_onnx(), and an InputError when a batch was asked for that no input can have.
Graph read_network(const std::string& path, const OnnxReadOptions& options);

struct CostArguments {
  std::string objective = "latency";
  int lpf_limit = CoreCostOptions{}.lpf_limit;

  void add_to(Command& command);
  /// Beside a search with an objective of its own: --core-objective, `auto` unless it is given.
  void add_to_search(Command& command);
  CoreCostOptions options() const; ///< auto counts as latency

private:
  void add_limit(Command& command);
};

/// How operators are fused, tiles ordered and data moved.
struct RuleArguments {
  std::string mode = "auto";
  std::string stacks = "auto";
  std::string halo = "cached";
  std::string priority = "latency";
  std::vector<std::string> stream_like;

  void add_to(Command& command);
  void check() const; ///< UsageError for stacks that nothing fuses
  void apply(Experiment& experiment) const;
};

/// One step on one chip, from options instead of an experiment file.
struct StepArguments {
  std::string hardware;
  std::string workload;
  std::string mapping = "auto";
  std::string training;
  NetworkArguments network;
  CostArguments cost;
  RuleArguments rules;

  /// All but those of `cost`. `required`: --hardware and --workload are.
  void add_to(Command& command, bool required = false);
  Experiment experiment() const; ///< InputError for the training file
};

/// A training.yaml, located problems thrown.
TrainingOptions load_training_options(const std::string& path);
/// The steps of a training.yaml that is a list of them; empty where it is one step.
std::vector<AlternateStep> load_alternate_steps(const std::string& path);

} // namespace monet::cli
