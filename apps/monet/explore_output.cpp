// What monet explore writes: explore.json, the table, the report, and reports of designs.
#include "explore.hpp"
#include "explore_designs.hpp"
#include "pipeline.hpp"

#include "monet/base/files.hpp"
#include "monet/report/explore_result.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <filesystem>

namespace monet::cli {

namespace {

using Json = nlohmann::ordered_json;

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

/// The exploration first, so that nothing that goes wrong with a design loses it.
std::string write_folder(const ExploreArguments& arguments, const Exploration& exploration,
                         Json& json, Session& session) {
  make_folder(arguments.folder);
  const auto path = [&](const char* name) {
    return (std::filesystem::path(arguments.folder) / name).string();
  };
  const auto write = [&] {
    write_json(path("explore.json"), json);
    write_file_atomically(path("report.html"), report_html(json));
  };
  write();
  if (!exploration.result.interrupted) {
    Json reports = Json::array();
    for (const DesignId id : designs_to_report(exploration.space, json, arguments.designs)) {
      write_design(exploration.space, id, arguments.folder, session);
      reports.push_back(std::to_string(id));
    }
    json["reports"] = std::move(reports);
    session.progress.stage("write results");
    write();
  }
  return path("report.html");
}

} // namespace

void write_exploration(const ExploreArguments& arguments, const Exploration& exploration,
                       Session& session) {
  Json json = json_of(exploration);
  const std::string report =
      arguments.folder.empty() ? "" : write_folder(arguments, exploration, json, session);
  if (!arguments.json.empty())
    write_json(arguments.json, json);
  if (arguments.json != "-") {
    print_result(exploration_table(json));
    if (!report.empty())
      print_result(fmt::format("\nreport: {}\n", report));
  }
}

} // namespace monet::cli
