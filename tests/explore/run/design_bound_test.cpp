// Lower bounds of the real evaluator against what its designs come to.
#include "base/shared/rng.hpp"
#include "level.hpp"

#include "monet/explore/explore.hpp"
#include "monet/explore/space.hpp"

#include <gtest/gtest.h>

#include <string_view>
#include <tuple>

namespace monet {
namespace {

/// Chips of one to four array cores, a vector core and an off-chip memory of many sizes; some are
/// too small to run anything, some over the budget.
Space small_space(const std::string& network, const std::string& mode, const std::string& halo) {
  const std::string text = R"(name: small
workload: {network: NETWORK, batch: 2}
training: {loss: cross_entropy, optimizer: {type: adam, learning_rate: 1.0e-3}}
schedule: {mode: MODE, halo: HALO, lpf_limit: 3}
budgets: {area_mm2: 60}
fronts:
  - {run: inference, objectives: [latency, energy]}
  - {run: training, objectives: [latency, energy, memory]}
  - {run: training, objectives: [latency, area]}
parameters:
  units: [4, 16, 64]
  memory_kb: [1, 64, 256, 2048]
  columns: [1, 2, 4]
  port: [32, 256]
  energy: [0, 2, 900]
chip:
  frequency_hz: 500e6
  cores: [{for: {i: columns}, value: element}, vector, dram]
  offchip_core_id: ${columns + 1}
  core_connectivity:
    - {for: {x: columns}, type: link, cores: ["${x}", "${columns}"], bandwidth: 32, unit_energy_cost: 1.5}
    - {type: bus, cores: [{for: {i: columns + 2}, value: "${i}"}], bandwidth: 64, unit_energy_cost: 3}
cores:
  element:
    name: element
    kind: array
    memories:
      sums: {size: 32, r_cost: 0.02, w_cost: 0.02, area: 0.001, latency: 1, operands: [O], ports: [{name: r, type: read, bandwidth_min: 32, bandwidth_max: 32, allocation: ["O, tl", "O, th"]}, {name: w, type: write, bandwidth_min: 32, bandwidth_max: 32, allocation: ["O, fh", "O, fl"]}], served_dimensions: [D2]}
      sram: {size: "${memory_kb * 8192}", r_cost: 40, w_cost: 30, area: "${memory_kb * 0.01}", leakage_pj_per_cycle: 0.5, latency: 1, operands: [I1, I2, O], ports: [{name: r, type: read, bandwidth_min: 32, bandwidth_max: 512, allocation: ["I1, tl", "I2, tl", "O, tl", "O, th"]}, {name: w, type: write, bandwidth_min: 32, bandwidth_max: 512, allocation: ["I1, fh", "I2, fh", "O, fh", "O, fl"]}], served_dimensions: [D1, D2]}
    operational_array: {unit_energy: 0.5, unit_area: 0.002, dimensions: [D1, D2], sizes: ["${units}", 4]}
  vector:
    name: vector
    kind: vector
    memories:
      sram: {size: "${memory_kb * 4096}", r_cost: 20, w_cost: 25, area: 0.1, latency: 1, operands: [I1, I2, O], ports: [{name: rw, type: read_write, bandwidth_min: 32, bandwidth_max: 256, allocation: ["I1, fh", "I2, fh", "O, fh", "O, fl", "I1, tl", "I2, tl", "O, tl", "O, th"]}], served_dimensions: [D1]}
    operational_array: {unit_energy: 0.2, unit_area: 0.003, dimensions: [D1], sizes: [8]}
  dram:
    name: dram
    kind: offchip
    memories:
      dram: {size: 8000000000, r_cost: "${energy}", w_cost: "${energy * 1.25}", area: 0, latency: 1, operands: [I1, I2, O], ports: [{name: rw, type: read_write, bandwidth_min: "${port}", bandwidth_max: "${port}", allocation: ["I1, fh", "I1, tl", "I2, fh", "I2, tl", "O, fh", "O, tl", "O, fl", "O, th"]}], served_dimensions: [D1, D2]}
    operational_array: {unit_energy: 0, unit_area: 0, dimensions: [D1, D2], sizes: [1, 1]}
)";
  std::string filled = text;
  for (const auto& [key, value] :
       {std::pair<std::string, std::string>{
            "NETWORK", std::string(MONET_SOURCE_DIR "/data/workload/") + network + ".onnx"},
        {"MODE", mode},
        {"HALO", halo}})
    filled.replace(filled.find(key), key.size(), value);
  return parse_space(filled, "small.yaml");
}

class RealBounds : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(RealBounds, AreNeverAboveWhatADesignComesTo) {
  const auto& [mode, halo] = GetParam();
  const Space space = small_space("gpt2_nano", mode, halo);
  const auto evaluator = make_evaluator(space);
  std::size_t feasible = 0, infeasible = 0, given_up = 0;
  double share = 0;
  const std::size_t designs = static_cast<std::size_t>(
      std::string_view(mode) == "fused" ? test::cases(10, 20, 20) : test::cases(30, 60, 60));
  for (std::uint64_t n = 0; n < designs; ++n) {
    const DesignId id = random_bits(17, n) % space.size();
    SCOPED_TRACE(id);
    const DesignResult result = evaluator->evaluate(id);
    std::vector<DesignBound> bounds{evaluator->bound(id)};
    const auto exact = evaluator->evaluate_unless(id, [&](const DesignBound& bound) {
      bounds.push_back(bound);
      return false;
    });
    EXPECT_EQ(exact, result);
    if (!result.feasible) {
      ++infeasible;
      continue;
    }
    ++feasible;
    EXPECT_GT(bounds.size(), 10U);
    for (const DesignBound& bound : bounds) {
      EXPECT_TRUE(bound.feasible);
      EXPECT_EQ(bound.area_mm2, result.area_mm2);
      for (std::size_t r = 0; r < result.runs.size(); ++r) {
        EXPECT_LE(bound.runs[r].latency_cycles, result.runs[r].latency_cycles);
        EXPECT_LE(bound.runs[r].energy_pj, result.runs[r].energy_pj);
        EXPECT_LE(bound.runs[r].peak_memory_bytes, result.runs[r].peak_memory_bytes);
      }
    }
    share += static_cast<double>(bounds.front().runs[1].peak_memory_bytes) /
             static_cast<double>(result.runs[1].peak_memory_bytes);
    std::size_t asked = 0;
    const auto none =
        evaluator->evaluate_unless(id, [&](const DesignBound&) { return ++asked == 5; });
    given_up += asked == 5 && !none;
  }
  EXPECT_GT(3 * feasible, designs);
  EXPECT_GE(10 * infeasible, designs);
  EXPECT_EQ(given_up, feasible);
  EXPECT_GT(share, 0.6 * static_cast<double>(feasible)); // of the peak is certain
}

INSTANTIATE_TEST_SUITE_P(Modes, RealBounds,
                         testing::Values(std::tuple("layer-by-layer", "cached"),
                                         std::tuple("fused", "cached"),
                                         std::tuple("fused", "recomputed")));

TEST(RealRacing, FindsTheFrontsOfAllDesigns) {
  const Space space = small_space("gpt2_nano", "layer-by-layer", "cached");
  const auto evaluator = make_evaluator(space);
  const auto explored = [&](const char* name, int jobs) {
    const auto strategy = make_strategy(space, *evaluator, {name, 0, 1, jobs});
    const auto store = memory_store();
    const auto runner = thread_runner(*evaluator, jobs);
    return explore(space, *strategy, *store, *runner, {});
  };
  const ExplorationResult all = explored("exhaustive", 1);
  const ExplorationResult some = explored("racing", 1);
  EXPECT_EQ(explored("halving", 3).results, some.results);
  EXPECT_EQ(some.results.size() + some.skipped_by_bound, all.results.size());
  EXPECT_LT(some.results.size() * 2, all.results.size());
  for (const FrontRequest& front : space.fronts)
    EXPECT_EQ(front_of(some.results, front), front_of(all.results, front));
}

} // namespace
} // namespace monet
