// What is trained on a cluster: the sections that an experiment of `monet cluster` and a space of
// clusters share.
#pragma once

#include "monet/cluster/cluster_step.hpp"
#include "monet/explore/step_settings.hpp"
#include "monet/workload/transformer.hpp"

#include <optional>
#include <string>

namespace monet {

struct ClusterSettings : StepSettings {
  std::optional<TransformerShape> transformer; ///< none: `network`
  bool in_place_loss = true;                   ///< of the transformer, see ClusterWorkload
};

// Each collects what is wrong; `path` is the file's own, which paths in it are seen from.

/// `workload:` of a cluster: a transformer by its sizes, or a network. Batches are refused: they
/// are what `parallel:` says.
void read_cluster_workload(const YamlNode& node, const std::string& path, ClusterSettings& settings,
                           ProblemList& problems);
/// `training:` of a cluster, inline or the name of a file. Micro-batches are refused likewise.
/// `settings.training` is there in any case.
void read_cluster_training(const YamlNode& node, const std::string& path, ClusterSettings& settings,
                           ProblemList& problems);

/// What a model of a cluster takes.
ClusterWorkload workload_of(const ClusterSettings& settings);

} // namespace monet
