// monet backward: maps dX and dW of every layer together with every technique. Calls the cost model
// for backward passes and writes its result.
#include "commands/backward.hpp"

#include "commands/commands.hpp"
#include "commands/core_layers.hpp"
#include "pipeline.hpp"
#include "report/shared/backward_result.hpp"
#include "workload/shared/views.hpp"

#include "monet/core_cost/backward.hpp"
#include "monet/hardware/read_hardware.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <memory>

namespace monet::cli {

namespace {

constexpr std::int64_t kMaxNpuCores = 64;

/// Table with one layer: the product from the command line.
GemmTable table_of(const std::vector<std::int64_t>& gemm) {
  ProblemList problems;
  for (const std::int64_t size : gemm) {
    if (size < 1 || size > kMaxGemmDimension)
      problems.add({"--gemm"}, fmt::format("a dimension is {}; it must be 1 to 2^40", size));
  }
  problems.throw_if_any();
  GemmLayer layer;
  layer.name = "gemm";
  layer.m = gemm.at(0);
  layer.k = gemm.at(1);
  layer.n = gemm.at(2);
  layer.where = {"--gemm"};
  return {"gemm", {layer}};
}

GemmNetwork read_pairs(const BackwardArguments& arguments) {
  const std::int64_t batch = arguments.batch.value_or(1);
  if (!arguments.gemm.empty())
    return gemm_pairs(table_of(arguments.gemm), batch);
  if (is_yaml_workload(arguments.workload)) {
    if (!arguments.dimensions.empty())
      throw UsageError("--dim is for ONNX networks, not for tables of products");
    return gemm_pairs(read_gemm_table(arguments.workload), batch);
  }
  NetworkArguments network{.batch = arguments.batch, .dimensions = arguments.dimensions};
  return gemm_pairs(fold_views(read_network(arguments.workload, network.options())));
}

struct BackwardInputs {
  Chip chip;
  GemmNetwork network;
};

/// Reads the workload and the hardware. Throws one InputError with the problems of both files.
BackwardInputs read_backward_inputs(const BackwardArguments& arguments) {
  ProblemList problems;
  auto network = collecting(problems, [&] { return read_pairs(arguments); });
  auto chip = collecting(problems, [&] { return read_chip(arguments.hardware); });
  problems.throw_if_any();
  if (network->pairs.empty())
    throw InputError({arguments.workload}, "has no product whose gradients are dX and dW");
  return {*std::move(chip), *std::move(network)};
}

/// Number of cores from the options, or else from the chip.
std::int64_t core_count(const BackwardArguments& arguments, const Chip& chip) {
  const std::int64_t arrays = std::ranges::count_if(chip.cores, is_npu_core);
  return arguments.cores.value_or(std::max<std::int64_t>(1, arrays));
}

std::optional<PartitionScheme> scheme_of(const BackwardArguments& arguments, std::int64_t cores,
                                         bool given) {
  const std::string& word = arguments.partition;
  if (word == "auto" || (!given && cores > 1))
    return std::nullopt;
  if (word == "none" && cores > 1)
    throw UsageError("--partition none requires one core: several cores share every layer");
  if (word == "none")
    return PartitionScheme::none;
  for (int i = 0; i < kPartitionSchemes; ++i) {
    if (name_of(static_cast<PartitionScheme>(i)) == word)
      return static_cast<PartitionScheme>(i);
  }
  throw InternalError("a scheme without a name");
}

/// Techniques to map: all, or the requested one and those it is compared with.
std::vector<Technique> techniques_of(const std::string& asked) {
  std::vector<Technique> techniques;
  for (int i = 0; i < kTechniques; ++i)
    techniques.push_back(static_cast<Technique>(i));
  if (asked.empty())
    return techniques;
  const Technique one = technique_option(asked);
  std::erase_if(techniques, [&](Technique technique) {
    return technique != one && technique != Technique::sequential &&
           technique != Technique::best_sequential;
  });
  return techniques;
}

std::map<std::string, std::string> backward_options(const BackwardArguments& arguments,
                                                    const BackwardPlan& plan) {
  const BackwardChoices& choices = arguments.choices;
  std::map<std::string, std::string> options{
      {"tiles", choices.tiles},
      {"keep", choices.keep},
      {"major", choices.major},
      {"timing", choices.timing},
      {"im2col", choices.im2col},
      {"rule", choices.rule},
      {"element_bits", std::to_string(choices.element_bits)},
      {"partial_bits", std::to_string(choices.partial_bits)},
      {"state_bits", std::to_string(choices.state_bits)},
      {"fill and drain", choices.pipelined ? "hidden" : "every tile"},
      {"writes", choices.wait_for_writes ? "waited for" : "hidden"},
      {"buffer", choices.single_buffer ? "single" : "double"},
      {"partition", plan.scheme ? std::string(monet::name_of(*plan.scheme)) : "auto"},
      {"cores", std::to_string(plan.machine.cores)}};
  if (arguments.batch)
    options["batch"] = std::to_string(*arguments.batch);
  return options;
}

int run_backward(const BackwardArguments& arguments, bool partition_given, Session& session) {
  BackwardPlan plan{.techniques = techniques_of(arguments.technique), .jobs = arguments.jobs};
  const BackwardInputs inputs =
      session.stage("read files", [&] { return read_backward_inputs(arguments); });
  const std::int64_t cores = core_count(arguments, inputs.chip);
  plan.scheme = scheme_of(arguments, cores, partition_given);
  plan.machine = npu_machine(inputs.chip, cores);
  plan.options = arguments.choices.options(inputs.chip, plan.machine);
  const std::vector<BackwardLayer> layers = session.stage("map pairs", [&] {
    return map_backward(inputs.network, plan, [&](std::int64_t done, std::int64_t total) {
      session.progress.search({.phase = "pairs", .done = done, .total = total});
    });
  });
  std::vector<std::string> files = files_of(inputs.chip);
  if (!arguments.workload.empty())
    files.push_back(arguments.workload);
  Provenance provenance = provenance_of(files);
  provenance.options = backward_options(arguments, plan);
  const Json json = backward_json({&inputs.network, &plan, &layers}, provenance);
  write_output(arguments.json, json, backward_table(json));
  return kExitOk;
}

void add_inputs(Command& command, BackwardArguments& arguments) {
  command.add("--hardware", &arguments.hardware, "System file of an NPU: an array and DRAM",
              {.type = "NPU.yaml"});
  command.add("--workload", &arguments.workload,
              "ONNX network, or table of matrix products (see data/workload/gemm/)",
              {.type = "NET.onnx|GEMMS.yaml"});
  command.add("--gemm", &arguments.gemm,
              "One layer, replaces --workload: rows, inner dimension and columns of its product",
              {.type = "M,K,N", .excludes = "--workload", .values = 3, .delimiter = ','});
  command.add("--batch", &arguments.batch,
              "Number of samples: symbolic first axis of a network's inputs, or factor for the "
              "rows of a table",
              {.range = Range{1, static_cast<double>(kMaxGemmDimension)}});
  command.add("--dim", &arguments.dimensions,
              "Value of another symbolic dimension of a network, as name=value; may be repeated",
              {.repeated = true});
}

void add_questions(Command& command, BackwardArguments& arguments) {
  command.add("--technique", &arguments.technique,
              "Technique to evaluate, in addition to sequential and best-sequential; default: all",
              {.type = "T"});
  command.add("--cores", &arguments.cores,
              "Number of cores that share memory and bandwidth; both grow with it. Default: the "
              "cores of the file",
              {.type = "C", .range = Range{1, kMaxNpuCores}});
  command.add("--partition", &arguments.partition,
              "Partition of layers: over time on one core, in parallel on several cores (default "
              "there: auto)",
              {.choices = kPartitionWords});
  arguments.choices.add_to(command);
  command.add("--json", &arguments.json, "Write the costs as JSON; -: standard output",
              {.type = "FILE", .output = Output::file});
  command.add("--jobs", &arguments.jobs,
              "Number of threads (0: all cores); results do not depend on it",
              {.range = Range{0, 4096}});
  command.add("--study", &arguments.study,
              "Study file: computes every figure of a study and compares it with the published one",
              {.type = "STUDY.yaml"});
  command.add("-o,--out", &arguments.folder, "Folder for the tables and the page of a study",
              {.type = "DIR", .needs = "--study", .output = Output::folder});
}

} // namespace

void add_backward_command(Command& monet) {
  auto arguments = std::make_shared<BackwardArguments>();
  Command& command = monet.add_command(
      "backward", "Map dX and dW of every layer together on an NPU, by every technique");
  add_inputs(command, *arguments);
  add_questions(command, *arguments);
  command.footer = "Example: monet backward --hardware data/hardware/npu_small.yaml --workload "
                   "data/workload/gemm/resnet50.yaml --batch 4";
  command.missing = [&command]() -> std::string {
    if (command.given("--study"))
      return command.given("--out") ? "" : "--out";
    if (!command.given("--hardware"))
      return "--hardware";
    return command.given("--workload") || command.given("--gemm") ? "" : "--workload or --gemm";
  };
  command.action = [arguments, &command](Session& session) {
    if (command.given("--study"))
      return run_backward_study(*arguments, session);
    return run_backward(*arguments, command.given("--partition"), session);
  };
}

} // namespace monet::cli
