// Experiment file of `monet cluster` and the files that it names: the network, the cluster, and the
// distribution of the network over the devices.
#pragma once

#include "monet/cluster/kernel_table.hpp"
#include "monet/cluster/planner.hpp"
#include "monet/cluster/strategy.hpp"
#include "monet/explore/step_settings.hpp"
#include "monet/report/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace monet::cli {

struct ClusterExperiment {
  std::string name;
  SourceLoc where;                     ///< the experiment's file
  std::string cluster;                 ///< path of the cluster's file
  std::optional<std::int64_t> devices; ///< empty: number in the cluster's file
  std::vector<GivenFigure> figures;    ///< replace figures of the kernel table
  ClusterSettings settings;            ///< has `training`; `network` only without a transformer
  ParallelStrategy strategy;
  StrategySpace space; ///< replaces `strategy` if strategies are compared

  /// Samples of one micro-batch over all data ranks.
  std::int64_t samples() const;
};

/// Form of `parallel:`: one strategy, or lists of values whose combinations form a space.
enum class ParallelForm { strategy, space };

/// Reads an experiment. `settings` are "key=value" and replace keys of `parallel`. Throws
/// UsageError for settings that are malformed or repeated, and one InputError with every problem of
/// the experiment and its training file.
ClusterExperiment read_cluster_experiment(const std::string& path,
                                          const std::vector<std::string>& settings,
                                          ParallelForm form = ParallelForm::strategy);

/// Contents of the files of an experiment.
struct ClusterInputs {
  Cluster cluster;
  ClusterDevice device;
  ClusterWorkload workload;
};

/// Reads all files. Throws one InputError with the problems of all of them, and InfeasibleError if
/// the cluster cannot have the requested number of devices.
ClusterInputs read_cluster_inputs(const ClusterExperiment& experiment);

/// Provenance with the files' hashes, without options.
Provenance provenance_of(const ClusterExperiment& experiment, const ClusterInputs& inputs);
/// Adds the settings of --set to the provenance's options.
void add_settings(const std::vector<std::string>& settings, Provenance& provenance);

} // namespace monet::cli
