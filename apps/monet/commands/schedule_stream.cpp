// monet schedule --model stream-coala: schedules the network with the reference scheduler.
#include "commands/schedule.hpp"
#include "pipeline.hpp"
#include "report/shared/stream_result.hpp"

#include "monet/core_cost/mapping_file.hpp"
#include "monet/hardware/read_hardware.hpp"
#include "monet/reference/stream_costs.hpp"
#include "monet/tiling/stacks_file.hpp"
#include "monet/tiling/tiling.hpp"

#include <fmt/core.h>
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

Inputs read_inputs(const ScheduleArguments& arguments) {
  ProblemList problems;
  // Operators stay as in the file: the reference sees the parts of a GELU.
  OnnxReadOptions reading = arguments.step.network.options();
  reading.recognise = false;
  auto network =
      collecting(problems, [&] { return read_network(arguments.step.workload, reading); });
  auto chip = collecting(problems, [&] { return read_chip(arguments.step.hardware); });
  auto mapping = collecting(problems, [&] { return read_mapping(arguments.step.mapping); });
  std::optional<StacksFile> stacks;
  if (arguments.has_stacks())
    stacks = collecting(problems, [&] { return read_stacks(arguments.step.rules.stacks); });
  std::optional<stream::CostTable> costs;
  if (!arguments.core_costs.empty())
    costs = collecting(problems, [&] { return stream::read_core_costs(arguments.core_costs); });
  problems.throw_if_any();
  const std::vector<const Graph*> graphs{&*network};
  check_mapping(*mapping, *chip, graphs);
  return {std::move(*network), std::move(*chip), std::move(*mapping), std::move(stacks),
          std::move(costs)};
}

/// Stacks as lists of layer ids. Members are ids or names of nodes; a node with several layers adds
/// all of them.
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
                   "stream-coala reads slices only from the mapping file (intra_core_tiling)");
  }
  if (!file.idle_cores.empty())
    problems.add(file.idle_cores.front().where, "stream-coala does not support idle cores");
  std::vector<std::vector<int>> stacks;
  for (const std::vector<StackMember>& members : file.stacks) {
    std::vector<int>& stack = stacks.emplace_back();
    for (const StackMember& member : members) {
      if (member.place) {
        if (ids.contains(*member.place)) // ids of other nodes are ignored, as in the reference
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

Provenance stream_provenance(const ScheduleArguments& arguments, const Chip& chip) {
  std::vector<std::string> files{arguments.step.workload, arguments.step.mapping};
  const std::vector<std::string> hardware = files_of(chip);
  files.insert(files.end(), hardware.begin(), hardware.end());
  if (arguments.has_stacks())
    files.push_back(arguments.step.rules.stacks);
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
  Provenance provenance = provenance_of(files);
  std::map<std::string, std::string>& options = provenance.options;
  options["model"] = "stream-coala";
  options["mode"] = arguments.is_fused() ? "fused" : "layer-by-layer";
  options["mapping"] = fs::path(arguments.step.mapping).filename().string();
  options["pooling"] = arguments.pooling;
  options["core_costs"] = arguments.core_costs.empty() ? "monet" : "files";
  return provenance;
}

/// Result of the reference scheduler for our files, with name and provenance.
Json run_stream_model(const ScheduleArguments& arguments, Session& session) {
  const Inputs inputs = session.stage("read files", [&] { return read_inputs(arguments); });
  stream::StreamOptions options;
  options.mode = arguments.is_fused() ? stream::StreamOptions::Mode::fused
                                      : stream::StreamOptions::Mode::layer_by_layer;
  options.pools_channels_twice = arguments.pooling == "stream";
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
  Json json = {{"name", fmt::format("{} on {}", fs::path(arguments.step.workload).stem().string(),
                                    fs::path(arguments.step.hardware).stem().string())}};
  json.update(stream_json(workload, inputs.chip, costs, result));
  json["provenance"] = provenance_json(stream_provenance(arguments, inputs.chip));
  return json;
}

/// Rejects options that would have no effect on the reference's model.
void check_stream(const ScheduleArguments& arguments) {
  if (arguments.step.mapping == "auto")
    throw UsageError("--model stream-coala requires the --mapping of the reference scheduler");
  if (!arguments.step.training.empty())
    throw UsageError("--model stream-coala schedules inference; --training requires --model monet");
  if (arguments.step.rules.halo != Halo::cached)
    throw UsageError("--halo requires --model monet: stream-coala always keeps halos");
  if (arguments.step.rules.priority != Priority::latency)
    throw UsageError("--priority requires --model monet: stream-coala has a fixed order");
  if (!arguments.step.rules.stream_like.empty())
    throw UsageError("--stream-like requires --model monet: stream-coala always follows Stream");
  const CoreCostOptions usual;
  if (arguments.step.cost.objective != usual.objective ||
      arguments.step.cost.lpf_limit != usual.lpf_limit) {
    throw UsageError("--objective and --lpf-limit require --model monet: stream-coala costs tiles "
                     "as the reference does");
  }
  check_stacks(arguments.step.rules);
}

} // namespace

int run_stream(const ScheduleArguments& arguments, Session& session) {
  check_stream(arguments);
  const Json result = run_stream_model(arguments, session);
  session.progress.stage("write results");
  write_output(arguments.json, result, stream_table(result));
  return kExitOk;
}

} // namespace monet::cli
