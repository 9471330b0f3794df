// Options that several subcommands share (network_options.hpp): network, core costs, fusion and
// transfers.
#include "options/network_options.hpp"

#include "base/shared/file_kind.hpp"
#include "base/shared/text.hpp"
#include "console.hpp"
#include "options/command_line.hpp"
#include "options/experiment.hpp"

#include "monet/base/yaml.hpp"

#include <fmt/core.h>

#include <filesystem>
#include <string_view>

namespace monet::cli {

namespace {

constexpr std::int64_t kLargestBatch = std::int64_t{1} << 40;

std::pair<std::string, std::int64_t> parse_dimension(const std::string& text) {
  if (const std::size_t equals = text.rfind('='); equals != std::string::npos && equals > 0) {
    const auto value = number_in<std::int64_t>(std::string_view(text).substr(equals + 1));
    if (value && *value > 0)
      return {text.substr(0, equals), *value};
  }
  throw UsageError(fmt::format("--dim: '{}' is not of the form name=positive number", text));
}

} // namespace

void NetworkArguments::add_to(Command& command) {
  command.add("--batch", &batch,
              "Batch size: value of a symbolic first axis of the network's inputs",
              {.range = Range{1, kLargestBatch}});
  command.add("--dim", &dimensions,
              "Value of another symbolic dimension, or of a result size that depends on data, as "
              "name=value; may be repeated",
              {.repeated = true});
  command.add("--precision", &precision,
              "Element types if there is no training file: one for all, or by role, like {weights: "
              "int8}. Default: the network's",
              {.type = "TYPES"});
}

Precision NetworkArguments::precision_or_files() const {
  ProblemList problems;
  const Precision read =
      precision.empty()
          ? Precision{}
          : read_precision_options(parse_option_value(precision, "--precision"), problems);
  problems.throw_if_any();
  return read;
}

OnnxReadOptions NetworkArguments::options() const {
  OnnxReadOptions options;
  options.batch = batch;
  for (const std::string& text : dimensions) {
    const auto [name, value] = parse_dimension(text);
    if (!options.dimensions.emplace(name, value).second) {
      throw UsageError(fmt::format("--dim: '{}' is given twice", name));
    }
  }
  return options;
}

Graph read_network(const std::string& path, const OnnxReadOptions& options) {
  Graph network = read_onnx(path, options);
  if (!options.batch)
    return network;
  for (const TensorId id : network.inputs) {
    const auto& shape = network.tensor(id).shape;
    if (!shape.empty() && shape.front() == *options.batch)
      return network;
  }
  throw InputError({path},
                   fmt::format("a batch of {} was requested, but the inputs' first axes are fixed",
                               *options.batch),
                   "leave the batch out, or export the network with a symbolic batch");
}

void check_stacks(const ScheduleKeys& keys) {
  if (keys.stacks != "auto" && keys.mode == StepMode::layer_by_layer)
    throw UsageError("--stacks has no effect layer by layer; leave out --mode");
}

void StepArguments::add_to(Command& command, bool required) {
  command.add("--hardware", &hardware, "System or core file",
              {.type = "SOC.yaml", .required = required});
  command.add("--workload", &workload, "Network", {.type = "NET.onnx", .required = required});
  command.add("--mapping", &mapping, "Mapping file, or auto", {.type = "MAP.yaml"});
  command.add("--training", &training,
              "Training file: options of the training step; default: inference",
              {.type = "T.yaml"});
  command.add(bind(kScheduleKeys, rules));
  network.add_to(command);
}

Experiment StepArguments::experiment() const {
  const auto stem = [](const std::string& path) {
    return std::filesystem::path(path).stem().string();
  };
  Experiment experiment;
  experiment.name = fmt::format("{} on {}", stem(workload), stem(hardware));
  experiment.network = workload;
  experiment.network_options = network.options();
  if (!network.precision.empty()) {
    if (!training.empty())
      throw UsageError("--precision is for inference; a training file has 'precision:'");
    experiment.precision = network.precision_or_files();
  }
  experiment.hardware = hardware;
  if (mapping != "auto")
    experiment.mapping = mapping;
  check_stacks(rules);
  experiment.set(rules);
  experiment.core_cost = cost;
  if (!training.empty()) {
    experiment.training = load_training_options(training);
    experiment.training_where = {training};
    experiment.files.push_back(training);
  }
  return experiment;
}

namespace {

void place(YamlNode& node, const SourceLoc& where) {
  node.where = where;
  for (YamlNode& item : node.items)
    place(item, where);
  for (YamlNode::Entry& entry : node.entries) {
    entry.key_where = where;
    place(entry.value, where);
  }
}

} // namespace

YamlNode parse_option_value(std::string_view text, const std::string& name) {
  const SourceLoc where{name, 0, 0, {}};
  try {
    YamlNode node = parse_yaml(text, name);
    place(node, where);
    return node;
  } catch (const InputError& error) {
    const InputProblem& problem = error.problems().front();
    throw InputError(where, problem.what, problem.hint);
  }
}

std::vector<AlternateStep> load_alternate_steps(const std::string& path) {
  const YamlNode root = load_yaml(path);
  require_kind(root, {FileKind::training});
  if (root.kind != YamlNode::Kind::sequence)
    return {};
  ProblemList problems;
  std::vector<AlternateStep> steps = read_alternate_steps(root, problems);
  problems.throw_if_any();
  return steps;
}

TrainingOptions load_training_options(const std::string& path) {
  ProblemList problems;
  const YamlNode root = load_yaml(path);
  require_kind(root, {FileKind::training});
  const TrainingOptions options = read_training_options(root, problems);
  problems.throw_if_any();
  return options;
}

} // namespace monet::cli
