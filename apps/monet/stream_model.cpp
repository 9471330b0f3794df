#include "stream_model.hpp"

#include "pipeline.hpp"

#include "monet/core_cost/mapping_file.hpp"
#include "monet/hardware/read_hardware.hpp"
#include "monet/report/stream_result.hpp"
#include "monet/schedule/stream_costs.hpp"
#include "monet/tiling/stacks_file.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <map>
#include <set>

namespace monet::cli {

namespace {

namespace fs = std::filesystem;

struct Inputs {
  Graph network;
  Chip chip;
  MappingFile mapping;
  std::optional<StacksFile> stacks;
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
  std::optional<StacksFile> stacks;
  if (!arguments.stacks.empty())
    stacks = collecting(problems, [&] { return read_stacks(arguments.stacks); });
  std::optional<stream::CostTable> costs;
  if (!arguments.core_costs.empty())
    costs = collecting(problems, [&] { return stream::read_core_costs(arguments.core_costs); });
  problems.throw_if_any();
  return {std::move(*network), std::move(*chip), std::move(*mapping), std::move(stacks),
          std::move(costs)};
}

/// Lists of layers, by id or by the name of their node; a node of several layers stands for all.
std::vector<std::vector<int>> layers_of(const StacksFile& file, const Graph& network,
                                        const stream::Workload& layers) {
  std::map<std::string, std::vector<int>, std::less<>> by_name;
  std::set<std::int64_t> ids;
  for (const stream::Layer& layer : layers.layers) {
    by_name[network.op(layer.op).name].push_back(layer.id);
    ids.insert(layer.id);
  }
  ProblemList problems;
  for (const StacksFile::Slices& slices : file.slices) {
    if (slices.cuts && !slices.cuts->empty())
      problems.add(slices.cuts->front().where,
                   "stream-coala takes slices from the mapping file alone (intra_core_tiling)");
  }
  std::vector<std::vector<int>> stacks;
  for (const std::vector<StackMember>& members : file.stacks) {
    std::vector<int>& stack = stacks.emplace_back();
    for (const StackMember& member : members) {
      if (member.place) {
        if (ids.contains(*member.place)) // those of other nodes are left out, as in the reference
          stack.push_back(static_cast<int>(*member.place));
      } else if (const auto named = by_name.find(member.name); named != by_name.end()) {
        stack.insert(stack.end(), named->second.begin(), named->second.end());
      } else {
        problems.add(member.where,
                     fmt::format("no layer is called '{}'", member.name.substr(0, 60)));
      }
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
    options.stacks = layers_of(*inputs.stacks, inputs.network, layers);
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
