// Options that several subcommands share.
#pragma once

#include "monet/core_cost/core_cost.hpp"
#include "monet/training/training.hpp"
#include "monet/workload/onnx_reader.hpp"

#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace monet::cli {

struct NetworkArguments {
  std::optional<std::int64_t> batch;
  std::vector<std::string> dimensions; ///< "name=value"

  void add_to(CLI::App& command);
  OnnxReadOptions options() const; ///< UsageError for a malformed --dim
};

/// read_onnx(), and an InputError when a batch was asked for that no input can have.
Graph read_network(const std::string& path, const OnnxReadOptions& options);

/// Makes reading report what training the network would need as well.
void explain_for(OnnxReadOptions& reading, const TrainingOptions& training);

struct CostArguments {
  std::string objective = "latency";
  int lpf_limit = CoreCostOptions{}.lpf_limit;

  void add_to(CLI::App& command);
  CoreCostOptions options() const;
};

/// The highest lpf_limit: no product of loops has more prime factors than that.
inline constexpr int kHighestLpfLimit = 64;
std::string_view name_of(Objective objective);
std::optional<Objective> objective_named(std::string_view name);

/// A training.yaml, located problems thrown.
TrainingOptions load_training_options(const std::string& path);

/// Adds an option of a later version; using it is a usage error that says so.
void add_unavailable(CLI::App& command, const std::string& name);

} // namespace monet::cli
