// JSON and table of `monet optimise checkpointing --log` (docs/optimise.schema.json).
#include "report/shared/search_result.hpp"
#include "report/shared/text.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace monet {

namespace {

using Json = nlohmann::ordered_json;

double overhead(const OperatorLog& log, std::int64_t cost) {
  const auto base = static_cast<double>(std::max<std::int64_t>(log.problem.base_cost(), 1));
  return static_cast<double>(cost) / base - 1;
}

Json heuristics_json(const OperatorLog& log, const LogRow& row) {
  Json compared = Json::array();
  for (std::size_t i = 0; i < row.heuristics.size(); ++i) {
    const HeuristicPlan& plan = row.heuristics[i];
    Json one = {{"name", to_string(kRecomputeHeuristics[i])}, {"best", nullptr}};
    if (plan.plan) {
      one["best"] = plan.outcome.cost;
      one["overhead"] = overhead(log, plan.outcome.cost);
      one["peak_bytes"] = plan.outcome.peak_bytes;
    } else {
      one["why_not"] = valid_utf8(plan.why_not);
    }
    compared.push_back(std::move(one));
  }
  return compared;
}

Json row_json(const OperatorLog& log, const LogRow& row) {
  const Certificate certificate = row.certificate();
  Json json = {{"budget_bytes", row.budget},
               {"best", number_json(certificate.best)},
               {"bound", number_json(certificate.bound)},
               {"gap", number_json(certificate.gap())},
               {"seconds", row.seconds},
               {"interrupted", row.found.interrupted},
               {"method", row.found.method}};
  if (row.found.plan) {
    json["peak_bytes"] = row.found.outcome.peak_bytes;
    json["overhead"] = overhead(log, row.found.outcome.cost);
    json["runs"] = row.found.plan->runs.size();
  }
  json["compared"] = heuristics_json(log, row);
  return json;
}

} // namespace

Json log_json(const SearchHead& head, const OperatorLog& log, std::span<const LogRow> rows,
              bool sweep) {
  const LogRow& last = rows.back();
  Json json = search_json(head);
  json["operators"] = log.problem.ops.size();
  json["base_ns"] = log.problem.base_cost();
  json["unconstrained_peak_bytes"] = log.recorded_peak_bytes;
  json["freed_early_peak_bytes"] = replay(log.problem, store_everything(log.problem)).peak_bytes;
  json["least_bytes_bound"] = peak_bound(log.problem);
  const Json row = row_json(log, last);
  for (const char* key : {"budget_bytes", "peak_bytes", "overhead", "method", "compared"})
    if (row.contains(key))
      json[key] = row.at(key);
  if (sweep) {
    json["budgets"] = Json::array();
    for (const LogRow& each : rows)
      json["budgets"].push_back(row_json(log, each));
  } else if (last.found.plan) {
    json["plan"] = last.found.plan->runs;
  }
  return json;
}

std::string log_table(const Json& json, const std::string& name, const OperatorLog& log,
                      std::span<const LogRow> rows) {
  const auto percent = [](double value) { return fmt::format("{:.2f} %", 100 * value); };
  const auto base = static_cast<double>(log.problem.base_cost());
  std::string text = fmt::format(
      "{}: {} operators, {:.1f} ms, peak {} as recorded, {} with buffers freed after their last "
      "use\n\n",
      printable(name), group_digits(static_cast<std::int64_t>(log.problem.ops.size())), base / 1e6,
      human_bytes(log.recorded_peak_bytes),
      human_bytes(json.at("freed_early_peak_bytes").get<std::int64_t>()));
  text += fmt::format("{:>8} {:>10} {:>10} {:>9} {:>9} {:>8} {:>8}", "budget", "", "peak",
                      "overhead", "at least", "gap", "s");
  for (const RecomputeHeuristic heuristic : kRecomputeHeuristics)
    text += fmt::format(" {:>9}", to_string(heuristic));
  text += "\n";
  const auto peak = static_cast<double>(std::max<std::int64_t>(log.recorded_peak_bytes, 1));
  for (const LogRow& row : rows) {
    const bool found = row.found.plan.has_value();
    text += fmt::format(
        "{:>8} {:>10} {:>10} {:>9} {:>9} {:>8} {:>8.1f}",
        fmt::format("{:.1f} %", 100.0 * static_cast<double>(row.budget) / peak),
        human_bytes(row.budget), found ? human_bytes(row.found.outcome.peak_bytes) : "-",
        found ? percent(overhead(log, row.found.outcome.cost)) : "-",
        percent(overhead(log, static_cast<std::int64_t>(std::ceil(row.found.bound)))),
        gap_text(row.certificate()), row.seconds);
    for (const HeuristicPlan& plan : row.heuristics)
      text += fmt::format(" {:>9}", plan.plan ? percent(overhead(log, plan.outcome.cost)) : "-");
    text += "\n";
  }
  return text;
}

} // namespace monet
