// monet optimise fusion --model einsum.
#include "optimise.hpp"

#include "monet/core_cost/layers.hpp"
#include "monet/hardware/read_hardware.hpp"
#include "monet/optimise/einsum_mapper.hpp"
#include "monet/report/text.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>

namespace monet::cli {

namespace {

constexpr std::int64_t kMostBits = 4096; // of an element

bool is_yaml(const std::string& path) {
  const std::string extension = std::filesystem::path(path).extension().string();
  return extension == ".yaml" || extension == ".yml";
}

/// The network or training step, its views folded.
Graph read_step(const OptimiseArguments& common) {
  OnnxReadOptions reading = common.step.network.options();
  if (common.step.training.empty())
    return fold_views(make_inference_graph(read_network(common.step.workload, reading))).graph;
  const TrainingOptions training = load_training_options(common.step.training);
  explain_for(reading, training);
  return fold_views(make_training_graph(read_network(common.step.workload, reading), training))
      .graph;
}

EinsumCascade read_cascade(const OptimiseArguments& common, const EinsumArguments& own) {
  if (!own.matmuls.empty()) {
    if (!common.step.workload.empty())
      throw UsageError("--matmuls stands in place of --workload");
    if (own.matmuls.size() < 3)
      throw UsageError(
          "--matmuls needs rows, columns and the columns of each product: M,N0,N1,...");
    return matmul_chain(own.matmuls, own.bits.value_or(8));
  }
  if (!common.experiment.empty())
    throw UsageError("--model einsum takes --workload, not an experiment file");
  if (common.step.workload.empty())
    throw UsageError("--workload or --matmuls is required");
  if (!is_yaml(common.step.workload))
    return make_cascade(read_step(common), own.bits);
  if (!common.step.training.empty())
    throw UsageError("--training is for networks (ONNX); a YAML workload lists all its layers");
  return make_cascade(read_layers(common.step.workload), own.bits);
}

/// The largest of the outermost memories of the cores.
std::optional<std::int64_t> buffer_of(const std::string& hardware) {
  const Chip chip = read_chip(hardware);
  std::int64_t bits = 0;
  for (const Core& core : chip.cores) {
    if (core.kind != CoreKind::offchip && !core.memories.empty())
      bits = std::max(bits, core.memories.back().size.value);
  }
  return bits;
}

/// Einsums that exchange something in the buffer, one after another.
nlohmann::ordered_json groups_json(const EinsumCascade& cascade, const EinsumPoint& point) {
  nlohmann::ordered_json groups = nlohmann::ordered_json::array();
  std::vector<std::uint32_t> last(cascade.tensors.size(), 0); // Einsum that uses the tensor last
  for (std::uint32_t e = 0; e < cascade.einsums.size(); ++e) {
    for (const EinsumOperand& operand : cascade.einsums[e].operands)
      last[operand.tensor] = e;
  }
  std::uint32_t end = 0; // no tensor of the buffer lives past it
  for (std::uint32_t e = 0; e < cascade.einsums.size(); ++e) {
    if (e == 0 || end < e) {
      groups.push_back({{"operators", nlohmann::ordered_json::array()},
                        {"exchanged", nlohmann::ordered_json::array()},
                        {"reason", e == 0 ? "first" : "every tensor before it crosses DRAM"}});
      end = e;
    }
    groups.back()["operators"].push_back(valid_utf8(cascade.einsums[e].name));
    for (const EinsumMapping::Node& node : point.einsums[e].nodes) {
      const EinsumOperand& operand = cascade.einsums[e].operands[node.operand];
      if (!node.in_buffer)
        continue;
      end = std::max(end, last[operand.tensor]);
      if (operand.written)
        groups.back()["exchanged"].push_back(valid_utf8(cascade.tensors[operand.tensor].name));
    }
  }
  return groups;
}

nlohmann::ordered_json mappings_json(const EinsumCascade& cascade, const EinsumPoint& point) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (std::size_t e = 0; e < point.einsums.size(); ++e) {
    nlohmann::ordered_json nodes = nlohmann::ordered_json::array();
    for (const EinsumMapping::Node& node : point.einsums[e].nodes) {
      nlohmann::ordered_json loops = nlohmann::ordered_json::array();
      for (const EinsumMapping::Loop& loop : node.loops)
        loops.push_back({{"rank", loop.rank}, {"tile", loop.tile}, {"trips", loop.trips}});
      const std::uint32_t tensor = cascade.einsums[e].operands[node.operand].tensor;
      nodes.push_back({{"loops", std::move(loops)},
                       {"tensor", valid_utf8(cascade.tensors[tensor].name)},
                       {"tile_bits", node.tile_bits},
                       {"dram_bits", node.dram_bits},
                       {"backing", node.in_buffer ? "buffer" : "dram"}});
    }
    list.push_back({{"name", valid_utf8(cascade.einsums[e].name)},
                    {"shared_loops", point.einsums[e].shared_loops},
                    {"nodes", std::move(nodes)}});
  }
  return list;
}

nlohmann::ordered_json rules_json(const EinsumStatistics& statistics) {
  nlohmann::ordered_json rules = nlohmann::ordered_json::array();
  for (const EinsumStatistics::Rule& rule : statistics.rules) {
    rules.push_back(
        {{"rule", rule.name},
         {"seen", rule.seen},
         {"kept", rule.kept},
         {"kept_fraction",
          rule.seen == 0 ? 1.0 : static_cast<double>(rule.kept) / static_cast<double>(rule.seen)}});
  }
  return rules;
}

std::string table_of(const EinsumCascade& cascade, const EinsumResult& result,
                     const Certificate& found) {
  std::vector<std::vector<std::string>> rows{{"buffer bits", "DRAM bits"}};
  for (const EinsumPoint& point : result.front)
    rows.push_back({fmt::format("{}", point.buffer_bits), fmt::format("{}", point.dram_bits)});
  return aligned_table(rows) +
         fmt::format(
             "\n{} Einsums, {} different; {} mappings of one; bound {} DRAM bits, gap {}{}\n",
             cascade.einsums.size(), result.statistics.signatures, result.statistics.rows,
             result.bound_dram_bits, gap_text(found), result.exact ? " (exact)" : "");
}

} // namespace

void EinsumArguments::add_to(CLI::App& command) {
  const std::string group = "With --model einsum";
  command
      .add_option("--matmuls", matmuls,
                  "In place of a workload: a chain of products, rows and columns of the first "
                  "matrix and the columns of each matrix that it is multiplied with")
      ->delimiter(',')
      ->check(CLI::PositiveNumber)
      ->type_name("M,N0,N1,...")
      ->group(group);
  command.add_option("--buffer", buffer_bits, "The buffer holds at most so many bits")
      ->check(CLI::PositiveNumber)
      ->type_name("BITS")
      ->group(group);
  command
      .add_option("--bits", bits, "Bits of an element of any tensor, whatever the workload says")
      ->check(CLI::Range(std::int64_t{1}, kMostBits))
      ->type_name("N")
      ->group(group);
  command
      .add_flag("--front", front,
                "All sizes of the buffer up to --buffer; as without --buffer and --hardware")
      ->group(group);
  command.add_flag("--unfused", unfused, "Every tensor crosses DRAM")->group(group);
  command
      .add_flag("--resident", resident,
                "What several Einsums read from DRAM may stay in the buffer in between")
      ->group(group);
  command
      .add_flag("--reference-rules", reference_rules,
                "Join as AccelForge does, where that is not exact")
      ->group(group);
  command.add_option("--max-fused-loops", max_fused_loops, "Shared loops of an Einsum, at most")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N")
      ->group(group);
}

int optimise_einsum(const OptimiseArguments& common, const FusionArguments& fusion,
                    Session& session) {
  const EinsumArguments& own = fusion.einsum;
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
      session.stage("optimise", [&] { return map_einsums(cascade, options, control); });
  Certificate found;
  found.bound = static_cast<double>(result.bound_dram_bits);
  found.interrupted = result.interrupted;
  if (!result.front.empty())
    found.best = static_cast<double>(result.front.back().dram_bits);
  const std::string name = own.matmuls.empty()
                               ? std::filesystem::path(common.step.workload).stem().string()
                               : fmt::format("matmuls {}", fmt::join(own.matmuls, " x "));
  nlohmann::ordered_json json = search_json("fusion", name, "dram_bits", found, session);
  json["model"] = "einsum";
  json["exact"] = result.exact;
  json["buffer_bits"] = options.buffer_bits ? nlohmann::ordered_json(*options.buffer_bits)
                                            : nlohmann::ordered_json(nullptr);
  json["front"] = nlohmann::ordered_json::array();
  for (const EinsumPoint& point : result.front) {
    json["front"].push_back({{"buffer_bits", point.buffer_bits}, {"dram_bits", point.dram_bits}});
  }
  if (!result.front.empty()) {
    json["front"].back()["chosen"] = true;
    json["groups"] = groups_json(cascade, result.front.back());
    json["einsums"] = mappings_json(cascade, result.front.back());
  }
  json["signatures"] = result.statistics.signatures;
  json["rules"] = rules_json(result.statistics);
  std::vector<std::string> files;
  for (const std::string& file :
       {common.step.workload, common.step.training, common.step.hardware}) {
    if (!file.empty())
      files.push_back(file);
  }
  Provenance provenance = provenance_of(files);
  provenance.seed = common.seed;
  json["provenance"] = provenance_json(provenance);
  return finish_search(common, json, table_of(cascade, result, found), found, session);
}

} // namespace monet::cli
