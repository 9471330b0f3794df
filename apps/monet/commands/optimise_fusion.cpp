// monet optimise fusion: searches for the operators that run together, slice by slice. Calls the
// fusion search and writes its result.
#include "commands/optimise.hpp"
#include "options/paired_steps.hpp"

#include "monet/base/files.hpp"
#include "monet/optimise/fusion.hpp"
#include "monet/tiling/stacks_file.hpp"

#include <nlohmann/json.hpp>

#include <limits>
#include <memory>

namespace monet::cli {

namespace {

struct FusionCommand {
  OptimiseArguments common;
  FusionArguments own;
};

constexpr std::int64_t kMaxElementBits = 4096;

/// Start of the search: layer by layer, or the plan of `monet schedule` if it is better.
TilingOptions first_tiling(const FusionProblem& problem, const FusionResult& found,
                           Objective objective) {
  TilingOptions tiling = problem.tiling;
  tiling.mode = TilingMode::layer_by_layer;
  tiling.stacks.reset();
  tiling.slices.clear();
  tiling.idle.clear();
  double least = std::numeric_limits<double>::infinity();
  for (const FusionAnswer& answer : found.compared) {
    const bool is_fused = answer.method == FusionMethod::automatic;
    if (!answer.figures || (!is_fused && answer.method != FusionMethod::none))
      continue;
    const double value = answer.figures->value(objective);
    if (is_fused && value < least)
      tiling = problem.tiling.with(answer.plan);
    least = std::min(least, value);
  }
  return tiling;
}

/// Writes the folder of --report, which compares the plan with the start of the search.
void write_report(const FusionCommand& arguments, const SearchInputs& inputs,
                  const FusionProblem& problem, const FusionResult& found, Objective objective,
                  const Json& json) {
  if (arguments.common.report.empty())
    return;
  const auto modelled = [&](const TilingOptions& tiling) {
    return model_step(inputs.step, problem.chip, {tiling, problem.schedule, {}}, {problem.costs});
  };
  const ModelledStep before = modelled(first_tiling(problem, found, objective));
  const ModelledStep best = modelled(problem.tiling.with(found.plan));
  write_search_report(
      arguments.common, inputs, json,
      {result_of(inputs.step, before), result_of(inputs.step, best), &inputs.graph.graph});
}

int run_fusion(const FusionCommand& arguments, Session& session) {
  FusionOptions options = arguments.own.search;
  const std::string objective(name_of(options.objective));
  const SearchInputs given = prepare(arguments.common, objective, session);
  options.recomputed_halos = given.experiment.halo == Halo::recomputed;
  CoreCostCache costs;
  const auto problem_of = [&](const SearchInputs& of) {
    return FusionProblem{of.step, of.files.chip, costs, of.tiling_options(),
                         of.schedule_options(1)};
  };
  const SearchControl control = search_control(arguments.common, session);
  PairedSteps steps(given, options.objective, costs, control, session);
  const auto answer = steps.search(
      control,
      [&](const SearchInputs& of, const SearchControl& part) {
        const FusionProblem problem = problem_of(of);
        return session.stage(
            "search", [&] { return optimise_fusion(problem, options, part); },
            [&](const FusionResult& found) {
              const StepOptions best{problem.tiling.with(found.plan), problem.schedule, {}};
              check_answer(of, of.step, best, found.figures, found.certificate);
            });
      },
      [](auto& found) -> auto& { return found.certificate; });
  const SearchInputs& inputs = *answer.inputs;
  const FusionResult& result = answer.result;
  if (!arguments.own.stacks_out.empty())
    write_file_atomically(arguments.own.stacks_out, stacks_yaml(result.plan, inputs.step.graph));
  Json json = fusion_json(
      {"fusion", inputs.experiment.name, objective, result.certificate, session.progress.seconds()},
      result, inputs.step.graph);
  steps.add_to(json);
  json["provenance"] = search_provenance(inputs, arguments.common);
  write_report(arguments, inputs, problem_of(inputs), result, options.objective, json);
  return finish_search(arguments.common, json,
                       fusion_table(result, options.objective) + steps.line(), result.certificate,
                       session);
}

} // namespace

void EinsumArguments::add_to(Command& command) {
  const std::string group = "With --model einsum";
  command.add("--matmuls", &matmuls,
              "Chain of products, replaces --workload: rows and columns of the first matrix, then "
              "columns of each factor",
              {.type = "M,N0,N1,...", .range = Range{1}, .group = group, .delimiter = ','});
  command.add("--buffer", &buffer_bits, "Buffer size in bits",
              {.type = "BITS", .range = Range{1}, .group = group});
  command.add("--bits", &bits, "Bits per element of every tensor, overrides the workload's types",
              {.type = "N", .range = Range{1, kMaxElementBits}, .group = group});
  command.add("--front", &front,
              "Search all buffer sizes up to --buffer; default without --buffer and --hardware",
              {.group = group});
  command.add("--unfused", &unfused, "Move every tensor through DRAM", {.group = group});
  command.add("--resident", &resident,
              "Allow tensors that several Einsums read from DRAM to stay in the buffer",
              {.group = group});
  command.add("--reference-rules", &reference_rules,
              "Use AccelForge's rules to join mappings, although they are not exact",
              {.group = group});
  command.add("--max-fused-loops", &max_fused_loops, "Maximum number of shared loops per Einsum",
              {.type = "N", .range = Range{}, .group = group});
}

void add_optimise_fusion(Command& optimise) {
  auto arguments = std::make_shared<FusionCommand>();
  FusionArguments& own = arguments->own;
  Command& command =
      optimise.add_command("fusion", "Search which operators run together, slice by slice");
  arguments->common.add_to(command);
  command.add("--model", &own.model,
              "Cost model: monet, or einsum (one core, operator by operator)",
              {.choices = {"monet", "einsum"}});
  own.einsum.add_to(command);
  own.search.tries_original = false;
  own.search.tiles = kTilesOfDefaultEffort;
  command.add(bind(kFusionOptions, own.search));
  command.add("--stacks-out", &own.stacks_out,
              "Write the plan as stacks file, for monet schedule --mode fused --stacks",
              {.type = "S.yaml", .output = Output::file});
  command.footer =
      "Example: monet optimise fusion --hardware data/hardware/tpu_like_quad_core.yaml "
      "--workload data/workload/resnet18_cifar.onnx --batch 1";
  command.action = [arguments](Session& session) -> int {
    if (arguments->own.model == "einsum" && !arguments->common.report.empty())
      throw UsageError("--report requires --model monet: Einsums have no schedule");
    if (arguments->own.model == "einsum")
      return optimise_einsum(arguments->common, arguments->own, session);
    return run_fusion(*arguments, session);
  };
}

} // namespace monet::cli
