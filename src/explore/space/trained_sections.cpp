// Reads and checks the sections `workload:`, `training:` and `accuracy:` of a space file. The
// reader of space files (reader.cpp) calls this.
#include "base/shared/file_kind.hpp"
#include "explore/space/sections.hpp"

#include "monet/base/files.hpp"
#include "monet/explore/step_settings.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>

namespace monet {

namespace {

namespace fs = std::filesystem;

/// Maximum number of different workloads or trainings in a space.
constexpr std::size_t kMaxTrainings = 1000;
constexpr std::string_view kFixedKeys[] = {"arithmetic", "checkpoint", "evaluate_every", "name"};

/// The training section, loaded from its file if `node` is a file name. Returns `node` if that
/// fails, since the problem has been reported.
YamlNode training_node(const YamlNode& node, const std::string& space_file) {
  if (node.kind != YamlNode::Kind::scalar)
    return node;
  try {
    YamlNode training = load_yaml(resolve_beside(space_file, node.scalar));
    require_kind(training, {FileKind::training});
    return training;
  } catch (const InputError&) {
    return node;
  }
}

void read_training(const SpaceFile& file, const YamlNode& node) {
  if (!is_varied(node)) {
    file.made_of.training.fixed = training_node(node, file.space.origin);
  } else if (node.kind == YamlNode::Kind::map) {
    file.made_of.training = varied_section(file, node);
  } else {
    file.problems.add(node.where, "expressions choose no training file",
                      "write the section here, with 'variants:'");
  }
}

void read_accuracy(const SpaceFile& file, const YamlNode& node) {
  if (node.kind != YamlNode::Kind::map) {
    file.problems.add(node.where, "expected a short training: data, epochs or steps, ...");
    return;
  }
  if (!file.map.has("training"))
    file.problems.add(node.where, "'accuracy:' requires 'training:'");
  for (const YamlNode::Entry& entry : node.entries) {
    if (std::ranges::find(kFixedKeys, entry.key) != std::end(kFixedKeys))
      file.problems.add(entry.key_where,
                        fmt::format("'{}' cannot be set in a space: tests run at the end, and "
                                    "'training:' sets the number formats",
                                    entry.key));
  }
  file.made_of.accuracy = varied_section(file, node);
  file.space.workload.metrics.assign(std::begin(kTrainedMetrics), std::end(kTrainedMetrics));
}

/// Collects the problems of several trainings without duplicates.
class Collected {
public:
  template <class Work>
  void of(const Work& work) {
    ProblemList problems;
    try {
      work(problems);
    } catch (const InputError& error) {
      problems.add(error.problems());
    }
    for (const InputProblem& problem : problems.problems()) {
      if (said_.insert(problem.to_string()).second)
        once_.add(problem.where, problem.what, problem.hint);
    }
  }
  void throw_if_any() const { once_.throw_if_any(); }

private:
  std::set<std::string> said_;
  ProblemList once_;
};

void add_files(const std::string& path, std::vector<std::string>& files) {
  std::vector<std::string> found;
  std::error_code error;
  if (fs::is_directory(path, error)) {
    for (const fs::directory_entry& entry : fs::directory_iterator(path, error)) {
      if (entry.is_regular_file(error))
        found.push_back(entry.path().string());
    }
    std::ranges::sort(found);
  } else {
    found.push_back(path);
  }
  for (const std::string& file : found)
    add_once(file, files);
}

void add_files(const TrainStudy& study, std::vector<std::string>& files) {
  const TrainRecipe& recipe = study.variants.front();
  add_files(recipe.network.value, files);
  for (const DataOptions& data : study.data) {
    for (const auto* of : {&data.train_files, &data.test_files}) {
      for (const std::string& file : *of)
        add_files(file, files);
    }
  }
  if (!recipe.initial.path.empty())
    add_files(recipe.initial.path, files);
}

/// Checks that every network that designs may choose exists. Adds its files to `files`.
void check_workloads(const Space& space, const Space::Template& made_of, Collected& problems,
                     std::vector<std::string>& files) {
  if (!made_of.workload.varied)
    return;
  std::set<std::size_t> slots;
  made_of.workload.add_slots(slots);
  const std::vector<Values> ways = made_of.ways(space, slots, kMaxTrainings);
  if (ways.empty())
    throw InputError(made_of.workload.fixed.where,
                     fmt::format("designs have more than {} different workloads", kMaxTrainings));
  for (const Values& values : ways)
    problems.of([&](ProblemList& list) {
      ClusterSettings settings;
      if (made_of.clusters)
        read_cluster_workload(made_of.workload.of(values), space.origin, settings, list);
      else
        read_network_section(made_of.workload.of(values), space.origin, settings, list);
      if (!settings.network.empty())
        add_files(settings.network, files);
    });
}

} // namespace

Space::Template::VariedSection varied_section(const SpaceFile& file, const YamlNode& node) {
  Space::Template::VariedSection section{node};
  if (is_varied(node))
    section.varied = SectionTemplate(node, file.names, file.space.parameters, file.problems);
  return section;
}

void read_trained_sections(const SpaceFile& file) {
  if (const YamlNode* training = file.map.find("training"))
    read_training(file, *training);
  if (const YamlNode* accuracy = file.map.find("accuracy"))
    read_accuracy(file, *accuracy);
  if (const YamlNode* workload = file.map.find("workload"))
    file.made_of.workload = varied_section(file, *workload);
}

std::vector<std::string> check_trained_sections(Space& space, const Space::Template& made_of) {
  Collected problems;
  std::vector<std::string> files;
  check_workloads(space, made_of, problems, files);
  std::set<std::size_t> slots;
  made_of.training.add_slots(slots);
  if (made_of.training.varied) {
    for (const Values& values : made_of.ways(space, slots, kMaxTrainings))
      problems.of(
          [&](ProblemList& list) { read_training_options(made_of.training.of(values), list); });
  }
  problems.throw_if_any();
  if (!made_of.clusters)
    static_cast<StepSettings&>(space.workload) = space.settings(space.first_design());
  if (!made_of.accuracy)
    return files;
  made_of.workload.add_slots(slots);
  made_of.accuracy->add_slots(slots);
  const std::vector<Values> ways = made_of.ways(space, slots, kMaxTrainings);
  if (ways.empty())
    throw InputError(made_of.accuracy->fixed.where,
                     fmt::format("designs have more than {} different trainings", kMaxTrainings));
  for (const Values& values : ways)
    problems.of([&](ProblemList&) {
      add_files(train_study_of(made_of.recipe(values), space.origin), files);
    });
  problems.throw_if_any();
  return files;
}

} // namespace monet
