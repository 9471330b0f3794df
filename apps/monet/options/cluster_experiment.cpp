// Reads the experiment of `monet cluster` and the files that it names; the search for a parallel
// strategy reads the same experiments.
#include "options/cluster_experiment.hpp"

#include "base/shared/checked.hpp"
#include "base/shared/file_kind.hpp"
#include "base/shared/hints.hpp"
#include "options/network_options.hpp"
#include "pipeline.hpp"

#include "monet/base/files.hpp"
#include "monet/base/yaml.hpp"
#include "monet/cluster/cluster.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

namespace monet::cli {

namespace {

class ClusterExperimentReader {
public:
  ClusterExperimentReader(const std::string& path, const std::vector<std::string>& settings,
                          ParallelForm form)
      : path_(path), settings_(settings), form_(form) {}

  ClusterExperiment read() {
    const YamlNode root = load_yaml(path_);
    require_kind(root, {FileKind::cluster_experiment});
    experiment_.settings.files.push_back(path_);
    experiment_.where = {path_};
    YamlMap map(root, problems_);
    experiment_.name = map.string_or("name", std::filesystem::path(path_).stem().string());
    if (const YamlNode* cluster = map.require("cluster"))
      read_cluster_key(*cluster);
    if (const YamlNode* workload = map.require("workload"))
      read_cluster_workload(*workload, path_, experiment_.settings, problems_);
    experiment_.settings.training.emplace();
    if (const YamlNode* training = map.find("training"))
      read_cluster_training(*training, path_, experiment_.settings, problems_);
    const YamlNode parallel = with_settings(map.find("parallel"), root);
    if (form_ == ParallelForm::space)
      experiment_.space = read_strategy_space(parallel, problems_);
    else
      experiment_.strategy = read_strategy(parallel, problems_);
    map.finish();
    problems_.throw_if_any();
    return std::move(experiment_);
  }

private:
  /// Reads `cluster`: a path, or a map of `file`, `devices` and figures of the kernel table.
  void read_cluster_key(const YamlNode& node) {
    if (node.kind != YamlNode::Kind::map) {
      if (as_string(node, problems_))
        experiment_.cluster = named_file(node, path_, problems_);
      return;
    }
    YamlMap map(node, problems_);
    const std::string file = map.require_string("file");
    if (!file.empty())
      experiment_.cluster = named_file(*map.find("file"), path_, problems_);
    if (const YamlNode* devices = map.find("devices")) {
      experiment_.devices = as_integer(*devices, problems_);
      if (experiment_.devices && (*experiment_.devices < 1 || *experiment_.devices > kMaxDevices))
        problems_.add(devices->where, fmt::format("'devices' must be 1 to {}", kMaxDevices));
    }
    for (const TableFigure& figure : kTableFigures) {
      const YamlNode* said = map.find(figure.key);
      if (const auto given = said ? read_figure(figure, *said, problems_) : std::nullopt)
        experiment_.figures.push_back(*given);
    }
    map.finish();
  }

  /// `parallel` with the values of --set added.
  YamlNode with_settings(const YamlNode* parallel, const YamlNode& root) {
    YamlNode node;
    node.where = root.where;
    node.kind = YamlNode::Kind::map;
    if (parallel != nullptr)
      node = *parallel;
    std::vector<std::string> given;
    for (const std::string& setting : settings_) {
      const std::size_t equals = setting.find('=');
      if (equals == 0 || equals == std::string::npos || equals + 1 == setting.size())
        throw UsageError(fmt::format("--set: '{}' is not of the form key=value", setting));
      YamlNode::Entry entry;
      entry.key = setting.substr(0, equals);
      entry.key_where.origin = "--set " + setting;
      if (std::ranges::find(given, entry.key) != given.end())
        throw UsageError(fmt::format("--set: '{}' is given twice", entry.key));
      given.push_back(entry.key);
      entry.value = parse_option_value(setting.substr(equals + 1), entry.key_where.origin);
      std::erase_if(node.entries, [&](const YamlNode::Entry& e) { return e.key == entry.key; });
      node.entries.push_back(std::move(entry));
    }
    return node;
  }

  const std::string& path_;
  const std::vector<std::string>& settings_;
  ParallelForm form_;
  ProblemList problems_;
  ClusterExperiment experiment_;
};

} // namespace

std::int64_t ClusterExperiment::samples() const {
  return checked_multiply(strategy.micro_batch, strategy.parts_of(Divided::samples));
}

ClusterExperiment read_cluster_experiment(const std::string& path,
                                          const std::vector<std::string>& settings,
                                          ParallelForm form) {
  return ClusterExperimentReader(path, settings, form).read();
}

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
  Provenance provenance = provenance_of(files);
  add_file_settings(files, provenance);
  return provenance;
}

void add_settings(const std::vector<std::string>& settings, Provenance& provenance) {
  for (const std::string& setting : settings) {
    const std::size_t equals = setting.find('=');
    provenance.options["set " + setting.substr(0, equals)] = setting.substr(equals + 1);
  }
}

} // namespace monet::cli
