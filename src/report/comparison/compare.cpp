// Compares results of one kind figure by figure (shared/result_comparison.hpp), for `monet
// compare`.
#include "report/shared/json_list.hpp"
#include "report/shared/result_comparison.hpp"
#include "report/shared/written.hpp"
#include "schedule/shared/critical_path.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <tuple>

namespace monet {

namespace {

using Json = nlohmann::ordered_json;
using namespace nlohmann::literals;
using ComparedResults = std::span<const ComparedResult>;

/// A figure of a result: its name in conditions and tables, its place and its unit.
struct Figure {
  const char* name;
  const char* pointer;
  const char* unit;
};
constexpr Figure kStepFigures[]{{"latency", "/latency_cycles", "cycles"},
                                {"seconds", "/latency_seconds", "s"},
                                {"energy", "/energy_pj", "pJ"},
                                {"memory", "/peak_memory_bytes", "bytes"},
                                {"area", "/area_mm2", "mm2"},
                                {"macs", "/macs/total", "MACs"}};
constexpr Figure kClusterFigures[]{{"time", "/time_ns", "ns"},
                                   {"samples", "/samples_per_second", "1/s"},
                                   {"tokens", "/tokens_per_second", "1/s"},
                                   {"mfu", "/mfu", "1"},
                                   {"energy", "/energy_pj", "pJ"},
                                   {"memory", "/memory/largest_bytes", "bytes"}};
/// Names of the limits of the critical path.
std::vector<std::string> limit_names() {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kLimits; ++i)
    names.emplace_back(name_of(static_cast<Limit>(i)));
  return names;
}

/// Number that a pointer leads to in a result, or null.
Json number_at(const Json& json, const char* pointer) {
  const Json::json_pointer at(pointer);
  return json.contains(at) && json.at(at).is_number() ? json.at(at) : Json();
}

/// The values of each result.
template <class F>
Json values_of(ComparedResults results, F&& value) {
  return json_list(results, [&](const ComparedResult& one) { return Json(value(*one.json)); });
}

bool has_value(const Json& values) {
  return std::ranges::any_of(values, [](const Json& value) { return !value.is_null(); });
}

std::int64_t offchip_bytes(const Json& layers) {
  return std::accumulate(layers.begin(), layers.end(), std::int64_t{0},
                         [](std::int64_t sum, const Json& layer) {
                           return sum + layer.at("offchip_bytes").get<std::int64_t>();
                         });
}

Json total_json(const char* name, const char* unit, Json values) {
  return {{"name", name}, {"unit", unit}, {"values", std::move(values)}};
}

Json totals_json(ComparedResults results, std::span<const Figure> figures) {
  Json totals = Json::array();
  for (const Figure& figure : figures) {
    Json values =
        values_of(results, [&](const Json& json) { return number_at(json, figure.pointer); });
    if (has_value(values))
      totals.push_back(total_json(figure.name, figure.unit, std::move(values)));
  }
  return totals;
}

Json causes_of_steps(ComparedResults results) {
  Json causes = Json::array();
  for (const std::string& limit : limit_names()) {
    const std::string pointer = fmt::format("/critical_path/{}_cycles", limit);
    causes.push_back(total_json(limit.c_str(), "cycles", values_of(results, [&](const Json& json) {
                                  return number_at(json, pointer.c_str());
                                })));
  }
  return causes;
}

/// Shares of the stage that computes longest; they sum up to the time of the step.
Json causes_of_clusters(ComparedResults results) {
  std::vector<const Json*> shares;
  for (const ComparedResult& one : results) {
    const Json& stages = one.json->at("stages");
    shares.push_back(&std::ranges::max_element(stages, {}, [](const Json& stage) {
                        return stage.at("share").at("compute_ns").template get<std::int64_t>();
                      })->at("share"));
  }
  Json causes = Json::array();
  for (const auto& [key, value] : shares.front()->items()) {
    Json values = Json::array();
    for (const Json* share : shares)
      values.push_back(share->value(key, Json()));
    causes.push_back(total_json(key.substr(0, key.rfind('_')).c_str(), "ns", std::move(values)));
  }
  return causes;
}

/// Rows of the results that mean the same: one row per result, null where a result has none.
using MatchedRows = std::vector<const Json*>;

/// Matches rows by their key; several rows of one key in a result are matched in their order. The
/// order is that of the first result, then what only later results have.
std::vector<MatchedRows> match_rows(ComparedResults results, const char* list,
                                    const std::function<std::string(const Json&)>& key_of) {
  std::vector<MatchedRows> matched;
  std::map<std::pair<std::string, int>, std::size_t> places;
  for (std::size_t r = 0; r < results.size(); ++r) {
    std::map<std::string, int> seen;
    for (const Json& row : results[r].json->at(list)) {
      const std::string key = key_of(row);
      const auto [place, is_new] = places.try_emplace({key, seen[key]++}, matched.size());
      if (is_new)
        matched.emplace_back(results.size());
      matched[place->second][r] = &row;
    }
  }
  return matched;
}

Json figure_of_rows(const MatchedRows& rows, const char* key) {
  return json_list(rows, [&](const Json* row) { return row == nullptr ? Json() : row->at(key); });
}

const Json& first_of(const MatchedRows& rows) {
  return **std::ranges::find_if(rows, [](const Json* row) { return row != nullptr; });
}

Json phases_json(ComparedResults results) {
  Json phases = Json::array();
  const auto key = [](const Json& row) { return row.at("phase").get<std::string>(); };
  for (const MatchedRows& rows : match_rows(results, "phases", key)) {
    phases.push_back({{"phase", first_of(rows).at("phase")},
                      {"critical_path_cycles", figure_of_rows(rows, "critical_path_cycles")},
                      {"energy_pj", figure_of_rows(rows, "energy_pj")},
                      {"peak_memory_bytes", figure_of_rows(rows, "peak_memory_bytes")}});
  }
  return phases;
}

std::int64_t cycles_of(const Json* row) {
  return row == nullptr ? 0 : row->at("critical_path_cycles").get<std::int64_t>();
}

/// Cause whose cycles differ most between the first and the last result.
std::string changed_limit(const MatchedRows& rows) {
  const auto cycles = [](const Json* row, const std::string& limit) {
    return row == nullptr ? 0 : row->at("critical_path").at(limit + "_cycles").get<std::int64_t>();
  };
  return std::ranges::max(limit_names(), {}, [&](const std::string& limit) {
    return std::abs(cycles(rows.back(), limit) - cycles(rows.front(), limit));
  });
}

Json layers_json(ComparedResults results) {
  std::vector<MatchedRows> matched = match_rows(results, "layers", [](const Json& row) {
    return row.at("phase").get<std::string>() + ' ' + row.at("name").get<std::string>();
  });
  std::ranges::stable_sort(matched, std::ranges::greater{}, [](const MatchedRows& rows) {
    return std::abs(cycles_of(rows.back()) - cycles_of(rows.front()));
  });
  Json layers = Json::array();
  for (const MatchedRows& rows : matched) {
    const Json& first = first_of(rows);
    layers.push_back({{"name", first.at("name")},
                      {"phase", first.at("phase")},
                      {"cause", changed_limit(rows)},
                      {"critical_path_cycles", figure_of_rows(rows, "critical_path_cycles")},
                      {"energy_pj", figure_of_rows(rows, "energy_pj")},
                      {"offchip_bytes", figure_of_rows(rows, "offchip_bytes")}});
  }
  return layers;
}

/// Runs of each core, joined where the gaps between runs of one phase are too small to see.
Json lanes_json(const Json& result) {
  constexpr std::int64_t kVisible = 1000; // parts of the step
  const Json& layers = result.at("layers");
  const std::int64_t gap = result.at("latency_cycles").get<std::int64_t>() / kVisible;
  std::map<std::int64_t, Json> lanes; // by core
  for (const Json& run : result.at("timeline").at("runs")) {
    const auto start = run.at(2).get<std::int64_t>();
    const Json& phase = layers.at(run.at(1).get<std::size_t>()).at("phase");
    Json& bars = lanes.try_emplace(run.at(0).get<std::int64_t>(), Json::array()).first->second;
    if (!bars.empty() && bars.back()[2] == phase &&
        start - bars.back()[1].get<std::int64_t>() <= gap) {
      bars.back()[1] = run.at(3);
    } else {
      bars.push_back(Json::array({start, run.at(3), phase}));
    }
  }
  Json json = Json::array();
  for (auto& [core, bars] : lanes)
    json.push_back({{"core", core}, {"bars", std::move(bars)}});
  return json;
}

/// Input files of a result: their settings, or the beginning of the hash of files without settings.
std::map<std::string, Json> inputs_of(const Json& result) {
  const Json provenance = result.value("provenance", Json::object());
  const Json settings = provenance.value("settings", Json::object());
  const Json hashes = provenance.value("inputs", Json::object());
  std::map<std::string, Json> inputs;
  for (const auto& [file, hash] : hashes.items())
    inputs[file] = {{"SHA-512", hash.get<std::string>().substr(0, 16)}};
  for (const auto& [file, values] : settings.items())
    inputs[file] = values;
  return inputs;
}

/// Gives the experiments one name: the one file of each result that all others lack. Files that
/// some results lack become one setting.
void match_files(std::vector<std::map<std::string, Json>>& inputs) {
  std::map<std::string, std::size_t> users;
  for (const auto& files : inputs) {
    for (const auto& [file, settings] : files)
      ++users[file];
  }
  std::vector<std::string> own(inputs.size());
  bool paired = true;
  for (std::size_t r = 0; r < inputs.size(); ++r) {
    int count = 0;
    for (const auto& [file, settings] : inputs[r]) {
      if (users[file] == 1 && ++count == 1)
        own[r] = file;
    }
    paired = paired && count == 1 && !inputs[r][own[r]].contains("SHA-512");
  }
  for (std::size_t r = 0; r < inputs.size(); ++r) {
    if (paired) {
      auto node = inputs[r].extract(own[r]);
      node.key() = "experiment";
      inputs[r].insert(std::move(node));
    }
    for (auto& [file, settings] : inputs[r]) {
      if (users.contains(file) && users[file] < inputs.size())
        settings = {{"file", "present"}};
    }
  }
}

/// Settings of the inputs and options that are not equal in all results.
Json settings_json(ComparedResults results) {
  std::vector<std::map<std::string, Json>> inputs;
  for (const ComparedResult& one : results)
    inputs.push_back(inputs_of(*one.json));
  match_files(inputs);
  using Place = std::pair<std::string, std::string>; // file, key
  std::map<Place, std::vector<Json>> found;
  for (std::size_t r = 0; r < results.size(); ++r) {
    inputs[r]["options"] =
        results[r].json->value("/provenance/options"_json_pointer, Json::object());
    for (const auto& [file, settings] : inputs[r]) {
      for (const auto& [key, value] : settings.items()) {
        std::vector<Json>& values = found[{file, key}];
        values.resize(results.size());
        values[r] = value;
      }
    }
  }
  Json settings = Json::array();
  for (const auto& [place, values] : found) {
    if (std::ranges::adjacent_find(values, std::not_equal_to{}) != values.end())
      settings.push_back({{"file", place.first}, {"key", place.second}, {"values", values}});
  }
  return settings;
}

/// Whether a result is of a cluster step; throws if it is neither that nor of a step.
bool is_cluster(const ComparedResult& one) {
  const std::string kind = one.json->is_object() ? one.json->value("kind", "") : "";
  if (kind != "training" && kind != "inference" && kind != "cluster")
    throw InputError({one.label}, "is not a result of one step",
                     kind == "explore"
                         ? "monet explore --compare compares explorations"
                         : "monet compare takes results of monet run, schedule and cluster");
  if (kind != "cluster" && !one.json->at("layers").empty() &&
      !one.json->at("layers").front().contains("critical_path"))
    throw InputError({one.label}, "is of an older version: layers have no 'critical_path'",
                     "model the step again");
  return kind == "cluster";
}

Json runs_json(ComparedResults results) {
  return json_list(results, [](const ComparedResult& one) {
    return Json{
        {"label", one.label}, {"name", one.json->at("name")}, {"kind", one.json->at("kind")}};
  });
}

} // namespace

Json result_comparison_json(const std::vector<ComparedResult>& results) {
  const bool cluster = is_cluster(results.front());
  for (const ComparedResult& one : results) {
    if (is_cluster(one) != cluster)
      throw InputError({one.label},
                       fmt::format("is not of the same kind as {}", results.front().label));
  }
  std::vector<std::string> labels;
  for (const ComparedResult& one : results)
    labels.push_back(one.label);
  Json json{{"schema_version", 1},
            {"kind", "comparison"},
            {"name", fmt::format("{}", fmt::join(labels, " and "))},
            {"runs", runs_json(results)},
            {"totals", totals_json(results, cluster ? std::span<const Figure>(kClusterFigures)
                                                    : kStepFigures)},
            {"causes", cluster ? causes_of_clusters(results) : causes_of_steps(results)},
            {"settings", settings_json(results)}};
  if (cluster)
    return written(ResultSchema::comparison, std::move(json));
  json["totals"].push_back(total_json("offchip", "bytes", values_of(results, [](const Json& one) {
                                        return offchip_bytes(one.at("layers"));
                                      })));
  json["phases"] = phases_json(results);
  json["layers"] = layers_json(results);
  json["timelines"] = values_of(results, [](const Json& one) { return lanes_json(one); });
  return written(ResultSchema::comparison, std::move(json));
}

} // namespace monet
