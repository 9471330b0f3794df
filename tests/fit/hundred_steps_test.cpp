// A hundred steps of a real network: the same bits on any number of threads, with any vector
// instructions, and stopped and taken up again.
#include "fit/small_study.hpp"
#include "level.hpp"

#include "monet/fit/checkpoint.hpp"

#include <ostream>

namespace monet::test {
namespace {

struct Kind {
  const char* name;
  const char* keys; ///< of the experiment
  friend std::ostream& operator<<(std::ostream& to, const Kind& kind) { return to << kind.name; }
};

class HundredSteps : public ::testing::TestWithParam<Kind> {
protected:
  HundredSteps() {
    std::filesystem::create_directories(folder_);
    write_file_atomically(path("e.yaml"),
                          "network: " + std::string(MONET_SOURCE_DIR) +
                              "/data/workload/resnet8_16.onnx\nbatch: 2\nsteps: 100\n"
                              "evaluate_every: 0\nrate: {schedule: cosine, warmup: 5}\n"
                              "data: {format: generated, train: 120, test: 8, augment: {flip: "
                              "true, crop: 1}, normalise: measured}\n" +
                              GetParam().keys);
    study_ = read_train_study(path("e.yaml"));
    data_ = load_data(study_.data.front(), 1);
    setup_ = prepare_training(study_.variants.front(), data_);
  }
  ~HundredSteps() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  RunState end_of(const TrainRunOptions& options) const {
    TrainRun run(setup_, options);
    run_to_its_end(run);
    return run.state();
  }
  /// Put down after so many steps, and taken up by another.
  RunState end_in_parts(std::int64_t steps, const TrainRunOptions& options,
                        const TrainRunOptions& then) const {
    const CheckpointFolder folder(path("checkpoints"), setup_.identity);
    TrainRun first(setup_, options);
    while (first.steps() < steps)
      first.step();
    folder.write(first.state(), 1);
    auto found = folder.newest();
    TrainRun second(setup_, then, std::move(found->state), found->path);
    run_to_its_end(second);
    return second.state();
  }

private:
  std::filesystem::path folder_ = std::filesystem::path(::testing::TempDir()) /
                                  (std::string("hundred_steps_") + GetParam().name);
  TrainStudy study_;
  TrainingData data_;
  TrainSetup setup_;
};

TEST_P(HundredSteps, AreTheSameBits) {
  MONET_FROM_LEVEL(slow);
  const RunState one = end_of({.seed = 1});
  EXPECT_EQ(one.history.steps.size(), 100U);
  EXPECT_TRUE(same_bits(one, end_of({.seed = 1, .jobs = 2})));
  EXPECT_TRUE(same_bits(one, end_in_parts(37, {.seed = 1}, {.seed = 1, .jobs = 2})));
  for (const Instructions instructions :
       {Instructions::portable, Instructions::avx2, Instructions::avx512}) {
    if (!is_available(instructions))
      continue;
    const RunState other = end_of({.seed = 1, .jobs = 2, .instructions = instructions});
    EXPECT_TRUE(same_bits(one, other)) << static_cast<int>(instructions);
  }
}

const char* const kSgdAlone = "training: {optimizer: {type: sgd, learning_rate: 0.05, momentum: "
                              "0.9, weight_decay: 1.0e-4}}\narithmetic: fp32\n";
const char* const kUnits =
    "training: {optimizer: {type: sgd, learning_rate: 0.05, momentum: 0.9}, loss_scale: {mode: "
    "dynamic, initial: 1024, growth_interval: 20}, precision: {weights: e5m2, master_weights: "
    "fp32, activations: e5m2, gradients: e5m2, products: {forward: {multiply: e5m2, variant: "
    "cfg5, accumulate: e6m5}, weight_gradient: {accumulate: q8.13}}}}\narithmetic: formats\n";
const char* const kStochastic =
    "training: {optimizer: {type: adam, learning_rate: 0.002}, loss_scale: 1024, precision: "
    "{weights: e4m3, master_weights: fp32, activations: e4m3, gradients: e5m2, rounding: "
    "stochastic:9, products: {forward: {multiply: exact, accumulate: e6m5, rounding: "
    "stochastic:13, flush_subnormals: true}}}}\narithmetic: formats\n";
const char* const kBlocks =
    "training: {optimizer: {type: sgd, learning_rate: 0.05, momentum: 0.9}, precision: {weights: "
    "mxfp8_e4m3, master_weights: fp32, activations: mxfp8_e4m3, gradients: mxfp8_e5m2, blocks: "
    "{shape: 8x8}}}\narithmetic: formats\n";

INSTANTIATE_TEST_SUITE_P(All, HundredSteps,
                         ::testing::Values(Kind{"fp32", kSgdAlone}, Kind{"units", kUnits},
                                           Kind{"stochastic", kStochastic},
                                           Kind{"blocks", kBlocks}),
                         [](const auto& kind) { return std::string(kind.param.name); });

} // namespace
} // namespace monet::test
