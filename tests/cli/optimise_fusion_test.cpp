// monet optimise fusion, as users run it.
#include "cli/run_monet.hpp"
#include "report/json_schema.hpp"

#include <gtest/gtest.h>

namespace monet::test {
namespace MONET_TEST_FILE {

const std::vector<std::string> kStep{"--hardware", repository("data/hardware/fusemax.yaml"),
                                     "--workload", repository("data/workload/resnet18_cifar.onnx"),
                                     "--batch",    "1"};

std::vector<std::string> search(const std::vector<std::string>& more) {
  std::vector<std::string> arguments{"optimise", "fusion", "--evaluations", "12"};
  arguments.insert(arguments.end(), kStep.begin(), kStep.end());
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(OptimiseFusion, StacksOutIsScheduledToTheSameCycle) {
  const Scratch scratch;
  const Ran found =
      run_monet(search({"--stacks-out", scratch / "best.yaml", "--json", scratch / "found.json"}));
  ASSERT_EQ(found.code, 0) << found.err;
  const nlohmann::json json = parse_file(scratch / "found.json");
  EXPECT_LE(json["bound"], json["best"]);
  for (const nlohmann::json& other : json["compared"])
    EXPECT_LE(json["best"], other["latency_cycles"]) << other["name"];
  EXPECT_GE(json["compared"].size(), 2U);
  // The best, layer by layer, and the tool's own choice.
  EXPECT_EQ(json["compared"].size() + json["skipped"].size(), 3U);
  EXPECT_FALSE(json["kept"].empty());
  for (const nlohmann::json& rule : json["kept"]) {
    EXPECT_GE(rule["fraction"], 0.0) << rule["rule"];
    EXPECT_LE(rule["fraction"], 1.0) << rule["rule"];
  }

  std::vector<std::string> again{"schedule", "--mode", "fused",   "--stacks", scratch / "best.yaml",
                                 "--json",   "-",      "--verify"};
  again.insert(again.end(), kStep.begin(), kStep.end());
  const Ran scheduled = run_monet(again);
  ASSERT_EQ(scheduled.code, 0) << scheduled.err;
  const nlohmann::json step = nlohmann::json::parse(scheduled.out);
  EXPECT_EQ(step["latency_cycles"], json["best"]);
  EXPECT_EQ(step["energy_pj"], json["figures"]["energy_pj"]);
}

TEST(OptimiseFusion, ResultsAreTheSameOnOneThreadAndOnTwo) {
  std::vector<std::string> found;
  for (const char* jobs : {"1", "2"}) {
    const Ran ran =
        run_monet(search({"--objective", "edp", "--with-original", "--jobs", jobs, "--json", "-"}));
    ASSERT_EQ(ran.code, 0) << ran.err;
    nlohmann::json json = nlohmann::json::parse(ran.out);
    EXPECT_EQ(json["compared"].size() + json["skipped"].size(), 5U); // two of the original study
    json.erase("seconds");
    found.push_back(json.dump());
  }
  EXPECT_EQ(found[0], found[1]);
}

// Pairs are decided layer by layer: the answer is no worse than that without them, and its step is
// the one that the training options make of the names it says.
TEST(OptimiseFusion, PairsOfGradientsAreThoseThatPay) {
  const Scratch scratch;
  const std::vector<std::string> step{"--hardware", repository("data/hardware/fusemax.yaml"),
                                      "--workload", small_network("gated_mlp")};
  const auto found = [&](const std::string& training, std::vector<std::string> more) {
    std::vector<std::string> arguments{"optimise",   "fusion", "--evaluations", "12",
                                       "--jobs",     "2",      "--json",        "-",
                                       "--training", training};
    arguments.insert(arguments.end(), step.begin(), step.end());
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Ran ran = run_monet(arguments);
    EXPECT_EQ(ran.code, 0) << ran.err;
    return nlohmann::json::parse(ran.out);
  };
  const nlohmann::json apart = found(repository("data/training/adam.yaml"), {});
  EXPECT_FALSE(apart.contains("pairing"));
  const nlohmann::json json = found(repository("data/training/adam_paired.yaml"),
                                    {"--verify", "--stacks-out", scratch / "best.yaml"});
  EXPECT_EQ(schema_violations(parse_file(repository("docs/optimise.schema.json")), json),
            std::vector<std::string>{});
  const nlohmann::json& pairing = json.at("pairing");
  EXPECT_EQ(pairing.at("products"), 2); // of the input there are no gradients
  EXPECT_EQ(pairing.at("searched")[0].at("paired"), 0);
  EXPECT_EQ(pairing.at("searched")[0].at("best"), apart.at("best"));
  EXPECT_LE(json.at("best"), apart.at("best"));
  EXPECT_LE(json.at("bound"), apart.at("bound"));

  const std::string training =
      scratch.file("training.yaml", "gradients: " +
                                        (pairing.at("paired").empty()
                                             ? "separate"
                                             : "{paired: " + pairing.at("paired").dump() + "}") +
                                        "\n");
  std::vector<std::string> again{
      "schedule", "--mode", "fused",      "--stacks", scratch / "best.yaml",
      "--json",   "-",      "--training", training};
  again.insert(again.end(), step.begin(), step.end());
  const Ran scheduled = run_monet(again);
  ASSERT_EQ(scheduled.code, 0) << scheduled.err;
  EXPECT_EQ(nlohmann::json::parse(scheduled.out)["latency_cycles"], json["best"]);
}

TEST(OptimiseFusion, MethodsAreCheckedByName) {
  const Ran ran = run_monet(search({"--method", "guess"}));
  EXPECT_EQ(ran.code, 2);
  EXPECT_NE(ran.err.find("--method"), std::string::npos) << ran.err;
}

} // namespace MONET_TEST_FILE
} // namespace monet::test
