// monet schedule: one network on one chip, from options instead of an experiment file.
#include "commands.hpp"
#include "network_options.hpp"
#include "pipeline.hpp"
#include "stream_model.hpp"

#include "monet/report/stream_result.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <memory>

namespace monet::cli {

namespace {

struct ScheduleArguments {
  std::string hardware;
  std::string workload;
  std::string mapping = "auto";
  std::string training;
  std::string mode = "layer-by-layer";
  std::string stacks = "auto";
  std::string halo = "cached";
  std::string priority = "latency";
  std::string model = "monet";
  std::vector<std::string> stream_like;
  std::vector<std::string> core_costs;
  std::string json;
  NetworkArguments network;
  CostArguments cost;
  int jobs = 1;
  bool verify = false;
};

void check_stacks(const ScheduleArguments& arguments) {
  if (arguments.stacks != "auto" && arguments.mode != "fused")
    throw UsageError("--stacks is of no use layer by layer; add --mode fused");
}

Experiment experiment_of(const ScheduleArguments& arguments) {
  const auto stem = [](const std::string& path) {
    return std::filesystem::path(path).stem().string();
  };
  Experiment experiment;
  experiment.name = fmt::format("{} on {}", stem(arguments.workload), stem(arguments.hardware));
  experiment.network = arguments.workload;
  experiment.network_options = arguments.network.options();
  experiment.hardware = arguments.hardware;
  if (arguments.mapping != "auto")
    experiment.mapping = arguments.mapping;
  if (arguments.mode == "fused")
    experiment.mode = TilingMode::fused;
  check_stacks(arguments);
  if (arguments.stacks != "auto")
    experiment.stacks = arguments.stacks;
  if (arguments.halo == "recomputed")
    experiment.halo = Halo::recomputed;
  if (arguments.priority != "latency")
    experiment.priority = arguments.priority == "memory" ? Priority::memory : Priority::order;
  for (const std::string& name : arguments.stream_like)
    experiment.rules.*transfer_rule_named(name) = false;
  experiment.core_cost = arguments.cost.options();
  if (!arguments.training.empty()) {
    experiment.training = load_training_options(arguments.training);
    experiment.files.push_back(arguments.training);
  }
  return experiment;
}

void write_result(const ScheduleArguments& arguments, const nlohmann::ordered_json& result,
                  std::string (*table)(const nlohmann::ordered_json&)) {
  if (!arguments.json.empty())
    write_json(arguments.json, result);
  if (arguments.json != "-")
    print_result(table(result));
}

/// What is asked of the reference's model but would change nothing.
void check_stream(const ScheduleArguments& arguments) {
  if (arguments.mapping == "auto")
    throw UsageError("--model stream-coala needs the --mapping that the reference would be given");
  if (!arguments.training.empty())
    throw UsageError("--model stream-coala schedules inference; --training is for our own model");
  if (arguments.halo != "cached")
    throw UsageError("--halo is for our own model: --model stream-coala always keeps halos");
  if (arguments.priority != "latency")
    throw UsageError(
        "--priority is for our own model: --model stream-coala has an order of its own");
  if (!arguments.stream_like.empty())
    throw UsageError("--stream-like is for our own model: --model stream-coala is Stream's");
  const CostArguments usual;
  if (arguments.cost.objective != usual.objective || arguments.cost.lpf_limit != usual.lpf_limit) {
    throw UsageError(
        "--objective and --lpf-limit are for our own model: --model stream-coala costs "
        "tiles as the reference does");
  }
  check_stacks(arguments);
}

int run_stream(const ScheduleArguments& arguments, Session& session) {
  check_stream(arguments);
  StreamArguments stream;
  stream.hardware = arguments.hardware;
  stream.workload = arguments.workload;
  stream.mapping = arguments.mapping;
  stream.stacks = arguments.stacks == "auto" ? "" : arguments.stacks;
  stream.fused = arguments.mode == "fused";
  stream.core_costs = arguments.core_costs;
  stream.network = arguments.network.options();
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
  const Experiment experiment = experiment_of(arguments);
  const Model model = make_model(experiment, session);
  session.progress.stage("write results");
  const nlohmann::ordered_json result = model.json(experiment.name);
  write_result(arguments, result, summary_table);
  return kExitOk;
}

/// How our own model fuses operators, orders tiles and moves data.
void add_rules(CLI::App& command, ScheduleArguments& arguments) {
  command
      .add_option("--mode", arguments.mode,
                  "Operators one by one, or stacks of them slice by slice")
      ->check(CLI::IsMember({"layer-by-layer", "fused"}))
      ->capture_default_str();
  command
      .add_option("--stacks", arguments.stacks,
                  "Fused: file of which operators form a stack, or auto")
      ->type_name("S.yaml")
      ->capture_default_str();
  command
      .add_option("--halo", arguments.halo, "Fused: what two slices need is kept, or made for each")
      ->check(CLI::IsMember({"cached", "recomputed"}))
      ->capture_default_str();
  command
      .add_option("--priority", arguments.priority,
                  "Which ready tile a core takes: the first, the one deepest in the network, or "
                  "none but the next in order")
      ->check(CLI::IsMember({"latency", "memory", "order"}))
      ->capture_default_str();
  command
      .add_option("--stream-like", arguments.stream_like,
                  "Move data as Stream does in this respect; may be repeated")
      ->check(CLI::IsMember({"links", "multicast", "overlap", "routing"}))
      ->allow_extra_args(false);
}

} // namespace

Action add_schedule_command(CLI::App& app) {
  auto arguments = std::make_shared<ScheduleArguments>();
  CLI::App* command = app.add_subcommand("schedule", "Schedules a network on a chip");
  command->add_option("--hardware", arguments->hardware, "System or core file")
      ->required()
      ->type_name("SOC.yaml");
  command->add_option("--workload", arguments->workload, "Network")
      ->required()
      ->type_name("NET.onnx");
  command->add_option("--mapping", arguments->mapping, "Mapping file, or auto")
      ->type_name("MAP.yaml")
      ->capture_default_str();
  command
      ->add_option("--training", arguments->training,
                   "Options of the training step; without them inference is scheduled")
      ->type_name("T.yaml");
  add_rules(*command, *arguments);
  command
      ->add_option("--model", arguments->model,
                   "monet, or stream-coala: the reference scheduler Stream to the last cycle")
      ->check(CLI::IsMember({"monet", "stream-coala"}))
      ->capture_default_str();
  command
      ->add_option("--core-costs", arguments->core_costs,
                   "For stream-coala: recorded core costs, files or folders, instead of our own")
      ->type_name("COSTS.json|DIR");
  arguments->network.add_to(*command);
  arguments->cost.add_to(*command);
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
