// monet optimise fusion --model einsum: maps the network's Einsums with the reference engine for
// fused cascades.
#include "commands/optimise.hpp"
#include "report/shared/einsum_result.hpp"

#include "monet/core_cost/layers.hpp"
#include "monet/hardware/read_hardware.hpp"
#include "monet/reference/einsum_mapper.hpp"
#include "monet/training_graph/training.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>

namespace monet::cli {

namespace {

bool is_yaml(const std::string& path) {
  const std::string extension = std::filesystem::path(path).extension().string();
  return extension == ".yaml" || extension == ".yml";
}

/// Network or training step with its views folded.
Graph read_step(const OptimiseArguments& common) {
  OnnxReadOptions reading = common.step.network.options();
  if (common.step.training.empty())
    return fold_views(make_inference_graph(read_network(common.step.workload, reading),
                                           common.step.network.precision_or_files()))
        .graph;
  const TrainingOptions training = load_training_options(common.step.training);
  read_for(reading, training);
  return fold_views(make_training_graph(read_network(common.step.workload, reading), training))
      .graph;
}

EinsumCascade read_cascade(const OptimiseArguments& common, const EinsumArguments& own) {
  if (!own.matmuls.empty()) {
    if (!common.step.workload.empty())
      throw UsageError("--matmuls and --workload exclude each other");
    if (own.matmuls.size() < 3)
      throw UsageError(
          "--matmuls needs rows, columns and the columns of each product: M,N0,N1,...");
    return matmul_chain(own.matmuls, own.bits.value_or(8));
  }
  if (!common.experiment.empty())
    throw UsageError("--model einsum requires --workload, not an experiment file");
  if (common.step.workload.empty())
    throw UsageError("--workload or --matmuls is required");
  if (!is_yaml(common.step.workload))
    return make_cascade(read_step(common), own.bits);
  if (!common.step.training.empty())
    throw UsageError("--training is for networks (ONNX); a YAML workload lists all its layers");
  return make_cascade(read_layers(common.step.workload), own.bits);
}

/// Size in bits of the largest outermost memory of any core.
std::optional<std::int64_t> buffer_of(const std::string& hardware) {
  const Chip chip = read_chip(hardware);
  std::int64_t bits = 0;
  for (const Core& core : chip.cores) {
    if (core.kind != CoreKind::offchip && !core.memories.empty())
      bits = std::max(bits, core.memories.back().size.value);
  }
  return bits;
}

} // namespace

int optimise_einsum(const OptimiseArguments& common, const FusionArguments& fusion,
                    Session& session) {
  const EinsumArguments& own = fusion.einsum;
  limit_time(common, session);
  session.context.jobs = common.jobs;
  const EinsumCascade cascade =
      session.stage("read files", [&] { return read_cascade(common, own); });
  EinsumOptions options;
  options.buffer_bits = own.buffer_bits;
  if (!options.buffer_bits && !common.step.hardware.empty())
    options.buffer_bits = buffer_of(common.step.hardware);
  options.front = own.front || !options.buffer_bits;
  options.fuse = !own.unfused;
  options.resident = own.resident;
  options.reference_rules = own.reference_rules;
  if (own.max_fused_loops)
    options.max_fused_loops = *own.max_fused_loops;
  const SearchControl control = search_control(common, session);
  const EinsumResult result =
      session.stage("search", [&] { return map_einsums(cascade, options, control); });
  Certificate found;
  found.bound = static_cast<double>(result.bound_dram_bits);
  found.interrupted = result.interrupted;
  if (!result.front.empty())
    found.best = static_cast<double>(result.front.back().dram_bits);
  const std::string name = own.matmuls.empty()
                               ? std::filesystem::path(common.step.workload).stem().string()
                               : fmt::format("matmuls {}", fmt::join(own.matmuls, " x "));
  Json json = einsum_json({"fusion", name, "dram_bits", found, session.progress.seconds()}, cascade,
                          result, options.buffer_bits);
  std::vector<std::string> files;
  for (const std::string& file :
       {common.step.workload, common.step.training, common.step.hardware}) {
    if (!file.empty())
      files.push_back(file);
  }
  Provenance provenance = provenance_of(files);
  provenance.seed = common.seed;
  json["provenance"] = provenance_json(provenance);
  return finish_search(common, json, einsum_table(cascade, result, found), found, session);
}

} // namespace monet::cli
