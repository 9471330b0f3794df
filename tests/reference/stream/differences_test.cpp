// What the reference's scheduler does otherwise than our default, each by the name it has in
// docs/explanation/stream-coala.md, and how ours goes on where it stops.
#include "reference/stream/systems.hpp"
#include "reference/stream/tiles_networks.hpp"

#include "monet/base/errors.hpp"
#include "monet/reference/stream_costs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace monet::stream {
namespace {

using monet::testing::mapping_entry;
using monet::testing::StreamNetwork;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Two arrays of so many bits of memory, linked with 32 bits per cycle, and an off-chip memory with
/// 64 bits per cycle and 1000 pJ per 64 bits.
Chip pair_of_cores(std::int64_t bits = 1 << 24) {
  return monet::testing::make_chip(
      {.array = monet::testing::tpu_core(bits), .arrays = 2, .helpers = false, .links = {"0, 1"}});
}

MappingFile mapping(const std::string& intra, const std::string& inter,
                    const std::string& cores = "0, 1") {
  return parse_mapping(mapping_entry("default", cores, intra, inter), "m.yaml");
}

/// Every tile takes `runtime` cycles; `streaming`: what does not fit streams, each operand with
/// `bandwidth` bits per cycle.
struct Ran {
  Workload workload;
  Result result;

  Ran(const Graph& network, const Chip& chip, const MappingFile& mapping,
      const std::vector<std::vector<int>>& stacks, double runtime = 100, bool streaming = true,
      std::int64_t bandwidth = 8)
      : workload(
            make_stream_workload(network, chip, mapping, {StreamOptions::Mode::fused, stacks})) {
    Costs costs;
    for (std::uint32_t t = 0; t < workload.tiles.size(); ++t) {
      TileCost cost;
      cost.runtime = runtime;
      if (streaming)
        cost.streamed = streamed_operands(workload, t, chip);
      cost.offchip_bandwidth.fill(bandwidth);
      costs.of_tile.push_back(t);
      costs.classes.push_back(cost);
    }
    result = schedule(workload, chip, costs);
  }
  /// Starts of the tiles of a layer.
  std::vector<double> starts(std::uint32_t layer) const {
    std::vector<double> found;
    const Layer& known = workload.layers[layer];
    for (std::uint32_t t = known.first_tile; t < known.first_tile + known.tiles; ++t)
      found.push_back(result.runs[t].start);
    return found;
  }
  /// Link events of a tensor.
  std::vector<LinkEvent> events(const std::string& tensor) const {
    std::vector<LinkEvent> found;
    std::copy_if(result.events.begin(), result.events.end(), std::back_inserter(found),
                 [&](const LinkEvent& event) {
                   return workload.name_of(workload.tensors[event.tensor]) == tensor;
                 });
    return found;
  }
  double moved_pj(Cause cause) const {
    return result.energy.memory_pj[static_cast<std::size_t>(cause)];
  }
};

Graph relus(int count, std::vector<std::int64_t> shape) {
  StreamNetwork net;
  TensorId x = net.input(std::move(shape));
  for (int i = 0; i < count; ++i)
    x = net.relu(x);
  return net.graph;
}

/// Reads of the off-chip memory and writes of the core's for so many bits.
double fetch_pj(std::int64_t bits) {
  return static_cast<double>(ceil_div(bits, 64)) * 1000 +
         static_cast<double>(ceil_div(bits, 2048)) * 378.4;
}

// Both cores ask for the whole image in the same cycle: it crosses the link once. The off-chip
// memory is read, and paid, for each.
TEST(StreamDifferences, a_broadcast_is_one_start) {
  StreamNetwork net;
  net.conv(net.input({1, 4, 8, 8}), 8, 1);
  const std::int64_t image = 4 * 8 * 8 * 8;
  const Ran quarters(net.graph, pair_of_cores(), mapping("", "K, 4"), {{0}}, 100, false);
  const auto events = quarters.events("Tensor(0, 0, I)");
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].bandwidth, 16); // a quarter of the link, as four tiles run at a time
  EXPECT_DOUBLE_EQ(quarters.moved_pj(Cause::offchip), 2 * fetch_pj(image) + 4 * fetch_pj(64));
  // Weights in between give the second core another start, and the image crosses twice.
  const Ran halves(net.graph, pair_of_cores(), mapping("", "K, 2"), {{0}}, 100, false);
  EXPECT_EQ(halves.events("Tensor(0, 0, I)").size(), 2U);
}

// An image that two cores share counts its uses for each of them, and so is never used up.
TEST(StreamDifferences, constants_of_several_cores_stay) {
  StreamNetwork net;
  net.relu(net.conv(net.input({1, 4, 32, 32}), 8, 1));
  const auto peak = [&](const std::string& conv, const std::string& relu,
                        const std::string& cores) {
    const MappingFile rows = parse_mapping(mapping_entry("default", cores, "D, 8", relu) +
                                               mapping_entry("Conv", cores, "OY, 8", conv),
                                           "m.yaml");
    return Ran(net.graph, pair_of_cores(), rows, {{0, 1}}, 100, false).result.peaks[0].peak.value;
  };
  const std::int64_t image = 4 * 32 * 32 * 8;
  const std::int64_t results = 2 * image; // stay as well: the last layer is tiled
  EXPECT_GE(peak("K, 2", "H, 2", "0, 1"), results / 2 + image);
  EXPECT_LT(peak("K, 1", "H, 1", "0"), results + image);
}

// Streams keep their bandwidth from the tile's first cycle to its last. Three operands with 12 bits
// per cycle each leave too little of the link's 64 for another tile.
TEST(StreamDifferences, streams_block_the_link) {
  const Ran ran(relus(1, {1, 8, 8, 8}), pair_of_cores(), mapping("", "H, 2"), {{0}}, 100, true, 12);
  EXPECT_THAT(ran.starts(0), ElementsAre(0, 100));
  const auto events = ran.events("Tensor(0, 0, O)");
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].kind, LinkEvent::Kind::block);
  EXPECT_EQ(events[0].end - events[0].start, 100);
  const Ran narrow(relus(1, {1, 8, 8, 8}), pair_of_cores(), mapping("", "H, 2"), {{0}});
  EXPECT_THAT(narrow.starts(0), ElementsAre(0, 0));
}

// A layer begins on all cores together.
TEST(StreamDifferences, layers_synchronise_the_cores) {
  StreamNetwork net;
  const TensorId x = net.input({1, 8, 8, 8});
  net.relu(x);
  net.op("Sigmoid", {x}, {1, 8, 8, 8});
  const MappingFile apart = parse_mapping(mapping_entry("default", "0", "D, 1", "H, 1") +
                                              mapping_entry("Sigmoid", "1", "D, 1", "H, 1"),
                                          "m.yaml");
  const Ran ran(net.graph, pair_of_cores(), apart, {{0, 1}}, 10000, false);
  EXPECT_GE(ran.starts(1)[0], ran.starts(0)[0] + 10000); // although its core has nothing to do
}

// Tiles of a last layer that is tiled over time follow each other, so that all but the last have a
// successor and none counts as the end.
TEST(StreamDifferences, tiled_last_layers_are_not_written_back) {
  const Graph network = relus(2, {1, 8, 8, 8});
  EXPECT_EQ(Ran(network, pair_of_cores(), mapping("D, 4", "H, 1"), {{0, 1}}, 100, false)
                .moved_pj(Cause::sink),
            0);
  EXPECT_GT(Ran(network, pair_of_cores(), mapping("D, 1", "H, 1"), {{0, 1}}, 100, false)
                .moved_pj(Cause::sink),
            0);
}

// What is needed comes ahead of the tile by the time that all of it would take, what is there
// already included: 8 cycles for the input that the first tile left, and so on.
TEST(StreamDifferences, the_head_start_counts_what_is_there) {
  StreamNetwork net;
  const TensorId x = net.relu(net.input({1, 8, 8, 8}));
  net.op("Mul", {x, net.weight({1, 8, 8, 8})}, {1, 8, 8, 8});
  const Ran ran(net.graph, pair_of_cores(), mapping("D, 1", "H, 1", "0"), {{0, 1}}, 1000, false);
  std::vector<LinkEvent> weights = ran.events("Tensor(1, 0, W)");
  if (weights.empty())
    weights = ran.events("Tensor(1, 0, I)");
  ASSERT_EQ(weights.size(), 1U);
  const double free = ran.result.runs[0].end;
  const double cycles = 8 * 8 * 8 * 8 / 64;
  EXPECT_EQ(weights[0].start, free - 2 * cycles);
  EXPECT_EQ(weights[0].end, free - cycles);
}

// The second layer's tiles need a quarter each of what the first, alone in its stack, left
// off-chip.
TEST(StreamDifferences, parts_are_cut_by_name) {
  const Ran ran(relus(3, {1, 8, 8, 8}), pair_of_cores(), mapping("D, 4", "H, 1"), {{0}, {1, 2}},
                100, true);
  const auto events = ran.events("Tensor(0, 0, O)");
  std::vector<std::int64_t> bits;
  for (const LinkEvent& event : events)
    bits.push_back(event.bits.value);
  EXPECT_THAT(bits, ElementsAre(4096, 1024, 1024, 1024, 1024)); // its block, then parts
  EXPECT_TRUE(ran.result.notes.empty());
}

// Evictions write back what is nowhere else, as early as it was there: in the past.
TEST(StreamDifferences, write_backs_happen_in_the_past) {
  StreamNetwork net;
  const TensorId x = net.input({1, 8, 8, 8});
  const TensorId first = net.relu(x);
  const TensorId second = net.op("Sigmoid", {x}, {1, 8, 8, 8});
  const TensorId third = net.op("Exp", {second}, {1, 8, 8, 8});
  net.add(net.op("Sqrt", {third}, {1, 8, 8, 8}), first);
  // Three images of 4096 bits fit, and the scalars that element-wise layers have.
  const Ran ran(net.graph, pair_of_cores(3 * 4096 + 64), mapping("D, 1", "H, 1", "0"),
                {{0, 1, 2, 3, 4}}, 1000, false);
  EXPECT_GT(ran.moved_pj(Cause::eviction), 0);
  const auto events = ran.events("Tensor(0, 0, O)");
  ASSERT_GE(events.size(), 1U);
  EXPECT_EQ(events[0].sender, CoreId(std::size_t{0}));
  EXPECT_LT(events[0].start, ran.starts(2)[0]);
}

TEST(StreamDifferences, notes_on_parts_of_tensors_that_are_not_offchip) {
  const MappingFile uneven = parse_mapping(mapping_entry("default", "0", "D, 2", "H, 1") +
                                               mapping_entry("Sigmoid", "1", "D, 4", "H, 1"),
                                           "m.yaml");
  StreamNetwork net;
  net.op("Sigmoid", {net.relu(net.input({1, 8, 8, 8}))}, {1, 8, 8, 8});
  const Ran ran(net.graph, pair_of_cores(), uneven, {{0, 1}}, 100, false);
  ASSERT_EQ(ran.result.notes.size(), 1U);
  EXPECT_EQ(ran.result.notes[0].name, "parts of tensors that are not off-chip");
  EXPECT_EQ(ran.result.notes[0].node, "n1");
  EXPECT_THAT(ran.result.notes[0].what, HasSubstr("Tensor(0, 0, O) is needed in part"));
}

std::string failure(const Graph& network, std::int64_t bits) {
  try {
    Ran(network, pair_of_cores(bits), mapping("D, 1", "H, 1", "0"), {{0, 1}}, 100, false);
  } catch (const InfeasibleError& error) {
    return error.what();
  }
  return "it fits";
}

TEST(StreamDifferences, what_does_not_fit_is_located) {
  const Graph network = relus(2, {1, 8, 8, 8});
  EXPECT_EQ(failure(network, 3 * 4096 + 8), "it fits");
  EXPECT_THAT(failure(network, 4000),
              AllOf(HasSubstr("tile (0, 0) of 'n0' on core 0: Tensor(0, 0, W) of 4096 bits does "
                              "not fit into 'sram_2MB' of core 0 (4000 bits)"),
                    HasSubstr("96 bits are missing")));
  EXPECT_THAT(failure(network, 5000), HasSubstr("Tensor(0, 0, I) of 4096 bits"));
  EXPECT_THAT(failure(network, 9000), HasSubstr("Tensor(0, 0, O) of 4096 bits"));
}

TEST(StreamDifferences, the_offchip_memory_holds_all_constants) {
  const Chip chip = monet::testing::make_chip({.array = monet::testing::tpu_core(1 << 24),
                                               .arrays = 2,
                                               .helpers = false,
                                               .dram = monet::testing::dram_core(64, 64, 1, 5000),
                                               .links = {"0, 1"}});
  try {
    const Ran ran(relus(2, {1, 8, 8, 8}), chip, mapping("D, 1", "H, 1", "0"), {{0, 1}});
    FAIL() << "it fits";
  } catch (const InfeasibleError& error) {
    EXPECT_THAT(error.what(), HasSubstr("does not fit into 'dram' of core 2 (5000 bits): it is "
                                        "full; 3192 bits are missing"));
  }
}

TEST(StreamDifferences, a_chip_needs_an_offchip_memory) {
  Chip chip = pair_of_cores();
  const Workload workload = make_stream_workload(relus(1, {1, 8, 8, 8}), chip, mapping("", ""), {});
  chip.cores.pop_back();
  chip.links.pop_back();
  chip.offchip.reset();
  Costs costs;
  costs.classes.emplace_back();
  costs.of_tile.assign(workload.tiles.size(), 0);
  EXPECT_THROW(schedule(workload, chip, costs), InfeasibleError);
}

} // namespace
} // namespace monet::stream
