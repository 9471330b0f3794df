// Writes the result of `monet optimise parallelism` (docs/optimise.schema.json) and prints its
// table.
#include "base/shared/text.hpp"
#include "report/cluster/cluster_text.hpp"
#include "report/shared/cluster_result.hpp"
#include "report/shared/search_result.hpp"
#include "report/shared/text.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace monet {

namespace {

using Json = nlohmann::ordered_json;
using namespace cluster_text;

constexpr std::size_t kMaxPlanRows = 20;

Json planned_json(const PlannedStrategy& planned, bool has_energy) {
  return {{"strategy", strategy_json(planned.strategy)},
          {"time_ns", planned.time},
          {"memory_bytes", planned.memory},
          {"energy_pj", has_energy ? Json(planned.energy_pj) : Json(nullptr)}};
}

Json planned_list(const std::vector<PlannedStrategy>& list, bool has_energy) {
  Json rows = Json::array();
  for (const PlannedStrategy& planned : list)
    rows.push_back(planned_json(planned, has_energy));
  return rows;
}

/// --set options that select the strategy.
std::string settings_of(const ParallelStrategy& strategy) {
  std::string text;
  const Json json = strategy_json(strategy);
  for (const auto& [key, value] : json.items()) {
    if (key != "text" && key != "micro_batches" && key != "layers")
      text += fmt::format(" --set {}={}", key,
                          value.is_string() ? value.get<std::string>() : value.dump());
  }
  return text;
}

std::string plan_rows(const Json& result, const char* key) {
  const Json& list = result.at(key);
  if (list.empty())
    return {};
  const Json& best = result.at("best_strategy");
  const bool has_energy = !best.at("energy_pj").is_null();
  std::vector<std::vector<std::string>> rows{{"strategy", "time", "of the best", "memory"}};
  if (has_energy)
    rows.front().emplace_back("energy");
  for (std::size_t i = 0; i < std::min(list.size(), kMaxPlanRows); ++i) {
    // A longer list is thinned evenly; its first and last rows are kept.
    const std::size_t at =
        list.size() <= kMaxPlanRows ? i : i * (list.size() - 1) / (kMaxPlanRows - 1);
    const Json& row = list.at(at);
    const double ratio = row.at("time_ns").get<double>() / best.at("time_ns").get<double>();
    rows.push_back({row.at("strategy").at("text").get<std::string>(),
                    human_nanoseconds(row.at("time_ns").get<std::int64_t>()),
                    fmt::format("{:.3f}", ratio),
                    human_bytes(row.at("memory_bytes").get<std::int64_t>())});
    if (has_energy)
      rows.back().push_back(human_energy(row.at("energy_pj").get<double>()));
  }
  std::string title = std::string(key) == "front" ? "no other is better in all of these"
                                                  : "next best of those modelled";
  if (list.size() > kMaxPlanRows)
    title += fmt::format(" ({} of {})", kMaxPlanRows, list.size());
  return "\n" + title + "\n" + aligned_table(rows);
}

} // namespace

Json parallelism_json(const ParallelismOutcome& outcome, const Provenance& provenance) {
  const PlannerResult& found = *outcome.found;
  const ClusterStep& step = *outcome.best->step;
  const bool has_energy = step.energy_pj > 0;
  Json json = search_json(
      {"parallelism", outcome.best->name, outcome.objective, found.certificate, outcome.seconds});
  json["devices"] = outcome.best->cluster->devices;
  json["cluster"] = valid_utf8(outcome.best->cluster->name);
  json["strategies"] = {{"all", found.counts.all()},
                        {"modelled", found.counts.evaluated},
                        {"modelled_too_large", found.overflowing},
                        {"beaten_by_bound", found.counts.beaten},
                        {"too_large_by_bound", found.counts.too_large},
                        {"impossible", found.counts.impossible},
                        {"left", found.counts.left},
                        {"divisions_priced", found.profiles}};
  json["memory_limit_bytes"] = found.memory_limit > 0 ? Json(found.memory_limit) : Json(nullptr);
  json["best_strategy"] = planned_json(*found.best, has_energy);
  json["best_strategy"]["tokens_per_second"] =
      step.tokens_per_second > 0 ? Json(step.tokens_per_second) : Json(nullptr);
  json["best_strategy"]["samples_per_second"] = step.samples_per_second;
  json["best_strategy"]["mfu"] = step.mfu > 0 ? Json(step.mfu) : Json(nullptr);
  json["front"] = planned_list(found.front, has_energy);
  json["runners_up"] = planned_list(found.runners_up, has_energy);
  json["repeat"] = valid_utf8(outcome.repeat + settings_of(found.best->strategy));
  json["provenance"] = provenance_json(provenance);
  return json;
}

std::string parallelism_table(const Json& result) {
  const Json& best = result.at("best_strategy");
  const Json& counts = result.at("strategies");
  const auto count = [&](const char* key) {
    return group_digits(counts.at(key).get<std::int64_t>());
  };
  std::string text = fmt::format("{}\n{} devices of {}\n\nbest     {}\n",
                                 printable(result.at("name").get<std::string>()),
                                 group_digits(result.at("devices").get<std::int64_t>()),
                                 printable(result.at("cluster").get<std::string>()),
                                 best.at("strategy").at("text").get<std::string>());
  text += fmt::format("step     {}", human_nanoseconds(best.at("time_ns").get<std::int64_t>()));
  if (!best.at("tokens_per_second").is_null())
    text += fmt::format(", {} tokens/s", human_rate(best.at("tokens_per_second").get<double>()));
  if (!best.at("mfu").is_null())
    text += fmt::format("; MFU {:.2f} %", 100 * best.at("mfu").get<double>());
  text += fmt::format("\nmemory   {} a device at most",
                      human_bytes(best.at("memory_bytes").get<std::int64_t>()));
  if (!result.at("memory_limit_bytes").is_null())
    text += ", of " + human_bytes(result.at("memory_limit_bytes").get<std::int64_t>());
  if (!best.at("energy_pj").is_null())
    text += "\nenergy   " + human_energy(best.at("energy_pj").get<double>());
  const Json& gap = result.at("gap");
  text += fmt::format("\ngap      {}\n\n{} strategies: {} modelled ({} too large), {} beaten by "
                      "their bounds, {} too large by their bounds",
                      gap.is_null() ? "unknown" : fmt::format("{:.2f} %", 100 * gap.get<double>()),
                      count("all"), count("modelled"), count("modelled_too_large"),
                      count("beaten_by_bound"), count("too_large_by_bound"));
  if (counts.at("impossible") != 0)
    text += fmt::format(", {} impossible", count("impossible"));
  if (counts.at("left") != 0)
    text += fmt::format(", {} not evaluated", count("left"));
  text += "\n";
  text += plan_rows(result, result.at("front").empty() ? "runners_up" : "front");
  return text + fmt::format("\nmodel it: {}\n", printable(result.at("repeat").get<std::string>()));
}

} // namespace monet
