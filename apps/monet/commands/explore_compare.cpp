// monet explore --compare A B: compares the fronts of two explorations, from explore.json files or
// stores.
#include "commands/explore.hpp"
#include "pipeline.hpp"
#include "report/shared/explore_result.hpp"
#include "report/shared/text.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/files.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace monet::cli {

namespace {

/// Checks the members that a comparison uses; nested values are checked on use.
void check_exploration(const Json& json, const std::string& path) {
  const auto has = [&](const char* key, bool (Json::*is)() const noexcept) {
    return json.contains(key) && (json.at(key).*is)();
  };
  const auto kind = json.is_object() ? json.find("kind") : json.end();
  if (kind == json.end() || *kind != "explore")
    throw InputError({path}, "is not a result of monet explore");
  if (!json.contains("schema_version") || json.at("schema_version") != 1)
    throw InputError({path}, "is not of this version: schema_version is not 1");
  if (!has("name", &Json::is_string) || !has("space", &Json::is_object) ||
      !has("runs", &Json::is_array) || !has("fronts", &Json::is_object) ||
      !has("best", &Json::is_object) || !has("columns", &Json::is_array) ||
      !has("rows", &Json::is_array))
    throw InputError({path}, "is not a result of monet explore: parts of it are missing");
}

/// Whether a file is a store: it begins with the signature of SQLite files.
bool is_store(const std::string& path) {
  constexpr std::string_view kMagic{"SQLite format 3"};
  return read_beginning(path, kMagic.size()) == kMagic;
}

/// Exploration with the designs of a store.
Json read_stored(const std::string& path) {
  const Space space = stored_space(path);
  StoreOptions options{.resume = true, .read_only = true};
  const std::unique_ptr<DesignStore> store = open_store(path, space, options);
  ExplorationResult found;
  store->each([&](const DesignResult& result) { found.results.push_back(result); });
  ExplorationInfo info;
  info.strategy = "stored";
  return explore_json(space, found, info, {});
}

Json read_exploration(const std::string& path) {
  if (is_store(path))
    return read_stored(path);
  Json json = read_json(path);
  check_exploration(json, path);
  return json;
}

/// Pairs of runs to compare: the requested ones, else the two runs of a single file, else the runs
/// in both files.
std::vector<std::pair<std::string, std::string>> pairs_of(const ExploreArguments& arguments,
                                                          const Json& a, const Json& b) {
  if (!arguments.of.empty())
    return {{arguments.of.at(0), arguments.of.at(1)}};
  const auto of_a = a.at("runs").get<std::vector<std::string>>();
  const auto of_b = b.at("runs").get<std::vector<std::string>>();
  if (arguments.compare[0] == arguments.compare[1] && of_a.size() > 1)
    return {{of_a[0], of_a[1]}};
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::string& run : of_a) {
    if (std::ranges::find(of_b, run) != of_b.end())
      pairs.emplace_back(run, run);
  }
  if (pairs.empty())
    pairs.emplace_back(of_a.at(0), of_b.at(0));
  return pairs;
}

std::string label_of(const std::string& file, const std::string& run) {
  return fmt::format("{} ({})", file, run);
}

} // namespace

int compare_explorations(const ExploreArguments& arguments, Session& session) {
  session.progress.stage("compare");
  const Json a = read_exploration(arguments.compare.at(0));
  const Json b = read_exploration(arguments.compare.at(1));
  Json comparison;
  try {
    std::vector<std::pair<ComparedRun, ComparedRun>> pairs;
    for (const auto& [run_a, run_b] : pairs_of(arguments, a, b)) {
      pairs.emplace_back(ComparedRun{&a, run_a, label_of(arguments.compare[0], run_a)},
                         ComparedRun{&b, run_b, label_of(arguments.compare[1], run_b)});
    }
    comparison = comparison_json(pairs);
  } catch (const nlohmann::json::exception&) {
    throw InputError({arguments.compare.at(0) + " or " + arguments.compare.at(1)},
                     "is not a result of monet explore: parts of it are missing");
  }
  std::string text = comparison_table(comparison);
  if (!arguments.folder.empty())
    text += "\nreport: " + printable(write_comparison(arguments.folder, comparison)) + "\n";
  write_output(arguments.json, comparison, text);
  return kExitOk;
}

} // namespace monet::cli
