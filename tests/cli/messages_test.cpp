// Messages about what a command was asked for: their units, their place and what to do.
#include "cli/run_monet.hpp"

#include "monet/base/files.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

namespace monet::test {
namespace {

Ran explore(const Scratch& folder, const std::string& from, const std::string& to) {
  const std::string study = small_study(folder);
  std::string text = read_file(study);
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  folder.file("space.yaml", text.replace(at, from.size(), to));
  return run_monet({"explore", study, "--strategy", "random", "--budget", "2"});
}

std::size_t lines_of(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count(text, '\n'));
}

TEST(Messages, ASizeThatIsNoIntegerIsOneError) {
  const Scratch scratch;
  const Ran ran =
      explore(scratch, "sizes: [\"${simd_units}\", \"${lanes}\"]", "sizes: [16.5, \"${lanes}\"]");
  EXPECT_EQ(ran.code, 3);
  EXPECT_EQ(lines_of(ran.err), 1U) << ran.err;
  EXPECT_NE(ran.err.find(": expected an integer, found '16.5'\n"), std::string::npos) << ran.err;
}

// The first design is checked with the space, the others when they are evaluated.
TEST(Messages, ASpaceWithoutAValidDesignIsAnInputError) {
  const Scratch scratch;
  const Ran ran = explore(scratch, "parameters:\n  simd_units: [16, 32, 64, 128]",
                          "constraints: [lanes > 1]\nparameters:\n  simd_units: [16.5]");
  EXPECT_EQ(ran.code, 3) << ran.err;
  EXPECT_EQ(ran.err.find("infeasible"), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("expected an integer, found '16.5'"), std::string::npos) << ran.err;
}

TEST(Messages, ConstraintsThatExcludeEveryDesignAreCounted) {
  const Scratch scratch;
  const Ran ran = explore(
      scratch, "parameters:", "constraints: [\"lanes > 1\", \"columns > 100\"]\nparameters:");
  EXPECT_EQ(ran.code, 4);
  EXPECT_NE(ran.err.find("infeasible: no design of the space satisfies its constraints: "
                         "'columns > 100' excludes 7,500, 'lanes > 1' excludes 2,500 of 10,000 "
                         "designs\n"),
            std::string::npos)
      << ran.err;
}

TEST(Messages, BudgetsOfASpaceAreNearOnesOfOtherNames) {
  const Scratch scratch;
  const Ran ran = explore(scratch, "parameters:", "budgets: {area: 8}\nparameters:");
  EXPECT_EQ(ran.code, 3);
  EXPECT_NE(ran.err.find("unknown key 'area' (did you mean 'area_mm2'?)"), std::string::npos)
      << ran.err;
}

TEST(Messages, ASearchWithoutTimeSaysThatThereIsNoPlanYet) {
  const Ran ran =
      run_monet({"optimise", "parallelism", repository("examples/cluster/gpt3_175b_plan.yaml"),
                 "--time-limit", "0.001"});
  EXPECT_EQ(ran.code, 4);
  EXPECT_EQ(ran.err.rfind("error: no plan yet after 0.001 s (", 0), 0U) << ran.err;
  EXPECT_NE(ran.err.find("allow more with --time-limit"), std::string::npos) << ran.err;
}

TEST(Messages, AnInterruptNamesTheStage) {
  const Scratch scratch;
  const Ran ran = run_signalled(
      {"run", repository("examples/quad_core_gpt2_nano_optimised.yaml"), "-o", scratch / "out"},
      SIGINT, 0);
  EXPECT_EQ(ran.code, 130);
  EXPECT_EQ(ran.err.rfind("stopped", 0), 0U) << ran.err;
  EXPECT_NE(ran.err.find("; no result was written\n"), std::string::npos) << ran.err;
}

std::vector<std::string> checkpointing_within(const std::string& budget) {
  return {"optimise",   "checkpointing",
          "--hardware", repository("data/hardware/edge_tpu.yaml"),
          "--workload", small_network("gated_mlp"),
          "--training", repository("data/training/sgd.yaml"),
          "--budget",   budget};
}

TEST(Messages, ASmallBudgetWithoutAUnitIsQuestioned) {
  Ran ran = run_monet(checkpointing_within("50"));
  EXPECT_EQ(ran.code, 4);
  EXPECT_NE(ran.err.find("warning: --budget: 50 is read as 50 bytes (write '50%' for a share)\n"),
            std::string::npos)
      << ran.err;
  ran = run_monet(checkpointing_within("100%"));
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.err.find("warning"), std::string::npos) << ran.err;
}

TEST(Messages, MemoryHasUnits) {
  const Ran ran = run_monet(checkpointing_within("1KiB"));
  EXPECT_EQ(ran.code, 4);
  EXPECT_NE(ran.err.find("infeasible: no plan can peak at 1.00 KiB (1,024 bytes) or less: "),
            std::string::npos)
      << ran.err;
}

TEST(Messages, LongStepsTakeSeconds) {
  const Scratch scratch;
  std::string chip = read_file(repository("data/hardware/single_core_mcu.yaml"));
  const std::size_t at = chip.find("frequency_hz:");
  ASSERT_NE(at, std::string::npos);
  chip.replace(at, chip.find('\n', at) - at, "frequency_hz: 1000");
  std::filesystem::create_directory_symlink(repository("data/hardware/cores"),
                                            scratch.path() / "cores");
  const Ran ran = run_monet({"schedule", "--hardware", scratch.file("slow.yaml", chip),
                             "--workload", small_network("gated_mlp")});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.err.find("'frequency_hz' is an unusually slow clock of 1000 Hz (250e6 is 250 MHz)"),
            std::string::npos)
      << ran.err;
  const std::string heading = ran.out.substr(0, ran.out.find("\n\n"));
  EXPECT_EQ(heading.find("e+"), std::string::npos) << heading;
  EXPECT_EQ(heading.find(" ms"), std::string::npos) << heading;
}

TEST(Messages, TheValueOfAnOptionHasNoLineNumber) {
  for (const auto& [setting, message] : std::map<std::string, std::string>{
           {"zero=4", "error: --set zero=4: zero is a stage from 0 to 3\n"},
           {"zero=[4", "error: --set zero=[4: not valid YAML: "}}) {
    const Ran ran =
        run_monet({"cluster", repository("examples/cluster/resnet18_edge.yaml"), "--set", setting});
    EXPECT_EQ(ran.code, 3);
    EXPECT_NE(ran.err.find(message), std::string::npos) << ran.err;
    EXPECT_EQ(ran.err.find(":1:1"), std::string::npos) << ran.err;
  }
}

// Widths of unrollings are questioned in dataflows of core files and of mapping files.
TEST(Messages, LanesThatStayIdleAreNamed) {
  const Scratch scratch;
  const auto core = [&](const std::string& unrolling) {
    scratch.file("m.yaml", "- name: default\n  spatial_mapping: {D1: [\"K, 2\"], D2: [\"" +
                               unrolling + "\"]}\n  memory_operand_links: {O: O, W: I2, I: I1}\n");
    std::string layers = read_file(repository("examples/core/product.yaml"));
    const std::string sizes = "[4, 4, 4]";
    scratch.file("l.yaml", layers.replace(layers.find(sizes), sizes.size(), "[4, 4, 1]"));
    return run_monet({"core", "--hardware", repository("examples/core/two_by_two.yaml"),
                      "--workload", scratch / "l.yaml", "--mapping", scratch / "m.yaml"});
  };
  Ran ran = core("C, 2");
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.err.find("'K, 2' on D1 is wider than K of 'product' (1): lanes stay idle"),
            std::string::npos)
      << ran.err;
  ran = core("C, 4");
  EXPECT_EQ(ran.code, 3);
  EXPECT_NE(ran.err.find("'C, 4' do not fit on 'D2' of the array, of size 2"), std::string::npos)
      << ran.err;
}

} // namespace
} // namespace monet::test
