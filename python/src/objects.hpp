// The C++ objects behind the classes of the Python package, and the functions that create them.
#pragma once

#include "options/experiment.hpp"
#include "pipeline.hpp"
#include "python_calls.hpp"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace monet::python {

/// A network's file and its read options. `graph` is for inference; a training step reads the file
/// again with other options.
struct Network {
  std::string path;
  OnnxReadOptions options;
  std::shared_ptr<const Graph> graph;
};
Network read_network(const std::string& path, std::optional<std::int64_t> batch,
                     const std::map<std::string, std::int64_t>& dimensions);

/// A chip from a file, or from texts that include its core files.
struct PyChip {
  std::shared_ptr<const Chip> chip;
  std::string name; ///< name of the file or chip, used in names of results
  std::vector<InputProblem> warnings{};
};
PyChip read_chip_file(const std::string& path);
PyChip read_chip_texts(const std::string& name, const std::map<std::string, std::string>& texts);

/// A training step of a network, or its inference.
struct Step {
  Network network;
  std::optional<TrainingOptions> training;
  std::optional<Precision> precision; ///< for inference; nullopt: as in the file
  std::vector<std::string> files;     ///< sources of the options
  std::vector<InputProblem> warnings{};
};
/// A training step with the options in `text` (YAML or JSON). `origin`: its name in errors; `file`:
/// whether that is a file. Throws InputError for invalid options.
Step training_step(const Network& network, const std::string& text, const std::string& origin,
                   bool file);
Step inference_step(const Network& network, const std::string& precision);
/// The graph of a step, with its views, as `monet graph` builds it.
TrainingGraph graph_of(const Step& step);

struct ScheduleArguments : ScheduleKeys {
  std::string mapping;
  CoreCostOptions cost;
  int jobs = 1;
  bool verify = false;
  std::map<std::string, std::string> files; ///< texts in place of files of a mapping or stacks
};

/// A modelled step. Arrays that view its timeline keep it alive.
struct Result {
  std::string name;
  std::shared_ptr<const cli::Model> model;
  std::vector<InputProblem> warnings{}; ///< of all its inputs, in the order of commands

  const TrainingGraph& graph() const { return model->step.graph; }
  const Timeline& timeline() const { return model->step.modelled.timeline; }
};
Result schedule(const Step& step, const PyChip& chip, const ScheduleArguments& arguments,
                const ProgressCalls& progress, std::atomic<bool>& stop);
/// The result as JSON, equal to the standard output of the command line, without its last newline.
std::string json_of(const Result& result);
/// Writes result.json, report.html, trace.json and, for a training step, training.onnx. Returns the
/// path of the report.
std::string write_report(const Result& result, const std::string& folder);
std::string table_of(const Result& result);

} // namespace monet::python
