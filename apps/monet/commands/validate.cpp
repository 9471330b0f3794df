// monet validate FILE...: recognises the kind of each file and reads it, with the files that it
// names, by the reader of that kind. Nothing is modelled.
#include "base/shared/file_kind.hpp"
#include "commands/backward_study.hpp"
#include "commands/check_result.hpp"
#include "commands/commands.hpp"
#include "options/cluster_experiment.hpp"
#include "options/network_options.hpp"
#include "pipeline.hpp"
#include "report/shared/text.hpp"

#include "monet/base/files.hpp"
#include "monet/base/yaml.hpp"
#include "monet/cluster/cluster.hpp"
#include "monet/cluster/kernel_table.hpp"
#include "monet/core_cost/backward.hpp"
#include "monet/core_cost/layers.hpp"
#include "monet/core_cost/mapping_file.hpp"
#include "monet/explore/explore.hpp"
#include "monet/fit/study.hpp"
#include "monet/hardware/read_hardware.hpp"
#include "monet/tiling/stacks_file.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <memory>

namespace monet::cli {

namespace {

struct ValidateArguments {
  std::vector<std::string> files;
  NetworkArguments network; ///< sizes of symbolic dimensions, for all networks
};

/// Reads a network, with samples one at a time unless the options say otherwise.
void validate_network(const std::string& path, OnnxReadOptions options) {
  if (!options.batch)
    options.batch = 1;
  read_onnx(path, options);
}

void validate_experiment(const std::string& path) {
  const Experiment experiment = read_experiment(path);
  read_inputs(experiment, nullptr);
}

/// Reads a cluster experiment, or the space of strategies that monet optimise parallelism takes.
void validate_cluster_experiment(const std::string& path) {
  try {
    read_cluster_inputs(read_cluster_experiment(path, {}));
  } catch (const InputError&) {
    try {
      read_cluster_inputs(read_cluster_experiment(path, {}, ParallelForm::space));
      return;
    } catch (const InputError&) { // reported as an experiment
    }
    throw;
  }
}

void validate_training_experiment(const std::string& path) {
  const TrainStudy study = read_train_study(path);
  ProblemList problems;
  for (const TrainRecipe& recipe : study.variants) {
    OnnxReadOptions reading;
    reading.batch = recipe.batch;
    collecting(problems, [&] { return read_onnx(recipe.network.value, reading); });
  }
  problems.throw_if_any();
}

/// Reads a space with its network and builds the graphs of its runs.
void validate_space(const std::string& path) {
  const Space space = read_space(path);
  make_evaluator(space);
}

void validate_cluster(const std::string& path) {
  read_cluster_device(read_cluster(path).device);
}

void validate_training(const std::string& path) {
  if (load_alternate_steps(path).empty())
    load_training_options(path);
}

/// Whether the file has expressions, which only a space fills in.
bool is_template(const std::string& path) {
  return read_file(path).find("${") != std::string::npos;
}

/// Reads a core file by itself: as a core, or as the off-chip memory of a system.
void validate_core(const std::string& path) {
  try {
    read_core(path);
  } catch (const InputError&) {
    const std::string name = std::filesystem::absolute(path).string();
    const auto open = [&](const std::string&, const SourceLoc&) {
      return FileText{path, read_file(path)};
    };
    try {
      parse_chip("name: chip\ncores: {0: core}\noffchip_core_id: 0\n", name, open);
      return;
    } catch (const InputError&) { // reported as a core
    }
    throw;
  }
}

/// Reads a file of the kind; returns what it is.
std::string validate_kind(FileKind kind, const std::string& path) {
  if (kind == FileKind::core && is_template(path))
    return "template of a core file";
  switch (kind) {
  case FileKind::result:
    check_result(read_json(path), path);
    break;
  case FileKind::space:
    validate_space(path);
    break;
  case FileKind::backward_study:
    read_study(path);
    break;
  case FileKind::experiment:
    validate_experiment(path);
    break;
  case FileKind::cluster_experiment:
    validate_cluster_experiment(path);
    break;
  case FileKind::training_experiment:
    validate_training_experiment(path);
    break;
  case FileKind::cluster:
    validate_cluster(path);
    break;
  case FileKind::kernel_table:
    read_kernel_table(path);
    break;
  case FileKind::system:
    read_chip(path);
    break;
  case FileKind::core:
    validate_core(path);
    break;
  case FileKind::stacks:
    read_stacks(path);
    break;
  case FileKind::products:
    read_gemm_table(path);
    break;
  case FileKind::training:
    validate_training(path);
    break;
  case FileKind::mapping:
    read_mapping(path);
    break;
  case FileKind::layers:
    read_layers(path);
    break;
  }
  return std::string(name_of_kind(kind));
}

/// Reads a file by the reader of its kind. Returns the kind; throws InputError for an invalid file.
std::string validate_file(const std::string& path, const OnnxReadOptions& reading) {
  constexpr std::size_t kBeginning = 4096;
  const std::string beginning = read_beginning(path, kBeginning);
  const auto format = binary_format(beginning);
  if (std::filesystem::path(path).extension() == ".onnx" || (format && format->is_onnx)) {
    validate_network(path, reading);
    return "ONNX model";
  }
  if (begins_as_result(beginning))
    return validate_kind(FileKind::result, path);
  const auto kind = kind_of_file(load_yaml(path));
  if (!kind)
    throw InputError({path}, "the keys of this file are those of no file of MONET",
                     "the reference of the command line lists the kinds of files");
  return validate_kind(*kind, path);
}

int validate(const ValidateArguments& arguments, Session& session) {
  const OnnxReadOptions reading = arguments.network.options();
  ProblemList problems;
  for (const std::string& path : arguments.files) {
    const auto kind = session.stage(
        path, [&] { return collecting(problems, [&] { return validate_file(path, reading); }); });
    if (kind)
      print_result(fmt::format("{}: {}, valid\n", printable(path), *kind));
  }
  problems.throw_if_any();
  return kExitOk;
}

} // namespace

void add_validate_command(Command& monet) {
  auto arguments = std::make_shared<ValidateArguments>();
  Command& command = monet.add_command("validate", "Read files, and report what they are and "
                                                   "whether they are valid");
  command.add("files", &arguments->files, "ONNX models, and YAML files of every kind",
              {.type = "FILE", .required = true});
  command.add("--batch", &arguments->network.batch,
              "Batch size: value of a symbolic first axis of a network's inputs; default: 1",
              {.range = Range{1, 1 << 20}});
  command.add("--dim", &arguments->network.dimensions,
              "Value of another symbolic dimension, as name=value; may be repeated",
              {.repeated = true});
  command.footer = "Example: monet validate examples/edge_resnet18_cifar.yaml";
  command.action = [arguments](Session& session) { return validate(*arguments, session); };
}

} // namespace monet::cli
