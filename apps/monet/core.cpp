// monet core: what every layer of a network costs on one core, whatever the rest of the chip.
#include "commands.hpp"
#include "core_report.hpp"

#include "monet/hardware/read_hardware.hpp"
#include "monet/report/hardware_result.hpp"
#include "monet/report/text.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <deque>
#include <memory>

namespace monet::cli {

namespace {

/// What the memories and arrays of a core or a chip cost, without a workload.
int show_hardware(const CoreArguments& arguments, Session& session) {
  const Chip chip = session.stage("read files", [&] { return read_chip(arguments.hardware); });
  const nlohmann::ordered_json json = hardware_json(chip);
  if (!arguments.json.empty())
    write_json(arguments.json, json);
  if (arguments.json != "-")
    print_result(hardware_table(json));
  return kExitOk;
}

int run_core(const CoreArguments& arguments, Session& session) {
  if (arguments.memories)
    return show_hardware(arguments, session);
  CoreCostOptions options = arguments.cost.options();
  arguments.model.apply(options);
  const CoreInputs inputs =
      session.stage("read files", [&] { return read_core_inputs(arguments); });
  ProblemList problems;
  std::deque<CoreTask> tasks;
  for (const Layer& layer : inputs.layers)
    tasks.push_back(core_task(layer, inputs, options, problems));
  problems.throw_if_any();
  CoreCostCache cache;
  std::vector<LayerCost> costs;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const Layer& layer = inputs.layers[i];
    session.context.check_stop("core cost");
    session.progress.stage("core cost: " + printable(layer.name));
    const CoreTask& task = tasks[i];
    const Core& core = task.core ? *task.core : inputs.core();
    costs.push_back({&layer, &cache.get(task.problem, core, task.options)});
  }
  const nlohmann::ordered_json json = core_json(inputs, costs, arguments);
  if (!arguments.json.empty())
    write_json(arguments.json, json);
  if (arguments.json != "-")
    print_result(core_table(json));
  return kExitOk;
}

} // namespace

Action add_core_command(CLI::App& app) {
  auto arguments = std::make_shared<CoreArguments>();
  CLI::App* command = app.add_subcommand("core", "Costs every layer of a network on one core");
  command->add_option("--hardware", arguments->hardware, "Core file")
      ->required()
      ->type_name("CORE.yaml");
  CLI::Option* workload = command->add_option("--workload", arguments->workload,
                                              "Network, or a list of layers as ZigZag's");
  workload->type_name("NET.onnx|LAYERS.yaml");
  command->add_flag("--memories", arguments->memories,
                    "Instead of a workload: energy and area of every memory and array of a core or "
                    "system file, and the totals");
  command
      ->add_option("--mapping", arguments->mapping,
                   "Spatial mappings and hints, temporal orders and operand links")
      ->type_name("MAP.yaml");
  arguments->network.add_to(*command);
  arguments->cost.add_to(*command);
  arguments->model.add_to(*command);
  command->add_option("--json", arguments->json, "Write the costs as JSON; - for standard output")
      ->type_name("FILE");
  command->footer(describe_choices() +
                  "\nExample: monet core --hardware data/hardware/cores/edge_tpu_pe.yaml "
                  "--workload data/workload/resnet18_cifar.onnx --batch 1");
  command->final_callback([workload, arguments] {
    if (workload->empty() && !arguments->memories)
      throw CLI::RequiredError("--workload");
  });
  return [arguments](Session& session) { return run_core(*arguments, session); };
}

} // namespace monet::cli
