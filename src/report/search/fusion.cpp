// JSON and table of `monet optimise fusion` (docs/optimise.schema.json).
#include "report/shared/search_result.hpp"
#include "report/shared/text.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace monet {

namespace {

using Json = nlohmann::ordered_json;

Json plan_figures_json(const StepFigures& figures) {
  return {{"latency_cycles", figures.latency_cycles},
          {"energy_pj", figures.energy_pj},
          {"offchip_bytes", bytes_of(Bits{figures.offchip_bits})},
          {"peak_memory_bytes", figures.peak_memory_bytes},
          {"tiles", figures.tiles}};
}

Json fusion_groups_json(const FusionResult& result, const Graph& graph) {
  Json groups = Json::array();
  for (std::size_t s = 0; s < result.plan.stacks.size(); ++s) {
    if (result.plan.stacks[s].size() < 2 &&
        (!result.plan.slices[s] || result.plan.slices[s]->cuts.empty()))
      continue;
    Json group;
    group["operators"] = Json::array();
    for (const OpId member : result.plan.stacks[s])
      group["operators"].push_back(valid_utf8(graph.op(member).name));
    if (result.plan.slices[s]) {
      group["slices"] = Json::array();
      for (const StackSlices::Cut& cut : result.plan.slices[s]->cuts)
        group["slices"].push_back({{"operator", valid_utf8(graph.op(cut.op).name)},
                                   {"loop", valid_utf8(graph.op(cut.op).nest.dims[cut.dim].name)},
                                   {"count", cut.count}});
      if (result.plan.slices[s]->halo)
        group["halo"] = *result.plan.slices[s]->halo == Halo::cached ? "cached" : "recomputed";
      if (result.plan.slices[s]->turns > 1)
        group["turns"] = result.plan.slices[s]->turns;
    }
    if (s < result.ends.size())
      group["reason"] = valid_utf8(result.ends[s]);
    groups.push_back(std::move(group));
  }
  return groups;
}

const StepFigures* unfused(const FusionResult& result) {
  for (const FusionAnswer& answer : result.compared) {
    if (answer.method == FusionMethod::none && answer.figures)
      return &*answer.figures;
  }
  return nullptr;
}

Json phases_json(const FusionResult& result) {
  Json phases = Json::array();
  const StepFigures* none = unfused(result);
  for (std::size_t p = 0; p < result.figures.phases.size(); ++p) {
    const auto& own = result.figures.phases[p];
    const auto& before = none != nullptr ? none->phases[p] : own;
    if (own.cycles == 0 && before.cycles == 0)
      continue;
    phases.push_back({{"phase", name_of(static_cast<Phase>(p))},
                      {"latency_cycles", own.cycles},
                      {"energy_pj", own.energy.picojoules().value},
                      {"offchip_bytes", bytes_of(Bits{own.offchip_bits})},
                      {"unfused_latency_cycles", before.cycles},
                      {"unfused_energy_pj", before.energy.picojoules().value},
                      {"unfused_offchip_bytes", bytes_of(Bits{before.offchip_bits})}});
  }
  return phases;
}

Json fusion_compared_json(const FusionResult& result) {
  Json rows = Json::array();
  const auto add = [&](const StepFigures& figures, std::string_view name) {
    Json row{{"name", name}};
    row.update(plan_figures_json(figures));
    rows.push_back(std::move(row));
  };
  add(result.figures, "best");
  for (const FusionAnswer& answer : result.compared) {
    if (answer.figures)
      add(*answer.figures, name_of(answer.method));
  }
  return rows;
}

/// Trace of the search: the first evaluation, every improvement, and the last evaluation.
Json fusion_trace_json(const FusionResult& result) {
  Json rows = Json::array();
  for (std::size_t i = 0; i < result.trace.size(); ++i) {
    if (i > 0 && i + 1 < result.trace.size() && result.trace[i] >= result.trace[i - 1])
      continue;
    rows.push_back({{"evaluations", i + 1},
                    {"best", number_json(result.trace[i])},
                    {"bound", number_json(result.certificate.bound)}});
  }
  return rows;
}

} // namespace

Json fusion_json(const SearchHead& head, const FusionResult& result, const Graph& graph) {
  Json json = search_json(head);
  json["method"] = name_of(result.method);
  json["every_plan_tried"] = result.complete;
  json["figures"] = plan_figures_json(result.figures);
  json["compared"] = fusion_compared_json(result);
  json["skipped"] = Json::array(); // known plans that could not be scheduled
  for (const FusionAnswer& answer : result.compared) {
    if (!answer.figures)
      json["skipped"].push_back(
          {{"name", name_of(answer.method)}, {"reason", valid_utf8(answer.why_not)}});
  }
  json["phases"] = phases_json(result);
  json["groups"] = fusion_groups_json(result, graph);
  json["kept"] = Json::array();
  for (const KeepRate& rate : result.kept)
    json["kept"].push_back(
        {{"rule", rate.rule},
         {"candidates", rate.candidates},
         {"kept", rate.kept},
         {"fraction", static_cast<double>(rate.kept) /
                          static_cast<double>(std::max<std::int64_t>(1, rate.candidates))}});
  json["trace"] = fusion_trace_json(result);
  json["evaluations"] = result.evaluations;
  json["group_evaluations"] = result.group_evaluations;
  return json;
}

std::string fusion_table(const FusionResult& result, Objective objective) {
  std::string table = fmt::format("{:<16}{:>20}{:>20}{:>20}\n", "", "latency (cycles)",
                                  "energy (pJ)", "off-chip (bytes)");
  const auto row = [&](std::string_view name, const StepFigures& f) {
    table += fmt::format("{:<16}{:>20}{:>20.6g}{:>20}\n", name, f.latency_cycles, f.energy_pj,
                         bytes_of(Bits{f.offchip_bits}));
  };
  row("best", result.figures);
  for (const FusionAnswer& answer : result.compared) {
    if (answer.figures)
      row(name_of(answer.method), *answer.figures);
    else
      table += fmt::format("{:<16}  {}\n", name_of(answer.method), printable(answer.why_not));
  }
  if (!result.kept.empty())
    table += "\nkept of the candidates:\n";
  for (const KeepRate& rate : result.kept) {
    const double all = static_cast<double>(std::max<std::int64_t>(1, rate.candidates));
    table += fmt::format("  {:5.1f} % of {:>7}  {}\n", 100 * static_cast<double>(rate.kept) / all,
                         rate.candidates, rate.rule);
  }
  std::size_t groups = 0;
  for (const auto& stack : result.plan.stacks)
    groups += stack.size() > 1 ? 1 : 0;
  const char* unit = objective == Objective::latency  ? "cycles"
                     : objective == Objective::energy ? "pJ"
                     : objective == Objective::edp    ? "pJ x cycles"
                                                      : "bits";
  table += fmt::format("\n{} groups by {}; {} {:.6g} {}, bound {:.6g}, gap {}{}\n", groups,
                       name_of(result.method), name_of(objective), result.certificate.best, unit,
                       result.certificate.bound, gap_text(result.certificate),
                       result.complete ? ", every plan tried" : "");
  return table;
}

} // namespace monet
