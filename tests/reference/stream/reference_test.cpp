// stream-coala against two complete runs of the reference scheduler: every tile, every link event,
// every energy and every peak. The figures are those of the original (upstream 303f9dc) with the
// core costs of ZigZag 3.8.1.
#include "reference/stream/systems.hpp"
#include "reference/stream/tiles_networks.hpp"

#include "monet/base/files.hpp"
#include "monet/reference/stream_costs.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace monet::stream {
namespace {

using nlohmann::json;

struct Reference {
  json figures;
  Workload workload;
  Chip chip = monet::testing::tpu_quad();
  Result result;
};

Reference run(const std::string& name, StreamOptions::Mode mode) {
  Reference reference;
  const std::string path =
      std::string(MONET_SOURCE_DIR) + "/tests/fixtures/stream/" + name + ".json";
  const std::string text = read_file(path);
  reference.figures = json::parse(text);
  StreamOptions options;
  options.mode = mode;
  reference.workload = make_stream_workload(monet::testing::resnet18(1), reference.chip,
                                            monet::testing::quad_mapping(), options);
  const Costs costs = core_costs(parse_core_costs(text, path), reference.workload, reference.chip);
  reference.result = schedule(reference.workload, reference.chip, costs);
  return reference;
}

void expect_tiles(const Reference& reference) {
  const Workload& workload = reference.workload;
  std::size_t tiles = 0;
  for (const auto& layer : reference.figures["tiles"].items())
    tiles += layer.value().size();
  ASSERT_EQ(workload.tiles.size(), tiles);
  for (std::uint32_t t = 0; t < workload.tiles.size(); ++t) {
    const Tile& tile = workload.tiles[t];
    const TileRun& run = reference.result.runs[t];
    const int layer = workload.layers[tile.layer].id;
    const json& row = reference.figures["tiles"][std::to_string(layer)][tile.sub];
    ASSERT_EQ(json::array({run.core.index(), run.start, run.end}), row)
        << "tile (" << layer << ", " << tile.sub << ")";
  }
}

void expect_events(const Reference& reference) {
  std::vector<json> events;
  for (const LinkEvent& event : reference.result.events) {
    const Tensor& tensor = reference.workload.tensors[event.tensor];
    events.push_back(
        {reference.chip.links[event.link.index()].name,
         event.kind == LinkEvent::Kind::block ? "block" : "transfer", event.start, event.end,
         reference.workload.layers[tensor.layer].id, reference.workload.tiles[tensor.tile].sub,
         std::string(1, letter_of(tensor.operand)), event.bits.value, event.sender.index(),
         event.receiver.index(), event.bandwidth, event.energy_pj});
  }
  std::vector<json> expected = reference.figures["events"];
  std::sort(events.begin(), events.end());
  std::sort(expected.begin(), expected.end());
  ASSERT_EQ(events.size(), expected.size());
  for (std::size_t i = 0; i < events.size(); ++i)
    ASSERT_EQ(events[i], expected[i]);
}

void expect_figures(const Reference& reference) {
  const Result& result = reference.result;
  EXPECT_EQ(result.latency, reference.figures["latency"].get<double>());
  std::vector<double> terms{result.energy.onchip_pj};
  for (std::size_t cause = 0; cause < kCauses; ++cause) {
    terms.push_back(result.energy.link_pj[cause]);
    terms.push_back(result.energy.memory_pj[cause]);
  }
  const std::vector<double> expected = reference.figures["energy"];
  ASSERT_EQ(terms.size(), expected.size());
  for (std::size_t i = 0; i < terms.size(); ++i)
    EXPECT_NEAR(terms[i], expected[i], 1e-9 * expected[i]) << "term " << i;
  std::vector<json> peaks;
  for (const MemoryPeak& peak : result.peaks) {
    json cores = json::array();
    for (const CoreId core : peak.cores)
      cores.push_back(core.index());
    peaks.push_back({peak.memory, cores, peak.peak.value, peak.capacity.value});
  }
  EXPECT_EQ(json(peaks), reference.figures["peaks"]);
  EXPECT_TRUE(result.notes.empty());
}

TEST(StreamReference, layer_by_layer) {
  const Reference reference = run("seg1_lbl", StreamOptions::Mode::layer_by_layer);
  EXPECT_EQ(reference.result.latency, 2806845);
  expect_tiles(reference);
  expect_events(reference);
  expect_figures(reference);
}

TEST(StreamReference, fused) {
  const Reference reference = run("seg1_fused", StreamOptions::Mode::fused);
  EXPECT_EQ(reference.result.latency, 3016663);
  EXPECT_EQ(reference.result.events.size(), 4051U);
  expect_tiles(reference);
  expect_events(reference);
  expect_figures(reference);
}

} // namespace
} // namespace monet::stream
