// monet schedule: models one network on one chip, with options instead of an experiment file.
#include "commands/schedule.hpp"

#include "pipeline.hpp"

#include <nlohmann/json.hpp>

#include <memory>

namespace monet::cli {

namespace {

int run_schedule(const ScheduleArguments& arguments, Session& session) {
  if (arguments.model == "stream-coala")
    return run_stream(arguments, session);
  if (!arguments.core_costs.empty())
    throw UsageError("--core-costs requires --model stream-coala");
  if (arguments.pooling != "stream")
    throw UsageError("--pooling requires --model stream-coala: --model monet counts channels once");
  session.context.jobs = arguments.jobs;
  session.context.verify = arguments.verify;
  const Experiment experiment = arguments.step.experiment();
  const Model model = make_model(experiment, session);
  session.progress.stage("write results");
  const Json result = model.json(experiment.name);
  write_output(arguments.json, result, summary_table(result));
  return kExitOk;
}

} // namespace

void add_schedule_command(Command& monet) {
  auto arguments = std::make_shared<ScheduleArguments>();
  Command& command = monet.add_command("schedule", "Schedule a network on a chip");
  arguments->step.add_to(command, true);
  command.add(
      "--model", &arguments->model,
      "Scheduler: monet, or stream-coala, which reproduces the reference scheduler Stream exactly",
      {.choices = {"monet", "stream-coala"}});
  command.add("--core-costs", &arguments->core_costs,
              "Recorded core costs for stream-coala, as files or folders; default: our cost model",
              {.type = "COSTS.json|DIR"});
  command.add(
      "--pooling", &arguments->pooling,
      "Pooling in stream-coala: all channels once per channel (as in Stream), or all channels once",
      {.choices = {"stream", "once"}});
  command.add(bind(kEffortKeys, arguments->step.rules));
  command.add(bind(kCoreCostKeys, arguments->step.cost));
  command.add("--json", &arguments->json, "Write the result as JSON; -: standard output",
              {.type = "FILE", .output = Output::file});
  command.add("--jobs", &arguments->jobs,
              "Number of threads (0: all cores); results do not depend on it",
              {.range = Range{0, 4096}});
  command.add("--verify", &arguments->verify, "Check the invariants of every stage's result");
  command.footer = "Example: monet schedule --hardware data/hardware/tpu_like_quad_core.yaml "
                   "--workload data/workload/resnet18_cifar.onnx --batch 1 --mode fused";
  command.action = [arguments](Session& session) { return run_schedule(*arguments, session); };
}

} // namespace monet::cli
