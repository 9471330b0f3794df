// Compares runs of two explorations (`monet explore --compare`) from their explore.json: fronts,
// hypervolumes and best designs.
#include "base/shared/pareto.hpp"
#include "base/shared/text.hpp"
#include "explore/shared/run_figures.hpp"
#include "report/explore_text.hpp"
#include "report/shared/explore_result.hpp"
#include "report/shared/json_list.hpp"
#include "report/shared/text.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace monet {

namespace {

using Json = nlohmann::ordered_json;

/// Design of a front or of the table, with its values of the objectives.
struct Point {
  const Json* design = nullptr;
  Objectives values;
};

double figure(const Json& design, const std::string& objective, bool in_seconds) {
  if (objective == "latency")
    return design.at(in_seconds ? "latency_seconds" : "latency_cycles").get<double>();
  return design.at(explore_text::key_of(objective)).get<double>();
}

/// Whether latencies of the front are in seconds: every feasible design has a frequency.
bool has_seconds(const Json& front) {
  return front.at("designs").empty() || front.at("box").contains("latency_seconds");
}

std::vector<Point> points_of(const Json& designs, const Json& objectives, bool in_seconds) {
  std::vector<Point> points;
  for (const Json& design : designs) {
    Point point{&design, {}};
    for (const Json& objective : objectives)
      point.values.push_back(figure(design, objective.get<std::string>(), in_seconds));
    points.push_back(std::move(point));
  }
  return points;
}

/// Number of points that some point of `others` dominates.
std::size_t dominated(const std::vector<Point>& points, const std::vector<Point>& others) {
  return static_cast<std::size_t>(
      std::count_if(points.begin(), points.end(), [&](const Point& point) {
        return std::any_of(others.begin(), others.end(), [&](const Point& other) {
          return dominates(other.values, point.values);
        });
      }));
}

/// Key of a design: the names and values of its parameters, independent of their order.
std::string key_of(const Json& parameters) {
  std::map<std::string, std::string> sorted;
  for (const auto& [name, value] : parameters.items())
    sorted[name] = json_text(value);
  std::string key;
  for (const auto& [name, value] : sorted)
    key += json_text(name) + value + ";";
  return key;
}

Json side_json(const std::vector<Point>& points, const std::vector<Point>& others,
               const Objectives& best, const Objectives& worst) {
  std::vector<Objectives> values;
  for (const Point& point : points)
    values.push_back(point.values);
  return {{"hypervolume", explore_text::part_of_box(std::move(values), best, worst)},
          {"dominated", dominated(points, others)},
          {"designs", json_list(points, [](const Point& point) { return *point.design; })}};
}

/// Extends the box from `best` to `worst` to contain all designs of the front's exploration.
/// Hypervolumes of both fronts are then fractions of one box.
void widen(const Json& front, bool in_seconds, Objectives& best, Objectives& worst) {
  const Json& objectives = front.at("objectives");
  for (std::size_t i = 0; i < objectives.size(); ++i) {
    const auto objective = objectives[i].get<std::string>();
    const auto range = front.at("box").find(
        in_seconds && objective == "latency" ? "latency_seconds" : explore_text::key_of(objective));
    if (range == front.at("box").end())
      continue; // no feasible design
    best[i] = std::min(best[i], range->at(0).get<double>());
    worst[i] = std::max(worst[i], range->at(1).get<double>());
  }
}

Json front_json(const Json& a, const Json& b) {
  const Json& objectives = a.at("objectives");
  const bool in_seconds = has_seconds(a) && has_seconds(b);
  const std::vector<Point> of_a = points_of(a.at("designs"), objectives, in_seconds);
  const std::vector<Point> of_b = points_of(b.at("designs"), objectives, in_seconds);
  Objectives best(objectives.size(), INFINITY);
  Objectives worst(objectives.size(), -INFINITY);
  for (const Json* front : {&a, &b})
    widen(*front, in_seconds, best, worst);
  std::set<std::string> in_b;
  for (const Point& point : of_b)
    in_b.insert(key_of(point.design->at("parameters")));
  const auto shared = std::count_if(of_a.begin(), of_a.end(), [&](const Point& point) {
    return in_b.contains(key_of(point.design->at("parameters")));
  });
  Json reference = json_list(
      worst, [](double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); });
  return {{"objectives", objectives},
          {"latency_in", in_seconds ? "seconds" : "cycles"},
          {"reference", std::move(reference)},
          {"shared", shared},
          {"a", side_json(of_a, of_b, best, worst)},
          {"b", side_json(of_b, of_a, best, worst)}};
}

/// Fronts of a run, by their objectives.
std::map<std::vector<std::string>, const Json*> fronts_of(const ComparedRun& side) {
  const Json& runs = side.exploration->at("runs");
  if (std::find(runs.begin(), runs.end(), side.run) == runs.end())
    throw InputError({side.label}, fmt::format("has no run '{}'", side.run));
  std::map<std::vector<std::string>, const Json*> fronts;
  for (const auto& [name, front] : side.exploration->at("fronts").items()) {
    if (front.at("run") == side.run)
      fronts[front.at("objectives").get<std::vector<std::string>>()] = &front;
  }
  return fronts;
}

/// Figures in a table row for a run, in the form of a design; null if the row has none for that
/// run.
Json figures_of_row(const Json& row, const Json& columns, std::size_t parameters,
                    const std::string& run) {
  Json design = Json::object();
  for (const char* key : kRunFigures) {
    const auto at = std::find(columns.begin(), columns.end(), run + " " + key);
    if (at == columns.end() || row.at(static_cast<std::size_t>(at - columns.begin())).is_null())
      return nullptr;
    design[key] = row.at(static_cast<std::size_t>(at - columns.begin()));
  }
  design["area_mm2"] = row.at(parameters + 2);
  design["peak_power_w"] = row.at(parameters + 3);
  const std::size_t figures = parameters + 5; // `error` may also be the name of a parameter
  const auto error =
      std::find(columns.begin() + static_cast<std::ptrdiff_t>(figures), columns.end(), "error");
  if (error != columns.end())
    design["error"] = row.at(static_cast<std::size_t>(error - columns.begin()));
  const double frequency = row.at(parameters + 4).get<double>();
  if (frequency > 0)
    design["latency_seconds"] = design["latency_cycles"].get<double>() / frequency;
  return design;
}

/// Figures of the design with the same parameters in the other table; null if it is missing or
/// infeasible there.
Json same_design(const Json& wanted, const ComparedRun& side) {
  const std::string key = key_of(wanted);
  const Json& parameters = side.exploration->at("space").at("parameters");
  for (const Json& row : side.exploration->at("rows")) {
    Json own = Json::object();
    bool same = wanted.size() == parameters.size();
    for (std::size_t i = 0; same && i < parameters.size(); ++i) {
      const auto at = wanted.find(parameters[i].at("name").get_ref<const std::string&>());
      same = at != wanted.end() && *at == row.at(i + 1);
    }
    if (same)
      return figures_of_row(row, side.exploration->at("columns"), parameters.size(), side.run);
  }
  return nullptr;
}

Json best_of_both_json(const ComparedRun& a, const ComparedRun& b) {
  Json rows = Json::array();
  const Json& best_of_a = a.exploration->at("best").at(a.run);
  const Json& best_of_b = b.exploration->at("best").at(b.run);
  for (const auto& [objective, of_a] : best_of_a.items()) {
    const auto of_b = best_of_b.find(objective);
    if (of_b == best_of_b.end())
      continue;
    const bool in_seconds = of_a.contains("latency_seconds") && of_b->contains("latency_seconds");
    const auto at = [&](const Json& design) { return figure(design, objective, in_seconds); };
    const auto ratio = [](double value, double to) { return to > 0 ? Json(value / to) : Json(); };
    Json row{{"objective", objective},
             {"a", of_a},
             {"b", *of_b},
             {"b_over_a", ratio(at(*of_b), at(of_a))}};
    const Json a_in_b = same_design(of_a.at("parameters"), b);
    const Json b_in_a = same_design(of_b->at("parameters"), a);
    row["best_of_a_in_b"] = a_in_b.is_null() ? Json() : ratio(at(a_in_b), at(*of_b));
    row["best_of_b_in_a"] = b_in_a.is_null() ? Json() : ratio(at(b_in_a), at(of_a));
    rows.push_back(std::move(row));
  }
  return rows;
}

Json described(const ComparedRun& side) {
  return {{"label", valid_utf8(side.label)},
          {"name", side.exploration->at("name")},
          {"run", side.run},
          {"content_hash", side.exploration->at("space").at("content_hash")}};
}

std::string share_text(const Json& value) {
  return value.is_null() ? "unknown" : fmt::format("{:.4f}", value.get<double>());
}

std::string times_text(const Json& value) {
  return value.is_null() ? "-" : fmt::format("{:.3f}x", value.get<double>());
}

Json pair_json(const ComparedRun& a, const ComparedRun& b) {
  const auto fronts_of_a = fronts_of(a);
  const auto fronts_of_b = fronts_of(b);
  Json fronts = Json::object();
  for (const auto& [objectives, front] : fronts_of_a) {
    const auto other = fronts_of_b.find(objectives);
    if (other != fronts_of_b.end())
      fronts[fmt::format("{}", fmt::join(objectives, ", "))] = front_json(*front, *other->second);
  }
  if (fronts.empty()) {
    throw InputError({b.label},
                     fmt::format("has no front in the objectives of one of '{}'", a.label));
  }
  return {{"a", described(a)},
          {"b", described(b)},
          {"fronts", std::move(fronts)},
          {"best", best_of_both_json(a, b)}};
}

std::string fronts_table(const Json& fronts) {
  std::vector<std::vector<std::string>> rows{{"Fronts", "designs of A", "of B", "of both",
                                              "hypervolume of A", "of B", "A's that B dominates",
                                              "B's that A dominates"}};
  for (const auto& [name, front] : fronts.items()) {
    const Json& a = front.at("a");
    const Json& b = front.at("b");
    rows.push_back({name, std::to_string(a.at("designs").size()),
                    std::to_string(b.at("designs").size()), json_text(front.at("shared")),
                    share_text(a.at("hypervolume")), share_text(b.at("hypervolume")),
                    json_text(a.at("dominated")), json_text(b.at("dominated"))});
  }
  return aligned_table(rows);
}

std::string best_table(const Json& best) {
  std::vector<std::vector<std::string>> rows{
      {"Least", "A", "B", "B over A", "A's design in B", "B's design in A"}};
  std::string designs;
  for (const Json& row : best) {
    const auto objective = row.at("objective").get<std::string>();
    rows.push_back({objective, explore_text::value(row.at("a"), objective),
                    explore_text::value(row.at("b"), objective), times_text(row.at("b_over_a")),
                    times_text(row.at("best_of_a_in_b")), times_text(row.at("best_of_b_in_a"))});
    designs +=
        fmt::format("{}: A {}\n{:>{}}  B {}\n", objective, explore_text::parameters(row.at("a")),
                    "", objective.size(), explore_text::parameters(row.at("b")));
  }
  return aligned_table(rows) +
         "A's design in B: the best design of A as B has it, over B's best.\n\n" + designs;
}

} // namespace

Json comparison_json(std::span<const std::pair<ComparedRun, ComparedRun>> pairs) {
  Json found = Json::array();
  std::string name;
  for (const auto& [a, b] : pairs) {
    found.push_back(pair_json(a, b));
    name += (name.empty() ? "" : ", ") + a.label + " against " + b.label;
  }
  return {{"schema_version", 1},
          {"kind", "explore-comparison"},
          {"name", valid_utf8(name)},
          {"pairs", std::move(found)}};
}

std::string comparison_table(const Json& comparison) {
  std::string text;
  for (const Json& pair : comparison.at("pairs")) {
    text += fmt::format("{}A: {}\nB: {}\n\n", text.empty() ? "" : "\n",
                        printable(pair.at("a").at("label").get<std::string>()),
                        printable(pair.at("b").at("label").get<std::string>())) +
            fronts_table(pair.at("fronts"));
    if (!pair.at("best").empty())
      text += "\n" + best_table(pair.at("best"));
  }
  return text;
}

} // namespace monet
