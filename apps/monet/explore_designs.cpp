#include "explore_designs.hpp"

#include "pipeline.hpp"

#include "monet/base/files.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <set>

namespace monet::cli {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// What the space's evaluator models, of the hardware that was written.
Experiment experiment_of(const Space& space, DesignId id, const std::string& hardware) {
  Experiment experiment;
  static_cast<StepSettings&>(experiment) = space.workload;
  const auto& runs = space.workload.runs;
  experiment.inference_only = std::find(runs.begin(), runs.end(), "training") == runs.end();
  experiment.name = fmt::format("{}, design {}", space.name, id);
  experiment.hardware = hardware;
  return experiment;
}

/// Names of cores are the user's: each must be a name of a file in the folder.
void write_hardware(const Space& space, DesignId id, const fs::path& folder) {
  for (const auto& [name, text] : space.hardware_files(id)) {
    if (fs::path(name).filename() != fs::path(name))
      throw InputError({space.origin}, fmt::format("core '{}' cannot be the name of a file", name));
    write_file_atomically((folder / name).string(), text);
  }
}

} // namespace

std::vector<DesignId> designs_to_report(const Space& space, const Json& exploration,
                                        const std::vector<DesignId>& asked) {
  std::set<DesignId> designs(asked.begin(), asked.end());
  for (const FrontRequest& front : space.fronts) {
    const Json& best = exploration.at("best").at(space.workload.runs.at(front.run));
    for (const DesignObjective objective : front.objectives) {
      const auto found = best.find(name_of(objective));
      if (found != best.end())
        designs.insert(found->at("id").get<DesignId>());
    }
  }
  return {designs.begin(), designs.end()};
}

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

void write_design(const Space& space, DesignId id, const std::string& folder, Session& session) {
  const fs::path own = fs::path(folder) / "designs" / std::to_string(id);
  make_folder(own.string());
  write_hardware(space, id, own);
  const Experiment experiment = experiment_of(space, id, (own / "system.yaml").string());
  try {
    const Model model = make_model(experiment, session);
    write_result_and_report(own.string(), model.json(experiment.name));
  } catch (const InfeasibleError& error) {
    throw InfeasibleError(fmt::format("design {}: {}", id, error.what()));
  }
}

} // namespace monet::cli
