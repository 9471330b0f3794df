// Random networks on random systems, judged by witnesses that share nothing with what they judge.
#include "level.hpp"
#include "schedule/element_edges.hpp"
#include "schedule/fixed_costs.hpp"
#include "schedule/random_cases.hpp"
#include "schedule/replay.hpp"
#include "schedule/schedule_alone.hpp"

#include "monet/base/errors.hpp"
#include "monet/hardware/read_hardware.hpp"
#include "monet/schedule/schedule.hpp"
#include "monet/workload/onnx_reader.hpp"

#include <gtest/gtest.h>

#include <map>

namespace monet {
namespace {

using testing::CaseShape;
using testing::PlainTiles;
using testing::PlainTimeline;
using testing::RandomCase;

const int kCases = test::cases(160, 2400, 20000);

/// Iterations of the element by element witness that a case may take.
constexpr std::int64_t kMaxEffort = 200000;

Timeline schedule_of(const RandomCase& c) {
  return testing::schedule_with(c.tiles, c.step, c.chip, testing::hashed_cost, c.priority);
}

std::int64_t macs_of(const PlainTiles& tiles, const Graph& graph) {
  std::int64_t sum = 0;
  for (const testing::PlainTile& tile : tiles.tiles) {
    if (graph.op(tile.op).nest.compute == ComputeKind::mac)
      sum += volume(tile.ranges);
  }
  return sum;
}

void check_tiles(const RandomCase& c) {
  verify(c.tiles, c.step);
  const PlainTiles tiles = testing::plain(c.tiles);
  std::int64_t macs_of_graph = 0;
  for (const Operator& op : c.step.graph.operators())
    macs_of_graph += macs(op.nest);
  EXPECT_EQ(macs_of(tiles, c.step.graph), macs_of_graph + recomputed_macs(c.tiles, c.step.graph));
  if (c.options.halo == Halo::cached) {
    EXPECT_EQ(recomputed_macs(c.tiles, c.step.graph), 0);
  }
  if (testing::effort_of_edges(c.step.graph) <= kMaxEffort) {
    const auto wrong =
        testing::wrong_edges(tiles, c.step.graph, c.options.halo == Halo::recomputed);
    EXPECT_FALSE(wrong) << *wrong;
  }
}

/// Every copy between device and host moves all bits of its tensor, once.
void check_host(const PlainTimeline& timeline, const RandomCase& c) {
  const Graph& graph = c.step.graph;
  std::map<OpId, std::int64_t> moved;
  for (const testing::PlainTransfer& t : timeline.transfers) {
    const Operator& op = graph.op(t.op);
    const bool out = op.op_type == "Offload" && t.tensor == *op.outputs[0];
    const bool in = op.op_type == "Fetch" && t.tensor == *op.inputs[0];
    if (!out && !in)
      continue;
    const CoreId end = out ? t.to.front() : t.from;
    EXPECT_EQ(end, *c.chip.offchip) << op.name;
    moved[t.op] += t.bits;
  }
  const bool once = c.options.halo != Halo::recomputed;
  for (std::size_t i = 0; i < graph.operators().size(); ++i) {
    const Operator& op = graph.operators()[i];
    if (op.op_type != "Offload" && op.op_type != "Fetch")
      continue;
    const Tensor& tensor = graph.tensor(*op.outputs[0]);
    const std::int64_t bits = element_count(tensor) * core_bits_of(tensor.type);
    EXPECT_TRUE(once ? moved[OpId(i)] == bits : moved[OpId(i)] >= bits)
        << op.name << " moves " << moved[OpId(i)] << " of " << bits << " bits";
  }
}

void check_timeline(const Timeline& timeline, const RandomCase& c) {
  verify(timeline, c.tiles, c.step, c.chip);
  const PlainTimeline plain = testing::plain(timeline);
  check_host(plain, c);
  const auto problem = testing::impossible(plain, testing::plain(c.tiles), c.step, c.chip);
  EXPECT_FALSE(problem) << *problem;
  if (testing::effort_of_edges(c.step.graph) > kMaxEffort)
    return;
  const testing::CompulsoryBits least = testing::compulsory_bits(c.step);
  const testing::CompulsoryBits moved = testing::offchip_bits(plain, c.chip);
  EXPECT_GE(moved.read, least.read);
  EXPECT_GE(moved.written, least.written);
}

/// With these costs every operand can pass by: there always is a schedule.
void check_schedule(const RandomCase& c) {
  check_timeline(schedule_of(c), c);
}

/// Runs so many cases; stops at the first that fails and says which it was.
void check_cases(std::uint64_t first, int count, const CaseShape& shape) {
  for (std::uint64_t seed = first; seed < first + static_cast<std::uint64_t>(count); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    try {
      const RandomCase c = testing::random_case(seed, shape);
      check_tiles(c);
      check_schedule(c);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
    if (::testing::Test::HasFailure())
      return;
  }
}

TEST(Witness, inference) {
  check_cases(1, kCases, {});
}

TEST(Witness, training) {
  CaseShape shape;
  shape.network = {.operators = 4, .training = true};
  check_cases(100001, kCases / 2, shape);
}

TEST(Witness, activations_in_the_host) {
  for (const bool fused : {false, true}) {
    CaseShape shape;
    shape.fused = fused;
    shape.network = {.operators = 4, .training = true, .offload = true};
    check_cases(1200001, kCases / 8, shape);
    shape.system = {.cores = 4, .min_bits = 1 << 13, .max_bits = 1 << 14};
    check_cases(1300001, kCases / 8, shape);
  }
}

TEST(Witness, memories_as_small_as_can_be) {
  CaseShape shape;
  shape.network.training = true;
  shape.system = {.cores = 4, .min_bits = 1 << 13, .max_bits = 1 << 14};
  check_cases(200001, kCases / 4, shape);
}

TEST(Witness, links_with_latency_and_memories_with_rows) {
  for (const bool fused : {false, true}) {
    CaseShape shape;
    shape.fused = fused;
    shape.network = {.operators = 4, .training = true};
    shape.system.latency = true;
    check_cases(900001, kCases / 8, shape);
    shape.system.rows = true;
    check_cases(1000001, kCases / 4, shape);
    shape.system.latency = false;
    shape.system.max_bits = 1 << 14;
    check_cases(1100001, kCases / 8, shape);
  }
}

TEST(Witness, fused_inference) {
  CaseShape shape;
  shape.fused = true;
  check_cases(600001, kCases, shape);
}

TEST(Witness, fused_training) {
  CaseShape shape;
  shape.fused = true;
  shape.network = {.operators = 4, .training = true};
  check_cases(700001, kCases / 2, shape);
}

TEST(Witness, sums_cut_over_tiles) {
  for (std::uint64_t seed = 500001; seed < 500001U + static_cast<std::uint64_t>(kCases) / 2;
       ++seed) {
    CaseShape shape;
    shape.network.training = seed % 2 == 0;
    RandomCase c = testing::random_case(seed, shape);
    testing::Random random(seed);
    c.tiles = testing::random_grids(random, c.step, c.chip);
    SCOPED_TRACE(fmt::format("seed {}", seed));
    try {
      check_tiles(c);
      check_schedule(c);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
    if (HasFailure())
      return;
  }
}

RandomCase stored_case(const std::string& network, const std::string& system, bool training,
                       TilingMode mode) {
  const std::string data = std::string(MONET_SOURCE_DIR) + "/data/";
  OnnxReadOptions reading;
  reading.batch = 1;
  const Graph graph = read_onnx(data + "workload/" + network + ".onnx", reading);
  RandomCase c;
  c.step = fold_views(training ? make_training_graph(graph, {}) : make_inference_graph(graph));
  c.chip = read_chip(data + "hardware/" + system + ".yaml");
  c.options.mode = mode;
  c.tiles = c.tiled();
  return c;
}

TEST(Witness, stored_networks) {
  CoreCostCache costs;
  for (const char* network : {"gpt2_nano", "resnet18_cifar"}) {
    for (const char* system : {"tpu_like_quad_core", "edge_tpu", "fusemax"}) {
      for (const bool training : {false, true}) {
        for (const TilingMode mode : {TilingMode::layer_by_layer, TilingMode::fused}) {
          SCOPED_TRACE(fmt::format("{} on {}, training {}, fused {}", network, system, training,
                                   mode == TilingMode::fused));
          const RandomCase c = stored_case(network, system, training, mode);
          check_tiles(c);
          check_timeline(testing::schedule_alone(c.tiles, c.step, c.chip, costs), c);
        }
      }
    }
  }
}

bool same(const Timeline& a, const Timeline& b) {
  const PlainTimeline x = testing::plain(a);
  const PlainTimeline y = testing::plain(b);
  return x.runs == y.runs && x.transfers == y.transfers && x.memory == y.memory &&
         x.makespan == y.makespan && x.total == y.total;
}

TEST(Witness, threads_change_nothing) {
  CaseShape shape;
  shape.network = {.operators = 3, .training = true};
  for (std::uint64_t seed = 300001; seed < 300001U + static_cast<std::uint64_t>(kCases) / 50;
       ++seed) {
    const RandomCase c = testing::random_case(seed, shape);
    const auto with_jobs = [&](int jobs) {
      CoreCostCache costs;
      ScheduleOptions options;
      options.jobs = jobs;
      options.priority = c.priority;
      return testing::schedule_alone(c.tiles, c.step, c.chip, costs, options);
    };
    const Timeline one = with_jobs(1);
    verify(one, c.tiles, c.step, c.chip);
    const auto problem =
        testing::impossible(testing::plain(one), testing::plain(c.tiles), c.step, c.chip);
    ASSERT_FALSE(problem) << "seed " << seed << ": " << *problem;
    ASSERT_TRUE(same(one, with_jobs(2))) << "seed " << seed;
    ASSERT_TRUE(same(one, with_jobs(4))) << "seed " << seed;
  }
}

TEST(Witness, stacks_of_one_are_layers) {
  CaseShape shape;
  shape.network = {.operators = 4, .training = true};
  for (std::uint64_t seed = 800001; seed < 800001U + static_cast<std::uint64_t>(kCases) / 10;
       ++seed) {
    RandomCase c = testing::random_case(seed, shape);
    const Timeline layers = schedule_of(c);
    c.options.mode = TilingMode::fused;
    c.options.stacks.emplace();
    for (MappingEntry& entry : c.mapping.entries)
      entry.intra_core_tiling.clear();
    c.tiles = c.tiled();
    ASSERT_TRUE(same(layers, schedule_of(c))) << "seed " << seed;
  }
}

/// Tiles and timeline depend on what a mapping says, not on the order in which it says it.
TEST(Witness, order_of_mapping_entries_changes_nothing) {
  for (std::uint64_t seed = 400001; seed < 400001U + static_cast<std::uint64_t>(kCases) / 10;
       ++seed) {
    RandomCase c = testing::random_case(seed, {});
    const Timeline before = schedule_of(c);
    std::reverse(c.mapping.entries.begin(), c.mapping.entries.end());
    c.tiles = c.tiled();
    ASSERT_TRUE(same(before, schedule_of(c))) << "seed " << seed;
  }
}

} // namespace
} // namespace monet
