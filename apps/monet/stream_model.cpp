#include "stream_model.hpp"

#include "pipeline.hpp"

#include "monet/core_cost/mapping_file.hpp"
#include "monet/hardware/read_hardware.hpp"
#include "monet/report/stream_result.hpp"
#include "monet/schedule/stream_costs.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <map>

namespace monet::cli {

namespace {

namespace fs = std::filesystem;

struct Inputs {
  Graph network;
  Chip chip;
  MappingFile mapping;
  std::optional<YamlNode> stacks;
  std::optional<stream::CostTable> costs;
};

Inputs read_inputs(const StreamArguments& arguments) {
  ProblemList problems;
  // Operators as the file has them: the reference sees a GELU's parts.
  OnnxReadOptions reading = arguments.network;
  reading.recognise = false;
  auto network = collecting(problems, [&] { return read_network(arguments.workload, reading); });
  auto chip = collecting(problems, [&] { return read_chip(arguments.hardware); });
  auto mapping = collecting(problems, [&] { return read_mapping(arguments.mapping); });
  std::optional<YamlNode> stacks;
  if (!arguments.stacks.empty())
    stacks = collecting(problems, [&] { return load_yaml(arguments.stacks); });
  std::optional<stream::CostTable> costs;
  if (!arguments.core_costs.empty())
    costs = collecting(problems, [&] { return stream::read_core_costs(arguments.core_costs); });
  problems.throw_if_any();
  return {std::move(*network), std::move(*chip), std::move(*mapping), std::move(stacks),
          std::move(costs)};
}

/// Lists of layers, by id or by the name of their node; a node of several layers stands for all.
std::vector<std::vector<int>> read_stacks(const YamlNode& file, const Graph& network,
                                          const stream::Workload& layers) {
  std::map<std::string, std::vector<int>, std::less<>> by_name;
  std::map<std::int64_t, int> ids;
  for (const stream::Layer& layer : layers.layers) {
    by_name[network.op(layer.op).name].push_back(layer.id);
    ids[layer.id] = layer.id;
  }
  ProblemList problems;
  const YamlNode* list = &file;
  for (const YamlNode::Entry& entry : file.entries) {
    if (entry.key == "stacks")
      list = &entry.value;
  }
  std::vector<std::vector<int>> stacks;
  if (list->kind != YamlNode::Kind::sequence)
    problems.add(list->where, "expected a list of stacks, like [[0, 1], [2]]");
  for (const YamlNode& item : list->items) {
    std::vector<int>& stack = stacks.emplace_back();
    for (const std::string& text : as_strings(item, problems)) {
      if (const auto named = by_name.find(text); named != by_name.end()) {
        stack.insert(stack.end(), named->second.begin(), named->second.end());
        continue;
      }
      const bool digits = !text.empty() && text.size() < 10 &&
                          text.find_first_not_of("0123456789") == std::string::npos;
      if (const auto id = ids.find(digits ? std::stoll(text) : -1); id != ids.end()) {
        stack.push_back(id->second);
      } else if (!digits) {
        problems.add(item.where, fmt::format("no layer is called '{}'", text.substr(0, 60)));
      } // ids of nodes that are no layers are left out, as in the reference
    }
  }
  problems.throw_if_any();
  return stacks;
}

Provenance provenance_of(const StreamArguments& arguments, const Chip& chip) {
  std::vector<std::string> files{arguments.workload, arguments.mapping};
  const std::vector<std::string> hardware = files_of(chip);
  files.insert(files.end(), hardware.begin(), hardware.end());
  if (!arguments.stacks.empty())
    files.push_back(arguments.stacks);
  for (const std::string& path : arguments.core_costs) {
    std::error_code ignored;
    if (!fs::is_directory(path, ignored)) {
      files.push_back(path);
      continue;
    }
    for (const char* name :
         {"core_costs.json", "cost_lut.json", "schedule.json", "comm_events.json"})
      files.push_back((fs::path(path) / name).string());
  }
  Provenance provenance = cli::provenance_of(files);
  std::map<std::string, std::string>& options = provenance.options;
  options["model"] = "stream-coala";
  options["mode"] = arguments.fused ? "fused" : "layer-by-layer";
  options["mapping"] = fs::path(arguments.mapping).filename().string();
  options["core_costs"] = arguments.core_costs.empty() ? "monet" : "files";
  return provenance;
}

} // namespace

nlohmann::ordered_json run_stream_model(const StreamArguments& arguments, Session& session) {
  const Inputs inputs = session.stage("read files", [&] { return read_inputs(arguments); });
  stream::StreamOptions options;
  options.mode = arguments.fused ? stream::StreamOptions::Mode::fused
                                 : stream::StreamOptions::Mode::layer_by_layer;
  if (inputs.stacks) {
    stream::StreamOptions alone;
    alone.mode = stream::StreamOptions::Mode::layer_by_layer;
    const stream::Workload layers = session.stage("layers", [&] {
      return make_stream_workload(inputs.network, inputs.chip, inputs.mapping, alone);
    });
    options.stacks = read_stacks(*inputs.stacks, inputs.network, layers);
  }
  const stream::Workload workload = session.stage("tiling", [&] {
    return make_stream_workload(inputs.network, inputs.chip, inputs.mapping, options);
  });
  const stream::Costs costs = session.stage("core costs", [&] {
    return inputs.costs ? core_costs(*inputs.costs, workload, inputs.chip)
                        : core_costs(workload, inputs.chip);
  });
  const stream::Result result =
      session.stage("schedule", [&] { return schedule(workload, inputs.chip, costs); });
  nlohmann::ordered_json json = {
      {"name", fmt::format("{} on {}", fs::path(arguments.workload).stem().string(),
                           fs::path(arguments.hardware).stem().string())}};
  json.update(stream_json(workload, inputs.chip, costs, result));
  json["provenance"] = provenance_json(provenance_of(arguments, inputs.chip));
  return json;
}

} // namespace monet::cli
