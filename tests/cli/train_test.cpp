// monet train: what it writes, how it goes on, how it ends when it is asked to, and what it
// refuses.
#include "cli/run_monet.hpp"
#include "report/json_schema.hpp"

#include "monet/base/files.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <sstream>

namespace monet::test {
namespace MONET_TEST_FILE {

namespace fs = std::filesystem;

class Train : public ::testing::Test {
protected:
  /// An experiment with the shipped ResNet-8; `keys` come last.
  std::string experiment(const std::string& keys, std::int64_t images = 16) const {
    return scratch_.file(
        "e.yaml",
        fmt::format("network: {}\nbatch: 8\n"
                    "data: {{format: generated, train: {}, test: 8, augment: {{flip: true}}}}\n"
                    "training: {{loss: cross_entropy, optimizer: {{type: sgd, learning_rate: 0.05, "
                    "momentum: 0.9}}}}\n{}",
                    repository("data/workload/resnet8_16.onnx"), images, keys));
  }
  std::string out(const std::string& name) const { return scratch_ / name; }
  Ran train(const std::string& file, const std::string& folder,
            const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all{"train", file, "-o", out(folder)};
    all.insert(all.end(), more.begin(), more.end());
    return run_monet(all);
  }
  /// All files below a folder, with what is in them.
  std::map<std::string, std::string> files(const std::string& folder) const {
    std::map<std::string, std::string> found;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.is_regular_file())
        found[fs::relative(entry.path(), folder).string()] = read_file(entry.path().string());
    }
    return found;
  }

  Scratch scratch_;
};

const std::string kTwoByTwo = "epochs: 2\nseeds: [1, 2]\nname: Two by two\n"
                              "variants: {steady: {}, falling: {rate: {schedule: cosine}}}\n";

TEST_F(Train, WritesTablesCurvesAndCheckpoints) {
  const Ran ran = train(experiment(kTwoByTwo), "o");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.out.find("variant       data  runs  steps"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("falling  generated     2      4"), std::string::npos) << ran.out;
  const auto json = parse_file(out("o/result.json"));
  EXPECT_EQ(schema_violations(parse_file(repository("docs/train.schema.json")), json),
            std::vector<std::string>{});
  EXPECT_EQ(json.at("name"), "Two by two");
  EXPECT_EQ(json.at("interrupted"), false);
  const auto& steady = json.at("variants").at(0);
  EXPECT_EQ(steady.at("name"), "steady");
  EXPECT_EQ(steady.at("arithmetic"), "fp32");
  EXPECT_EQ(steady.at("data").at("format"), "generated");
  EXPECT_EQ(steady.at("images_per_step"), 8);
  EXPECT_EQ(steady.at("steps"), 4);
  const auto& runs = steady.at("runs");
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs.at(1).at("seed"), 2);
  EXPECT_EQ(runs.at(0).at("tests").size(), 2U);
  EXPECT_EQ(runs.at(0).at("tests").at(1).at("step"), 4);
  const double mean =
      (runs.at(0).at("final_loss").get<double>() + runs.at(1).at("final_loss").get<double>()) / 2;
  EXPECT_NEAR(steady.at("final_loss").at("mean").get<double>(), mean, 1e-12);
  EXPECT_TRUE(runs.at(0).at("flushed_gradients").is_null()); // of fp32, nothing is rounded
  EXPECT_EQ(ran.out.find("flushed"), std::string::npos);
  EXPECT_GT(steady.at("final_loss").at("deviation").get<double>(), 0);
  EXPECT_GT(steady.at("seconds_per_step").get<double>(), 0);
  const std::string curves = read_file(out("o/curves.csv"));
  EXPECT_EQ(curves.substr(0, curves.find('\n')),
            "variant,seed,step,epoch,rate,loss,accuracy,scale,skipped,flushed");
  EXPECT_EQ(std::count(curves.begin(), curves.end(), '\n'), 17);
  EXPECT_NE(curves.find("\nfalling,2,3,2,0.025,"), std::string::npos) << curves;
  EXPECT_NE(read_file(out("o/curves.svg")).find(">falling</text>"), std::string::npos);
  for (const char* run : {"steady/seed_1", "steady/seed_2", "falling/seed_1", "falling/seed_2"})
    EXPECT_TRUE(fs::exists(
        out(std::string("o/checkpoints/") + run + "/step_00000004/tensors/conv1.weight.npy")))
        << run;
}

// Gradients of e4m3 without a scale of the loss: the share that becomes 0 is said wherever steps
// are.
TEST_F(Train, TellsHowManyGradientsAreFlushed) {
  const Ran ran = train(experiment("steps: 2\narithmetic: formats\nvariants: {fp32: {}, narrow: "
                                   "{training: {precision: {gradients: e4m3}}}}\n"),
                        "o");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.out.find("skipped  gradients flushed  seconds a step"), std::string::npos)
      << ran.out;
  const auto json = parse_file(out("o/result.json"));
  EXPECT_EQ(schema_violations(parse_file(repository("docs/train.schema.json")), json),
            std::vector<std::string>{});
  const auto share = [&](std::size_t variant) {
    return json.at("variants").at(variant).at("runs").at(0).at("flushed_gradients");
  };
  EXPECT_TRUE(share(0).is_null());
  EXPECT_GT(share(1).get<double>(), 0.01);
  EXPECT_LT(share(1).get<double>(), 1.0);
  std::istringstream curves(read_file(out("o/curves.csv")));
  double sum = 0;
  for (std::string line; std::getline(curves, line);) {
    if (line.starts_with("fp32,")) {
      EXPECT_TRUE(line.ends_with(",0,")) << line;
    }
    if (line.starts_with("narrow,"))
      sum += std::stod(line.substr(line.rfind(',') + 1));
  }
  EXPECT_NEAR(sum / 2, share(1).get<double>(), 1e-12);
}

// Threads, an interruption and going on: the bits of a run that was left alone.
TEST_F(Train, GoesOnToTheSameFiles) {
  const std::string file = experiment("epochs: 60\ncheckpoint: {every: 3 steps, keep: 2}\n"
                                      "evaluate_every: 20\n");
  ASSERT_EQ(train(file, "whole", {"--jobs", "2"}).code, 0);
  const std::vector<std::string> command{"train", file, "-o", out("parts"), "--resume"};
  const Ran cut = run_interrupted_at_work(command, 0.3, [&] { fs::remove_all(out("parts")); });
  ASSERT_EQ(cut.code, 130) << cut.out << cut.err;
  EXPECT_NE(cut.err.find("interrupted: the result has the steps so far; --resume continues"),
            std::string::npos)
      << cut.err;
  EXPECT_EQ(parse_file(out("parts/result.json")).at("interrupted"), true);
  const std::string some = read_file(out("parts/curves.csv"));
  const Ran rest = run_monet(command);
  ASSERT_EQ(rest.code, 0) << rest.err;
  const std::string all = read_file(out("parts/curves.csv"));
  EXPECT_LT(some.size(), all.size());
  EXPECT_EQ(all.substr(0, some.size()), some);
  EXPECT_EQ(all, read_file(out("whole/curves.csv")));
  const std::string last = "/checkpoints/run/seed_1/step_00000120";
  EXPECT_EQ(files(out("parts" + last)), files(out("whole" + last)));
  EXPECT_EQ(files(out("parts/checkpoints")).size(), 2 * files(out("parts" + last)).size());
}

TEST_F(Train, KilledRunsGoOnToTheSameFiles) {
  const std::string file = experiment("steps: 40\ncheckpoint: {every: 2 steps}\n");
  ASSERT_EQ(train(file, "whole").code, 0);
  const std::vector<std::string> command{"train", file, "-o", out("parts"), "--resume"};
  for (const double seconds : {0.15, 0.25, 0.35, 0.45})
    run_signalled(command, SIGKILL, seconds);
  const Ran rest = run_monet(command);
  ASSERT_EQ(rest.code, 0) << rest.err;
  EXPECT_EQ(read_file(out("parts/curves.csv")), read_file(out("whole/curves.csv")));
  EXPECT_EQ(files(out("parts/checkpoints")), files(out("whole/checkpoints")));
}

TEST_F(Train, FinishedRunsAreNotRunAgain) {
  ASSERT_EQ(train(experiment("steps: 2\n"), "o").code, 0);
  const Ran again = train(experiment("steps: 2\nseeds: [1, 2]\n"), "o", {"--resume"});
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(parse_file(out("o/result.json")).at("variants").at(0).at("runs").size(), 2U);
  const Ran other = train(experiment("steps: 3\n"), "o", {"--resume"});
  EXPECT_EQ(other.code, 3);
  EXPECT_EQ(other.err,
            fmt::format("error: {}/checkpoints/run/seed_1/step_00000002/checkpoint.yaml:1:1: was "
                        "made by another experiment or network than the one given (leave out "
                        "--resume to start again, or name another folder with -o)\n",
                        out("o")));
  const auto before = files(out("o"));
  EXPECT_EQ(files(out("o")), before);
  ASSERT_EQ(train(experiment("steps: 3\n"), "o").code, 0); // anew
  EXPECT_FALSE(fs::exists(out("o/checkpoints/run/seed_1/step_00000002")));
  EXPECT_TRUE(fs::exists(out("o/checkpoints/run/seed_1/step_00000003")));
}

TEST_F(Train, SaysWhereNumbersWereNotFinite) {
  const Ran ran = train(experiment("epochs: 20\nvariants: {wild: {training: {optimizer: "
                                   "{learning_rate: 9.0e+5}}}}\n"),
                        "o");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.out.find("wild seed 1: step "), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find(" computed the first number that is not finite, in '"), std::string::npos);
  const auto json = parse_file(out("o/result.json"));
  EXPECT_EQ(schema_violations(parse_file(repository("docs/train.schema.json")), json),
            std::vector<std::string>{});
  const auto& run = json.at("variants").at(0).at("runs").at(0);
  ASSERT_EQ(run.at("non_finite").size(), 1U);
  EXPECT_EQ(run.at("non_finite").at(0).at("step"), run.at("steps"));
  EXPECT_FALSE(run.at("non_finite").at(0).at("operator").is_null());
}

TEST_F(Train, BadExperimentsLeaveNothing) {
  struct Case {
    std::string text, said;
    int code;
  };
  const std::string net = "network: " + repository("data/workload/resnet8_16.onnx") + "\n";
  const std::string rest = "data: {format: generated, train: 8, test: 8}\ntraining: {}\nsteps: 1\n";
  for (const Case& one : std::vector<Case>{
           {"network: none.onnx\n" + rest, "none.onnx' cannot be opened", 3},
           {net + rest, "batch", 3},
           {net + "batch: 4\n" + rest + "stop: 1\n", "e.yaml:6:1: unknown key 'stop'", 3},
           {net + "batch: 4\ntraining: {}\nsteps: 1\ndata: {format: cifar10, path: none}\n",
            "data_batch_1.bin: cannot be opened", 3},
           {net + "batch: 4\ntraining: {}\nsteps: 1\ndata: {format: generated, width: 32}\n",
            "e.yaml:1:10: 'input' is [4, 3, 16, 16], the images of the data are [3, 16, 32]", 3},
           {net + "batch: 16\n" + rest,
            "infeasible: variant 'run': a step needs 16 images, there are 8 for training", 4},
           {net + "batch: 4\n" + rest + "initial: {scheme: network}\n",
            "e.yaml:6:10: 'conv1.weight' has no numbers in", 3},
       }) {
    const Ran ran = train(scratch_.file("e.yaml", one.text), "o");
    EXPECT_EQ(ran.code, one.code) << one.text << ran.err;
    EXPECT_NE(ran.err.find(one.said), std::string::npos) << one.text << ran.err;
    EXPECT_EQ(ran.out, "");
    EXPECT_FALSE(fs::exists(out("o"))) << one.text;
  }
  const Ran ran =
      run_monet({"train", experiment("steps: 1\n"), "-o", out("o"), "--memory-limit", "100000"});
  EXPECT_EQ(ran.code, 4);
  EXPECT_NE(ran.err.find("but the memory limit is 97.7 KiB (100,000 bytes)"), std::string::npos)
      << ran.err;
  EXPECT_FALSE(fs::exists(out("o")));
}

TEST_F(Train, ShippedExperimentsAreRead) {
  for (const char* name : {"study", "findings", "resnet20"}) {
    const Ran ran = run_monet({"train", repository(fmt::format("examples/numerics/{}.yaml", name)),
                               "-o", out("o"), "--memory-limit", "100000"});
    EXPECT_EQ(ran.code, 4) << ran.err;
    EXPECT_NE(ran.err.find("memory limit is 97.7 KiB (100,000 bytes)"), std::string::npos)
        << ran.err;
  }
}

} // namespace MONET_TEST_FILE
} // namespace monet::test
