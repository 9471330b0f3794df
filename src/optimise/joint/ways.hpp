// Makes the ways to run a step that the joint search tries, and models them.
#pragma once

#include "optimise/joint/archive.hpp"

#include "monet/optimise/checkpoint_search.hpp"
#include "monet/optimise/joint.hpp"
#include "monet/optimise/step_mode.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace monet {

class JointWays {
public:
  /// `chip`, `options` and `costs` must outlive the object.
  JointWays(const TrainingGraph& step, const Chip& chip, const JointOptions& options,
            CoreCostCache& costs)
      : step_(std::make_shared<const TrainingGraph>(step)), chip_(chip), options_(options),
        costs_(costs) {}

  const TrainingGraph& step() const { return *step_; }

  /// The step as given, layer by layer.
  JointWay base() const {
    return {.name = "base", .step = step_, .priority = options_.schedule.priority};
  }

  TilingOptions tiling_of(const JointWay& way) const {
    TilingOptions tiling = options_.tiling;
    tiling.mode = way.mode;
    if (way.mode == TilingMode::layer_by_layer || !way.once()) {
      tiling.stacks.reset(); // given stacks refer to the original step
      tiling.slices.clear();
      tiling.idle.clear();
    }
    if (way.fusion)
      tiling = tiling.with(*way.fusion);
    tiling.allocation = way.allocation.get();
    return tiling;
  }
  ScheduleOptions schedule_of(const JointWay& way) const {
    ScheduleOptions schedule = options_.schedule;
    schedule.priority = way.priority;
    return schedule;
  }
  ModelledStep model(const JointWay& way) const {
    return model_step(*way.step, chip_, {tiling_of(way), schedule_of(way), {}}, {costs_});
  }

  /// The way with the fusion that the choice selects.
  JointWay fused(JointWay way, const StepChoice& chosen) const {
    way.name = way.name == "base" ? "fused" : way.name + ", fused";
    if (std::ranges::find(chosen.tiling.idle, true) != chosen.tiling.idle.end())
      way.name += ", cores unused";
    way.mode = TilingMode::fused;
    way.fusion = fusion_of(*way.step, chip_, chosen.tiling);
    return way;
  }

  StepOptions fused_options(const JointWay& way) const {
    StepOptions options{tiling_of(way), schedule_of(way), {}};
    options.tiling.mode = TilingMode::fused;
    return options;
  }

  /// The way in other operator orders. Running work as early as possible makes tensors long before
  /// their readers; other orders can reduce live memory.
  std::vector<JointWay> other_orders(const JointWay& way) const {
    std::vector<JointWay> others;
    for (const auto& [order, name] :
         {std::pair(Priority::order, "order"), std::pair(Priority::memory, "memory"),
          std::pair(Priority::latency, "latency")}) {
      if (order == way.priority)
        continue;
      JointWay& other = others.emplace_back(way);
      other.priority = order;
      other.name += std::string(", priority ") + name;
    }
    return others;
  }
  std::vector<JointWay> all_orders(const JointWay& way) const {
    std::vector<JointWay> all = other_orders(way);
    all.insert(all.begin(), way);
    return all;
  }

  /// Way that runs the plan in its order; nothing if the plan has no recomputation.
  std::optional<JointWay> recomputed(const RecomputePlan& plan, std::string_view suffix) {
    JointWay way;
    way.runs = runs_of(plan);
    const std::size_t again = way.runs.size() - step_->graph.operators().size();
    if (again == 0)
      return std::nullopt;
    way.name = std::to_string(again) + " recomputed" + std::string(suffix);
    if (const int number = ++names_[way.name]; number > 1)
      way.name += " (" + std::to_string(number) + ")";
    way.step = std::make_shared<const TrainingGraph>(with_recomputation(*step_, way.runs));
    way.priority = Priority::order;
    return way;
  }

  /// Cycles or energy of the given step's operators, by the objective: those of each first run,
  /// which keeps its name.
  std::vector<std::int64_t> operator_costs(const JointWay& way) const {
    const OperatorCosts costs = monet::operator_costs(model(way).timeline, *way.step);
    const std::vector<std::int64_t>& all =
        options_.objective == Objective::latency ? costs.cycles : costs.energy;
    if (way.once())
      return all;
    std::map<std::string_view, std::size_t> place;
    for (std::size_t i = 0; i < all.size(); ++i)
      place[way.step->graph.operators()[i].name] = i;
    std::vector<std::int64_t> first;
    for (const Operator& op : step_->graph.operators())
      first.push_back(all[place.at(op.name)]);
    return first;
  }

  JointPoint point(const JointArchive::Tried& tried) const {
    const JointWay& way = tried.way;
    return {way.name,       way.step,     way.runs,     way.allocation,
            tiling_of(way), way.priority, tried.figures};
  }

private:
  std::shared_ptr<const TrainingGraph> step_;
  const Chip& chip_;
  const JointOptions& options_;
  CoreCostCache& costs_;
  std::map<std::string, int> names_; ///< number of uses of each name
};

} // namespace monet
