// JSON and tables of `monet optimise checkpointing` (docs/optimise.schema.json).
#include "report/shared/optimise_result.hpp"
#include "report/shared/search_result.hpp"
#include "report/shared/text.hpp"

#include "monet/base/units.hpp"
#include "monet/training_graph/liveness.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>

namespace monet {

namespace {

using Json = nlohmann::ordered_json;

constexpr double kMiB = 1024.0 * 1024.0;

double picojoules(double units) {
  return units / Energy::kUnitsPerPicojoule;
}

/// Cost of a plan in the objective's unit: cycles or pJ.
double in_unit(const CheckpointOutcome& outcome, double cost) {
  return outcome.energy() ? picojoules(cost) : cost;
}

Json point_json(const CheckpointOutcome& outcome, const CheckpointPoint& point) {
  const std::int64_t cycles = outcome.energy() ? point.second : point.cost;
  const std::int64_t energy = outcome.energy() ? point.cost : point.second;
  return {{"latency_cycles", cycles},
          {"energy_pj", picojoules(static_cast<double>(energy))},
          {"peak_memory_bytes", point.peak_bytes},
          {"stored_bytes", point.stored_bytes}};
}

double overhead(const CheckpointOutcome& outcome, double cost) {
  const auto base = static_cast<double>(outcome.base.cost);
  return base > 0 ? cost / base - 1 : 0;
}

Certificate certificate_of(const CheckpointOutcome& outcome, const CheckpointRow& row) {
  Certificate found;
  if (row.point)
    found.best = in_unit(outcome, static_cast<double>(row.point->cost));
  if (!row.result.infeasible)
    found.bound = in_unit(outcome, row.result.bound);
  found.interrupted = row.result.interrupted;
  return found;
}

Json budgets_json(const CheckpointOutcome& outcome) {
  Json rows = Json::array();
  for (const CheckpointRow& row : outcome.rows) {
    const Certificate found = certificate_of(outcome, row);
    Json json = {{"budget_bytes", row.budget},          {"best", number_json(found.best)},
                 {"bound", number_json(found.bound)},   {"gap", number_json(found.gap())},
                 {"infeasible", row.result.infeasible}, {"interrupted", row.result.interrupted}};
    if (row.point) {
      json["overhead"] = overhead(outcome, static_cast<double>(row.point->cost));
      json["peak_bytes"] = row.point->peak_bytes;
      json["stored_bytes"] = row.point->stored_bytes;
      json["method"] = row.result.method;
    }
    rows.push_back(std::move(json));
  }
  return rows;
}

Json checkpoint_front_json(const CheckpointOutcome& outcome) {
  Json rows = Json::array();
  for (std::size_t i = 0; i < outcome.rows.size(); ++i) {
    const CheckpointRow& row = outcome.rows[i];
    const bool repeated = i + 1 < outcome.rows.size() && row.point && outcome.rows[i + 1].point &&
                          outcome.rows[i + 1].point->plan == row.point->plan && outcome.chosen != i;
    if (!row.point || repeated)
      continue;
    Json json = point_json(outcome, *row.point);
    json["budget_bytes"] = row.budget;
    if (outcome.chosen == i)
      json["chosen"] = true;
    rows.push_back(std::move(json));
  }
  return rows;
}

Json made_again_json(const TrainingGraph& step, const CheckpointSpace& space,
                     const RecomputePlan& plan) {
  std::map<std::uint32_t, std::int64_t> times;
  for (const std::uint32_t run : plan.runs)
    ++times[run];
  Json rows = Json::array();
  for (const auto& [op, runs] : times) {
    if (runs < 2)
      continue;
    for (const std::uint32_t b : space.problem.ops[op].writes) {
      rows.push_back({{"tensor", valid_utf8(space.problem.buffers[b].name)},
                      {"operator", valid_utf8(step.graph.op(OpId(op - 1)).name)},
                      {"bytes", space.problem.buffers[b].bytes},
                      {"times", runs - 1}});
    }
  }
  return rows;
}

Json genetic_json(const CheckpointOutcome& outcome) {
  Json rows = Json::array();
  for (std::size_t i = 0; i < outcome.genetic.size(); ++i) {
    Json json = point_json(outcome, outcome.genetic[i]);
    const DominatingPoint& exact = outcome.dominating[i];
    json["exact"] = point_json(outcome, exact.point);
    json["exact"]["bound"] = in_unit(outcome, exact.bound);
    rows.push_back(std::move(json));
  }
  return {{"points", std::move(rows)},
          {"genetic_seconds", outcome.genetic_seconds},
          {"exact_seconds", outcome.dominating_seconds}};
}

} // namespace

Certificate CheckpointOutcome::certificate() const {
  Certificate found = chosen ? certificate_of(*this, rows[*chosen]) : Certificate{};
  for (const CheckpointRow& row : rows)
    found.interrupted = found.interrupted || row.result.interrupted;
  found.start = static_cast<double>(base.cost);
  return found;
}

Json live_memory_json(const std::string& name, const TrainingGraph& step) {
  const Liveness liveness = find_liveness(step);
  Json json = {{"name", name}, {"unit", "operator"}, {"at", Json::array()}};
  for (std::size_t i = 0; i < liveness.live.size(); ++i)
    json["at"].push_back(i);
  for (std::size_t owner = 0; owner < reported_owners(step); ++owner) {
    Json& bytes = json[std::string(name_of(static_cast<MemoryOwner>(owner))) + "_bytes"];
    bytes = Json::array();
    for (const LiveBytes& live : liveness.live)
      bytes.push_back(live[owner]);
  }
  return json;
}

Json checkpoint_json(const SearchHead& head, const CheckpointOutcome& outcome,
                     const CheckpointSpace& space, const TrainingGraph& step) {
  Json json = search_json(head);
  json["memory_measure"] = outcome.memory == CheckpointMemory::stored ? "stored" : "peak";
  json["method"] = outcome.method;
  json["unconstrained_bytes"] = outcome.base.memory(outcome.memory);
  json["least_bytes"] = outcome.min_possible;
  if (outcome.chosen) {
    const CheckpointRow& row = outcome.rows[*outcome.chosen];
    json["budget_bytes"] = row.budget;
    json["peak_bytes"] = row.point->peak_bytes;
    json["stored_bytes"] = row.point->stored_bytes;
    json["overhead"] = overhead(outcome, static_cast<double>(row.point->cost));
    json["recomputed"] = made_again_json(step, space, row.point->plan);
  }
  json["budgets"] = budgets_json(outcome);
  json["front"] = checkpoint_front_json(outcome);
  if (outcome.method == "genetic")
    json["genetic"] = genetic_json(outcome);
  return json;
}

std::string checkpoint_table(const CheckpointOutcome& outcome, const Json& compared) {
  const bool peak = outcome.memory == CheckpointMemory::peak;
  std::string text = fmt::format(
      "{} bytes, everything kept: {:.1f} MiB ({} at least)\n\n"
      "{:>12} {:>12} {:>12} {:>10} {:>10} {:>8}  {}\n",
      peak ? "peak" : "stored", static_cast<double>(outcome.base.memory(outcome.memory)) / kMiB,
      fmt::format("{:.1f} MiB", static_cast<double>(outcome.min_possible) / kMiB), "budget MiB",
      "peak MiB", "stored MiB", "overhead", "at least", "gap", "method");
  for (const CheckpointRow& row : outcome.rows) {
    const double budget = static_cast<double>(row.budget) / kMiB;
    if (!row.point) {
      text += fmt::format("{:>12.1f} {}\n", budget,
                          row.result.infeasible ? "impossible, proven" : "no plan found");
      continue;
    }
    text += fmt::format("{:>12.1f} {:>12.1f} {:>12.1f} {:>8.2f} % {:>8.2f} % {:>8}  {}\n", budget,
                        static_cast<double>(row.point->peak_bytes) / kMiB,
                        static_cast<double>(row.point->stored_bytes) / kMiB,
                        100 * overhead(outcome, static_cast<double>(row.point->cost)),
                        100 * overhead(outcome, row.result.bound),
                        gap_text(certificate_of(outcome, row)), row.result.method);
  }
  if (!outcome.genetic.empty()) {
    const auto cheaper = std::count_if(
        outcome.dominating.begin(), outcome.dominating.end(), [&](const DominatingPoint& exact) {
          const auto i = static_cast<std::size_t>(&exact - outcome.dominating.data());
          return exact.point.cost < outcome.genetic[i].cost;
        });
    text += fmt::format("\nNSGA-II: {} points in {:.1f} s; for each there is one no worse in "
                        "latency, energy and memory, cheaper for {} ({:.1f} s)\n",
                        outcome.genetic.size(), outcome.genetic_seconds, cheaper,
                        outcome.dominating_seconds);
  }
  if (!compared.empty())
    text += "\nscheduled:\n" + compared_table(compared);
  return text;
}

} // namespace monet
