// Writes the results of monet explore: explore.json, the table, the report, and reports of designs.
#include "commands/explore.hpp"
#include "pipeline.hpp"
#include "report/shared/cluster_result.hpp"
#include "report/shared/explore_result.hpp"
#include "report/shared/text.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/files.hpp"
#include "monet/explore/space.hpp"

#include <fmt/core.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace monet::cli {

namespace {

namespace fs = std::filesystem;
/// Experiment of a design on the written hardware, with the settings of the space's evaluator.
Experiment experiment_of(const Space& space, DesignId id, const std::string& hardware) {
  Experiment experiment;
  static_cast<StepSettings&>(experiment) = space.settings(id);
  experiment.effort = Effort::quick;
  const auto& runs = space.workload.runs;
  experiment.inference_only = std::ranges::find(runs, "training") == runs.end();
  experiment.name = fmt::format("{}, design {}", space.name, id);
  experiment.hardware = hardware;
  return experiment;
}

/// Writes the hardware files of a design. Names of cores come from the user, so each must be a
/// plain file name.
void write_design_files(const Space& space, DesignId id, const fs::path& folder) {
  for (const auto& [name, text] : is_of_clusters(space) ? cluster_files(space, id, folder.string())
                                                        : space.hardware_files(id)) {
    if (fs::path(name).filename() != fs::path(name))
      throw InputError({space.origin}, fmt::format("core '{}' cannot be the name of a file", name));
    write_file_atomically((folder / name).string(), text);
  }
}

/// Ids of the designs to report, in ascending order: the requested ones, and the best of each run
/// in each objective of its fronts.
std::vector<DesignId> designs_to_report(const Space& space, const Json& exploration,
                                        const std::vector<DesignId>& asked) {
  std::set<DesignId> designs(asked.begin(), asked.end());
  for (const FrontRequest& front : space.fronts) {
    const Json& best = exploration.at("best").at(space.workload.runs.at(front.run));
    for (const Objective objective : front.objectives) {
      if (const auto found = best.find(name_of(objective)); found != best.end())
        designs.insert(found->at("id").get<DesignId>());
    }
  }
  return {designs.begin(), designs.end()};
}

/// Models and writes a design of a cluster, as `monet cluster` does.
void write_cluster_design(const Space& space, DesignId id, const std::string& folder,
                          Session& session) {
  const DesignedCluster design = cluster_of(space, id);
  const ParallelStrategy strategy = strategy_of(space, id, design.cluster.devices);
  const ClusterStep step = session.stage("model", [&] {
    return ClusterModel(design.cluster, design.device, design.workload).model(strategy);
  });
  if (const std::string overflow = memory_overflow(step); !overflow.empty())
    throw InfeasibleError(overflow);
  ClusterResult result{fmt::format("{}, design {}", space.name, id),
                       &design.cluster,
                       &design.device,
                       &design.workload,
                       fs::path(design.network).filename().string(),
                       &step};
  write_cluster_report(folder, cluster_json(result, provenance_of(space.files)));
}

/// Models a design in full, as `monet run` does. Writes its hardware files, result.json,
/// report.html and trace.json to FOLDER/designs/<id>. Throws InfeasibleError if it cannot run.
void write_design(const Space& space, DesignId id, const std::string& folder, Session& session) {
  const fs::path own = fs::path(folder) / "designs" / std::to_string(id);
  make_folder(own.string());
  write_design_files(space, id, own);
  try {
    if (is_of_clusters(space)) {
      write_cluster_design(space, id, own.string(), session);
      return;
    }
    const Experiment experiment = experiment_of(space, id, (own / "system.yaml").string());
    const Model model = make_model(experiment, session);
    write_result_and_report(own.string(), model.json(experiment.name));
  } catch (const InfeasibleError& error) {
    throw InfeasibleError(fmt::format("design {}: {}", id, error.what()));
  }
}

Json exploration_json(const Exploration& exploration) {
  Provenance provenance = provenance_of(exploration.space.files);
  provenance.seed = exploration.strategy.seed;
  ExplorationInfo info;
  info.strategy = exploration.strategy.name;
  info.seed = exploration.strategy.seed;
  info.budget = exploration.strategy.budget;
  info.ended_early = exploration.ended_early;
  return explore_json(exploration.space, exploration.result, info, provenance);
}

/// Writes the reports of designs. Returns the problems of designs that cannot run; only requested
/// designs can be among them.
std::vector<std::string> write_designs(const ExploreArguments& arguments, const Space& space,
                                       Json& json, Session& session) {
  std::vector<std::string> problems;
  Json reports = Json::array();
  for (const DesignId id : designs_to_report(space, json, arguments.designs)) {
    try {
      write_design(space, id, arguments.folder, session);
      reports.push_back(std::to_string(id));
    } catch (const InfeasibleError& error) {
      problems.emplace_back(error.what());
    }
  }
  json["reports"] = std::move(reports);
  return problems;
}

/// Writes the exploration before the designs, so that an error in a design does not lose it.
std::vector<std::string> write_folder(const ExploreArguments& arguments,
                                      const Exploration& exploration, Json& json,
                                      Session& session) {
  make_folder(arguments.folder);
  const auto write = [&] {
    write_json(path_in(arguments.folder, "explore.json"), json);
    write_file_atomically(path_in(arguments.folder, "report.html"), page_of(json));
  };
  write();
  if (exploration.result.interrupted)
    return {};
  std::vector<std::string> problems = write_designs(arguments, exploration.space, json, session);
  session.progress.stage("write results");
  write();
  return problems;
}

} // namespace

void check_designs(const Space& space, const std::vector<DesignId>& asked) {
  ProblemList problems;
  for (const DesignId id : asked) {
    if (id >= space.size()) {
      problems.add({space.origin},
                   fmt::format("has no design {}: the last is {}", id, space.size() - 1));
    } else if (const std::string broken = space.broken_constraint(id); !broken.empty()) {
      problems.add({space.origin},
                   fmt::format("the constraint '{}' excludes design {}", broken, id));
    }
  }
  problems.throw_if_any();
}

void write_exploration(const ExploreArguments& arguments, const Exploration& exploration,
                       Session& session) {
  Json json = exploration_json(exploration);
  std::vector<std::string> problems;
  std::optional<OutputError> unwritten; // results are printed even if the folder fails
  try {
    if (!arguments.folder.empty())
      problems = write_folder(arguments, exploration, json, session);
  } catch (const OutputError& error) {
    unwritten = error;
  }
  std::string text = exploration_table(json);
  if (!arguments.folder.empty() && !unwritten)
    text += fmt::format("\nreport: {}\n", printable(path_in(arguments.folder, "report.html")));
  write_output(arguments.json, json, text);
  if (unwritten)
    throw OutputError(*unwritten);
  if (!problems.empty())
    throw InfeasibleError(fmt::format("{}", fmt::join(problems, "\n")));
}

} // namespace monet::cli
