// Core costs from files: formats, how they are matched with tiles, and what is said of bad ones.
#include "reference/stream/systems.hpp"
#include "reference/stream/tiles_networks.hpp"

#include "monet/reference/stream_costs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace monet::stream {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A convolution of 8 channels and a Relu, each on cores 0 to 3.
struct Case {
  Chip chip = monet::testing::tpu_quad();
  Workload workload;

  explicit Case(StreamOptions::Mode mode) {
    monet::testing::StreamNetwork net;
    net.relu(net.conv(net.input({1, 3, 16, 16}), 8, 3));
    workload =
        make_stream_workload(net.graph, chip, monet::testing::quad_mapping("4", "4"), {mode, {}});
  }
  Costs costs(const std::vector<std::string>& files) const {
    CostTable table;
    for (std::size_t i = 0; i < files.size(); ++i) {
      const CostTable more = parse_core_costs(files[i], fmt::format("file{}.json", i));
      table.costs.insert(table.costs.end(), more.costs.begin(), more.costs.end());
      table.tiles.insert(table.tiles.end(), more.tiles.begin(), more.tiles.end());
      table.streams.insert(table.streams.end(), more.streams.begin(), more.streams.end());
      table.has_events = table.has_events || more.has_events;
    }
    return core_costs(table, workload, chip);
  }
};

std::string own_rows(const std::string& conv, const std::string& relu) {
  std::string rows;
  for (int core = 0; core < 4; ++core) {
    rows += fmt::format("{}{{\"node\": \"n0\", \"core\": {}, {}}}, {{\"id\": 1, \"core\": {}, {}}}",
                        core == 0 ? "" : ", ", core, conv, core, relu);
  }
  return "{\"costs\": [" + rows + "]}";
}

std::string message(const std::string& text) {
  try {
    parse_core_costs(text, "costs.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

std::string message(const Case& c, const std::vector<std::string>& files) {
  try {
    c.costs(files);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(StreamCosts, own_format_by_name_or_id) {
  const Case fused(StreamOptions::Mode::fused);
  const Costs costs = fused.costs({own_rows(
      "\"dims\": {\"K\": 2, \"OY\": 4}, \"runtime_cycles\": 10.5, \"onchip_energy_pj\": 3",
      "\"runtime_cycles\": 7, \"onchip_energy_pj\": 2, \"offchip_energy_pj\": 1")});
  ASSERT_EQ(costs.of_tile.size(), fused.workload.tiles.size());
  EXPECT_EQ(costs.of(0).runtime, 10.5);
  EXPECT_EQ(costs.of(0).onchip_pj, 3);
  EXPECT_TRUE(costs.of(0).streamed.empty());
  EXPECT_EQ(costs.of(fused.workload.layers[1].first_tile).offchip_pj, 1);
}

TEST(StreamCosts, layers_and_cores_without_cost_are_named) {
  const Case fused(StreamOptions::Mode::fused);
  const std::string row = "\"core\": 0, \"runtime_cycles\": 1, \"onchip_energy_pj\": 1}";
  EXPECT_THAT(message(fused, {"[{\"id\": 0, " + row + "]"}),
              HasSubstr("file0.json [layer 0 'n0']: no cost of its tiles (B 1, K 2, G 1, OX 16, C "
                        "3, FX 3, OY 4, FY 3) on core 1"));
  EXPECT_THAT(message(fused, {"[{\"id\": 0, \"dims\": {\"OY\": 5}, " + row + "]"}),
              AllOf(HasSubstr("on core 0"), HasSubstr("costs of other tiles")));
  EXPECT_THAT(message(fused, {"[{\"id\": 0, \"sub_id\": 0, \"runtime\": 1, \"onchip_energy\": 1, "
                              "\"offchip_energy\": 0, \"core\": 0}]"}),
              HasSubstr("costs of other tiles"));
}

TEST(StreamCosts, streams_need_their_bandwidth) {
  const Case alone(StreamOptions::Mode::layer_by_layer);
  const std::string figures = "\"runtime_cycles\": 5, \"onchip_energy_pj\": 3";
  // Where no file gives it, our own core model does.
  const Costs completed = alone.costs({own_rows(figures, figures)});
  EXPECT_EQ(completed.of(0).offchip_bandwidth,
            core_costs(alone.workload, alone.chip).of(0).offchip_bandwidth);
  EXPECT_EQ(completed.of(0).runtime, 5);
  ASSERT_EQ(completed.notes.size(), 2U);
  EXPECT_EQ(completed.notes[0].name, "bandwidths from MONET's core model");
  const std::string all = figures + ", \"offchip_bandwidth\": {\"O\": 1, \"I1\": 2, \"I2\": 3}";
  const Costs costs = alone.costs({own_rows(all, all)});
  EXPECT_THAT(costs.of(0).streamed,
              ElementsAre(MemoryOperand::O, MemoryOperand::I2, MemoryOperand::I1));
  EXPECT_THAT(costs.of(0).offchip_bandwidth, ElementsAre(2, 3, 1)); // I1, I2, O
  const Costs given = alone.costs({own_rows(
      figures + ", \"too_large_operands\": [\"I1\"], \"offchip_bandwidth\": {\"I1\": 2}", all)});
  EXPECT_THAT(given.of(0).streamed, ElementsAre(MemoryOperand::I1));
}

// The recorded files: runtimes keep their fraction, energies are those of the run, an operand that
// cores share has one block.
TEST(StreamCosts, files_of_the_reference) {
  const Case alone(StreamOptions::Mode::layer_by_layer);
  std::string lut;
  std::string ran;
  std::string events;
  for (int layer = 0; layer < 2; ++layer) {
    for (int core = 0; core < 4; ++core) {
      const char* comma = lut.empty() ? "" : ",";
      lut += fmt::format("{}{{\"node\": \"x\", \"id\": {}, \"core\": {}, \"latency_total1\": "
                         "9.75, \"latency_total2\": 11.25, \"energy_total\": 100}}",
                         comma, layer, core);
      ran += fmt::format("{}{{\"id\": {}, \"sub_id\": {}, \"core\": {}, \"runtime\": {}, "
                         "\"onchip_energy\": 60, \"offchip_energy\": 40}}",
                         comma, layer, core, core, layer == 0 ? 11 : 9);
    }
    for (const char* operand : {"O", "I", "W"}) {
      events += fmt::format("{}{{\"link\": \"l\", \"type\": \"block\", \"activity\": {}, "
                            "\"tensor\": \"Tensor({}, 0, {})\", \"sender\": {}, \"receiver\": {}}}",
                            events.empty() ? "" : ",", 5.0, layer, operand,
                            operand[0] == 'O' ? 0 : 6, operand[0] == 'O' ? 6 : 0);
    }
  }
  const Costs costs = alone.costs({"[" + lut + "]", "[" + ran + "]", "[" + events + "]"});
  EXPECT_EQ(costs.of(0).runtime, 11.25);
  EXPECT_EQ(costs.of(4).runtime, 9.75);
  EXPECT_EQ(costs.of(3).onchip_pj, 60);
  EXPECT_EQ(costs.of(3).offchip_pj, 40);
  EXPECT_THAT(costs.of(3).offchip_bandwidth, ElementsAre(5, 5, 5));
}

TEST(StreamCosts, a_folder_or_files) {
  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / "monet_stream_costs";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "cost_lut.json")
      << "[{\"id\": 0, \"core\": 0, \"latency_total2\": 1, \"energy_total\": 2}]";
  EXPECT_EQ(read_core_costs({folder.string()}).costs.size(), 1U);
  EXPECT_EQ(read_core_costs({(folder / "cost_lut.json").string()}).costs.size(), 1U);
  std::filesystem::remove(folder / "cost_lut.json");
  EXPECT_THROW(read_core_costs({folder.string()}), InputError);
  EXPECT_THROW(read_core_costs({(folder / "cost_lut.json").string()}), InputError);
  std::filesystem::remove_all(folder);
}

TEST(StreamCosts, bad_content_is_located) {
  EXPECT_THAT(message("[{\"id\": 0,\n  oops}]"), HasSubstr("costs.json:2:3: this is not JSON"));
  EXPECT_THAT(message("{}"), HasSubstr("core costs are a list of rows"));
  EXPECT_THAT(message("[7]"), HasSubstr("costs.json [row 0]: a row must be an object"));
  EXPECT_THAT(message("[{\"core\": 0, \"latency_total2\": 1}]"),
              HasSubstr("neither 'id' nor 'node' identifies the layer"));
  EXPECT_THAT(message("[{\"id\": 0, \"core\": -1, \"latency_total2\": 1}]"),
              HasSubstr("'core' must be a number between 0 and"));
  EXPECT_THAT(message("[{\"id\": 0.5, \"core\": 0, \"latency_total2\": 1}]"),
              HasSubstr("'id' must be a whole number"));
  EXPECT_THAT(message("[{\"id\": 0, \"core\": 0, \"latency_total2\": \"soon\"}]"),
              HasSubstr("'latency_total2' must be a number between 0 and"));
  EXPECT_THAT(message("[{\"id\": 0, \"core\": 0}]"),
              HasSubstr("'runtime_cycles' (or 'latency_total2') is missing"));
  EXPECT_THAT(message("[{\"id\": 0, \"core\": 0, \"runtime_cycles\": 1}]"),
              HasSubstr("'onchip_energy_pj' is missing"));
  EXPECT_THAT(message("[{\"id\": 0, \"core\": 0, \"latency_total2\": 1, \"offchip_bandwidth\": "
                      "{\"I3\": 1}}]"),
              HasSubstr("'I3' is not an operand"));
  EXPECT_THAT(message("[{\"id\": 0, \"core\": 0, \"latency_total2\": 1, \"too_large_operands\": "
                      "\"I1\"}]"),
              HasSubstr("'too_large_operands' must be a list"));
  EXPECT_THAT(message("[{\"link\": \"l\", \"type\": \"block\", \"tensor\": \"W\", \"activity\": "
                      "1, \"sender\": 0, \"receiver\": 1}]"),
              HasSubstr("'tensor' must be like"));
  EXPECT_THAT(message(std::string(1000, '[')), HasSubstr("nested too deeply"));
}

} // namespace
} // namespace monet::stream
