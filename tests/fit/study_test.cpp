#include "fit/image_files.hpp"

#include "monet/base/files.hpp"
#include "monet/fit/study.hpp"

#include <gtest/gtest.h>

#include <filesystem>

namespace monet::test {
namespace {

namespace fs = std::filesystem;

const std::string kRecipe = R"(
network: net.onnx
batch: 8
training: {loss: cross_entropy, optimizer: {type: sgd, learning_rate: 0.1, momentum: 0.5}}
data: {format: generated, train: 40, test: 16}
epochs: 2
)";

class Studies : public ::testing::Test {
protected:
  Studies() { fs::create_directories(folder_); }
  ~Studies() override { fs::remove_all(folder_); }

  std::string file(const std::string& name, const std::string& text) const {
    write_file_atomically((folder_ / name).string(), text);
    return (folder_ / name).string();
  }
  TrainStudy read(const std::string& text) const { return read_train_study(file("e.yaml", text)); }
  /// Without the folder.
  std::string problems_of(const std::string& text) const {
    std::string said = error_of([&] { read(text); });
    const std::string folder = folder_.string() + "/";
    for (std::size_t at = 0; (at = said.find(folder)) != std::string::npos;)
      said.erase(at, folder.size());
    return said;
  }

  fs::path folder_ =
      fs::path(::testing::TempDir()) /
      (std::string("studies_") + ::testing::UnitTest::GetInstance()->current_test_info()->name());
};

const Sgd& sgd_of(const TrainRecipe& recipe) {
  return std::get<Sgd>(recipe.training.value.update.optimizer);
}

TEST_F(Studies, OneRecipeIsOneVariant) {
  const TrainStudy study = read(kRecipe);
  EXPECT_EQ(study.name, "e");
  ASSERT_EQ(study.variants.size(), 1U);
  const TrainRecipe& recipe = study.variants.front();
  EXPECT_EQ(recipe.name, "run");
  EXPECT_EQ(recipe.network.value, (folder_ / "net.onnx").string());
  EXPECT_EQ(recipe.batch, 8);
  EXPECT_EQ(recipe.epochs, 2);
  EXPECT_EQ(recipe.steps, 0);
  EXPECT_EQ(recipe.seeds, std::vector<std::uint64_t>{1});
  EXPECT_EQ(recipe.arithmetic, Arithmetic::fp32);
  EXPECT_EQ(recipe.rate.kind, RateSchedule::Kind::constant);
  EXPECT_EQ(recipe.initial.scheme, InitialOptions::Scheme::he_normal);
  EXPECT_EQ(recipe.on_nonfinite, OnNonFinite::stop);
  EXPECT_EQ(recipe.checkpoint.every, 0);
  EXPECT_EQ(study.data.front().train.value, 40);
}

TEST_F(Studies, KeysAreRead) {
  const TrainStudy study =
      read("name: Two words\n" + kRecipe +
           "steps: 7\nseeds: [3, 1]\narithmetic: fp64\nevaluate_every: 0\n"
           "rate: {schedule: step, warmup: 5, milestones: [1, 3], factor: 0.5}\n"
           "checkpoint: {every: 20 steps, keep: 2}\n"
           "initial: {scheme: file, path: weights}\non_nonfinite: skip\n");
  EXPECT_EQ(study.name, "Two words");
  const TrainRecipe& recipe = study.variants.front();
  EXPECT_EQ(recipe.steps, 7);
  EXPECT_EQ(recipe.seeds, (std::vector<std::uint64_t>{3, 1}));
  EXPECT_EQ(recipe.arithmetic, Arithmetic::fp64);
  EXPECT_EQ(recipe.evaluate_every, 0);
  EXPECT_EQ(recipe.rate.milestones, (std::vector<std::int64_t>{1, 3}));
  EXPECT_EQ(recipe.rate.warmup, 5);
  EXPECT_EQ(recipe.rate.factor, 0.5);
  EXPECT_EQ(recipe.checkpoint.every, 20);
  EXPECT_FALSE(recipe.checkpoint.epochs);
  EXPECT_EQ(recipe.checkpoint.keep, 2);
  EXPECT_EQ(recipe.initial.path, (folder_ / "weights").string());
  EXPECT_EQ(recipe.on_nonfinite, OnNonFinite::skip);
  for (const char* every : {"1 epoch", "'1 epoch'", "\"1 epoch\""})
    EXPECT_TRUE(
        read(kRecipe + "checkpoint: {every: " + every + "}").variants.front().checkpoint.epochs);
}

// Maps are joined key by key, but for one that says what it is.
TEST_F(Studies, VariantsOverlayTheRecipe) {
  const TrainStudy study = read(kRecipe + R"(
variants:
  same:
  faster: {training: {optimizer: {learning_rate: 0.2}}}
  plain: {training: {optimizer: {type: sgd}}, seeds: [1, 2]}
  more: {data: {train: 80}, epochs: 1}
  again: {data: {train: 80}}
)");
  ASSERT_EQ(study.variants.size(), 5U);
  EXPECT_EQ(sgd_of(study.variants[0]).learning_rate, 0.1);
  EXPECT_EQ(sgd_of(study.variants[1]).learning_rate, 0.2);
  EXPECT_EQ(sgd_of(study.variants[1]).momentum, 0.5);
  EXPECT_EQ(sgd_of(study.variants[2]).learning_rate, Sgd{}.learning_rate);
  EXPECT_EQ(sgd_of(study.variants[2]).momentum, 0.0);
  EXPECT_EQ(study.variants[2].seeds.size(), 2U);
  EXPECT_EQ(study.variants[3].epochs, 1);
  ASSERT_EQ(study.data.size(), 2U); // images are there once
  EXPECT_EQ(study.variants[2].data, 0U);
  EXPECT_EQ(study.variants[3].data, 1U);
  EXPECT_EQ(study.variants[4].data, 1U);
  EXPECT_EQ(study.data[1].train.value, 80);
}

TEST_F(Studies, AVariantOverlaysATrainingFile) {
  file("t.yaml", "loss: cross_entropy\noptimizer: {type: sgd, learning_rate: 0.3}\n");
  const TrainStudy study =
      read("network: n.onnx\ntraining: t.yaml\ndata: {format: generated}\nsteps: 1\n"
           "variants: {a: {}, b: {training: {optimizer: {momentum: 0.9}}}}");
  EXPECT_EQ(sgd_of(study.variants[0]).learning_rate, 0.3);
  EXPECT_EQ(sgd_of(study.variants[1]).learning_rate, 0.3);
  EXPECT_EQ(sgd_of(study.variants[1]).momentum, 0.9);
  EXPECT_EQ(study.files, (std::vector<std::string>{(folder_ / "e.yaml").string(),
                                                   (folder_ / "t.yaml").string()}));
}

// What a checkpoint is held against: neither the order of keys nor what runs there are.
TEST_F(Studies, TextTellsRecipesApart) {
  const std::string text = read(kRecipe).variants.front().text;
  EXPECT_EQ(read("seed: 5\n" + kRecipe + "# a comment\ncheckpoint: {every: 1 epoch}\nname: x")
                .variants.front()
                .text,
            text);
  EXPECT_EQ(read(kRecipe + "variants: {a: {}, b: {steps: 1}}").variants[0].text, text);
  EXPECT_NE(read(kRecipe + "variants: {a: {}, b: {steps: 1}}").variants[1].text, text);
  EXPECT_NE(read(kRecipe + "arithmetic: fp64").variants.front().text, text);
}

TEST_F(Studies, ProblemsHavePlaces) {
  EXPECT_EQ(problems_of(kRecipe + "rate: {schedule: cosin}\nseeds: [1, 1]\n"),
            "e.yaml:7:18: unknown schedule 'cosin' (did you mean 'cosine'?)\n"
            "e.yaml:8:8: expected 1 to 1000 different seeds, none below 0");
  EXPECT_EQ(problems_of(kRecipe + "arithmetic: fp16"),
            "e.yaml:7:13: unknown arithmetic 'fp16' (fp64, fp32 or formats)");
  EXPECT_EQ(
      problems_of(kRecipe + "checkpoint: {every: 3}"),
      "e.yaml:7:21: '3' is not a number of steps or epochs (for example 100 steps, or 1 epoch)");
  EXPECT_EQ(
      problems_of(kRecipe + "initial: {scheme: zeros}"),
      "e.yaml:7:19: unknown scheme 'zeros' (he_normal, he_uniform, pytorch, network or file)");
  EXPECT_EQ(problems_of(kRecipe + "rate: {schedule: step}"),
            "e.yaml:7:7: key 'milestones' is missing");
  EXPECT_EQ(problems_of(kRecipe + "variants: {../up: {}}"),
            "e.yaml:7:12: '../up' names no folder: letters, digits and _ - . + only, at most 60");
  EXPECT_EQ(problems_of(kRecipe + "variants: {a: {}, a: {}}"),
            "e.yaml:7:19: key 'a' is given twice (first at line 7)");
  EXPECT_EQ(problems_of(kRecipe + "variants: {a: {epoch: 1}, b: {epoch: 1}}"),
            "e.yaml:7:16: unknown key 'epoch' (did you mean 'epochs'?)\n"
            "e.yaml:7:31: unknown key 'epoch' (did you mean 'epochs'?)");
  EXPECT_EQ(problems_of(kRecipe + "seed: 1\nseeds: [1]"),
            "e.yaml:7:7: 'seed' and 'seeds' are the same key (leave out one)");
}

// Said once, however many variants have it.
TEST_F(Studies, ProblemsOfTheRecipeAreSaidOnce) {
  EXPECT_EQ(problems_of("network: n.onnx\ntraining: {los: mse}\ndata: {format: generated}\n"
                        "steps: 1\nvariants: {a: {}, b: {}}"),
            "e.yaml:2:12: unknown key 'los' (did you mean 'loss'?)");
  EXPECT_EQ(problems_of("network: n.onnx\ntraining: {}\nsteps: 1"),
            "e.yaml:1:1: key 'data' is missing");
  EXPECT_EQ(problems_of("network: n.onnx\ntraining: none.yaml\ndata: {format: generated}\n"),
            "none.yaml: cannot be opened: No such file or directory\n"
            "e.yaml:1:1: key 'training' is missing\n"
            "e.yaml:1:1: the length of the training is missing ('epochs', 'steps' or both)");
  EXPECT_EQ(problems_of("network: n.onnx\ntraining: [{name: a}]\ndata: {format: generated}\n"
                        "steps: 1"),
            "e.yaml:2:11: is a list of alternating steps, but one step is expected ('monet run' "
            "and 'monet graph' accept several)");
}

TEST(Rates, FollowTheirSchedule) {
  const RunLength run{100, 10};
  RateSchedule rate;
  rate.warmup = 4;
  EXPECT_EQ(rate.share(0, run), 0.25);
  EXPECT_EQ(rate.share(3, run), 1.0);
  EXPECT_EQ(rate.share(99, run), 1.0);
  rate.kind = RateSchedule::Kind::step;
  rate.milestones = {2, 5};
  EXPECT_EQ(rate.share(19, run), 1.0);
  EXPECT_EQ(rate.share(20, run), 0.1);
  EXPECT_EQ(rate.share(50, run), 0.1 * 0.1);
  rate = {RateSchedule::Kind::linear, 0, {}, 0.1, 0.5};
  EXPECT_EQ(rate.share(0, run), 1.0);
  EXPECT_EQ(rate.share(50, run), 0.75);
  rate = {RateSchedule::Kind::cosine, 20, {}, 0.1, 0.0};
  EXPECT_EQ(rate.share(20, run), 1.0);
  EXPECT_NEAR(rate.share(60, run), 0.5, 1e-15);
  EXPECT_NEAR(rate.share(100, run), 0.0, 1e-15);
}

} // namespace
} // namespace monet::test
