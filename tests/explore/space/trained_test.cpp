// What designs train: expressions, variants and short trainings of a space, and hardware files that
// parameters choose.
#include "explore/toys.hpp"

#include "monet/base/files.hpp"
#include "monet/explore/space.hpp"
#include "monet/hardware/read_hardware.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace monet::test {
namespace {

std::string in_source(const std::string& path) {
  return std::string(MONET_SOURCE_DIR) + "/" + path;
}

const char* const kVariants = R"(
training:
  loss: cross_entropy
  optimizer: {type: sgd, learning_rate: 0.1}
  loss_scale: ${scale}
  variants:
    arithmetic:
      fp32: {}
      8bit: {precision: fp8_e4m3, optimizer: {learning_rate: "${rate / 10}"}}
)";
const char* const kAccuracy = R"(
accuracy:
  data: {format: generated, train: 32, test: 16}
  steps: ${steps}
  seeds: [1, 2]
)";

/// A space of system files with these sections.
std::string trained_space(const std::string& sections,
                          const std::string& arithmetics = "[fp32, 8bit]") {
  return "workload: {network: " + in_source("data/workload/resnet8_16.onnx") + ", batch: 4}\n" +
         "parameters: {chip: [npu_small, edge_tpu_22nm], arithmetic: " + arithmetics +
         ", steps: [1, 2]}\n"
         "let: {rate: 1, scale: \"if(arithmetic == 'fp32' or steps == 1, 1, 8 * rate)\"}\n" +
         sections + "chip: " + in_source("data/hardware/${chip}.yaml") + "\n";
}

Space parsed(const std::string& text) {
  return parse_space(text, "trained.yaml");
}

std::string wrong_with(const std::string& text) {
  try {
    parsed(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

double learning_rate_of(const StepSettings& settings) {
  return std::visit([](const auto& optimizer) { return optimizer.learning_rate; },
                    settings.training->update.optimizer);
}

TEST(TrainedSpace, ChoosesTheTrainingOfADesign) {
  const Space space = parsed(trained_space(kVariants));
  EXPECT_EQ(space.workload.runs, (std::vector<std::string>{"inference", "training"}));
  EXPECT_TRUE(space.workload.metrics.empty());
  const StepSettings fp32 = space.settings(0), of_8_bits = space.settings(2);
  EXPECT_EQ(fp32.training->precision.weights, std::nullopt);
  EXPECT_NE(of_8_bits.training->precision.weights, std::nullopt);
  EXPECT_EQ(learning_rate_of(fp32), 0.1);
  EXPECT_EQ(learning_rate_of(of_8_bits), 0.1) << "1 / 10";
  EXPECT_EQ(space.workload.training->precision.weights, std::nullopt) << "of the first design";
}

TEST(TrainedSpace, TellsTrainingsApartWhereTheyDiffer) {
  const Space space = parsed(trained_space(kVariants));
  // chip, arithmetic, steps: the chip is in no training, the steps are in one of 8 bits.
  EXPECT_EQ(space.settings_key(0), space.settings_key(1));
  EXPECT_EQ(space.settings_key(2), space.settings_key(6));
  EXPECT_NE(space.settings_key(0), space.settings_key(2));
  EXPECT_NE(space.settings_key(2), space.settings_key(3));
  const Space same =
      parsed(trained_space("training: {loss: cross_entropy, optimizer: {type: sgd}}\n"));
  EXPECT_EQ(same.settings_key(0), "");
  EXPECT_EQ(same.settings_key(7), "");
}

TEST(TrainedSpace, TrainsShortlyInTheArithmeticOfADesign) {
  const Space space = parsed(trained_space(std::string(kVariants) + kAccuracy));
  EXPECT_EQ(space.workload.metrics, (std::vector<std::string>{"error", "gradients_flushed"}));
  const auto recipe = [&](DesignId id) { return space.short_training(id)->variants.at(0); };
  EXPECT_EQ(recipe(0).text, recipe(4).text) << "chips differ alone";
  EXPECT_NE(recipe(0).text, recipe(1).text) << "so many steps";
  EXPECT_NE(recipe(0).text, recipe(2).text) << "formats";
  EXPECT_EQ(recipe(3).steps, 2);
  EXPECT_EQ(recipe(3).arithmetic, Arithmetic::formats);
  EXPECT_EQ(recipe(3).evaluate_every, 0);
  EXPECT_EQ(recipe(3).batch, 4) << "the workload's";
  EXPECT_EQ(recipe(3).seeds, (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(recipe(3).training.value.precision.weights,
            space.settings(3).training->precision.weights);
  const std::vector<FrontRequest>& fronts = space.fronts;
  EXPECT_NE(std::ranges::find(fronts, FrontRequest{1, {Objective::error, Objective::energy}}),
            fronts.end());
  EXPECT_EQ(parsed(trained_space(kVariants)).short_training(0), std::nullopt);
}

TEST(TrainedSpace, ChoosesTheNetworkAndItsBatch) {
  std::string text = trained_space(std::string(kVariants) + kAccuracy);
  text.replace(text.find("resnet8_16"), 10, "${if(steps == 1, 'resnet8_16', 'resnet20_cifar')}");
  text.replace(text.find("batch: 4"), 8, "batch: \"${4 * steps}\"");
  text.replace(text.find("{network: "), 10, "{network: \"");
  text.replace(text.find(".onnx"), 5, ".onnx\"");
  const Space space = parsed(text);
  EXPECT_EQ(space.settings(0).network_options.batch, 4);
  EXPECT_EQ(space.settings(1).network_options.batch, 8);
  EXPECT_NE(space.settings(0).network, space.settings(1).network);
  EXPECT_EQ(space.workload.network, space.settings(0).network);
  EXPECT_NE(space.settings_key(0), space.settings_key(1));
  EXPECT_EQ(space.settings_key(1), space.settings_key(5));
  EXPECT_EQ(space.short_training(1)->variants.at(0).network.value, space.settings(1).network);
  EXPECT_EQ(space.short_training(1)->variants.at(0).batch, 8);
  for (const DesignId id : {0U, 1U})
    EXPECT_NE(std::ranges::find(space.files, space.settings(id).network), space.files.end());
  text.replace(text.find("resnet20_cifar"), 14, "resnet20_imagenet");
  EXPECT_NE(wrong_with(text).find("resnet20_imagenet.onnx"), std::string::npos);
}

TEST(TrainedSpace, LetsAccuracyChangeTheTraining) {
  const Space space = parsed(
      trained_space(std::string(kVariants) + kAccuracy +
                    "  training: {optimizer: {type: adam, learning_rate: 0.5}}\n  network: " +
                    in_source("data/workload/resnet8_16.onnx") + "\n  batch: 8\n"));
  const TrainRecipe recipe = space.short_training(2)->variants.at(0);
  EXPECT_EQ(recipe.batch, 8);
  EXPECT_EQ(std::visit([](const auto& o) { return o.learning_rate; },
                       recipe.training.value.update.optimizer),
            0.5);
  EXPECT_NE(recipe.training.value.precision.weights, std::nullopt) << "still the design's";
}

TEST(TrainedSpace, SaysWhereATrainingIsWrong) {
  const auto says = [](const std::string& text, const std::string& what) {
    const std::string problem = wrong_with(text);
    EXPECT_NE(problem.find(what), std::string::npos) << what << "\n" << problem;
    EXPECT_NE(problem.find("trained.yaml:"), std::string::npos) << problem;
  };
  const std::string variants = kVariants;
  says(trained_space(variants, "[fp32, 8bit, bf16]"),
       "there is nothing for the value 'bf16' of 'arithmetic'");
  says(trained_space(variants, "[fp32, 8bits]"), "did you mean '8bits'?");
  says(trained_space(variants + "    arithmetics: {}\n"), "did you mean 'arithmetic'?");
  says(trained_space(variants + "    steps: {1: {}, 2: 3}\n"),
       "expected the keys in which it differs");
  says(trained_space(
           "training: {loss: cross_entropy, optimizer: {type: sgd}, loss_scale: \"${scales}\"}\n"),
       "did you mean 'scale'?");
  says(trained_space("training: \"${chip}.yaml\"\n"), "expressions choose no training file");
  // Of a variant that the first design does not have: at its own place.
  std::string other = variants;
  other.replace(other.find("fp8_e4m3"), 8, "fp8_e4m4");
  says(trained_space(other), "trained.yaml:12:");
  says(trained_space("fronts: [{run: inference, objectives: [error]}]\n"), "needs 'accuracy:'");
  says(trained_space("budgets: {error: 0.1}\n"), "a budget of 'error' needs 'accuracy:'");
  says(trained_space(kAccuracy), "'accuracy:' requires 'training:'");
  says(trained_space(variants + kAccuracy + "  arithmetic: fp64\n"), "cannot be set in a space");
  says(trained_space(variants + kAccuracy + "  epoch: 1\n"), "did you mean 'epochs'?");
  says(trained_space(variants + "accuracy: {steps: 1}\n"), "data");
}

TEST(TrainedSpace, TakesSystemFilesAsChips) {
  const Space space = parsed(trained_space(kVariants));
  for (const auto& [id, name] : {std::pair{0U, "npu_small"}, {4U, "edge_tpu_22nm"}}) {
    const std::string file = in_source(std::string("data/hardware/") + name + ".yaml");
    const Chip chip = space.chip(id), alone = read_chip(file);
    EXPECT_EQ(chip.name, name);
    EXPECT_EQ(chip.area_mm2(), alone.area_mm2());
    EXPECT_EQ(chip.links.size(), alone.links.size());
    EXPECT_NE(std::ranges::find(space.files, file), space.files.end());
    const Folder folder;
    for (const auto& [own, text] : space.hardware_files(id))
      write_file_atomically(folder / own, text);
    EXPECT_EQ(read_chip(folder / "system.yaml").area_mm2(), alone.area_mm2());
  }
  const std::string core = in_source("data/hardware/cores/npu_small_array.yaml");
  EXPECT_NE(std::ranges::find(space.files, core), space.files.end()) << "cores of systems";
  std::string text = trained_space(kVariants);
  text.replace(text.find("npu_small"), 9, "npu_tiny");
  EXPECT_NE(wrong_with(text).find("npu_tiny.yaml"), std::string::npos);
  EXPECT_NE(wrong_with(trained_space(kVariants) + "cores: {}\n").find("that it names"),
            std::string::npos);
}

TEST(TrainedSpace, ChoosesCoreFilesByParameters) {
  const auto text = [](const std::string& kinds) {
    return "workload: {network: " + in_source("data/workload/gpt2_nano.onnx") + ", batch: 1}\n" +
           "parameters: {kind: " + kinds + ", width: [64]}\nlet: {bits: width}\n" +
           "chip: {cores: [vector, dram], offchip_core_id: 1, core_connectivity: [{type: bus, "
           "cores: [0, 1], bandwidth: 64}]}\n"
           "cores:\n  vector: " +
           in_source("data/hardware/cores/simd_${bits}${kind}") +
           "\n  dram: " + in_source("data/hardware/cores/dram_64bit.yaml") + "\n";
  };
  const Space space = parsed(text("['.yaml', _22nm.yaml]"));
  for (const auto& [id, name] : {std::pair{0U, "simd_64"}, {1U, "simd_64_22nm"}}) {
    const std::string file = in_source(std::string("data/hardware/cores/") + name + ".yaml");
    EXPECT_EQ(space.chip(id).cores[0].name, read_core(file).name);
    EXPECT_NE(std::ranges::find(space.files, file), space.files.end());
  }
  EXPECT_EQ(space.hardware_files(1).at(1).first, "vector.yaml");
  EXPECT_NE(wrong_with(text("[_7nm.yaml]")).find("simd_64_7nm.yaml"), std::string::npos);
}

TEST(TrainedSpace, HashesWhatTrainingsRead) {
  const Folder folder;
  const auto hash = [&](const std::string& network) {
    write_file_atomically(folder / "net.onnx", read_file(in_source(network)));
    return parsed(trained_space(std::string(kVariants) + kAccuracy +
                                "  network: " + (folder / "net.onnx") + "\n"))
        .content_hash;
  };
  EXPECT_NE(hash("data/workload/resnet8_16.onnx"), hash("data/workload/resnet20_cifar.onnx"));
}

} // namespace
} // namespace monet::test
