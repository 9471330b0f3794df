#include "schedule/schedule_alone.hpp"

#include "monet/explore/space.hpp"
#include "monet/optimise/step_mode.hpp"
#include "monet/schedule/schedule.hpp"
#include "monet/tiling/tiling.hpp"
#include "monet/workload/onnx_reader.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace monet {
namespace MONET_TEST_FILE {

std::string source(const std::string& path) {
  return std::string(MONET_SOURCE_DIR) + "/" + path;
}

/// The stages one by one, with nothing shared.
StepFigures alone(const TrainingGraph& step, const Chip& chip, StepMode mode) {
  CoreCostCache costs;
  const SharedPlans shared(step);
  const TilingOptions tiling =
      choose_step(step, chip, {}, {mode, Objective::latency, &shared}, costs).tiling;
  const Timeline timeline =
      testing::schedule_alone(make_tiles(step, chip, tiling), step, chip, costs);
  const auto& live = timeline.peak.live;
  return {timeline.makespan.value, energy_of(timeline).total().picojoules().value,
          std::accumulate(live.begin(), live.end(), std::int64_t{0})};
}

TEST(Evaluator, GivesWhatTheStagesGive) {
  const Space space = read_space(source("data/spaces/edge.yaml"));
  const Graph network = read_onnx(space.workload.network, space.workload.network_options);
  const TrainingGraph training = fold_views(make_training_graph(network, *space.workload.training));
  const TrainingGraph inference =
      fold_views(make_inference_graph(network, space.workload.training->precision));
  const auto evaluator = make_evaluator(space);
  evaluator->evaluate(1234); // others before change nothing
  for (const DesignId id : {6U, 9976U}) {
    const DesignResult result = evaluator->evaluate(id);
    const Chip chip = space.chip(id);
    ASSERT_TRUE(result.feasible) << result.reason;
    EXPECT_EQ(result.area_mm2, chip.area_mm2());
    EXPECT_EQ(result.peak_power_w, peak_power_w(chip));
    EXPECT_EQ(result.frequency_hz, 800e6);
    ASSERT_EQ(result.runs.size(), 2U);
    EXPECT_EQ(result.runs[0], alone(inference, chip, StepMode::fused));
    EXPECT_EQ(result.runs[1], alone(training, chip, StepMode::fused));
    EXPECT_EQ(make_evaluator(space)->evaluate(id), result);
  }
}

TEST(Evaluator, KnowsSchedulesOfDesignsThatDifferInRegistersAlone) {
  const Space space = read_space(source("data/spaces/edge_study.yaml"));
  const auto evaluator = make_evaluator(space);
  constexpr DesignId kNextRegisters = 25; // columns and rows change faster
  std::vector<DesignResult> results;
  for (DesignId id = 0; id < 5 * kNextRegisters; id += kNextRegisters)
    results.push_back(evaluator->evaluate(id));
  // Weights of one tile fit the registers of the last, not those of the first.
  EXPECT_NE(results.front().runs, results.back().runs);
  for (const std::size_t i : {std::size_t{1}, results.size() - 1})
    EXPECT_EQ(make_evaluator(space)->evaluate(results[i].id), results[i]);
}

/// One core of some KB, 8 bits the least, and an off-chip memory.
std::string tiny(const std::string& more) {
  return "workload: {network: " + source("data/workload/gpt2_nano.onnx") + ", batch: 1}\n" + more +
         R"(
parameters: {kb: [0.0009765625, 64, 65536], lanes: [0, 8]}
chip:
  frequency_hz: 1e9
  cores: [core, dram]
  offchip_core_id: 1
  core_connectivity: [{type: bus, cores: [0, 1], bandwidth: 64}]
cores:
  core:
    name: core
    kind: array
    vector_operators: true
    memories:
      sram:
        size: ${kb * 8192}
        r_cost: 1
        w_cost: 1
        area: ${kb}
        latency: 1
        operands: [I1, I2, O]
        ports:
          - {name: rw, type: read_write, bandwidth_min: 64, bandwidth_max: 64, allocation: ["I1, tl", "I2, tl", "O, tl", "O, th", "I1, fh", "I2, fh", "O, fh", "O, fl"]}
        served_dimensions: [D1]
    operational_array: {unit_energy: 1, unit_area: 0, dimensions: [D1], sizes: ["${max(1, lanes)}"]}
  dram: )" +
         source("data/hardware/cores/dram_64bit.yaml") + "\n";
}

TEST(Evaluator, SaysWhyADesignCannotRun) {
  const Space space = parse_space(tiny(""), "tiny.yaml");
  const auto evaluator = make_evaluator(space);
  const DesignResult small = evaluator->evaluate(1);
  EXPECT_FALSE(small.feasible);
  EXPECT_TRUE(small.runs.empty());
  EXPECT_NE(small.reason.find("inference: "), std::string::npos);
  EXPECT_NE(small.reason.find("sram"), std::string::npos) << small.reason;
  const DesignResult large = evaluator->evaluate(5);
  EXPECT_TRUE(large.feasible) << large.reason;
  EXPECT_EQ(large.area_mm2, 65536);
}

TEST(Evaluator, SearchesWithinADesign) {
  const auto figures = [](const std::string& more) {
    const Space space = parse_space(tiny("schedule: {mode: fused}\n" + more), "tiny.yaml");
    const DesignResult result = make_evaluator(space)->evaluate(3); // 64 KB, 8 lanes
    EXPECT_TRUE(result.feasible) << result.reason;
    EXPECT_EQ(make_evaluator(space)->evaluate(3), result);
    return result.runs.at(0);
  };
  const StepFigures as_chosen = figures("");
  const StepFigures fused = figures("optimise: {fusion: {objective: energy, evaluations: 20}}\n");
  EXPECT_LT(fused.energy_pj, as_chosen.energy_pj);
  const StepFigures both = figures("optimise: {fusion: {objective: latency, evaluations: 20}, "
                                   "allocation: {objective: latency, evaluations: 20}}\n");
  EXPECT_LE(both.latency_cycles, as_chosen.latency_cycles);
}

TEST(Evaluator, HoldsDesignsToTheirBudgets) {
  const auto reason = [](const std::string& budgets) {
    const Space space = parse_space(tiny("budgets: " + budgets + "\n"), "tiny.yaml");
    return make_evaluator(space)->evaluate(5).reason;
  };
  EXPECT_EQ(reason("{area_mm2: 65536, peak_power_w: 100}"), "");
  EXPECT_NE(reason("{area_mm2: 65535}").find("area"), std::string::npos);
  EXPECT_NE(reason("{peak_power_w: 1e-6}").find("peak power"), std::string::npos);
  EXPECT_NE(reason("{peak_memory_bytes: 1000}").find("of memory are over the budget of"),
            std::string::npos);
}

} // namespace MONET_TEST_FILE
} // namespace monet
