// monet schedule: one network on one chip, from options instead of an experiment file.
#include "commands.hpp"
#include "network_options.hpp"
#include "pipeline.hpp"
#include "stream_model.hpp"

#include "monet/report/stream_result.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <memory>

namespace monet::cli {

namespace {

struct ScheduleArguments {
  StepArguments step;
  std::string model = "monet";
  std::vector<std::string> core_costs;
  std::string json;
  int jobs = 1;
  bool verify = false;
};

void write_result(const ScheduleArguments& arguments, const nlohmann::ordered_json& result,
                  std::string (*table)(const nlohmann::ordered_json&)) {
  if (!arguments.json.empty())
    write_json(arguments.json, result);
  if (arguments.json != "-")
    print_result(table(result));
}

/// What is asked of the reference's model but would change nothing.
void check_stream(const ScheduleArguments& arguments) {
  if (arguments.step.mapping == "auto")
    throw UsageError("--model stream-coala needs the --mapping that the reference would be given");
  if (!arguments.step.training.empty())
    throw UsageError("--model stream-coala schedules inference; --training is for our own model");
  if (arguments.step.rules.halo != "cached")
    throw UsageError("--halo is for our own model: --model stream-coala always keeps halos");
  if (arguments.step.rules.priority != "latency")
    throw UsageError(
        "--priority is for our own model: --model stream-coala has an order of its own");
  if (!arguments.step.rules.stream_like.empty())
    throw UsageError("--stream-like is for our own model: --model stream-coala is Stream's");
  const CostArguments usual;
  if (arguments.step.cost.objective != usual.objective ||
      arguments.step.cost.lpf_limit != usual.lpf_limit) {
    throw UsageError(
        "--objective and --lpf-limit are for our own model: --model stream-coala costs "
        "tiles as the reference does");
  }
  arguments.step.rules.check();
}

int run_stream(const ScheduleArguments& arguments, Session& session) {
  check_stream(arguments);
  StreamArguments stream;
  stream.hardware = arguments.step.hardware;
  stream.workload = arguments.step.workload;
  stream.mapping = arguments.step.mapping;
  stream.stacks = arguments.step.rules.stacks == "auto" ? "" : arguments.step.rules.stacks;
  stream.fused = arguments.step.rules.mode == "fused";
  stream.core_costs = arguments.core_costs;
  stream.network = arguments.step.network.options();
  const nlohmann::ordered_json result = run_stream_model(stream, session);
  session.progress.stage("write results");
  write_result(arguments, result, stream_table);
  return kExitOk;
}

int run_schedule(const ScheduleArguments& arguments, Session& session) {
  if (arguments.model == "stream-coala")
    return run_stream(arguments, session);
  if (!arguments.core_costs.empty())
    throw UsageError("--core-costs is for --model stream-coala");
  session.context.jobs = arguments.jobs;
  session.context.verify = arguments.verify;
  const Experiment experiment = arguments.step.experiment();
  const Model model = make_model(experiment, session);
  session.progress.stage("write results");
  const nlohmann::ordered_json result = model.json(experiment.name);
  write_result(arguments, result, summary_table);
  return kExitOk;
}

} // namespace

Action add_schedule_command(CLI::App& app) {
  auto arguments = std::make_shared<ScheduleArguments>();
  CLI::App* command = app.add_subcommand("schedule", "Schedules a network on a chip");
  arguments->step.add_to(*command);
  command->get_option("--hardware")->required();
  command->get_option("--workload")->required();
  command
      ->add_option("--model", arguments->model,
                   "monet, or stream-coala: the reference scheduler Stream to the last cycle")
      ->check(CLI::IsMember({"monet", "stream-coala"}))
      ->capture_default_str();
  command
      ->add_option("--core-costs", arguments->core_costs,
                   "For stream-coala: recorded core costs, files or folders, instead of our own")
      ->type_name("COSTS.json|DIR");
  arguments->step.cost.add_to(*command);
  command->add_option("--json", arguments->json, "Write the result as JSON; - for standard output")
      ->type_name("FILE");
  command
      ->add_option("--jobs", arguments->jobs,
                   "Threads (0 = all cores); results do not depend on it")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
  command->add_flag("--verify", arguments->verify, "Check the invariants of every stage's product");
  command->footer("Example: monet schedule --hardware data/hardware/tpu_like_quad_core.yaml "
                  "--workload data/workload/resnet18_cifar.onnx --batch 1 --mode fused");
  return [arguments](Session& session) { return run_schedule(*arguments, session); };
}

} // namespace monet::cli
