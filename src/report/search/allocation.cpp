// JSON and table of `monet optimise allocation` (docs/optimise.schema.json).
#include "report/shared/optimise_result.hpp"
#include "report/shared/search_result.hpp"
#include "report/shared/text.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace monet {

namespace {

using Json = nlohmann::ordered_json;

Json cost_json(const StepFigures& cost) {
  if (!cost.feasible)
    return {{"latency_cycles", nullptr}, {"energy_pj", nullptr}, {"peak_memory_bytes", nullptr}};
  return {{"latency_cycles", cost.latency_cycles},
          {"energy_pj", cost.energy_pj},
          {"peak_memory_bytes", cost.peak_memory_bytes}};
}

Json allocation_front_json(const AllocationResult& result) {
  Json front = Json::array();
  for (const AllocationPoint& point : result.front) {
    Json row = cost_json(point.figures);
    if (point.figures == result.best.figures)
      row["chosen"] = true;
    front.push_back(std::move(row));
  }
  return front;
}

/// Trace of the search, thinned evenly to at most kMaxRows rows; the last row is kept.
Json allocation_trace_json(const AllocationResult& result, bool front) {
  constexpr std::size_t kMaxRows = 200;
  Json rows = Json::array();
  const std::size_t count = result.trace.size();
  const std::size_t step = count / kMaxRows + 1;
  for (std::size_t i = (count + step - 1) % step; i < count; i += step) {
    const AllocationTrace& line = result.trace[i];
    Json row{{"evaluations", line.evaluations},
             {"best", number_json(line.best)},
             {"bound", number_json(result.certificate.bound)}};
    if (front)
      row["hypervolume"] = line.hypervolume;
    rows.push_back(std::move(row));
  }
  return rows;
}

Json cores_json(const CoreAllocation& allocation, const Graph& graph, const Chip& chip) {
  Json rows = Json::array();
  for (std::size_t op = 0; op < allocation.size(); ++op) {
    const Operator& of = graph.operators()[op];
    Json cores = Json::array();
    Json names = Json::array();
    for (const CoreId core : allocation[op].cores) {
      cores.push_back(core.value);
      names.push_back(chip.cores[core.index()].name);
    }
    Json splits = Json::array();
    for (const LoopCut& cut : allocation[op].cuts)
      splits.push_back({{"loop", of.nest.dims[cut.dim].name}, {"parts", cut.count}});
    rows.push_back({{"name", of.name},
                    {"op_type", of.op_type},
                    {"cores", std::move(cores)},
                    {"core_names", std::move(names)},
                    {"splits", std::move(splits)}});
  }
  return rows;
}

} // namespace

Json allocation_json(const SearchHead& head, const AllocationOutcome& outcome, const Graph& graph,
                     const Chip& chip) {
  const AllocationResult& result = outcome.result;
  Json json = search_json(head);
  json["exact"] = result.exact;
  json["plans"] = number_json(outcome.plans);
  json["evaluations"] = result.evaluations;
  json.update(cost_json(result.best.figures));
  json["compared"] = Json::array(
      {figures_json("automatic", outcome.automatic), figures_json("best", outcome.best)});
  if (outcome.random && outcome.random->figures.feasible) {
    Json row{{"name", fmt::format("best of {} random", outcome.random_plans)}};
    row.update(cost_json(outcome.random->figures));
    json["compared"].push_back(std::move(row));
  }
  json["front"] = allocation_front_json(result);
  json["trace"] = allocation_trace_json(result, outcome.front);
  json["allocation"] = cores_json(outcome.allocation, graph, chip);
  return json;
}

std::string allocation_table(const Json& json, const AllocationOutcome& outcome) {
  const AllocationResult& result = outcome.result;
  std::string out =
      fmt::format("{} by {}\n\n", printable(json.at("name").get_ref<const std::string&>()),
                  json.at("objective").get<std::string>());
  out += fmt::format("{:<24}{:>18}{:>18}{:>18}\n", "", "latency (cycles)", "energy (mJ)",
                     "peak (MiB)");
  for (const Json& row : json["compared"]) {
    out +=
        fmt::format("{:<24}{:>18}{:>18.4f}{:>18.2f}\n", row["name"].get<std::string>(),
                    row["latency_cycles"].get<std::int64_t>(), row["energy_pj"].get<double>() / 1e9,
                    row["peak_memory_bytes"].get<double>() / (1 << 20));
  }
  out += fmt::format("\nbound {:.6g}, gap {}{}; {} plans scheduled", result.certificate.bound,
                     gap_text(result.certificate), result.exact ? ", optimal" : "",
                     result.evaluations);
  if (outcome.front)
    out += fmt::format(", {} on the front", result.front.size());
  return out + "\n";
}

} // namespace monet
