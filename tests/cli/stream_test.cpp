// monet schedule --model stream-coala.
#include "cli/run_monet.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace monet::test {
namespace {

using ::testing::HasSubstr;

struct Files {
  Scratch scratch;
  std::string mapping = repository("examples/stream/quad_core_mapping.yaml");

  Ran run(std::vector<std::string> more) const {
    std::vector<std::string> all{"schedule",
                                 "--model",
                                 "stream-coala",
                                 "--hardware",
                                 repository("data/hardware/tpu_like_quad_core.yaml"),
                                 "--workload",
                                 repository("data/workload/resnet18_cifar.onnx"),
                                 "--batch",
                                 "1"};
    all.insert(all.end(), more.begin(), more.end());
    return run_monet(all, scratch.path());
  }
};

double sum_of(const nlohmann::json& terms) {
  double sum = 0;
  for (const auto& term : terms)
    sum += term.get<double>();
  return sum;
}

TEST(StreamCoala, OwnCostsGivenBackAsAFileGiveTheSameSchedule) {
  if (!has_component("reference"))
    GTEST_SKIP();
  const Files files;
  const std::vector<std::string> fused{"--mapping", files.mapping, "--mode", "fused"};
  std::vector<std::string> first = fused;
  first.insert(first.end(), {"--json", files.scratch / "own.json"});
  const Ran ran = files.run(first);
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("578 tiles in 47 layers, as the reference scheduler Stream"));
  const auto own = parse_file(files.scratch / "own.json");
  EXPECT_EQ(own.at("model"), "stream-coala");
  EXPECT_EQ(own.at("tiles").size(), 578U);
  EXPECT_NEAR(sum_of(own.at("energy")), own.at("energy_pj").get<double>(),
              1e-9 * own.at("energy_pj").get<double>());
  double last = 0;
  for (const char* rows : {"tiles", "link_events"}) {
    for (const auto& row : own.at(rows))
      last = std::max(last, row.at("end").get<double>());
  }
  EXPECT_EQ(own.at("latency_cycles"), last);

  // Rows of the result are rows of the reference's schedule.json and comm_events.json.
  files.scratch.file("schedule.json", own.at("tiles").dump());
  files.scratch.file("comm_events.json", own.at("link_events").dump());
  std::vector<std::string> second = fused;
  second.insert(second.end(), {"--core-costs", files.scratch.path().string(), "--json",
                               files.scratch / "again.json"});
  ASSERT_EQ(files.run(second).code, 0);
  const auto again = parse_file(files.scratch / "again.json");
  EXPECT_EQ(again.at("tiles"), own.at("tiles"));
  EXPECT_EQ(again.at("link_events"), own.at("link_events"));
  EXPECT_EQ(again.at("provenance").at("options").at("core_costs"), "files");

  const std::string stacks = files.scratch.file("stacks.yaml", "stacks: [[0, 1, 2], [3, 4]]\n");
  std::vector<std::string> third = fused;
  third.insert(third.end(), {"--core-costs", files.scratch.path().string(), "--stacks", stacks});
  const Ran other = files.run(third);
  EXPECT_EQ(other.code, 3);
  EXPECT_THAT(other.err, HasSubstr("but costs of other tiles"));
}

TEST(StreamCoala, WhatIsMissingOrWrongIsSaid) {
  if (!has_component("reference"))
    GTEST_SKIP();
  const Files files;
  const auto expect = [&](const std::vector<std::string>& more, int code, const std::string& text) {
    const Ran ran = files.run(more);
    EXPECT_EQ(ran.code, code) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr(text));
  };
  expect({}, 2, "--model stream-coala requires the --mapping");
  expect({"--mapping", files.mapping, "--training", repository("data/training/sgd.yaml")}, 2,
         "--model stream-coala schedules inference");
  expect({"--mapping", files.mapping, "--objective", "energy"}, 2,
         "--objective and --lpf-limit require --model monet");
  expect({"--mapping", files.mapping, "--lpf-limit", "4"}, 2,
         "--objective and --lpf-limit require --model monet");
  expect({"--mapping", files.mapping, "--priority", "order"}, 2,
         "--priority requires --model monet");
  expect({"--mapping", files.mapping, "--stream-like", "links"}, 2,
         "--stream-like requires --model monet");
  expect({"--mapping", files.mapping, "--stacks", "s.yaml", "--mode", "layer-by-layer"}, 2,
         "leave out --mode");
  const std::string experiment =
      files.scratch.file("e.yaml", "schedule: {mode: fused, model: stream-coala}\n");
  const Ran ran = run_monet({"run", experiment}, files.scratch.path());
  EXPECT_THAT(
      ran.err,
      HasSubstr("e.yaml:1:32: the reference's model has a result of another form (use monet "
                "schedule --model stream-coala)"));
  expect({"--mapping", files.mapping, "--core-costs", "absent.json"}, 3, "absent.json");
  const std::string stacks = files.scratch.file("stacks.yaml", "- [no such layer]\n");
  expect({"--mapping", files.mapping, "--mode", "fused", "--stacks", stacks}, 3,
         "stacks.yaml:1:4: no layer is called 'no such layer'");
  const std::string bad = files.scratch.file("bad.json", "[{\"id\": 0}]");
  expect({"--mapping", files.mapping, "--core-costs", bad}, 3,
         "bad.json [row 0]: 'core' is missing");
}

} // namespace
} // namespace monet::test
