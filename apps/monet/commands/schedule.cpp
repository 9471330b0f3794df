// monet schedule: one network on one chip, from options instead of an experiment file.
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
    throw UsageError("--core-costs is for --model stream-coala");
  if (arguments.pooling != "stream")
    throw UsageError("--pooling is for --model stream-coala: ours counts channels once");
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
  Command& command = monet.add_command("schedule", "Schedules a network on a chip");
  arguments->step.add_to(command, true);
  command.add("--model", &arguments->model,
              "monet, or stream-coala: the reference scheduler Stream to the last cycle",
              {.choices = {"monet", "stream-coala"}});
  command.add("--core-costs", &arguments->core_costs,
              "For stream-coala: recorded core costs, files or folders, instead of our own",
              {.type = "COSTS.json|DIR"});
  command.add("--pooling", &arguments->pooling,
              "For stream-coala: a pooling works on every channel once for each channel, as in "
              "Stream, or once",
              {.choices = {"stream", "once"}});
  arguments->step.cost.add_to(command);
  command.add("--json", &arguments->json, "Write the result as JSON; - for standard output",
              {.type = "FILE", .output = Output::file});
  command.add("--jobs", &arguments->jobs, "Threads (0 = all cores); results do not depend on it",
              {.range = Range{0, 4096}});
  command.add("--verify", &arguments->verify, "Check the invariants of every stage's product");
  command.footer = "Example: monet schedule --hardware data/hardware/tpu_like_quad_core.yaml "
                   "--workload data/workload/resnet18_cifar.onnx --batch 1 --mode fused";
  command.action = [arguments](Session& session) { return run_schedule(*arguments, session); };
}

} // namespace monet::cli
