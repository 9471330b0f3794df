#include "options/cluster_inputs.hpp"

#include "pipeline.hpp"

namespace monet::cli {

ClusterInputs read_cluster_inputs(const ClusterExperiment& experiment) {
  ProblemList problems;
  ClusterInputs inputs;
  if (auto cluster = collecting(problems, [&] { return read_cluster(experiment.cluster); })) {
    inputs.cluster = *std::move(cluster);
    if (auto device =
            collecting(problems, [&] { return read_cluster_device(inputs.cluster.device); }))
      inputs.device = *std::move(device);
  }
  inputs.workload = workload_of(experiment.settings);
  if (inputs.workload.network)
    collecting(problems, [&] { return inputs.workload.network(experiment.samples()); });
  problems.throw_if_any();
  for (const GivenFigure& given : experiment.figures)
    set_figure(inputs.device, given);
  if (experiment.devices)
    inputs.cluster = with_devices(inputs.cluster, *experiment.devices);
  return inputs;
}

Provenance provenance_of(const ClusterExperiment& experiment, const ClusterInputs& inputs) {
  std::vector<std::string> files = experiment.settings.files;
  files.push_back(experiment.cluster);
  files.push_back(inputs.cluster.device.path);
  if (inputs.device.chip) {
    const std::vector<std::string> chip = files_of(*inputs.device.chip);
    files.insert(files.end(), chip.begin(), chip.end());
  }
  if (!experiment.settings.transformer)
    files.push_back(experiment.settings.network);
  return provenance_of(files);
}

void add_settings(const std::vector<std::string>& settings, Provenance& provenance) {
  for (const std::string& setting : settings) {
    const std::size_t equals = setting.find('=');
    provenance.options["set " + setting.substr(0, equals)] = setting.substr(equals + 1);
  }
}

} // namespace monet::cli
