// stream-coala against an independent rebuild of the reference scheduler, which equals the original
// in its two published runs: digests over every tile, link event and peak of many other runs. Core
// costs are made up, the same on both sides. tools/make_stream_fixtures.py makes the rows.
#include "schedule/stream_systems.hpp"
#include "tiling/stream_networks.hpp"

#include "monet/schedule/stream_costs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <map>
#include <numeric>

namespace monet::stream {
namespace {

using monet::testing::mapping_entry;
using monet::testing::quad_mapping;

constexpr std::size_t kTerms = 1 + 2 * kCauses;

struct Expected {
  const char* name;
  std::size_t tiles, events;
  std::uint64_t tile_digest, event_digest, peak_digest;
  double latency;
  std::array<double, kTerms> energy;
};

/// FNV-1a, 64 bits, over 64-bit words, lowest byte first.
class Digest {
public:
  void add(std::int64_t value) {
    auto bits = static_cast<std::uint64_t>(value);
    for (int i = 0; i < 8; ++i, bits >>= 8)
      state_ = (state_ ^ (bits & 0xff)) * 0x100000001b3;
  }
  void add(double value) { add(std::bit_cast<std::int64_t>(value)); }
  std::uint64_t value() const { return state_; }

private:
  std::uint64_t state_ = 0xcbf29ce484222325;
};

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

std::uint64_t tile_digest(const Workload& workload, const Result& result) {
  Digest digest;
  for (std::uint32_t t = 0; t < workload.tiles.size(); ++t) {
    digest.add(std::int64_t{workload.layers[workload.tiles[t].layer].id});
    digest.add(std::int64_t{workload.tiles[t].sub});
    digest.add(std::int64_t{result.runs[t].core.value});
    digest.add(result.runs[t].start);
    digest.add(result.runs[t].end);
  }
  return digest.value();
}

std::uint64_t event_digest(const Workload& workload, const Result& result) {
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
  return digest.value();
}

void expect_run(const Graph& network, const Chip& chip, const MappingFile& mapping,
                const StreamOptions& options, const Expected& expected) {
  SCOPED_TRACE(expected.name);
  const Workload workload = make_stream_workload(network, chip, mapping, options);
  const Result result = schedule(workload, chip, made_up_costs(workload, chip));
  EXPECT_EQ(workload.tiles.size(), expected.tiles);
  EXPECT_EQ(result.events.size(), expected.events);
  EXPECT_EQ(result.latency, expected.latency);
  EXPECT_EQ(tile_digest(workload, result), expected.tile_digest);
  EXPECT_EQ(event_digest(workload, result), expected.event_digest);
  Digest peaks;
  for (const MemoryPeak& peak : result.peaks)
    peaks.add(peak.peak.value);
  EXPECT_EQ(peaks.value(), expected.peak_digest);
  std::vector<double> terms{result.energy.onchip_pj};
  for (std::size_t cause = 0; cause < kCauses; ++cause) {
    terms.push_back(result.energy.link_pj[cause]);
    terms.push_back(result.energy.memory_pj[cause]);
  }
  for (std::size_t i = 0; i < kTerms; ++i)
    EXPECT_NEAR(terms[i], expected.energy[i], 1e-9 * expected.energy[i]) << "energy term " << i;
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
  expect_run(network, monet::testing::tpu_quad(), quad_mapping(), kLayers,
             {"seg1_lbl_stub",
              26,
              70,
              0x551021b21191cf9c,
              0xc620ac800b68ff5b,
              0x888201b0d8ce7c40,
              7117074.083333332,
              {51899294.08, 0.0, 958452000.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}});
  expect_run(
      network, monet::testing::tpu_quad(), quad_mapping(), stacks({range(0, 8)}),
      {"seg1_fused_stub",
       1904,
       4111,
       0x21dc1caa6af5ae49,
       0x14ae93f0822e3583,
       0x904cf5816160e9fb,
       7459868.0,
       {52722467.84000037, 0.0, 283449596.7999987, 0.0, 0.0, 0.0, 0.0, 0.0, 18801896.96000003}});
  expect_run(network, monet::testing::tpu_quad(), quad_mapping(), stacks({{0, 1, 2}, {3, 4, 5, 6}}),
             {"seg1_two_stacks",
              1684,
              3929,
              0x6f90fc8f457b40ef,
              0x00d196725fe3a338,
              0xee2435a93b351da3,
              6804334.5,
              {52722450.23999948, 0.0, 392524233.60000056, 0.0, 21655920.0, 0.0, 0.0, 0.0,
               15812444.160000289}});
  expect_run(network, monet::testing::tpu_quad(), quad_mapping(),
             stacks({range(0, 4), range(4, 8)}),
             {"tpu_split",
              1904,
              4115,
              0xe0ea5cf5c665301d,
              0x74ce280cba293e66,
              0x48daaa21ec720a63,
              7410571.0,
              {52722467.83999993, 0.0, 295206796.7999983, 0.0, 11726000.0, 0.0, 0.0, 0.0,
               18614696.95999964}});
  expect_run(
      network, monet::testing::tpu_quad(), quad_mapping("4", "4", "4"), stacks({range(0, 8)}),
      {"coarse4",
       104,
       199,
       0xeb0c11743164aa54,
       0x51cba2a5858b4f98,
       0x61a6666f69ae195f,
       7253157.333333333,
       {51938536.96000004, 0.0, 503642902.3999996, 0.0, 0.0, 0.0, 0.0, 0.0, 11212830.719999982}});
  expect_run(network, monet::testing::tpu_quad(), quad_mapping("8", "8", "8"),
             stacks({range(0, 8)}),
             {"coarse8",
              208,
              419,
              0xe3c39dc5c86f22b1,
              0x0f722a674b045815,
              0x99501f717c2060ff,
              7391384.666666666,
              {51990860.8000002, 0.0, 362728201.59999996, 0.0, 0.0, 0.0, 0.0, 0.0, 13796538.88}});
  expect_run(
      network, monet::testing::tpu_quad(), whole_mapping(), stacks({range(0, 8)}),
      {"flex",
       560,
       817,
       0x97507cf7b36d0721,
       0xfaf2a9448bc40b16,
       0x5872313d9629768f,
       8169464.0,
       {52293812.479999915, 0.0, 78747440.2, 0.0, 12186720.0, 0.0, 0.0, 0.0, 6414947.840000023}});
}

TEST(StreamDigest, outputs_are_written_back_where_nothing_is_tiled_over_time) {
  const Graph network = monet::testing::resnet18(1);
  expect_run(network, monet::testing::tpu_quad(), quad_mapping("1", "1", "1"),
             stacks({range(0, 8)}),
             {"coarse1_sink",
              26,
              68,
              0x1d5f394e471da396,
              0x434f8e872e5d557c,
              0x2e55afd45495151f,
              7451579.333333333,
              {51899294.08, 0.0, 495708844.79999983, 0.0, 0.0, 0.0, 25414269.44, 0.0,
               11212830.719999995}});
  expect_run(network, monet::testing::tpu_bus(), quad_mapping("1", "1", "1"), stacks({range(0, 8)}),
             {"bus_sink",
              26,
              68,
              0x79ca7d74f7b37cfc,
              0x702ec54c3ac55567,
              0x2e55afd45495151f,
              7627195.333333333,
              {51899294.08, 24975.125, 495708844.79999983, 0.0, 0.0, 12544.0, 50502269.44, 112896.0,
               11212830.719999995}});
}

TEST(StreamDigest, buses_and_separate_ports_to_the_offchip_memory) {
  const Graph network = monet::testing::resnet18(1);
  expect_run(network, monet::testing::tpu_bus(), quad_mapping(), stacks({range(0, 8)}),
             {"bus_fused",
              1904,
              3649,
              0x7d4d2ba9d50c38e1,
              0x9ef6d11b40ef226c,
              0x3bbf10d2c0fbf2b7,
              7476310.0,
              {52722467.84000037, 21838.5625, 283449596.7999987, 0.0, 0.0, 0.0, 0.0, 161560.0,
               18801896.96000003}});
  expect_run(network, monet::testing::tpu_bus(), quad_mapping(), kLayers,
             {"bus_lbl",
              26,
              70,
              0xc97b8c6091b72927,
              0x1a0a5bef58ea7be1,
              0x888201b0d8ce7c40,
              7117074.083333332,
              {51899294.08, 0.0, 958452000.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}});
}

TEST(StreamDigest, small_memories_evict_and_write_back) {
  const Graph network = monet::testing::resnet18(1);
  expect_run(network, monet::testing::tpu_quad(1 << 18, 0.5), quad_mapping(), stacks({range(0, 8)}),
             {"small_fused",
              1904,
              7635,
              0x8effadc4a91aae3d,
              0x89ddc8f6618979a9,
              0xc14a423440ca24c7,
              8071036.0,
              {52722467.84000037, 310127.75, 877977785.600001, 111552.0, 226095358.0799998, 0.0,
               0.0, 735504.0, 15126243.839999959}});
  expect_run(network, monet::testing::tpu_quad(1 << 19, 0.5), quad_mapping(), stacks({range(0, 8)}),
             {"mid_fused",
              1904,
              7462,
              0xa86e97421fd17c83,
              0x2e05aa37b800d5b1,
              0x7b8ae928a5919bc7,
              8048848.0,
              {52722467.84000037, 291028.875, 865734233.6000005, 107968.0, 218834138.2399998, 0.0,
               0.0, 742896.0, 15311697.919999948}});
  expect_run(network, monet::testing::tpu_quad(1 << 21), quad_mapping(), stacks({range(0, 8)}),
             {"two_fused",
              1904,
              6457,
              0x0f48e4bee6cfa9fd,
              0x6ed26dd6ad2550fe,
              0x29f9cfc3967a0bb7,
              7870678.0,
              {52722467.84000037, 0.0, 676889462.4000117, 0.0, 173889526.4000005, 0.0, 0.0, 0.0,
               16078638.079999983}});
}

TEST(StreamDigest, streams_are_given_up_where_everything_fits) {
  const Graph network = monet::testing::resnet18(1);
  expect_run(
      network, monet::testing::tpu_quad(310000), quad_mapping("16", "16", "all", "H"),
      stacks({{0, 1}}),
      {"clear01",
       146,
       270,
       0xcf0cf51bdec4bd53,
       0xc237d77fd0a07543,
       0xa60aa11dbb949631,
       7156356.33333333,
       {55599468.16000004, 0.0, 853933491.2000005, 0.0, 101657077.76000015, 0.0, 0.0, 0.0, 0.0}});
}

TEST(StreamDigest, end_of_resnet18) {
  const Graph network = monet::testing::resnet18_end();
  expect_run(network, monet::testing::tpu_quad(), quad_mapping(), kAutomatic,
             {"l4_fused",
              266,
              1065,
              0xab0ec722f4e58e08,
              0x45eccaa87c67ed2d,
              0x376d3bd49c6b7ed9,
              2042434.0,
              {50093505.280000046, 0.0, 1668796631.9999785, 0.0, 9662512.639999997, 0.0, 0.0, 0.0,
               2038057.5999999954}});
  expect_run(network, monet::testing::tpu_quad(310000), quad_mapping("16", "16", "all", "H"),
             stacks({range(0, 11)}),
             {"clear_l4",
              266,
              818,
              0x988ba9f1ab5a6caf,
              0x3422d429d9637853,
              0x4c037afd019a6214,
              4279077.333333339,
              {50089634.56, 0.0, 7569910465.599986, 0.0, 15003732.480000025, 0.0, 0.0, 0.0,
               495684.15999999957}});
  expect_run(network, monet::testing::tpu_quad(1 << 21), quad_mapping(), kAutomatic,
             {"two_l4",
              86,
              270,
              0x96aa087e5b18de1a,
              0xd4b190a0da4beac0,
              0x177e3d697abb5736,
              2371048.8333333326,
              {46580114.55999997, 0.0, 2095503379.1999993, 0.0, 3630609.920000001, 0.0, 0.0, 0.0,
               266972.1599999997}});
  expect_run(network, monet::testing::simba_mesh(2), even_mapping("0, 1, 2, 3"),
             stacks({range(0, 11)}),
             {"simba4_l4",
              308,
              1210,
              0x5fd98c1d15ac7c70,
              0x0378b7c8cee0b77a,
              0x17d92fc4e8f9f464,
              4266837.0,
              {50089634.56000008, 0.0, 7249383960.0, 0.0, 1442560.0, 0.0, 0.0, 0.0, 30240.0}});
}

TEST(StreamDigest, meshes_routes_through_the_offchip_memory_and_shared_memories) {
  const Graph network = monet::testing::resnet18(1);
  expect_run(network, monet::testing::simba_mesh(2), even_mapping("0, 1, 2, 3"),
             stacks({range(0, 8)}),
             {"simba4_fused",
              2240,
              5639,
              0x1b83b9a965c61dff,
              0x7c8290b34ed8144c,
              0x2485b52adcafd588,
              977531.0,
              {52722467.84000036, 0.0, 62622680.0, 0.0, 14019880.0, 0.0, 0.0, 0.0, 190960.0}});
  expect_run(network, monet::testing::simba_mesh(2), even_mapping("0, 1, 2, 3"), kLayers,
             {"simba4_lbl",
              32,
              86,
              0x087fb8bd89d47b57,
              0x9d5f767b9ebf8266,
              0x5def54ba5886b280,
              887423.4166666667,
              {51899294.080000006, 0.0, 958452000.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}});
  expect_run(network, monet::testing::simba_mesh(6), even_mapping("0, 3, 18, 35"),
             stacks({range(0, 8)}),
             {"simba36_fused",
              2240,
              5391,
              0x1ac8be0c185d067e,
              0x171a4950e054cb2d,
              0xc0a6d2396dd80088,
              1011614.0,
              {52722467.84000036, 0.0, 62577600.0, 0.0, 14019880.0, 0.0, 0.0, 0.0, 191520.0}});
  expect_run(network, monet::testing::simba_mesh(6), even_mapping("0, 3, 18, 35"), kLayers,
             {"simba36_lbl",
              32,
              86,
              0xc3ac0c0e2a3639bb,
              0x5402f9591cbbd142,
              0x7068fad980d4c680,
              887423.4166666667,
              {51899294.080000006, 0.0, 958452000.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}});
  expect_run(network, monet::testing::simba(4, {"0, 2", "1, 3", "2, 3"}, "0, 1"),
             even_mapping("0, 1, 2, 3"), stacks({range(0, 8)}),
             {"simba_share",
              2240,
              5011,
              0xbb4615fa5b7d2d2c,
              0x33f2e09850ce81fc,
              0x0ebdbcefe521df7a,
              1327371.0,
              {52722467.84000036, 0.0, 54211000.0, 0.0, 16781030.0, 0.0, 0.0, 0.0, 129080.0}});
}

TEST(StreamDigest, parts_of_tensors) {
  const Graph network = monet::testing::resnet18(1);
  expect_run(network, monet::testing::simba_mesh(2), even_mapping("0, 1, 2, 3"),
             stacks({range(0, 3), range(3, 8)}),
             {"simba_split",
              2240,
              7771,
              0x5744f79bc3137187,
              0xbadbfd1bb116771c,
              0x0eecccdaf1df46d3,
              1196641.0,
              {52722467.8399999, 0.0, 84322880.0, 0.0, 18753280.0, 0.0, 0.0, 0.0, 121520.0}});
}

TEST(StreamDigest, several_outermost_memories_per_core) {
  const Graph network = monet::testing::resnet18(1);
  expect_run(network, monet::testing::eyeriss({"0, 1", "1, 2", "2, 3", "3, 4", "4, 5"}),
             quad_mapping(), stacks({range(0, 8)}),
             {"eyechain",
              1904,
              4212,
              0x6070490687d993d2,
              0xaa12f34e48736147,
              0xcf1fdc7c494b4bcb,
              9157035.0,
              {52722467.84000037, 0.0, 286112440.0, 0.0, 0.0, 0.0, 0.0, 0.0, 27119680.0}});
  expect_run(network, monet::testing::eyeriss_quad(), quad_mapping(), stacks({range(0, 8)}),
             {"eyequad",
              1904,
              4051,
              0x810f92a69e4ff777,
              0x553e5df4b8074756,
              0x5e89e8949d591733,
              9149195.0,
              {52722467.84000037, 0.0, 286112440.0, 0.0, 0.0, 0.0, 0.0, 0.0, 27119680.0}});
  expect_run(network, monet::testing::eyeriss_quad(), whole_mapping(), stacks({range(0, 8)}),
             {"eyequad_flex",
              560,
              978,
              0x447d88f6794b18eb,
              0x44a5882c09050634,
              0x004d08b72c7ccd60,
              15080819.0,
              {52293812.479999915, 0.0, 646411585.0, 0.0, 12186720.0, 0.0, 0.0, 0.0, 7476000.0}});
}

TEST(StreamDigest, depthwise_convolutions) {
  const Graph network = monet::testing::mobilenet_beginning();
  expect_run(
      network, monet::testing::tpu_quad(), quad_mapping(), stacks({range(0, 12)}),
      {"mobile_fused",
       1736,
       2936,
       0x37c07d86d5dc98ba,
       0x810bc6bd6e994740,
       0x460285c57808bb1d,
       952733.0,
       {6363356.159999996, 0.0, 115957051.20000088, 0.0, 0.0, 0.0, 0.0, 0.0, 12681177.59999974}});
}

TEST(StreamDigest, attention) {
  const Graph network = monet::testing::attention();
  expect_run(
      network, monet::testing::tpu_quad(), attention_by_columns(), stacks({range(0, 30)}),
      {"attn_first",
       176,
       342,
       0xbf722f07be648e89,
       0xb68645658268bdf9,
       0x6d1f864113e635bf,
       24834.0,
       {643893.7599999992, 0.0, 20733203.19999996, 0.0, 0.0, 0.0, 0.0, 0.0, 553013.759999999}});
  expect_run(network, monet::testing::tpu_quad(), attention_by_columns(), kLayers,
             {"attn_lbl",
              44,
              132,
              0x0da5b02cb3ec22d8,
              0xfa284b1dae4a880c,
              0x033863a2d955c62a,
              41863.00000000001,
              {624231.0399999998, 0.0, 61576000.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}});
  expect_run(
      network, monet::testing::tpu_quad(), attention_by_rows(), stacks({range(0, 30)}),
      {"attn2_fused",
       176,
       171,
       0xe055b676dd12df02,
       0xeb2e262bf8c73de6,
       0xbad58045ebf6d286,
       31976.0,
       {708774.3999999979, 0.0, 36274835.20000003, 0.0, 0.0, 0.0, 0.0, 0.0, 152555.5199999998}});
  expect_run(network, monet::testing::tpu_quad(), attention_by_rows(), kLayers,
             {"attn2_lbl",
              44,
              132,
              0xd7db117c7a00e48e,
              0xf43621e77e0f3f7e,
              0x033863a2d955c62a,
              44935.000000000015,
              {630129.2799999999, 0.0, 70792000.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}});
  expect_run(network, monet::testing::simba_mesh(2), attention_by_rows(),
             stacks({range(0, 3), range(3, 20)}),
             {"attn_split",
              176,
              175,
              0xafba223414423526,
              0x4906c6734b215ecb,
              0x5b364500c1683c46,
              32394.0,
              {708774.3999999986, 0.0, 3607280.0, 0.0, 0.0, 0.0, 0.0, 0.0, 7680.0}});
}

TEST(StreamDigest, resnet18) {
  const Graph network = monet::testing::resnet18(8);
  expect_run(network, monet::testing::tpu_quad(), quad_mapping(), kLayers,
             {"r18_lbl",
              159,
              441,
              0xe41c9b4c9e974381,
              0x67e77b5b0e8039ea,
              0xf769946a363643e0,
              11362871.416666672,
              {216479228.80000043, 0.0, 3844105000.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}});
  expect_run(network, monet::testing::tpu_quad(), quad_mapping(), stacks({range(0, 22)}),
             {"r18_fused22",
              3863,
              10106,
              0xd4ea0d1a89d53d60,
              0x532e0344bd7a35af,
              0x971e3da4921f1d67,
              11279210.166666677,
              {219251238.08000168, 0.0, 2251434107.200002, 0.0, 25460879.360000078, 0.0, 0.0, 0.0,
               37417640.96000004}});
  expect_run(network, monet::testing::tpu_quad(), quad_mapping(), kAutomatic,
             {"r18_fused",
              4618,
              16511,
              0x16439c0bb8a953df,
              0x9df6791f6b4f8526,
              0xf1684a5e3f37f1cb,
              11426116.666666672,
              {223336658.560003, 0.0, 2290078470.3997593, 0.0, 140341342.08000007, 0.0, 0.0, 0.0,
               41666968.00000076}});
  expect_run(network, monet::testing::tpu_quad(), quad_mapping(),
             stacks({range(0, 3), range(3, 17), range(17, 31)}),
             {"r18_three",
              4323,
              11175,
              0x3636a63c19c44725,
              0x4cee8049866c3152,
              0xcf94605f7e61ab26,
              11675385.666666685,
              {220902475.52000228, 0.0, 2045366817.5999997, 0.0, 25352439.680000067, 0.0, 0.0, 0.0,
               41403807.99999938}});
  expect_run(network, monet::testing::tpu_bus(), quad_mapping(), kAutomatic,
             {"bus_r18",
              4618,
              14151,
              0xf17355ba67c3111e,
              0x749359bc9114f3d1,
              0xf2972cda61952586,
              11459036.666666672,
              {223336658.560003, 367234.6875, 2290014497.599758, 69216.0, 278773342.0799961, 0.0,
               0.0, 326600.0, 41668605.440000765}});
  expect_run(network, monet::testing::tpu_quad(1 << 19, 0.5), quad_mapping(), kAutomatic,
             {"mid_r18",
              3539,
              20853,
              0x4a59d51a5357f76d,
              0xdeaf6e17563fbaa5,
              0x2232c3bbe9376e3d,
              13112595.6666667,
              {218481509.12000173, 1609864.5, 5434578073.599739, 177408.0, 359683407.35999215, 0.0,
               0.0, 1249024.0, 27789287.999998238}});
  expect_run(network, monet::testing::tpu_quad(1 << 21), quad_mapping(), kAutomatic,
             {"two_r18",
              4102,
              22177,
              0xdcd7f9c74e6f5931,
              0xee7ca2c3f67d5250,
              0x644f5295a604ac96,
              12636966.500000024,
              {219573401.28000233, 0.0, 3447681257.5997486, 0.0, 354735431.6799898, 0.0, 0.0, 0.0,
               31668768.959996827}});
  expect_run(network, monet::testing::eyeriss_quad(), quad_mapping(), kAutomatic,
             {"eyequad_r18",
              3539,
              10364,
              0x7d37cbac0cc1313a,
              0x9ceafdb76429d470,
              0xf185a59985a0d045,
              17628934.666666687,
              {218481509.12000173, 0.0, 3394831540.0, 0.0, 12756800.0, 0.0, 0.0, 0.0, 48190240.0}});
  expect_run(network, monet::testing::tpu_quad(), whole_mapping(), kLayers,
             {"flex_lbl",
              48,
              144,
              0x15ffd4635bb33a78,
              0x32e1a71a1244e4d8,
              0x5a567d4508a709ed,
              15423783.166666681,
              {215952543.03999996, 0.0, 3028504000.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}});
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
