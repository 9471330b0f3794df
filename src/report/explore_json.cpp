// Writes explore.json (docs/explore.schema.json), the result of an exploration. Its table and
// comparisons are made from it.
#include "base/shared/pareto.hpp"
#include "base/shared/rng.hpp"
#include "explore/shared/run_figures.hpp"
#include "explore/shared/sensitivity.hpp"
#include "report/explore_text.hpp"
#include "report/shared/explore_result.hpp"
#include "report/shared/json_list.hpp"
#include "report/shared/text.hpp"
#include "report/shared/written.hpp"

#include "monet/base/errors.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace monet {

namespace {

using Json = nlohmann::ordered_json;

/// Maximum number of kinds of reasons; further ones are counted as "other".
constexpr std::size_t kMaxReasons = 100;

Json value_json(const ParameterValue& value) {
  if (!value.is_number)
    return valid_utf8(value.text);
  constexpr double kExact = 9007199254740992.0; // 2^53
  if (std::trunc(value.number) == value.number && std::abs(value.number) < kExact)
    return static_cast<std::int64_t>(value.number);
  return value.number;
}

Json space_json(const Space& space) {
  Json budgets = Json::object();
  const auto limit = [&](const char* key, double value) {
    if (value > 0)
      budgets[key] = value;
  };
  limit("area_mm2", space.budgets.area_mm2);
  limit("peak_power_w", space.budgets.peak_power_w);
  limit("offchip_bits_per_cycle", space.budgets.offchip_bits_per_cycle);
  limit("peak_memory_bytes", space.budgets.peak_memory_bytes);
  limit("error", space.budgets.error);
  const auto parameter_json = [](const Parameter& parameter) -> Json {
    return {{"name", valid_utf8(parameter.name)},
            {"values", json_list(parameter.values, value_json)}};
  };
  return {{"parameters", json_list(space.parameters, parameter_json)},
          {"size", space.size()},
          {"budgets", std::move(budgets)},
          {"content_hash", space.content_hash}};
}

/// Parameter values of a design, in the order of the space's parameters.
std::vector<const ParameterValue*> values_of(const Space& space, DesignId id) {
  const std::vector<std::uint32_t> choices = space.choices(id);
  std::vector<const ParameterValue*> values;
  for (std::size_t i = 0; i < choices.size(); ++i)
    values.push_back(&space.parameters[i].values[choices[i]]);
  return values;
}

Json design_json(const Space& space, const DesignResult& design, std::size_t run) {
  Json parameters = Json::object();
  const auto values = values_of(space, design.id);
  for (std::size_t i = 0; i < values.size(); ++i)
    parameters[valid_utf8(space.parameters[i].name)] = value_json(*values[i]);
  const StepFigures& figures = design.runs.at(run);
  Json json{{"id", design.id}, {"parameters", std::move(parameters)}};
  for_each_run_figure(figures, [&](const char* key, auto figure) {
    json[key] = figure;
    if (design.frequency_hz > 0 && std::string_view(key) == "latency_cycles")
      json["latency_seconds"] = static_cast<double>(figures.latency_cycles) / design.frequency_hz;
  });
  json["area_mm2"] = design.area_mm2;
  json["peak_power_w"] = design.peak_power_w;
  for (const Metric& metric : design.metrics)
    json[metric.name] = metric.value;
  return json;
}

using Results = std::span<const DesignResult>;

const DesignResult& result_of(Results results, DesignId id) {
  const auto at = std::lower_bound(results.begin(), results.end(), id,
                                   [](const DesignResult& r, DesignId i) { return r.id < i; });
  internal_check(at != results.end() && at->id == id, "a front has a design without a result");
  return *at;
}

/// Minimum and maximum of each figure over all feasible designs. Latency is in cycles, and also in
/// seconds if all of these designs have a frequency.
Json box_json(Results results, const FrontRequest& request) {
  Json box = Json::object();
  const auto take = [&](const char* key, double value) {
    const auto at = box.find(key);
    if (at == box.end())
      box[key] = {value, value};
    else
      *at = {std::min(at->at(0).get<double>(), value), std::max(at->at(1).get<double>(), value)};
  };
  bool in_seconds = true;
  for (const DesignResult& result : results) {
    if (!result.feasible)
      continue;
    const std::vector<double> values = objective_values(result, request);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const bool latency = request.objectives[i] == Objective::latency;
      take(latency ? "latency_cycles"
                   : explore_text::key_of(std::string(name_of(request.objectives[i]))),
           latency ? static_cast<double>(result.runs.at(request.run).latency_cycles) : values[i]);
      in_seconds = in_seconds && result.frequency_hz > 0;
      if (latency && in_seconds)
        take("latency_seconds", values[i]);
    }
  }
  if (!in_seconds)
    box.erase("latency_seconds");
  return box;
}

/// Fraction of a box that the front dominates. The box spans the best to the worst value of each
/// objective over all feasible designs; objectives with a single value do not count.
Json volume_json(Results results, std::span<const DesignId> front, const FrontRequest& request) {
  if (front.empty())
    return nullptr;
  std::vector<double> best;
  std::vector<double> worst;
  for (const DesignResult& result : results) {
    if (!result.feasible)
      continue;
    const std::vector<double> values = objective_values(result, request);
    if (best.empty())
      best = worst = values;
    for (std::size_t i = 0; i < values.size(); ++i) {
      best[i] = std::min(best[i], values[i]);
      worst[i] = std::max(worst[i], values[i]);
    }
  }
  std::vector<Objectives> points;
  for (const DesignId id : front)
    points.push_back(objective_values(result_of(results, id), request));
  return explore_text::part_of_box(std::move(points), best, worst);
}

std::string front_name(const Space& space, const FrontRequest& request) {
  std::string name = space.workload.runs.at(request.run) + ": ";
  for (std::size_t i = 0; i < request.objectives.size(); ++i)
    name += (i > 0 ? ", " : "") + std::string(name_of(request.objectives[i]));
  return name;
}

Json fronts_json(const Space& space, Results results, std::set<DesignId>& kept) {
  Json fronts = Json::object();
  for (const FrontRequest& request : space.fronts) {
    const std::vector<DesignId> front = front_of(results, request);
    kept.insert(front.begin(), front.end());
    fronts[front_name(space, request)] = {
        {"run", space.workload.runs.at(request.run)},
        {"objectives",
         json_list(request.objectives, [](Objective objective) { return name_of(objective); })},
        {"box", box_json(results, request)},
        {"hypervolume", volume_json(results, front, request)},
        {"designs", json_list(front, [&](DesignId id) {
           return design_json(space, result_of(results, id), request.run);
         })}};
  }
  return fronts;
}

/// Best feasible design of a run for one objective; null if none is feasible. Ties are decided by
/// the other objectives, then by id.
const DesignResult* best_of(Results results, std::size_t run, Objective objective) {
  const FrontRequest order{
      run, {objective, Objective::latency, Objective::energy, Objective::area, Objective::memory}};
  const DesignResult* best = nullptr;
  std::vector<double> least;
  for (const DesignResult& result : results) {
    if (!result.feasible)
      continue;
    std::vector<double> values = objective_values(result, order);
    if (best == nullptr || values < least) {
      best = &result;
      least = std::move(values);
    }
  }
  return best;
}

/// Whether the objective has values. Energy, area and power are 0 in all designs if the files lack
/// them; errors exist only in spaces with `accuracy:`.
bool is_known(const Space& space, Results results, Objective objective) {
  if (objective == Objective::error)
    return std::ranges::find(space.workload.metrics, name_of(objective)) !=
           space.workload.metrics.end();
  if (objective == Objective::latency || objective == Objective::memory)
    return true;
  return std::any_of(results.begin(), results.end(), [&](const DesignResult& result) {
    if (objective == Objective::energy)
      return std::ranges::any_of(result.runs, [](const auto& run) { return run.energy_pj > 0; });
    return (objective == Objective::area ? result.area_mm2 : result.peak_power_w) > 0;
  });
}

/// Whether a front of the run has the objective. Skipped designs are on no front, but may be the
/// best in an objective that no front has.
bool is_in_a_front(const Space& space, std::size_t run, Objective objective) {
  return std::any_of(space.fronts.begin(), space.fronts.end(), [&](const FrontRequest& front) {
    return front.run == run && std::find(front.objectives.begin(), front.objectives.end(),
                                         objective) != front.objectives.end();
  });
}

Json best_json(const Space& space, const ExplorationResult& exploration, std::set<DesignId>& kept) {
  const Results results = exploration.results;
  Json best = Json::object();
  for (std::size_t run = 0; run < space.workload.runs.size(); ++run) {
    Json& of_run = best[space.workload.runs[run]];
    of_run = Json::object();
    for (const Objective objective : kDesignObjectives) {
      const bool is_certain =
          exploration.skipped_by_bound == 0 || is_in_a_front(space, run, objective);
      const DesignResult* found = is_certain && is_known(space, results, objective)
                                      ? best_of(results, run, objective)
                                      : nullptr;
      if (found == nullptr)
        continue;
      of_run[std::string(name_of(objective))] = design_json(space, *found, run);
      kept.insert(found->id);
    }
  }
  return best;
}

bool is_number(std::string_view word) {
  return !word.empty() && word.front() >= '0' && word.front() <= '9' &&
         word.find_first_not_of("0123456789,.") == std::string_view::npos;
}

/// Kind of a reason: its text with every word that is a number replaced by #. Names and units that
/// contain digits are kept.
std::string kind_of(std::string_view reason) {
  constexpr std::string_view kBetween = " \t()[]'\":;=%";
  std::string kind;
  while (!reason.empty()) {
    const std::size_t begin = std::min(reason.find_first_not_of(kBetween), reason.size());
    kind += reason.substr(0, begin);
    reason.remove_prefix(begin);
    std::string_view word = reason.substr(0, reason.find_first_of(kBetween));
    reason.remove_prefix(word.size());
    const std::size_t end = word.find_last_not_of(".,") + 1;
    kind += is_number(word.substr(0, end)) ? "#" : word.substr(0, end);
    kind += word.substr(end);
  }
  return valid_utf8(kind);
}

struct Reason {
  std::string kind;
  std::uint64_t designs = 0;
  const DesignResult* example = nullptr;
};

/// Reasons for infeasible designs by kind, the most frequent first. Kinds beyond kMaxReasons are
/// counted as "other".
std::vector<Reason> reasons_of(Results results) {
  std::map<std::string, Reason> by_kind;
  for (const DesignResult& result : results) {
    if (result.feasible)
      continue;
    const std::string kind = kind_of(result.reason);
    Reason& reason =
        by_kind[by_kind.size() < kMaxReasons || by_kind.contains(kind) ? kind : "other"];
    ++reason.designs;
    if (reason.example == nullptr)
      reason.example = &result;
  }
  std::vector<Reason> reasons;
  for (auto& [kind, reason] : by_kind) {
    reason.kind = kind;
    reasons.push_back(reason);
  }
  std::stable_sort(reasons.begin(), reasons.end(),
                   [](const Reason& a, const Reason& b) { return a.designs > b.designs; });
  return reasons;
}

Json reason_json(const Reason& reason) {
  const DesignResult& example = *reason.example;
  return {{"reason", reason.kind},
          {"designs", reason.designs},
          {"example", {{"id", example.id}, {"reason", valid_utf8(example.reason)}}}};
}

Json effects_json(const Space& space, const ObjectiveSensitivity& objective) {
  Json parameters = Json::array();
  for (std::size_t i = 0; i < objective.parameters.size(); ++i) {
    const ParameterEffect& effect = objective.parameters[i];
    const auto value_json = [](const ValueEffect& value) -> Json {
      return {{"designs", value.count}, {"median", value.median}, {"least", value.least}};
    };
    parameters.push_back({{"name", valid_utf8(space.parameters[i].name)},
                          {"share", effect.share},
                          {"values", json_list(effect.values, value_json)}});
  }
  return {{"designs", objective.designs},
          {"deviation", objective.deviation},
          {"together", objective.together},
          {"parameters", std::move(parameters)}};
}

Json sensitivity_json(const Space& space, Results results) {
  const Sensitivity found = sensitivity(space, results);
  Json json = Json::object();
  for (std::size_t run = 0; run < found.runs.size(); ++run) {
    Json& of_run = json[space.workload.runs.at(run)];
    of_run = Json::object();
    for (const ObjectiveSensitivity& objective : found.runs[run])
      of_run[std::string(name_of(objective.objective))] = effects_json(space, objective);
  }
  return json;
}

Json columns_json(const Space& space) {
  Json columns = Json::array({"id"});
  for (const Parameter& parameter : space.parameters)
    columns.push_back(valid_utf8(parameter.name));
  for (const char* name : {"reason", "area_mm2", "peak_power_w", "frequency_hz"})
    columns.push_back(name);
  for (const std::string& run : space.workload.runs) {
    for (const char* name : kRunFigures)
      columns.push_back(run + " " + name);
  }
  for (const std::string& metric : space.workload.metrics)
    columns.push_back(metric);
  return columns;
}

Json row_json(const Space& space, const DesignResult& design,
              const std::map<std::string, std::size_t>& reasons) {
  Json row = Json::array({design.id});
  for (const ParameterValue* value : values_of(space, design.id))
    row.push_back(value_json(*value));
  if (design.feasible) {
    row.push_back(nullptr);
  } else {
    const auto reason = reasons.find(kind_of(design.reason));
    row.push_back((reason != reasons.end() ? reason : reasons.find("other"))->second);
  }
  for (const double value : {design.area_mm2, design.peak_power_w, design.frequency_hz})
    row.push_back(value);
  for (std::size_t run = 0; run < space.workload.runs.size(); ++run) {
    if (!design.feasible) {
      row.insert(row.end(), kRunFigures.size(), nullptr);
      continue;
    }
    for_each_run_figure(design.runs.at(run),
                        [&](const char*, auto figure) { row.push_back(figure); });
  }
  for (std::size_t m = 0; m < space.workload.metrics.size(); ++m)
    row.push_back(design.feasible ? Json(design.metrics.at(m).value) : Json(nullptr));
  return row;
}

/// Results that have a row, ordered by id: all of them, or those in `kept` and a random sample of
/// the others. The sample depends only on the seed and the ids.
std::vector<const DesignResult*> rows_of(Results results, const std::set<DesignId>& kept,
                                         std::uint64_t seed) {
  std::vector<const DesignResult*> rows;
  if (results.size() <= kMaxExploreRows) {
    for (const DesignResult& result : results)
      rows.push_back(&result);
    return rows;
  }
  std::vector<std::pair<std::uint64_t, const DesignResult*>> drawn;
  for (const DesignResult& result : results) {
    if (kept.contains(result.id)) {
      rows.push_back(&result);
    } else {
      drawn.emplace_back(random_bits(seed, result.id), &result);
    }
  }
  const auto by_number = [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : a.second->id < b.second->id;
  };
  const std::size_t wanted = std::min(drawn.size(), kMaxExploreRows);
  std::nth_element(drawn.begin(), drawn.begin() + static_cast<std::ptrdiff_t>(wanted), drawn.end(),
                   by_number);
  for (std::size_t i = 0; i < wanted; ++i)
    rows.push_back(drawn[i].second);
  std::sort(rows.begin(), rows.end(),
            [](const DesignResult* a, const DesignResult* b) { return a->id < b->id; });
  return rows;
}

} // namespace

Json explore_json(const Space& space, const ExplorationResult& result, const ExplorationInfo& info,
                  const Provenance& provenance) {
  const Results results = result.results;
  const auto feasible = static_cast<std::uint64_t>(std::count_if(
      results.begin(), results.end(), [](const DesignResult& r) { return r.feasible; }));
  Json json{{"schema_version", 1},
            {"kind", "explore"},
            {"name", valid_utf8(space.name)},
            {"space", space_json(space)},
            {"runs", space.workload.runs},
            {"strategy", info.strategy},
            {"seed", info.seed},
            {"budget", info.budget},
            {"designs", space.size() - std::min(space.size(), result.excluded)},
            {"excluded", result.excluded},
            {"evaluated", feasible},
            {"infeasible", results.size() - feasible},
            {"skipped_by_bound", result.skipped_by_bound},
            {"interrupted", result.interrupted},
            {"seconds", result.seconds}};
  if (!info.ended_early.empty())
    json["ended_early"] = valid_utf8(info.ended_early);
  std::set<DesignId> kept;
  json["fronts"] = fronts_json(space, results, kept);
  json["best"] = best_json(space, result, kept);
  const std::vector<Reason> reasons = reasons_of(results);
  json["reasons"] = json_list(reasons, reason_json);
  std::map<std::string, std::size_t> reason_numbers;
  for (std::size_t i = 0; i < reasons.size(); ++i)
    reason_numbers[reasons[i].kind] = i;
  json["sensitivity"] = sensitivity_json(space, results);
  json["columns"] = columns_json(space);
  const auto shown = rows_of(results, kept, info.seed);
  json["rows_left_out"] = results.size() - shown.size();
  json["rows"] = json_list(
      shown, [&](const DesignResult* row) { return row_json(space, *row, reason_numbers); });
  json["provenance"] = provenance_json(provenance);
  return written(ResultSchema::explore, std::move(json));
}

} // namespace monet
