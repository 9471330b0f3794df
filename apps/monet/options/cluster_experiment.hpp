// The file that `monet cluster` takes, and those that it names: which network is trained on which
// cluster, and how it is divided over its devices.
#pragma once

#include "monet/cluster/device.hpp"
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
  SourceLoc where;                     ///< its file
  std::string cluster;                 ///< path
  std::optional<std::int64_t> devices; ///< none: as the cluster's file says
  std::vector<GivenFigure> figures;    ///< in place of the kernel table's
  ClusterSettings settings; ///< `training` is there; `network` where there is no transformer
  ParallelStrategy strategy;
  StrategySpace space; ///< in its place, where strategies are compared

  /// Of a micro-batch of all data ranks together.
  std::int64_t samples() const;
};

/// What `parallel:` says: one strategy, or values of which all combinations are meant.
enum class ParallelForm { strategy, space };

/// `settings` are "key=value" and replace keys of `parallel`. UsageError for what is not of this
/// form or is given twice; one InputError with every problem of the file and of the training file
/// it names.
ClusterExperiment read_cluster_experiment(const std::string& path,
                                          const std::vector<std::string>& settings,
                                          ParallelForm form = ParallelForm::strategy);

/// The files of an experiment, read.
struct ClusterInputs {
  Cluster cluster;
  ClusterDevice device;
  ClusterWorkload workload;
};

/// One InputError with the problems of all files. InfeasibleError where the cluster cannot have so
/// many devices.
ClusterInputs read_cluster_inputs(const ClusterExperiment& experiment);

/// Files, without options.
Provenance provenance_of(const ClusterExperiment& experiment, const ClusterInputs& inputs);
/// What --set says.
void add_settings(const std::vector<std::string>& settings, Provenance& provenance);

} // namespace monet::cli
