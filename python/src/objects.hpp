// What the package's classes hold.
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

/// A network's file and how it is read. Its graph is that of inference; a training step reads it
/// again in its own way.
struct Network {
  std::string path;
  OnnxReadOptions options;
  std::shared_ptr<const Graph> graph;
};
Network read_network(const std::string& path, std::optional<std::int64_t> batch,
                     const std::map<std::string, std::int64_t>& dimensions);

/// A chip from a file, or from text whose core files may be given as text, too.
struct PyChip {
  std::shared_ptr<const Chip> chip;
  std::string name; ///< of the file, in names of results
  std::vector<InputProblem> warnings{};
};
PyChip read_chip_file(const std::string& path);
PyChip read_chip_texts(const std::string& name, const std::map<std::string, std::string>& texts);

/// A training step of a network, or its inference.
struct Step {
  Network network;
  std::optional<TrainingOptions> training;
  std::optional<Precision> precision; ///< of inference; none: as the file has it
  std::vector<std::string> files;     ///< that options came from
  std::vector<InputProblem> warnings{};
};
/// `text`: YAML or JSON; `origin` as errors name it; `file`: it is one.
Step training_step(const Network& network, const std::string& text, const std::string& origin,
                   bool file);
Step inference_step(const Network& network, const std::string& precision);
/// The graph of a step, with its views, as `monet graph` makes it.
TrainingGraph graph_of(const Step& step);

struct ScheduleArguments {
  std::string mode = "auto";
  std::string mapping;
  std::string stacks = "auto";
  std::string halo = "cached";
  std::string priority = "latency";
  std::vector<std::string> stream_like;
  std::string objective = "latency";
  int lpf_limit = CoreCostOptions{}.lpf_limit;
  int jobs = 1;
  bool verify = false;
  std::map<std::string, std::string> files; ///< texts that stand for a mapping or stacks
};

/// A modelled step. Arrays that are looked at keep it alive.
struct Result {
  std::string name;
  std::shared_ptr<const cli::Model> model;
  std::vector<InputProblem>
      warnings{}; ///< of everything that was read for it, as commands sort them

  const TrainingGraph& graph() const { return model->step.graph; }
  const Timeline& timeline() const { return model->step.modelled.timeline; }
};
Result schedule(const Step& step, const PyChip& chip, const ScheduleArguments& arguments,
                const ProgressCalls& progress, std::atomic<bool>& stop);
/// As the command line writes it to standard output.
std::string json_of(const Result& result);
/// result.json, report.html, trace.json and, of a training step, training.onnx. The report's path.
std::string write_report(const Result& result, const std::string& folder);
std::string table_of(const Result& result);

} // namespace monet::python
