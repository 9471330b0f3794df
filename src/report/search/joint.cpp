// JSON and table of `monet optimise joint` (docs/optimise.schema.json).
#include "base/shared/text.hpp"
#include "report/shared/optimise_result.hpp"
#include "report/shared/search_result.hpp"
#include "report/shared/text.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace monet {

namespace {

using Json = nlohmann::ordered_json;

Json corners_json(const JointResult& result) {
  Json corners = Json::array();
  const std::pair<const char*, const JointPoint*> all[] = {{"base", &result.base},
                                                           {"fused", &result.fused},
                                                           {"checkpointed", &result.checkpointed},
                                                           {"both", &result.both}};
  for (const auto& [name, point] : all) {
    const StepFigures& figures = point->figures;
    Json corner = figures_json(name, figures);
    corner["way"] = point->name;
    corner["within_budget"] = result.within_budget(figures);
    corners.push_back(std::move(corner));
  }
  return corners;
}

/// Pareto front of all trials in latency, energy and peak memory.
Json joint_front_json(const JointResult& result) {
  std::vector<const JointResult::Trial*> front;
  const auto dominates = [](const JointResult::Trial& a, const JointResult::Trial& b) {
    return a.figures.latency_cycles <= b.figures.latency_cycles &&
           a.figures.energy_pj <= b.figures.energy_pj &&
           a.figures.peak_memory_bytes <= b.figures.peak_memory_bytes;
  };
  for (const JointResult::Trial& trial : result.trials) {
    if (std::any_of(front.begin(), front.end(),
                    [&](const JointResult::Trial* other) { return dominates(*other, trial); }))
      continue;
    std::erase_if(front, [&](const JointResult::Trial* other) { return dominates(trial, *other); });
    front.push_back(&trial);
  }
  Json points = Json::array();
  for (const JointResult::Trial* trial : front) {
    points.push_back({{"latency_cycles", trial->figures.latency_cycles},
                      {"energy_pj", trial->figures.energy_pj},
                      {"peak_memory_bytes", trial->figures.peak_memory_bytes},
                      {"offchip_bytes", bytes_of(Bits{trial->figures.offchip_bits})},
                      {"stored_activations_bytes", trial->figures.stored_bytes},
                      {"name", valid_utf8(trial->name)},
                      {"chosen", trial->figures.totals() == result.both.figures.totals()}});
  }
  return points;
}

Json joint_groups_json(const JointPoint& point) {
  Json groups = Json::array();
  if (!point.tiling.stacks)
    return groups; // layer by layer, without groups
  for (const std::vector<OpId>& stack : *point.tiling.stacks) {
    if (stack.size() < 2)
      continue;
    Json names = Json::array();
    for (const OpId member : stack)
      names.push_back(valid_utf8(point.step->graph.op(member).name));
    groups.push_back({{"operators", std::move(names)}});
  }
  return groups;
}

/// Names of the recomputed operators.
Json joint_recomputed_json(const JointPoint& point) {
  Json names = Json::array();
  for (const Operator& op : point.step->graph.operators()) {
    if (op.phase == Phase::recompute)
      names.push_back(valid_utf8(op.name));
  }
  return names;
}

} // namespace

Json joint_json(const SearchHead& head, const JointResult& result) {
  Json json = search_json(head);
  json["peak_bytes"] = result.both.figures.peak_memory_bytes;
  if (result.budget_bytes)
    json["budget_bytes"] = *result.budget_bytes;
  json["evaluations"] = result.evaluations;
  json["compared"] = corners_json(result);
  json["front"] = joint_front_json(result);
  json["groups"] = joint_groups_json(result.both);
  json["recomputed"] = joint_recomputed_json(result.both);
  return json;
}

std::string joint_table(const Json& json, const Certificate& found) {
  std::string text = printable(json.at("name").get_ref<const std::string&>()) + "\n\n" +
                     compared_table(json.at("compared")) + "\n" +
                     "best plan: " + json.at("compared").back().at("way").get<std::string>() + "\n";
  if (json.contains("budget_bytes"))
    text += fmt::format("budget: {}, peak {}\n",
                        human_bytes(json.at("budget_bytes").get<std::int64_t>()),
                        human_bytes(json.at("peak_bytes").get<std::int64_t>()));
  text += fmt::format("gap to the bound: {}\n", gap_text(found));
  return json.contains("repeat")
             ? text + "repeat: " + printable(json.at("repeat").get_ref<const std::string&>()) + "\n"
             : text;
}

} // namespace monet
