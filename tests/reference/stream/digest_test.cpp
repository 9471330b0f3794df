// stream-coala against an independent rebuild of the reference scheduler, which equals the original
// in its two published runs: digests over every tile, link event and peak of many other runs. Core
// costs are made up, the same on both sides.
#include "reference/stream/systems.hpp"
#include "reference/stream/tiles_digest.hpp"
#include "reference/stream/tiles_networks.hpp"

#include "monet/base/files.hpp"
#include "monet/reference/stream_costs.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <map>
#include <numeric>

namespace monet::stream {
namespace {

using monet::testing::Digest;
using monet::testing::mapping_entry;
using monet::testing::quad_mapping;

/// Costs with a fraction where operands stream.
TileCost made_up_cost(const Workload& workload, std::uint32_t t, const Chip& chip) {
  const Tile& tile = workload.tiles[t];
  const Layer& layer = workload.layers[tile.layer];
  const Core& core = chip.cores[tile.core.index()];
  std::int64_t macs = 1;
  for (const Dim& dim : layer.dims)
    macs *= dim.tile;
  std::array<std::int64_t, kMemoryOperands> bits{};
  for (const Operand operand : layer.equation) {
    const std::int64_t size =
        operand_bits(layer, operand, layer.operands[static_cast<std::size_t>(operand)].bits);
    bits[static_cast<std::size_t>(memory_of(operand))] = size;
  }
  TileCost cost;
  cost.streamed = streamed_operands(workload, t, chip);
  cost.runtime = std::ceil(static_cast<double>(macs) /
                           std::max(1.0, static_cast<double>(core.lanes()) / 4.0)) +
                 13;
  std::int64_t streamed = 0;
  for (const MemoryOperand operand : cost.streamed)
    streamed += bits[static_cast<std::size_t>(operand)];
  if (!cost.streamed.empty())
    cost.runtime += static_cast<double>(streamed) / 192;
  cost.onchip_pj =
      static_cast<double>(macs) * 0.11 +
      static_cast<double>(std::accumulate(bits.begin(), bits.end(), std::int64_t{0})) * 0.01;
  const OffchipPort port = offchip_port(chip);
  for (const MemoryOperand operand : cost.streamed) {
    const auto o = static_cast<std::size_t>(operand);
    cost.offchip_pj += static_cast<double>(ceil_div(bits[o], 64) * 1000);
    const std::int64_t most =
        operand == MemoryOperand::O ? port.write_bits_per_cycle : port.read_bits_per_cycle;
    if (bits[o] >= 64)
      cost.offchip_bandwidth[o] = std::min(
          most, static_cast<std::int64_t>(std::ceil(static_cast<double>(bits[o]) / cost.runtime)));
  }
  return cost;
}

Costs made_up_costs(const Workload& workload, const Chip& chip) {
  Costs costs;
  std::map<std::pair<std::uint32_t, CoreId>, std::uint32_t> known;
  for (std::uint32_t t = 0; t < workload.tiles.size(); ++t) {
    const auto [place, added] = known.try_emplace({workload.tiles[t].layer, workload.tiles[t].core},
                                                  static_cast<std::uint32_t>(costs.classes.size()));
    if (added)
      costs.classes.push_back(made_up_cost(workload, t, chip));
    costs.of_tile.push_back(place->second);
  }
  return costs;
}

Digest tile_digest(const Workload& workload, const Result& result) {
  Digest digest;
  for (std::uint32_t t = 0; t < workload.tiles.size(); ++t) {
    digest.add(std::int64_t{workload.layers[workload.tiles[t].layer].id});
    digest.add(std::int64_t{workload.tiles[t].sub});
    digest.add(std::int64_t{result.runs[t].core.value});
    digest.add(result.runs[t].start);
    digest.add(result.runs[t].end);
  }
  return digest;
}

Digest event_digest(const Workload& workload, const Result& result) {
  using Row = std::pair<std::pair<double, double>, std::array<std::int64_t, 8>>;
  std::vector<Row> rows;
  for (const LinkEvent& event : result.events) {
    const Tensor& tensor = workload.tensors[event.tensor];
    rows.push_back({{event.start, event.end},
                    {event.kind == LinkEvent::Kind::block ? 1 : 0, workload.layers[tensor.layer].id,
                     workload.tiles[tensor.tile].sub, static_cast<std::int64_t>(tensor.operand),
                     event.bits.value, event.sender.value, event.receiver.value, event.bandwidth}});
  }
  std::sort(rows.begin(), rows.end());
  Digest digest;
  for (const Row& row : rows) {
    digest.add(row.first.first);
    digest.add(row.first.second);
    for (const std::int64_t value : row.second)
      digest.add(value);
  }
  return digest;
}

const nlohmann::json& expected_runs() {
  static const nlohmann::json runs = nlohmann::json::parse(
      read_file(std::string(MONET_SOURCE_DIR) + "/tests/fixtures/stream/digests.json"));
  return runs;
}

void expect_run(const Graph& network, const Chip& chip, const MappingFile& mapping,
                const StreamOptions& options, const char* name) {
  SCOPED_TRACE(name);
  const nlohmann::json& expected = expected_runs().at(name);
  const Workload workload = make_stream_workload(network, chip, mapping, options);
  const Result result = schedule(workload, chip, made_up_costs(workload, chip));
  const auto hex = [](const Digest& digest) { return fmt::format("{:016x}", digest.value()); };
  EXPECT_EQ(workload.tiles.size(), expected.at("tiles"));
  EXPECT_EQ(result.events.size(), expected.at("events"));
  EXPECT_EQ(result.latency, expected.at("latency"));
  EXPECT_EQ(hex(tile_digest(workload, result)), expected.at("tile_digest"));
  EXPECT_EQ(hex(event_digest(workload, result)), expected.at("event_digest"));
  Digest peaks;
  for (const MemoryPeak& peak : result.peaks)
    peaks.add(peak.peak.value);
  EXPECT_EQ(hex(peaks), expected.at("peak_digest"));
  std::vector<double> terms{result.energy.onchip_pj};
  for (std::size_t cause = 0; cause < kCauses; ++cause) {
    terms.push_back(result.energy.link_pj[cause]);
    terms.push_back(result.energy.memory_pj[cause]);
  }
  const std::vector<double> energy = expected.at("energy");
  ASSERT_EQ(terms.size(), energy.size());
  for (std::size_t i = 0; i < terms.size(); ++i)
    EXPECT_NEAR(terms[i], energy[i], 1e-9 * energy[i]) << "energy term " << i;
}

std::vector<int> range(int begin, int end) {
  std::vector<int> ids(static_cast<std::size_t>(end - begin));
  std::iota(ids.begin(), ids.end(), begin);
  return ids;
}

StreamOptions stacks(std::vector<std::vector<int>> ids) {
  return {StreamOptions::Mode::fused, std::move(ids)};
}

const StreamOptions kLayers{StreamOptions::Mode::layer_by_layer, {}};
const StreamOptions kAutomatic{};

/// The same four cores for everything.
MappingFile even_mapping(const std::string& cores) {
  return parse_mapping(mapping_entry("default", cores, "D, all", "H, 4") +
                           mapping_entry("Conv", cores, "OY, all", "K, 4") +
                           mapping_entry("MaxPool", cores, "OY, all", "K, 4") +
                           mapping_entry("Add", cores, "D, all", "H, 4"),
                       "even.yaml");
}

/// One core per layer.
MappingFile whole_mapping() {
  return parse_mapping(mapping_entry("default", "0, 1, 2, 3", "D, all", "H, 1") +
                           mapping_entry("Conv", "0, 1, 2, 3", "OY, all", "K, 1") +
                           mapping_entry("Relu", "5", "D, all", "H, 1") +
                           mapping_entry("MaxPool", "4", "OY, all", "K, 1") +
                           mapping_entry("GlobalAveragePool", "4", "OY, all", "K, 1") +
                           mapping_entry("Add", "5", "D, all", "H, 1"),
                       "whole.yaml");
}

MappingFile attention_by_columns() {
  return parse_mapping(mapping_entry("default", "0, 1, 2, 3", "D, 4", "H, 4") +
                           mapping_entry("MatMul", "0, 1, 2, 3", "D, 4", "K, 4") +
                           mapping_entry("Add", "0, 1, 2, 3", "H, 4", "D, 4"),
                       "attention.yaml");
}

MappingFile attention_by_rows() {
  return parse_mapping(mapping_entry("default", "0, 1, 2, 3", "D, 4", "D, 4") +
                           mapping_entry("Add", "0, 1, 2, 3", "H, 4", "H, 4"),
                       "attention.yaml");
}

TEST(StreamDigest, beginning_of_resnet18) {
  const Graph network = monet::testing::resnet18(1);
  expect_run(network, monet::testing::tpu_quad(), quad_mapping(), kLayers, "seg1_lbl_stub");
  expect_run(network, monet::testing::tpu_quad(), quad_mapping(), stacks({range(0, 8)}),
             "seg1_fused_stub");
  expect_run(network, monet::testing::tpu_quad(), quad_mapping(), stacks({{0, 1, 2}, {3, 4, 5, 6}}),
             "seg1_two_stacks");
  expect_run(network, monet::testing::tpu_quad(), quad_mapping(),
             stacks({range(0, 4), range(4, 8)}), "tpu_split");
  expect_run(network, monet::testing::tpu_quad(), quad_mapping("4", "4", "4"),
             stacks({range(0, 8)}), "coarse4");
  expect_run(network, monet::testing::tpu_quad(), quad_mapping("8", "8", "8"),
             stacks({range(0, 8)}), "coarse8");
  expect_run(network, monet::testing::tpu_quad(), whole_mapping(), stacks({range(0, 8)}), "flex");
}

TEST(StreamDigest, outputs_are_written_back_where_nothing_is_tiled_over_time) {
  const Graph network = monet::testing::resnet18(1);
  expect_run(network, monet::testing::tpu_quad(), quad_mapping("1", "1", "1"),
             stacks({range(0, 8)}), "coarse1_sink");
  expect_run(network, monet::testing::tpu_bus(), quad_mapping("1", "1", "1"), stacks({range(0, 8)}),
             "bus_sink");
}

TEST(StreamDigest, buses_and_separate_ports_to_the_offchip_memory) {
  const Graph network = monet::testing::resnet18(1);
  expect_run(network, monet::testing::tpu_bus(), quad_mapping(), stacks({range(0, 8)}),
             "bus_fused");
  expect_run(network, monet::testing::tpu_bus(), quad_mapping(), kLayers, "bus_lbl");
}

TEST(StreamDigest, small_memories_evict_and_write_back) {
  const Graph network = monet::testing::resnet18(1);
  expect_run(network, monet::testing::tpu_quad(1 << 18, 0.5), quad_mapping(), stacks({range(0, 8)}),
             "small_fused");
  expect_run(network, monet::testing::tpu_quad(1 << 19, 0.5), quad_mapping(), stacks({range(0, 8)}),
             "mid_fused");
  expect_run(network, monet::testing::tpu_quad(1 << 21), quad_mapping(), stacks({range(0, 8)}),
             "two_fused");
}

TEST(StreamDigest, streams_are_given_up_where_everything_fits) {
  const Graph network = monet::testing::resnet18(1);
  expect_run(network, monet::testing::tpu_quad(310000), quad_mapping("16", "16", "all", "H"),
             stacks({{0, 1}}), "clear01");
}

TEST(StreamDigest, end_of_resnet18) {
  const Graph network = monet::testing::resnet18_end();
  expect_run(network, monet::testing::tpu_quad(), quad_mapping(), kAutomatic, "l4_fused");
  expect_run(network, monet::testing::tpu_quad(310000), quad_mapping("16", "16", "all", "H"),
             stacks({range(0, 11)}), "clear_l4");
  expect_run(network, monet::testing::tpu_quad(1 << 21), quad_mapping(), kAutomatic, "two_l4");
  expect_run(network, monet::testing::simba_mesh(2), even_mapping("0, 1, 2, 3"),
             stacks({range(0, 11)}), "simba4_l4");
}

TEST(StreamDigest, meshes_routes_through_the_offchip_memory_and_shared_memories) {
  const Graph network = monet::testing::resnet18(1);
  expect_run(network, monet::testing::simba_mesh(2), even_mapping("0, 1, 2, 3"),
             stacks({range(0, 8)}), "simba4_fused");
  expect_run(network, monet::testing::simba_mesh(2), even_mapping("0, 1, 2, 3"), kLayers,
             "simba4_lbl");
  expect_run(network, monet::testing::simba_mesh(6), even_mapping("0, 3, 18, 35"),
             stacks({range(0, 8)}), "simba36_fused");
  expect_run(network, monet::testing::simba_mesh(6), even_mapping("0, 3, 18, 35"), kLayers,
             "simba36_lbl");
  expect_run(network, monet::testing::simba(4, {"0, 2", "1, 3", "2, 3"}, "0, 1"),
             even_mapping("0, 1, 2, 3"), stacks({range(0, 8)}), "simba_share");
}

TEST(StreamDigest, parts_of_tensors) {
  const Graph network = monet::testing::resnet18(1);
  expect_run(network, monet::testing::simba_mesh(2), even_mapping("0, 1, 2, 3"),
             stacks({range(0, 3), range(3, 8)}), "simba_split");
}

TEST(StreamDigest, several_outermost_memories_per_core) {
  const Graph network = monet::testing::resnet18(1);
  expect_run(network, monet::testing::eyeriss({"0, 1", "1, 2", "2, 3", "3, 4", "4, 5"}),
             quad_mapping(), stacks({range(0, 8)}), "eyechain");
  expect_run(network, monet::testing::eyeriss_quad(), quad_mapping(), stacks({range(0, 8)}),
             "eyequad");
  expect_run(network, monet::testing::eyeriss_quad(), whole_mapping(), stacks({range(0, 8)}),
             "eyequad_flex");
}

TEST(StreamDigest, depthwise_convolutions) {
  const Graph network = monet::testing::mobilenet_beginning();
  expect_run(network, monet::testing::tpu_quad(), quad_mapping(), stacks({range(0, 12)}),
             "mobile_fused");
}

TEST(StreamDigest, attention) {
  const Graph network = monet::testing::attention();
  expect_run(network, monet::testing::tpu_quad(), attention_by_columns(), stacks({range(0, 30)}),
             "attn_first");
  expect_run(network, monet::testing::tpu_quad(), attention_by_columns(), kLayers, "attn_lbl");
  expect_run(network, monet::testing::tpu_quad(), attention_by_rows(), stacks({range(0, 30)}),
             "attn2_fused");
  expect_run(network, monet::testing::tpu_quad(), attention_by_rows(), kLayers, "attn2_lbl");
  expect_run(network, monet::testing::simba_mesh(2), attention_by_rows(),
             stacks({range(0, 3), range(3, 20)}), "attn_split");
}

TEST(StreamDigest, resnet18) {
  const Graph network = monet::testing::resnet18(8);
  expect_run(network, monet::testing::tpu_quad(), quad_mapping(), kLayers, "r18_lbl");
  expect_run(network, monet::testing::tpu_quad(), quad_mapping(), stacks({range(0, 22)}),
             "r18_fused22");
  expect_run(network, monet::testing::tpu_quad(), quad_mapping(), kAutomatic, "r18_fused");
  expect_run(network, monet::testing::tpu_quad(), quad_mapping(),
             stacks({range(0, 3), range(3, 17), range(17, 31)}), "r18_three");
  expect_run(network, monet::testing::tpu_bus(), quad_mapping(), kAutomatic, "bus_r18");
  expect_run(network, monet::testing::tpu_quad(1 << 19, 0.5), quad_mapping(), kAutomatic,
             "mid_r18");
  expect_run(network, monet::testing::tpu_quad(1 << 21), quad_mapping(), kAutomatic, "two_r18");
  expect_run(network, monet::testing::eyeriss_quad(), quad_mapping(), kAutomatic, "eyequad_r18");
  expect_run(network, monet::testing::tpu_quad(), whole_mapping(), kLayers, "flex_lbl");
}

std::vector<std::string> notes(const Graph& network, const Chip& chip, const MappingFile& mapping,
                               const StreamOptions& options) {
  const Workload workload = make_stream_workload(network, chip, mapping, options);
  std::vector<std::string> names;
  for (const Note& note : schedule(workload, chip, made_up_costs(workload, chip)).notes)
    names.push_back(note.name);
  return names;
}

// Runs that stop in the rebuild, by an error of the same name in the original.
TEST(StreamDigest, notes_where_the_reference_stops) {
  const Graph network = monet::testing::resnet18(1);
  EXPECT_THAT(
      notes(network, monet::testing::tpu_quad(80000), quad_mapping(), stacks({range(0, 8)})),
      ::testing::ElementsAre("overfull memories"));
  const MappingFile two = parse_mapping(mapping_entry("default", "0, 1", "D, 4", "K, 2") +
                                            mapping_entry("Conv", "0, 1", "OY, 4", "K, 2") +
                                            mapping_entry("MaxPool", "0", "OY, 4", "K, 1"),
                                        "two.yaml");
  const Chip chip = monet::testing::make_chip({.array = monet::testing::eyeriss_core(),
                                               .arrays = 2,
                                               .links = {"0, 1", "0, 2", "0, 3", "1, 2", "1, 3"}});
  EXPECT_THAT(notes(network, chip, two, stacks({range(0, 8)})),
              ::testing::Contains("tensors in another memory"));
}

} // namespace
} // namespace monet::stream
