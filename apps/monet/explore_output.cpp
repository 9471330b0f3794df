// What monet explore writes: explore.json, the table, the report, and reports of designs.
#include "explore.hpp"
#include "explore_designs.hpp"
#include "pipeline.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/files.hpp"
#include "monet/report/explore_result.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace monet::cli {

namespace {

using Json = nlohmann::ordered_json;

std::string path_in(const std::string& folder, const char* name) {
  return (std::filesystem::path(folder) / name).string();
}

Json json_of(const Exploration& exploration) {
  Provenance provenance = provenance_of(exploration.space.files);
  provenance.seed = exploration.strategy.seed;
  ExplorationInfo info;
  info.strategy = exploration.strategy.name;
  info.seed = exploration.strategy.seed;
  info.budget = exploration.strategy.budget;
  info.ended_early = exploration.ended_early;
  return explore_json(exploration.space, exploration.result, info, provenance);
}

/// Reports of designs; what is wrong with those that cannot run, which only those asked for may be.
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

/// The exploration first, so that nothing that goes wrong with a design loses it.
std::vector<std::string> write_folder(const ExploreArguments& arguments,
                                      const Exploration& exploration, Json& json,
                                      Session& session) {
  make_folder(arguments.folder);
  const auto write = [&] {
    write_json(path_in(arguments.folder, "explore.json"), json);
    write_file_atomically(path_in(arguments.folder, "report.html"), report_html(json));
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

void write_exploration(const ExploreArguments& arguments, const Exploration& exploration,
                       Session& session) {
  Json json = json_of(exploration);
  std::vector<std::string> problems;
  if (!arguments.folder.empty())
    problems = write_folder(arguments, exploration, json, session);
  if (!arguments.json.empty())
    write_json(arguments.json, json);
  if (arguments.json != "-") {
    print_result(exploration_table(json));
    if (!arguments.folder.empty())
      print_result(fmt::format("\nreport: {}\n", path_in(arguments.folder, "report.html")));
  }
  if (!problems.empty())
    throw InfeasibleError(fmt::format("{}", fmt::join(problems, "\n")));
}

} // namespace monet::cli
