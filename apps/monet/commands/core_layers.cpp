// Reads the layers, the core and the mapping file of `monet core` and makes the task of each layer
// (core_layers.hpp).
#include "commands/core_layers.hpp"

#include "console.hpp"
#include "hardware/shared/array_modes.hpp"
#include "pipeline.hpp"
#include "workload/shared/views.hpp"

#include "monet/base/files.hpp"
#include "monet/hardware/read_hardware.hpp"
#include "monet/schedule/schedule.hpp"

#include <fmt/core.h>

#include <filesystem>
#include <utility>

namespace monet::cli {

namespace {

/// First byte of an ONNX file: the protobuf tag of its first field.
constexpr char kFirstOnnxByte = 0x08;

void read_yaml(const CoreArguments& arguments, CoreInputs& inputs) {
  if (arguments.network.batch || !arguments.network.dimensions.empty())
    throw UsageError("--batch and --dim are for ONNX networks, not for YAML workloads");
  inputs.layers = read_layers(arguments.workload);
  inputs.network = std::filesystem::path(arguments.workload).stem().string();
}

void read_zigzag_network(const CoreArguments& arguments, CoreInputs& inputs) {
  const Graph graph = read_network(arguments.workload, arguments.network.options());
  NetworkLayers layers = zigzag_layers(graph);
  inputs.layers = std::move(layers.layers);
  inputs.skipped = std::move(layers.skipped);
  inputs.network = graph.name;
}

/// Adds every operator that the core can run, with the same problem as in MONET's schedules.
void add_operators(const TrainingGraph& step, CoreInputs& inputs) {
  for (std::size_t i = 0; i < step.graph.operators().size(); ++i) {
    const Operator& op = step.graph.operators()[i];
    if (!can_run(inputs.core(), op.nest.compute, op.op_type)) {
      inputs.skipped.push_back({op.name, op.op_type.str()});
      continue;
    }
    Layer layer;
    layer.name = op.name;
    layer.op_type = op.op_type;
    layer.problem = core_problem({OpId(i), CoreId(0)}, full_tile(op.nest), step, inputs.chip);
    for (const Access& access : op.nest.operands)
      layer.roles.push_back(access.role);
    inputs.layers.push_back(std::move(layer));
    inputs.formats.push_back(multiplied_formats(step.graph, op));
  }
}

std::optional<std::size_t> array_dim(const Core& core, const std::string& name,
                                     const MappingEntry& entry, ProblemList& problems) {
  for (std::size_t d = 0; d < core.array.size(); ++d) {
    if (core.array[d].name == name)
      return d;
  }
  problems.add(entry.where, fmt::format("the core has no array dimension '{}'", name));
  return std::nullopt;
}

void link_memories(const MappingEntry& entry, const std::vector<std::string>& roles,
                   CoreProblem& problem) {
  for (std::size_t i = 0; i < problem.operands.size() && i < roles.size(); ++i) {
    const auto link = entry.memory_operand_links.find(roles[i]);
    if (link != entry.memory_operand_links.end())
      problem.operands[i].memory = link->second;
  }
}

/// Sets the formats of layers that have no formats to the one that --format names.
void set_formats(const CoreArguments& arguments, CoreInputs& inputs) {
  if (inputs.core().modes.empty() || inputs.formats.size() == inputs.layers.size()) {
    if (!arguments.format.empty())
      throw UsageError("--format is for layers without formats, on a core with modes");
    return;
  }
  const std::string modes = modes_text(inputs.core().modes);
  if (arguments.format.empty())
    throw UsageError("core '" + inputs.core().name + "' has modes, " + modes +
                     ": set the format of the layers with --format");
  const auto type = element_type_named(arguments.format);
  if (!type)
    throw UsageError("--format: unknown number format '" + arguments.format + "'");
  inputs.formats.assign(inputs.layers.size(), {type->format()});
}

/// Checks names and loops of the mapping file and the core's dataflow against the layers and the
/// array.
void check_names(const CoreInputs& inputs, ProblemList& problems) {
  MappingSubjects subjects;
  for (const Layer& layer : inputs.layers)
    subjects.add(layer.name, layer.op_type, layer.problem.dims);
  for (const SkippedOperator& layer : inputs.skipped) {
    subjects.layers.insert(layer.name);
    subjects.types.insert(layer.op_type);
  }
  check_loops(inputs.chip, subjects.loops, problems);
  if (!inputs.mapping)
    return;
  check_subjects(*inputs.mapping, subjects, MappingUse::layers, problems);
  for (const MappingEntry& entry : inputs.mapping->entries) {
    for (const ArrayDim& dim : inputs.core().array) {
      const auto unrolled = entry.spatial_mapping.find(dim.name);
      if (unrolled != entry.spatial_mapping.end())
        check_width(unrolled->second, dim, entry.where, problems);
    }
  }
}

/// Replaces the core's dataflow by that of the entry. An array dimension without loops stays
/// unused, which one iteration of an unnamed loop expresses; an empty list would leave the
/// dimension open.
void set_dataflow(const MappingEntry& entry, Core& core, ProblemList& problems) {
  core.dataflow.assign(core.array.size(), {});
  for (const auto& [name, unrollings] : entry.spatial_mapping) {
    if (const auto d = array_dim(core, name, entry, problems))
      core.dataflow[*d] = unrollings.empty() ? std::vector<Unrolling>{{"", 1}} : unrollings;
  }
}

void set_hints(const MappingEntry& entry, const Core& core, CoreCostOptions& options,
               ProblemList& problems) {
  if (entry.spatial_mapping_hint.empty())
    return;
  options.spatial_hints.assign(core.array.size(), {});
  for (const auto& [name, dims] : entry.spatial_mapping_hint) {
    if (const auto d = array_dim(core, name, entry, problems))
      options.spatial_hints[*d] = dims;
  }
}

/// Skips layers of a YAML list without weights, as ZigZag does for arrays that compute in memory.
/// Data still pass through these layers.
void skip_layers_without_weights(CoreInputs& inputs) {
  std::vector<Layer> layers = std::exchange(inputs.layers, {});
  std::vector<Core> cores = std::exchange(inputs.cores, {});
  for (std::size_t i = 0; i < layers.size(); ++i) {
    Layer& layer = layers[i];
    if (layer.op_type == "Pooling" || layer.op_type == "Add") {
      inputs.skipped.push_back({layer.name, layer.op_type});
      continue;
    }
    layer.makers.clear(); // indices into the whole list
    layer.takers.clear();
    inputs.layers.push_back(std::move(layer));
    if (!cores.empty())
      inputs.cores.push_back(std::move(cores[i]));
  }
}

} // namespace

bool is_yaml_workload(const std::string& path) {
  const std::string extension = std::filesystem::path(path).extension().string();
  if (extension == ".yaml" || extension == ".yml")
    return true;
  if (extension == ".onnx")
    return false;
  const std::string bytes = read_file(path);
  return bytes.empty() || bytes.front() != kFirstOnnxByte;
}

CoreInputs read_core_inputs(const CoreArguments& arguments) {
  if (arguments.model.data_locality && !arguments.model.is_zigzag())
    throw UsageError("--data-locality requires --model zigzag-3.8");
  ProblemList problems;
  CoreInputs inputs;
  const bool yaml = is_yaml_workload(arguments.workload);
  std::optional<Graph> network;
  collecting(problems, [&] {
    if (yaml)
      read_yaml(arguments, inputs);
    else if (arguments.model.is_zigzag())
      read_zigzag_network(arguments, inputs);
    else
      network = read_network(arguments.workload, arguments.network.options());
    return true;
  });
  auto core = collecting(problems, [&] { return read_core(arguments.hardware); });
  if (!arguments.mapping.empty())
    inputs.mapping = collecting(problems, [&] { return read_mapping(arguments.mapping); });
  problems.throw_if_any();
  inputs.chip.name = core->name;
  inputs.chip.origin = arguments.hardware;
  inputs.chip.cores.push_back(std::move(*core));
  make_routes(inputs.chip);
  if (arguments.model.data_locality)
    inputs.cores = with_data_locality(inputs.layers, inputs.core());
  if (inputs.core().imc != nullptr && yaml)
    skip_layers_without_weights(inputs);
  if (!network)
    set_formats(arguments, inputs);
  if (network) {
    inputs.network = network->name;
    add_operators(
        fold_views(make_inference_graph(*network, arguments.network.precision_or_files())), inputs);
  }
  if (!arguments.model.is_zigzag()) // ZigZag ignores unused entries and clips wide unrollings
    check_names(inputs, problems);
  problems.throw_if_any();
  return inputs;
}

CoreTask core_task(std::size_t index, const CoreInputs& inputs, const CoreCostOptions& options,
                   ProblemList& problems) {
  const Layer& layer = inputs.layers[index];
  const Core& seen = inputs.cores.empty() ? inputs.core() : inputs.cores.at(index);
  const Core& core = seen.modes.empty() ? seen : in_mode_for(seen, inputs.formats.at(index));
  CoreTask task{layer.problem, core, options};
  const MappingEntry* entry =
      inputs.mapping ? inputs.mapping->find(layer.name, layer.op_type) : nullptr;
  task.options.fixed_dataflow = !options.model.free_unrolling;
  if (entry == nullptr)
    return task;
  link_memories(*entry, layer.roles, task.problem);
  // ZigZag uses only the mapping file; MONET uses the core's dataflow if the entry has no mapping.
  if (!entry->spatial_mapping.empty() || !options.model.free_unrolling) {
    set_dataflow(*entry, task.core, problems);
    task.options.fixed_dataflow = true;
  }
  set_hints(*entry, task.core, task.options, problems);
  for (const auto& [dim, size] : entry->temporal_ordering)
    task.options.temporal_order.push_back({dim, size});
  return task;
}

} // namespace monet::cli
