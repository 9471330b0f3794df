#include "level.hpp"
#include "report/hand_made_step.hpp"
#include "report/json_schema.hpp"
#include "report/shared/text.hpp"
#include "report/timeline_json.hpp"
#include "schedule/fixed_costs.hpp"
#include "schedule/random_cases.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/files.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace monet::test {
namespace MONET_TEST_FILE {

using Json = nlohmann::ordered_json;

double sum(const Json& list, const char* key) {
  double total = 0;
  for (const Json& entry : list)
    total += entry.at(key).get<double>();
  return total;
}

std::int64_t whole_sum(const Json& list, const char* key) {
  std::int64_t total = 0;
  for (const Json& entry : list)
    total += entry.at(key).get<std::int64_t>();
  return total;
}

TEST(StepJson, FiguresAreThoseAddedUpByHand) {
  const HandMade made = hand_made_step();
  const Json json = step_json(made.result(), made.chip);
  EXPECT_EQ(json["kind"], "training");
  EXPECT_EQ(json["latency_cycles"], 90);
  EXPECT_EQ(json["latency_seconds"], 90e-9);
  EXPECT_EQ(json["frequency_hz"], 1e9);
  EXPECT_EQ(json["parameters"], 8); // w is 2 x 4; the updated weight is the same memory
  EXPECT_EQ(json["macs"].dump(),
            R"({"forward":8,"backward_input":0,"backward_weight":8,"total":16})");
  // compute 8 + 8.5 + 1; on chip 3.25 + 4 + 0.5 of runs and 1.5 + 2.5 + 0.75 of transfers;
  // links 64 + 8 + 148; off-chip 100.25 + 200.
  EXPECT_EQ(
      json["energy"].dump(),
      R"({"compute_pj":17.5,"onchip_memory_pj":12.5,"links_pj":220.0,"offchip_pj":300.25,"leakage_pj":0.0})");
  EXPECT_EQ(json["energy_pj"], 550.25);
  EXPECT_EQ(json["peak_memory_bytes"], 80);
  EXPECT_EQ(json["memory"].dump(),
            R"({"parameters_bytes":32,"gradients_bytes":32,"optimizer_state_bytes":0,)"
            R"("stored_activations_bytes":16,"temporaries_bytes":0,"peak_cycle":40})");
}

TEST(StepJson, PhasesHaveTheirOwnPeaks) {
  const HandMade made = hand_made_step();
  const Json phases = step_json(made.result(), made.chip).at("phases");
  ASSERT_EQ(phases.size(), 3U);
  EXPECT_EQ(phases[0]["phase"], "forward");
  EXPECT_EQ(phases[0]["latency_cycles"], 30);
  EXPECT_EQ(phases[0]["energy_pj"], 177.0); // 8 + 3.25 + 64 + 100.25 + 1.5
  EXPECT_EQ(phases[0]["peak_memory_bytes"], 56);
  EXPECT_EQ(phases[0]["memory"]["peak_cycle"], 10);
  EXPECT_EQ(phases[1]["peak_memory_bytes"], 80);
  EXPECT_EQ(phases[1]["macs"], 8);
  // The sample of cycle 70 counts for the phase that begins there, not for the one that ends.
  EXPECT_EQ(phases[2]["peak_memory_bytes"], 64);
  EXPECT_EQ(phases[2]["memory"]["peak_cycle"], 70);
}

// A phase that runs behind an earlier one has no latency of its own, but works.
TEST(StepJson, PhasesAreBusyWhileTheirTilesRun) {
  HandMade made = hand_made_step();
  const auto busy = [&] {
    std::vector<std::int64_t> cycles;
    const Json json = step_json(made.result(), made.chip);
    for (const Json& phase : json.at("phases"))
      cycles.push_back(phase.at("busy_cycles").get<std::int64_t>());
    return cycles;
  };
  EXPECT_EQ(busy(), (std::vector<std::int64_t>{20, 30, 6}));
  // Further tiles of the forward phase: one inside the first, one over its end, one at the end.
  std::vector<TileRun>& runs = made.timeline.runs;
  TileRun run = runs.front();
  for (const auto& [start, end] : {std::pair{12, 20}, std::pair{25, 45}, std::pair{80, 89}}) {
    run.start = {start};
    run.end = {end};
    runs.push_back(run);
  }
  std::ranges::sort(runs, {}, [](const TileRun& r) { return r.start; });
  std::vector<PhaseSpan>& phases = made.timeline.phases;
  phases[0].end = phases[1].start = phases[1].end = phases[2].start = {89};
  EXPECT_EQ(busy(), (std::vector<std::int64_t>{35 + 9, 30, 6}));
  // Its tiles share [40, 45) with the forward phase, and [70, 74) follows them: 2.5 + 25 + 4.
  const Json json = step_json(made.result(), made.chip);
  std::vector<std::int64_t> latencies;
  for (const Json& phase : json.at("phases"))
    latencies.push_back(phase.at("latency_cycles"));
  EXPECT_EQ(latencies, (std::vector<std::int64_t>{53, 31, 6}));
}

TEST(StepJson, NamesHowLayersScatter) {
  HandMade made = hand_made_step();
  EXPECT_FALSE(step_json(made.result(), made.chip).at("layers")[0].contains("variant"));
  made.timeline.costs[0].variant = "decomposed";
  Json json = step_json(made.result(), made.chip);
  EXPECT_EQ(json.at("layers")[0].at("variant"), "decomposed");
  made.timeline.runs.push_back(made.timeline.runs[0]);
  made.timeline.runs.back().cost = static_cast<std::uint32_t>(made.timeline.costs.size());
  made.timeline.costs.push_back(made.timeline.costs[0]);
  made.timeline.costs.back().variant = "gather";
  json = step_json(made.result(), made.chip);
  EXPECT_EQ(json.at("layers")[0].at("variant"), "decomposed, gather");
}

TEST(StepJson, PhasePeakMayHoldFromBefore) {
  HandMade made = hand_made_step();
  made.timeline.phases[1].end = made.timeline.phases[2].start = {75};
  const Json phases = step_json(made.result(), made.chip).at("phases");
  EXPECT_EQ(phases[2]["peak_memory_bytes"], 64); // allocated at 70, still there at 75
  EXPECT_EQ(phases[2]["memory"]["peak_cycle"], 75);
}

TEST(StepJson, CoresAndLinks) {
  const HandMade made = hand_made_step();
  const Json json = step_json(made.result(), made.chip);
  const Json& cores = json["cores"];
  EXPECT_EQ(cores[0]["energy_pj"], 25.25); // two runs and 1.5 of the fetch from the DRAM
  EXPECT_EQ(cores[1]["energy_pj"], 4.75);  // one run, 2.5 received, 0.75 sent off-chip
  EXPECT_EQ(cores[2]["energy_pj"], 300.25);
  EXPECT_EQ(cores[2]["kind"], "offchip");
  EXPECT_EQ(cores[0]["busy_cycles"], 50);
  EXPECT_EQ(cores[0]["utilisation"], 50.0 / 90.0);
  EXPECT_EQ(cores[2]["busy_cycles"], 20); // [0, 10) and [80, 90)
  EXPECT_EQ(cores[0]["tiles"], 2);
  // 128 + 256 + 64, then 64 freed and 256 allocated in one cycle: 640 bits, not 704.
  EXPECT_EQ(cores[0]["peak_memory_bytes"], 80);
  EXPECT_EQ(cores[0]["capacity_bytes"], 1024);
  const Json& links = json["links"];
  EXPECT_EQ(links[0]["energy_pj"], 28.0);  // 8 and 20 of the 148
  EXPECT_EQ(links[1]["energy_pj"], 192.0); // 64 and 128 of the 148
  EXPECT_EQ(links[0]["busy_cycles"], 14);
  EXPECT_EQ(links[1]["bits"], 384);
}

TEST(StepJson, PortsAndPartsOfBandwidth) {
  const HandMade made = hand_made_step();
  const Json json = step_json(made.result(), made.chip);
  const Json& ports = json["ports"];
  ASSERT_GE(ports.size(), 1U);
  EXPECT_EQ(ports[0]["bits"].get<int>() + (ports.size() > 1 ? ports[1]["bits"].get<int>() : 0),
            128 + 256);
  EXPECT_EQ(ports[0]["busy_cycles"].get<int>() +
                (ports.size() > 1 ? ports[1]["busy_cycles"].get<int>() : 0),
            20);
  // Link 0 carries 512 bits in 90 cycles of 64.
  EXPECT_EQ(json["links"][0]["bandwidth_utilisation"], 512.0 / (90 * 64));
}

TEST(StepJson, MemoryByTensorAndByCore) {
  const HandMade made = hand_made_step();
  const Json onchip = step_json(made.result(), made.chip).at("timeline").at("onchip");
  EXPECT_EQ(onchip["cycles"].dump().substr(0, 14), "[0,10,40,70,74");
  ASSERT_EQ(onchip["memories"].size(), 2U);
  // Core 0: x and w, then y, then dw instead of y.
  EXPECT_EQ(onchip["memories"][0]["bytes"].dump().substr(0, 12), "[48,56,80,80");
  EXPECT_EQ(onchip["memories"][1]["bytes"].dump().substr(0, 12), "[0,0,0,32,64");
  for (std::size_t i = 0; i < onchip["cycles"].size(); ++i) {
    int by_tensor = onchip["rest_bytes"][i];
    for (const Json& tensor : onchip["tensors"])
      by_tensor += tensor["bytes"][i].get<int>();
    int by_core = 0;
    for (const Json& memory : onchip["memories"])
      by_core += memory["bytes"][i].get<int>();
    EXPECT_EQ(by_tensor, by_core);
  }
}

TEST(StepJson, TheCriticalPathCoversTheStep) {
  const HandMade made = hand_made_step();
  const Json path = step_json(made.result(), made.chip).at("critical_path");
  // Nothing is known of what [30, 40) waits for: it counts for what begins at 40.
  EXPECT_EQ(path["segments"].dump(),
            "[[0,10,2,0,2,1,0,0],[10,30,0,0,0,null,null,0],[30,40,4,null,null,null,null,1],"
            "[40,70,0,1,0,null,null,1],[70,74,1,2,0,0,3,2],[74,80,0,2,1,null,null,2],"
            "[80,90,2,2,1,0,4,2]]");
  EXPECT_EQ(path["compute_cycles"].get<int>() + path["link_cycles"].get<int>() +
                path["offchip_cycles"].get<int>() + path["capacity_cycles"].get<int>() +
                path["order_cycles"].get<int>(),
            90);
}

/// Whether layers and phases each explain every cycle of the latency, and the segments say so.
std::int64_t member_sum(const Json& object) {
  std::int64_t sum = 0;
  for (const Json& member : object)
    sum += member.get<std::int64_t>();
  return sum;
}

void check_columns(const Json& json) {
  const std::int64_t latency = json.at("latency_cycles");
  EXPECT_EQ(whole_sum(json.at("layers"), "critical_path_cycles"), latency);
  EXPECT_EQ(whole_sum(json.at("phases"), "critical_path_cycles"), latency);
  const Json& layers = json.at("layers");
  std::vector<std::int64_t> counted(layers.size());
  for (const Json& row : json.at("critical_path").at("segments"))
    counted.at(row.at(7).get<std::size_t>()) +=
        row[1].get<std::int64_t>() - row[0].get<std::int64_t>();
  for (const char* list : {"layers", "phases"}) {
    for (const Json& row : json.at(list))
      EXPECT_EQ(member_sum(row.at("critical_path")), row.at("critical_path_cycles"));
  }
  for (const Json& layer : layers)
    EXPECT_EQ(member_sum(layer.at("busy")), layer.at("busy_cycles"));
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (!json.at("critical_path").contains("segments_per_row")) {
      EXPECT_EQ(layers[i].at("critical_path_cycles"), counted[i]) << i;
    }
    EXPECT_EQ(layers[i].at("span_cycles").get<std::int64_t>(),
              layers[i].at("end_cycle").get<std::int64_t>() -
                  layers[i].at("start_cycle").get<std::int64_t>());
  }
}

TEST(StepJson, TheCriticalPathIsSplitOverLayersAndPhases) {
  const HandMade made = hand_made_step();
  const Json json = step_json(made.result(), made.chip);
  check_columns(json);
  for (const char* list : {"layers", "phases"}) {
    EXPECT_EQ(json.at(list)[0].at("critical_path_cycles"), 30);
    EXPECT_EQ(json.at(list)[1].at("critical_path_cycles"), 40); // ten of waiting
    EXPECT_EQ(json.at(list)[2].at("critical_path_cycles"), 20);
  }
}

// Inference and training, fused and not, in memories large and small, over links of any latency.
TEST(StepJson, TheCriticalPathOfRandomStepsIsSplitWithoutRest) {
  std::array<testing::CaseShape, 4> shapes;
  for (std::size_t i = 1; i < shapes.size(); ++i)
    shapes[i].network = {.operators = 5, .training = true};
  shapes[2].system = {.cores = 4, .min_bits = 1 << 13, .max_bits = 1 << 14};
  shapes[3].fused = shapes[3].system.latency = true;
  for (int seed = 1; seed <= cases(200, 1000, 4000) && !HasFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const auto number = static_cast<std::uint64_t>(seed);
    const testing::RandomCase c =
        testing::random_case(3'000'000 + number, shapes[number % shapes.size()]);
    const Timeline timeline =
        testing::schedule_with(c.tiles, c.step, c.chip, testing::hashed_cost, c.priority);
    check_columns(step_json({&c.step, &c.tiles, &timeline}, c.chip));
  }
}

TEST(StepJson, LongListsAreThinnedOut) {
  const HandMade made = hand_made_step();
  const Json json = timeline_json(made.result(), made.chip, {.rows = 2, .samples = 2});
  EXPECT_EQ(json["runs_per_row"], 2);
  EXPECT_EQ(json["runs"].dump(), "[[0,0,10,70],[1,2,74,80]]");
  EXPECT_EQ(json["transfers_per_row"], 2);
  EXPECT_EQ(json["transfers"].size(), 3U); // one per route
  EXPECT_LE(json["memory"]["cycles"].size(), 2U);
  EXPECT_LE(json["onchip"]["cycles"].size(), 2U);
}

TEST(StepJson, LeakageBelongsToCoresAndPhases) {
  HandMade made = hand_made_step();
  made.timeline.leakage = {Energy{640}, Energy{64}, Energy{6400}};
  const Json json = step_json(made.result(), made.chip);
  EXPECT_EQ(json["energy"]["leakage_pj"], 111.0);
  const double total = json["energy_pj"];
  EXPECT_EQ(sum(json["phases"], "energy_pj"), total);
  EXPECT_EQ(sum(json["cores"], "energy_pj") + sum(json["links"], "energy_pj"), total);
  EXPECT_EQ(sum(json["layers"], "energy_pj"), total - 111.0);
}

TEST(StepJson, LayersCarryRunsAndTransfers) {
  const HandMade made = hand_made_step();
  const Json layers = step_json(made.result(), made.chip).at("layers");
  EXPECT_EQ(
      layers[2].dump(),
      R"({"name":"fc/update","op_type":"SgdUpdate","phase":"update","macs":0,"critical_path_cycles":20,)"
      R"("span_cycles":6,"busy_cycles":6,"utilisation":0.5,"energy_pj":360.75,"start_cycle":74,"end_cycle":80,"cores":[1],"offchip_bytes":32,)"
      R"("energy":{"compute_pj":1.0,"onchip_memory_pj":3.75,"links_pj":156.0,"offchip_pj":200.0,)"
      R"("leakage_pj":0.0},)"
      R"("critical_path":{"compute_cycles":6,"link_cycles":4,"offchip_cycles":10,"capacity_cycles":0,)"
      R"("order_cycles":0},)"
      R"("busy":{"work_cycles":3,"idle_lanes_cycles":3,"instructions_cycles":0,"stall_cycles":0,)"
      R"("loading_cycles":0,"streaming_cycles":0},)"
      R"("dims":{"K":2,"C":4}})");
}

TEST(StepJson, TimelineIsCompactRows) {
  const HandMade made = hand_made_step();
  const Json timeline = step_json(made.result(), made.chip).at("timeline");
  EXPECT_EQ(timeline["runs"].dump(), "[[0,0,10,30],[0,1,40,70],[1,2,74,80]]");
  EXPECT_EQ(timeline["transfers"].dump(),
            "[[0,[1],0,0,10,128,2,0,0],[0,[0],2,70,74,256,0,1,3],[2,[0,1],2,80,90,256,1,2,4]]");
  EXPECT_EQ(timeline["memory"]["cycles"].dump(), "[0,10,40,70,90]");
  EXPECT_EQ(timeline["memory"]["temporaries_bytes"].dump(), "[0,8,0,0,0]");
}

TEST(StepJson, CoresThatShareAMemoryShowOnePeak) {
  HandMade made = hand_made_step();
  made.chip.shared_memory = {{CoreId(0), CoreId(1)}};
  for (MemorySlot& place : made.timeline.places)
    place.memory = CoreId(0);
  const Json cores = step_json(made.result(), made.chip).at("cores");
  EXPECT_EQ(cores[0]["peak_memory_bytes"], (640 + 256 + 256) / 8);
  EXPECT_EQ(cores[1]["peak_memory_bytes"], cores[0]["peak_memory_bytes"]);
}

TEST(StepJson, WhatIsComputedAgainBelongsToBackward) {
  HandMade made = hand_made_step();
  const Json before = step_json(made.result(), made.chip).at("phases");
  Graph again = made.step.graph;
  made.step.graph = Graph{};
  made.step.graph.name = again.name;
  for (const Tensor& tensor : again.tensors()) {
    Tensor copy = tensor;
    copy.producer.reset();
    copy.consumers.clear();
    made.step.graph.add_tensor(std::move(copy));
  }
  for (Operator op : again.operators()) {
    if (op.phase == Phase::backward)
      op.phase = Phase::recompute;
    made.step.graph.add_operator(op);
  }
  EXPECT_EQ(step_json(made.result(), made.chip).at("phases"), before);
}

TEST(StepJson, ALostPhaseIsOurBug) {
  HandMade made = hand_made_step();
  made.timeline.phases.pop_back();
  EXPECT_THROW(step_json(made.result(), made.chip), InternalError);
}

// Any energies whatever: every split has the same sum to the last bit, added up as doubles in the
// order of the file.
RC_GTEST_PROP(StepJson, EverySplitAddsUpExactly, ()) {
  HandMade made = hand_made_step();
  const auto energy = [] { return Energy{*rc::gen::inRange<std::int64_t>(0, 1'000'000'000'000)}; };
  for (RunCost& run : made.timeline.costs) {
    run.compute = energy();
    run.memory = energy();
  }
  for (TransferCost& transfer : made.timeline.transfer_costs) {
    transfer.link_energy = energy();
    transfer.onchip_energy = energy();
    if (transfer.offchip_energy.units > 0)
      transfer.offchip_energy = energy();
  }
  for (Link& link : made.chip.links) {
    link.energy_pj_per_cycle = *rc::gen::inRange(0, 1000) * 0.1;
    link.energy_pj_per_bit = *rc::gen::inRange(0, 1000) * 0.001;
  }
  const Json json = step_json(made.result(), made.chip);
  const double total = json.at("energy_pj").get<double>();
  RC_ASSERT(total == energy_of(made.timeline).total().picojoules().value);
  RC_ASSERT(sum(json.at("layers"), "energy_pj") == total);
  RC_ASSERT(sum(json.at("phases"), "energy_pj") == total);
  RC_ASSERT(sum(json.at("cores"), "energy_pj") + sum(json.at("links"), "energy_pj") == total);
  double components = 0;
  for (const auto& [name, part] : json.at("energy").items())
    components += part.get<double>();
  RC_ASSERT(components == total);
  for (const Json& link : json.at("links"))
    RC_ASSERT(link.at("energy_pj").get<double>() >= 0);
}

nlohmann::json schema() {
  return nlohmann::json::parse(read_file(MONET_SOURCE_DIR "/docs/result.schema.json"));
}

TEST(ResultJson, FollowsItsSchema) {
  const Json json = hand_made_step().json();
  EXPECT_EQ(schema_violations(schema(), nlohmann::json::parse(json.dump())),
            std::vector<std::string>{});
  Json wrong = json;
  wrong["layers"][0]["phase"] = "sideways";
  EXPECT_EQ(schema_violations(schema(), nlohmann::json::parse(wrong.dump())).size(), 1U);
}

TEST(ResultJson, HoldsInferenceAndProvenance) {
  const Json json = hand_made_step().json();
  EXPECT_EQ(json["schema_version"], 1);
  EXPECT_EQ(json["inference"]["kind"], "inference");
  EXPECT_FALSE(json["inference"].contains("provenance"));
  EXPECT_EQ(json["provenance"].dump(),
            R"({"version":"0.1.0","git_hash":"abc","seed":0,"inputs":{"net.onnx":"00ff"},)"
            R"("options":{"mode":"layer-by-layer"}})");
  EXPECT_EQ(json.dump(), hand_made_step().json().dump());
}

TEST(ResultJson, BytesThatAreNotUtf8BecomeReplacementCharacters) {
  const Json json = hand_made_step("a\xFF\"\n</script>").json("\xC3");
  EXPECT_EQ(json["name"], "\xEF\xBF\xBD");
  EXPECT_EQ(json["layers"][0]["name"], "a\xEF\xBF\xBD\"\n</script>");
  EXPECT_EQ(Json::parse(json_text(json)), json);
}

} // namespace MONET_TEST_FILE
} // namespace monet::test
