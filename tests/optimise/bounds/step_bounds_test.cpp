// No schedule beats the bounds of its step, however it is tiled.
#include "optimise/bounds/product_energy.hpp"
#include "optimise/shared/recompute_search.hpp"
#include "optimise/shared/step_bounds.hpp"
#include "schedule/random_cases.hpp"
#include "schedule/schedule_alone.hpp"
#include "schedule/shared/bounds.hpp"
#include "schedule/small_steps.hpp"
#include "tiling/shared/grid.hpp"
#include "training_graph/tiny_network.hpp"

#include "monet/hardware/read_hardware.hpp"
#include "monet/model/model_step.hpp"
#include "monet/optimise/checkpoint_search.hpp"
#include "monet/training_graph/training.hpp"
#include "monet/workload/onnx_reader.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace monet {
namespace {

using testing::CaseShape;
using testing::RandomCase;

/// The bounds for a step on a chip with these tiles' cores besides those that are able.
StepBoundOptions options_for(const TrainingGraph& step, const TileGraph& tiles, const Chip& chip,
                             Halo halo) {
  StepBoundOptions options;
  options.made_once = halo == Halo::cached;
  for (std::size_t o = 0; o < step.graph.operators().size(); ++o) {
    const Operator& op = step.graph.operators()[o];
    auto& cores = options.cores.emplace_back();
    for (std::size_t c = 0; c < chip.cores.size(); ++c)
      if (can_run(chip.cores[c], op.nest.compute, op.op_type))
        cores.push_back(CoreId(c));
    for (std::uint32_t t = tiles.operators[o].first; t < tiles.operators[o].last; ++t)
      if (std::find(cores.begin(), cores.end(), tiles.tiles[t].core) == cores.end())
        cores.push_back(tiles.tiles[t].core);
  }
  return options;
}

void expect_no_better(const StepBounds& bounds, const Timeline& timeline, const Chip& chip) {
  EXPECT_GE(timeline.makespan, bounds.latency())
      << bounds.work << ' ' << bounds.path << ' ' << bounds.offchip << ' ' << bounds.phases;
  const OwnerBytes& live = timeline.peak.live;
  EXPECT_GE(std::accumulate(live.begin(), live.end(), std::int64_t{0}), bounds.peak_memory_bytes);
  const OffchipTotals moved = offchip_traffic(timeline, chip);
  EXPECT_GE(moved.read, bounds.offchip_read());
  EXPECT_GE(moved.written, bounds.offchip_written());
  const EnergySplit energy = energy_of(timeline);
  const double rounding =
      static_cast<double>(timeline.runs.size() + timeline.transfers.size() + 8) / 64 +
      1e-9 * bounds.energy_pj();
  const auto pj = [](Energy e) { return e.picojoules().value; };
  EXPECT_GE(pj(energy.compute) + pj(energy.onchip_memory) + rounding,
            bounds.compute_pj + bounds.memory_pj);
  EXPECT_GE(pj(energy.links) + rounding, bounds.links_pj);
  EXPECT_GE(pj(energy.offchip) + rounding, bounds.offchip_pj);
  EXPECT_GE(pj(energy.leakage) + rounding, bounds.leakage_pj);
}

/// With `tight` memories about a third of the steps have to spill.
void check_random(std::uint64_t seed, bool tight) {
  CaseShape shape;
  shape.network.training = seed % 3 != 0 || tight;
  shape.network.operators = 3 + static_cast<int>(seed % (tight ? 7 : 5));
  shape.fused = seed % 3 != 0;
  shape.system.min_bits = tight ? 1 << 10 : 1 << 12;
  shape.system.max_bits = tight ? 1 << 13 : 1 << 17;
  shape.system.cores = tight ? 2 : 8;
  RandomCase c = testing::random_case(seed, shape);
  testing::Random random(seed);
  if (seed % 4 == 0)
    c.tiles = testing::random_grids(random, c.step, c.chip);
  CoreCostCache costs;
  ScheduleOptions options;
  options.priority = c.priority;
  options.core_cost.lpf_limit = 3;
  options.core_cost.objective = seed % 2 == 0 ? Objective::latency : Objective::energy;
  Timeline timeline;
  try {
    timeline = testing::schedule_alone(c.tiles, c.step, c.chip, costs, options);
  } catch (const InfeasibleError&) {
    return;
  }
  StepBoundOptions bounded = options_for(c.step, c.tiles, c.chip, c.options.halo);
  expect_no_better(step_bounds(c.step, c.chip, bounded), timeline, c.chip);
  bounded.max_tiles = static_cast<double>(c.tiles.tiles.size());
  expect_no_better(step_bounds(c.step, c.chip, bounded), timeline, c.chip);
}

TEST(StepBounds, RandomStepsOnRandomChipsAreNoBetter) {
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    check_random(seed, seed % 2 == 0);
    if (HasFailure())
      return;
  }
}

TEST(StepBounds, HoldWhereThingsAreMadeAgain) {
  TinyNetwork n;
  TensorId x = n.input("x", {256, 16});
  for (int i = 0; i < 6; ++i) {
    x = n.op("MatMul", {x, n.parameter("w" + std::to_string(i), {16, 16})}, {256, 16});
    x = n.op("Tanh", {x}, {256, 16});
  }
  n.output(x);
  const TrainingGraph step = fold_views(make_training_graph(n.graph, {}));
  const Chip chip = read_chip(MONET_SOURCE_DIR "/data/hardware/edge_tpu.yaml");
  const std::vector<std::int64_t> costs(step.graph.operators().size(), 1);
  const CheckpointSpace space = checkpoint_space(step, costs);
  const RecomputeResult least =
      search_recompute(space.problem, min_memory(space, CheckpointMemory::peak) * 5 / 4, {}, {});
  ASSERT_TRUE(least.plan);
  const TrainingGraph again = with_recomputation(step, runs_of(*least.plan));
  ASSERT_GT(again.graph.operators().size(), step.graph.operators().size());
  StepOptions options;
  options.tiling.mode = TilingMode::layer_by_layer;
  options.schedule.priority = Priority::order;
  CoreCostCache cache;
  const ModelledStep modelled = model_step(again, chip, options, {cache});
  StepBoundOptions bounded;
  bounded.made_once = bounded.kept = false;
  expect_no_better(step_bounds(step, chip, bounded), modelled.timeline, chip);
  EXPECT_LT(modelled.figures.peak_memory_bytes, step_bounds(step, chip).peak_memory_bytes);
}

/// Gradients clipped by their norm, where a step is trained, so that all wait for all.
TrainingGraph network(const std::string& name, std::int64_t batch, bool training,
                      const Precision& precision = {}) {
  TrainingOptions options;
  options.precision = precision;
  if (name == "resnet18_cifar")
    options.update.clip_global_norm = 1;
  OnnxReadOptions read;
  read.batch = batch;
  const Graph graph =
      read_onnx(std::string(MONET_SOURCE_DIR "/data/workload/") + name + ".onnx", read);
  return fold_views(training ? make_training_graph(graph, options)
                             : make_inference_graph(graph, precision));
}

TEST(StepBounds, NetworksOnChipsAreNoBetter) {
  const std::string hardware = MONET_SOURCE_DIR "/data/hardware/";
  CoreCostCache costs;
  for (const char* file : {"edge_tpu.yaml", "fusemax.yaml", "tpu_like_quad_core.yaml"}) {
    const Chip chip = read_chip(hardware + file);
    for (const char* name : {"resnet18_cifar", "gpt2_nano", "unet"})
      for (const bool training : {false, true})
        for (const TilingMode mode : {TilingMode::layer_by_layer, TilingMode::fused}) {
          SCOPED_TRACE(fmt::format("{} {} {} {}", file, name, training, mode == TilingMode::fused));
          const TrainingGraph step = network(name, 1 + (training ? 1 : 0), training);
          TilingOptions tiling;
          tiling.mode = mode;
          const TileGraph tiles = make_tiles(step, chip, tiling);
          ScheduleOptions options;
          options.core_cost.lpf_limit = 4;
          const Timeline timeline = testing::schedule_alone(tiles, step, chip, costs, options);
          StepBoundOptions bounded;
          bounded.max_tiles = static_cast<double>(tiles.tiles.size());
          expect_no_better(step_bounds(step, chip, bounded), timeline, chip);
        }
  }
}

// Arrays that compute in memory, in the 8 bits of their cells: several cycles for a product, and
// energy that depends on the rows and columns in use.
TEST(StepBounds, ComputingInMemoryIsNoBetter) {
  ProblemList problems;
  const Precision bytes = read_precision_options(
      parse_yaml("{weights: int8, activations: int8, gradients: int8, accumulate: int16}", ""),
      problems);
  problems.throw_if_any();
  CoreCostCache costs;
  for (const char* file : {"imc_analog.yaml", "imc_digital.yaml"}) {
    const Chip chip = read_chip(std::string(MONET_SOURCE_DIR "/data/hardware/") + file);
    for (const char* name : {"resnet20_cifar", "gpt2_nano"}) {
      SCOPED_TRACE(fmt::format("{} {}", file, name));
      const TrainingGraph step = network(name, 2, true, bytes);
      const TileGraph tiles = make_tiles(step, chip, {});
      ScheduleOptions options;
      options.core_cost.lpf_limit = 4;
      const Timeline timeline = testing::schedule_alone(tiles, step, chip, costs, options);
      StepBoundOptions bounded;
      bounded.max_tiles = static_cast<double>(tiles.tiles.size());
      expect_no_better(step_bounds(step, chip, bounded), timeline, chip);
      ProductMemo memo;
      for (std::size_t o = 0; o < step.graph.operators().size(); ++o) {
        const Operator& op = step.graph.operators()[o];
        if (op.nest.compute != ComputeKind::mac)
          continue;
        const CoreProblem problem =
            core_problem({OpId(o), CoreId(0)}, full_tile(op.nest), step, chip);
        const CoreCost& cost = costs.get(problem, chip.cores[0], options.core_cost);
        EXPECT_LE(min_product_energy(step, op, chip.cores[0], memo).certain,
                  cost.memory_energy.value * (1 + 1e-9))
            << op.name;
        EXPECT_LE(static_cast<double>(cost.macs_executed) * chip.cores[0].mac_energy_pj,
                  cost.compute_energy.value * (1 + 1e-9))
            << op.name;
      }
    }
  }
}

/// A grid over an operator; sums may be cut as well.
OperatorTiling random_grid(testing::Random& random, const LoopNest& nest) {
  OperatorTiling tiling = uncut(nest);
  for (std::int64_t n = random.between(0, 8); n > 0 && tile_count(tiling) < 400; --n) {
    const std::size_t dim = random.index(nest.dims.size());
    const std::int64_t least = shortest_part(tiling, dim);
    if (least > 1)
      cut(tiling, {dim, random.between(2, std::min<std::int64_t>(9, least))});
  }
  return tiling;
}

/// Energy of on-chip memories over all tiles, as the core cost model says; none where some tile
/// does not fit.
std::optional<double> memory_energy(const TrainingGraph& step, OpId op, const Chip& chip,
                                    CoreId core, const OperatorTiling& tiling,
                                    const CoreCostOptions& options, CoreCostCache& costs) {
  std::vector<Interval> box(tiling.parts.size());
  double sum = 0;
  const std::int64_t count = tile_count(tiling);
  for (std::int64_t t = 0; t < count; ++t) {
    std::int64_t rest = t;
    for (std::size_t d = 0; d < box.size(); ++d) {
      const auto parts = std::ssize(tiling.parts[d]);
      box[d] = tiling.parts[d][static_cast<std::size_t>(rest % parts)];
      rest /= parts;
    }
    try {
      const CoreProblem problem = core_problem({op, core}, box, step, chip);
      sum += costs.get(problem, chip.cores[core.index()], options).memory_energy.value;
    } catch (const InfeasibleError&) {
      return std::nullopt;
    }
  }
  return sum;
}

TEST(ProductEnergy, NoMappingOfAnyTilesTakesLess) {
  testing::Random random(11);
  CoreCostCache costs;
  double closest = 0;
  int compared = 0;
  for (const char* file :
       {"edge_tpu.yaml", "fusemax.yaml", "tpu_like_quad_core.yaml", "single_core_mcu.yaml"}) {
    const Chip chip = read_chip(std::string(MONET_SOURCE_DIR "/data/hardware/") + file);
    for (const char* name : {"resnet18_cifar", "gpt2_nano", "mobilenet_v2"}) {
      const TrainingGraph step = network(name, 1, true);
      ProductMemo memo;
      for (std::size_t o = 0; o < step.graph.operators().size(); ++o) {
        const Operator& op = step.graph.operators()[o];
        const CoreId core(0);
        if (op.nest.compute != ComputeKind::mac ||
            !can_run(chip.cores[0], op.nest.compute, op.op_type))
          continue;
        SCOPED_TRACE(fmt::format("{} {} {}", file, name, op.name));
        const OperatorTiling tiling = random_grid(random, op.nest);
        CoreCostOptions options;
        options.lpf_limit = 3;
        options.objective = random.between(0, 1) == 0 ? Objective::latency : Objective::energy;
        const auto spent = memory_energy(step, OpId(o), chip, core, tiling, options, costs);
        if (!spent)
          continue;
        const ProductEnergy bound = min_product_energy(step, op, chip.cores[0], memo);
        ASSERT_LE(bound.certain, *spent * (1 + 1e-9));
        ASSERT_LE(bound.in_all - bound.lost * static_cast<double>(tile_count(tiling)),
                  *spent * (1 + 1e-9));
        closest = std::max(closest, bound.in_all / *spent);
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 500);
  EXPECT_GT(closest, 0.6); // there is something to compare
}

// Weights stay in the array, over whose lanes inputs are shared along one dimension and sums along
// the other: nothing does with less, so the bound must not be above, however many lanes there are.
TEST(ProductEnergy, OfWeightsThatStayIsNearlyReached) {
  using enum MemoryOperand;
  for (const std::int64_t lanes : {35, 71, 143}) {
    testing::StepBuilder builder;
    const TensorId x = builder.source("x", {1 << 16, 64}, TensorKind::input);
    builder.output(builder.product("y", x, builder.source("w", {64, lanes})));
    Core core;
    core.name = "array";
    core.array = {{"D1", lanes}, {"D2", 64}};
    core.dataflow = {{{"K", lanes}}, {{"C", 64}}};
    const auto add = [&](MemoryOperand operand, std::int64_t width, double read_pj,
                         double write_pj) {
      Memory memory = testing::one_memory("memory", std::int64_t{1} << 40, 32 * width);
      memory.operands = {operand};
      memory.serves = {true, true};
      std::erase_if(memory.ports[0].allocation,
                    [&](const PortUse& use) { return use.operand != operand; });
      memory.read_energy_pj = read_pj * static_cast<double>(width);
      memory.write_energy_pj = write_pj * static_cast<double>(width);
      core.memories.push_back(memory);
    };
    add(I1, 64, 10, 0);
    add(I2, 64 * lanes, 20, 0);
    add(O, lanes, 0, 10);
    Chip chip = testing::make_chip({});
    chip.cores[0] = core;
    ProductMemo memo;
    const ProductEnergy bound =
        min_product_energy(builder.step(), builder.step().graph.op(OpId(0)), core, memo);
    CoreCostCache costs;
    const Operator& op = builder.step().graph.op(OpId(0));
    const CoreProblem problem =
        core_problem({OpId(0), CoreId(0)}, full_tile(op.nest), builder.step(), chip);
    CoreCostOptions options;
    options.objective = Objective::energy;
    options.fixed_dataflow = true;
    const double spent = costs.get(problem, core, options).memory_energy.value;
    EXPECT_LE(bound.in_all, spent) << lanes;
    EXPECT_GT(bound.in_all, 0.9 * spent) << lanes;
  }
}

} // namespace
} // namespace monet
