// The loop against a training loop written by hand, and against itself: interrupted, and on other
// numbers of threads.
#include "fit/image_files.hpp"
#include "fit/small_study.hpp"

#include "monet/base/errors.hpp"
#include "monet/fit/checkpoint.hpp"
#include "monet/fit/dataset.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace monet::test {
namespace {

namespace fs = std::filesystem;

const std::string kSgd =
    "training: {loss: cross_entropy, optimizer: {type: sgd, learning_rate: 0.2,"
    " momentum: 0.9, weight_decay: 0.01}}\n";

/// The perceptron of small_study.hpp with momentum, as one would write it down.
class ByHand {
public:
  explicit ByHand(const RunState& state) {
    for (const char* name : {"w", "b", "v", "c"})
      numbers_[name] = tensor_of(state, name).numbers;
  }

  /// The loss of a batch, and then a step.
  double step(const std::vector<double>& images, const std::vector<std::int64_t>& labels,
              double rate) {
    const std::size_t batch = labels.size();
    std::map<std::string, std::vector<double>> gradients;
    for (const auto& [name, values] : numbers_)
      gradients[name].resize(values.size());
    double loss = 0;
    for (std::size_t n = 0; n < batch; ++n) {
      const std::vector<double> hidden = layer("w", "b", &images[n * 64], 64, 5);
      std::vector<double> active = hidden;
      for (double& x : active)
        x = std::max(x, 0.0);
      std::vector<double> scores = layer("v", "c", active.data(), 5, 3);
      double sum = 0;
      for (const double score : scores)
        sum += std::exp(score);
      const auto label = static_cast<std::size_t>(labels[n]);
      loss += (std::log(sum) - scores[label]) / static_cast<double>(batch);
      for (std::size_t k = 0; k < 3; ++k) {
        const double slope =
            (std::exp(scores[k]) / sum - (k == label ? 1 : 0)) / static_cast<double>(batch);
        gradients["c"][k] += slope;
        for (std::size_t j = 0; j < 5; ++j)
          gradients["v"][k * 5 + j] += slope * active[j];
        for (std::size_t j = 0; j < 5; ++j) {
          const double back = hidden[j] > 0 ? slope * numbers_["v"][k * 5 + j] : 0;
          gradients["b"][j] += back;
          for (std::size_t i = 0; i < 64; ++i)
            gradients["w"][j * 64 + i] += back * images[n * 64 + i];
        }
      }
    }
    for (auto& [name, values] : numbers_) {
      std::vector<double>& velocity = velocity_[name];
      velocity.resize(values.size());
      for (std::size_t i = 0; i < values.size(); ++i) {
        velocity[i] = 0.9 * velocity[i] + gradients[name][i] + 0.01 * values[i];
        values[i] -= rate * velocity[i];
      }
    }
    return loss;
  }

  const std::vector<double>& of(const std::string& name) const { return numbers_.at(name); }

private:
  std::vector<double> layer(const std::string& weight, const std::string& bias, const double* from,
                            std::size_t inputs, std::size_t outputs) {
    std::vector<double> made = numbers_[bias];
    for (std::size_t k = 0; k < outputs; ++k) {
      for (std::size_t i = 0; i < inputs; ++i)
        made[k] += numbers_[weight][k * inputs + i] * from[i];
    }
    return made;
  }

  std::map<std::string, std::vector<double>> numbers_, velocity_;
};

// Two epochs of three steps each, with a warm-up.
TEST(TrainLoop, EqualsALoopWrittenByHand) {
  const SmallStudy study(kSgd + "epochs: 2\nrate: {schedule: linear, warmup: 2, last: 0.5}\n");
  const TrainSetup setup = study.setup();
  TrainRun run(setup, {.seed = 7});
  ByHand by_hand(run.state());
  EXPECT_EQ(setup.length.steps_of_epoch, 3); // two images of 14 are left over
  EXPECT_EQ(setup.length.steps, 6);
  const Dataset& images = study.data().train;
  std::vector<double> numbers(4 * 64);
  const double shares[]{0.5, 1, 1, 0.875, 0.75, 0.625};
  for (std::int64_t step = 0; step < 6; ++step) {
    const auto batches = training_batches(epoch_order(14, 7, step / 3), 4);
    const auto& batch = batches[static_cast<std::size_t>(step % 3)].images;
    fill_images(images, batch, {study.data().normalisation, {}, 7, step / 3}, numbers);
    const double rate = 0.2 * shares[step];
    const double loss = by_hand.step(numbers, labels_of(images, batch), rate);
    ASSERT_FALSE(run.is_over());
    run.step();
    EXPECT_NEAR(run.history().steps.back().loss, loss, 1e-12) << step;
    EXPECT_DOUBLE_EQ(run.history().steps.back().rate, rate);
    EXPECT_FALSE(run.history().steps.back().skipped);
  }
  EXPECT_TRUE(run.is_over());
  const RunState state = run.state();
  for (const char* name : {"w", "b", "v", "c"}) {
    const std::vector<double>& expected = by_hand.of(name);
    for (std::size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(tensor_of(state, name).numbers[i], expected[i], 1e-12) << name << i;
  }
}

// An image whose scores are NaN does not count as right.
TEST(TrainLoop, ScoresThatAreNoNumbersAreWrong) {
  ModelMaker model;
  model.input("images", {-1, 1, 8, 8}).output("scores").weight("w", {3, 64});
  model.node("Flatten", {"images"}, {"flat"});
  ModelMaker::set(model.node("Gemm", {"flat", "w"}, {"any"}), "transB", 1);
  model.node("Sub", {"any", "any"}, {"zero"});
  model.node("Log", {"zero"}, {"infinite"});
  model.node("Sub", {"infinite", "infinite"}, {"scores"});
  const SmallStudy study(kSgd + "steps: 1\n", model.bytes());
  const TrainSetup setup = study.setup();
  TrainRun run(setup, {});
  run.test();
  EXPECT_EQ(run.history().tests.back().accuracy, 0);
}

// He et al.: normal, variance 2 / fan-in; biases 0; PyTorch's: both uniform within 1 /
// sqrt(fan-in).
TEST(TrainLoop, WeightsBeginAsTheSchemeSays) {
  const auto begins = [](const std::string& scheme, const std::string& name) {
    const SmallStudy study(kSgd + "steps: 1\ninitial: {scheme: " + scheme + "}\n");
    const TrainSetup setup = study.setup();
    return tensor_of(TrainRun(setup, {.seed = 3}).state(), name).numbers;
  };
  const auto variance = [](const std::vector<double>& numbers) {
    double squares = 0;
    for (const double x : numbers)
      squares += x * x;
    return squares / static_cast<double>(numbers.size());
  };
  const auto largest = [](std::vector<double> numbers) {
    for (double& x : numbers)
      x = std::abs(x);
    return *std::max_element(numbers.begin(), numbers.end());
  };
  EXPECT_NEAR(variance(begins("he_normal", "w")), 2.0 / 64, 0.15 * 2 / 64);
  EXPECT_GT(largest(begins("he_normal", "w")), 2 * std::sqrt(2.0 / 64));
  EXPECT_NEAR(variance(begins("he_uniform", "w")), 2.0 / 64, 0.15 * 2 / 64);
  EXPECT_LE(largest(begins("he_uniform", "w")), std::sqrt(6.0 / 64));
  EXPECT_EQ(begins("he_normal", "b"), std::vector<double>(5, 0.0));
  EXPECT_LE(largest(begins("pytorch", "w")), 1.0 / 8);
  EXPECT_NEAR(variance(begins("pytorch", "w")), 1.0 / 3 / 64, 0.15 / 3 / 64);
  EXPECT_LE(largest(begins("pytorch", "b")), 1.0 / 8); // of 64 inputs, not of one
  EXPECT_GT(largest(begins("pytorch", "b")), 1.0 / 32);
}

TEST(TrainLoop, NormalisationsBeginNeutral) {
  const SmallStudy study(kSgd + "steps: 1\n", convolutional());
  const TrainSetup setup = study.setup();
  TrainRun run(setup, {});
  const RunState state = run.state();
  EXPECT_EQ(tensor_of(state, "scale").numbers, std::vector<double>(4, 1.0));
  EXPECT_EQ(tensor_of(state, "bias").numbers, std::vector<double>(4, 0.0));
  EXPECT_EQ(tensor_of(state, "mean").numbers, std::vector<double>(4, 0.0));
  EXPECT_EQ(tensor_of(state, "variance").numbers, std::vector<double>(4, 1.0));
  run.step();
  EXPECT_NE(tensor_of(run.state(), "mean").numbers, std::vector<double>(4, 0.0));
}

// With the running statistics of the step, not the batch's: an image counts the same in any batch.
TEST(TrainLoop, TestsTakeRunningStatistics) {
  const SmallStudy study(kSgd + "epochs: 3\n", convolutional());
  const TrainSetup setup = study.setup();
  TrainRun run(setup, {.seed = 2});
  run_to_its_end(run);
  ASSERT_EQ(run.history().tests.size(), 3U);
  const RunState state = run.state();
  Execution alone(setup.test.graph, {.arithmetic = Arithmetic::fp64});
  for (const SavedTensor& tensor : state.tensors) {
    if (const auto id = setup.test.graph.find_tensor(tensor.name))
      alone.set(*id, tensor.numbers);
  }
  double loss = 0, right = 0;
  std::vector<double> numbers(4 * 64);
  for (std::int64_t image = 0; image < 10; ++image) {
    const std::vector<std::int64_t> same(4, image);
    fill_images(study.data().test, same, {study.data().normalisation, {}, 0, 0}, numbers);
    alone.set(setup.test_images, numbers);
    alone.run();
    const std::vector<double> scores = alone.get(setup.scores);
    const auto label =
        static_cast<std::size_t>(study.data().test.labels[static_cast<std::size_t>(image)]);
    double sum = 0;
    for (std::size_t k = 0; k < 3; ++k)
      sum += std::exp(scores[k]);
    loss += std::log(sum) - scores[label];
    right += std::max_element(scores.begin(), scores.begin() + 3) - scores.begin() ==
                     static_cast<std::ptrdiff_t>(label)
                 ? 1
                 : 0;
  }
  EXPECT_NEAR(*run.history().tests.back().loss, loss / 10, 1e-12);
  EXPECT_EQ(run.history().tests.back().accuracy, right / 10);
}

const std::string kScaled =
    "training: {loss: cross_entropy, optimizer: {type: adam, learning_rate: "
    "0.01}, loss_scale: {mode: dynamic, initial: 8, growth_interval: 2}}\n"
    "epochs: 3\n";

// Put down after every number of steps, through files: the bits of a run that was left alone.
TEST(TrainLoop, GoesOnToTheSameBits) {
  for (const std::string& network : {perceptron(), convolutional()}) {
    const SmallStudy study(kScaled, network);
    const TrainSetup setup = study.setup();
    TrainRun whole(setup, {.seed = 5});
    run_to_its_end(whole);
    EXPECT_EQ(whole.history().steps.back().scale, 8 * 16.0);
    for (const int steps : {0, 1, 4, 9}) {
      const CheckpointFolder folder(study.path("checkpoints"), setup.identity);
      {
        TrainRun first(setup, {.seed = 5});
        while (first.steps() < steps)
          first.test_is_due() ? first.test() : first.step();
        folder.write(first.state(), 1);
      }
      auto found = folder.newest();
      ASSERT_TRUE(found);
      TrainRun second(setup, {.seed = 5}, std::move(found->state), found->path);
      EXPECT_EQ(second.steps(), steps);
      run_to_its_end(second);
      EXPECT_TRUE(same_bits(second.state(), whole.state())) << steps;
      folder.clear();
      EXPECT_FALSE(folder.newest());
    }
  }
}

TEST(TrainLoop, ThreadsChangeNoBit) {
  const std::string keys =
      "batch: 32\ntraining: {loss: cross_entropy}\nsteps: 2\narithmetic: fp32\nnetwork: " +
      std::string(MONET_SOURCE_DIR) + "/data/workload/resnet8_16.onnx\n" +
      "data: {format: generated, train: 64, test: 32, augment: {flip: true, crop: 2}}\n";
  const std::string path = ::testing::TempDir() + "threads.yaml";
  write_file_atomically(path, keys);
  const TrainStudy study = read_train_study(path);
  const TrainingData data = load_data(study.data.front(), 1);
  const TrainSetup setup = prepare_training(study.variants.front(), data);
  TrainRun one(setup, {.seed = 1, .jobs = 1});
  TrainRun three(setup, {.seed = 1, .jobs = 3});
  run_to_its_end(one);
  run_to_its_end(three);
  EXPECT_TRUE(same_bits(one.state(), three.state()));
  fs::remove(path);
}

const std::string kLow =
    "training: {loss: cross_entropy, optimizer: {type: adam, learning_rate: 0.01}, loss_scale: "
    "64, precision: {weights: e5m2, master_weights: fp32, activations: e4m3, gradients: e5m2, "
    "rounding: stochastic:9, products: {forward: {multiply: e5m2, variant: cfg5, accumulate: "
    "e6m5, rounding: stochastic:13}, weight_gradient: {accumulate: q8.13}}}}\n"
    "steps: 12\nvariants: {low: {arithmetic: formats}}\n";

// Random bits of roundings follow the step of the run, not that of the process.
TEST(TrainLoop, GoesOnToTheSameBitsInFormats) {
  const SmallStudy study(kLow, convolutional());
  const TrainSetup setup = study.setup();
  TrainRun whole(setup, {.seed = 5}), first(setup, {.seed = 5});
  run_to_its_end(whole);
  while (first.steps() < 7)
    first.test_is_due() ? first.test() : first.step();
  TrainRun second(setup, {.seed = 5}, first.state(), "state");
  run_to_its_end(second);
  EXPECT_TRUE(same_bits(second.state(), whole.state()));
}

TEST(TrainLoop, InstructionsAndThreadsChangeNoBitInFormats) {
  const SmallStudy study(kLow, convolutional());
  const TrainSetup setup = study.setup();
  TrainRun best(setup, {.seed = 1});
  run_to_its_end(best);
  for (const Instructions instructions :
       {Instructions::portable, Instructions::avx2, Instructions::avx512}) {
    if (!is_available(instructions))
      continue;
    TrainRun other(setup, {.seed = 1, .jobs = 3, .instructions = instructions});
    run_to_its_end(other);
    EXPECT_TRUE(same_bits(best.state(), other.state())) << static_cast<int>(instructions);
  }
}

TEST(TrainLoop, SeedsDiffer) {
  const SmallStudy study(kSgd + "steps: 2\n");
  const TrainSetup setup = study.setup();
  TrainRun one(setup, {.seed = 1}), same(setup, {.seed = 1}), two(setup, {.seed = 2});
  for (TrainRun* run : {&one, &same, &two})
    run_to_its_end(*run);
  EXPECT_TRUE(same_bits(one.state(), same.state()));
  EXPECT_FALSE(same_bits(one.state(), two.state()));
}

const std::string kTooFast = "training: {loss: cross_entropy, optimizer: {type: sgd, "
                             "learning_rate: 1.0e+5, weight_decay: 1.0e+3}}\nepochs: 3\n"
                             "variants: {single: {arithmetic: fp32}}\n";

// Weights that grow a hundred million times a step: the operator that meets them first is named.
TEST(TrainLoop, NumbersThatAreNotFiniteEndARun) {
  const SmallStudy study(kTooFast);
  const TrainSetup setup = study.setup();
  TrainRun run(setup, {.seed = 1});
  run_to_its_end(run);
  const RunHistory& history = run.history();
  ASSERT_EQ(history.non_finite.size(), 1U);
  const NonFiniteRecord& first = history.non_finite.front();
  EXPECT_EQ(first.step, static_cast<std::int64_t>(history.steps.size()));
  EXPECT_TRUE(history.steps.back().skipped);
  EXPECT_LT(history.steps.size(), 9U);
  ASSERT_TRUE(first.op && first.tensor);
  EXPECT_EQ(setup.step.graph.op(*first.op).op_type, "Gemm");
  EXPECT_EQ(setup.step.graph.op(*first.op).phase, Phase::forward);
  EXPECT_EQ(history.tests.back().step, first.step); // of the last weights that were numbers
  for (const SavedTensor& tensor : run.state().tensors) {
    for (const double x : tensor.numbers)
      ASSERT_TRUE(std::isfinite(x)) << tensor.name;
  }
}

TEST(TrainLoop, NumbersThatAreNotFiniteMayBeSkipped) {
  const SmallStudy study(kTooFast + "on_nonfinite: skip\n");
  const TrainSetup setup = study.setup();
  TrainRun run(setup, {.seed = 1});
  run_to_its_end(run);
  const RunHistory& history = run.history();
  EXPECT_EQ(history.steps.size(), 9U);
  const auto skipped = std::count_if(history.steps.begin(), history.steps.end(),
                                     [](const StepRecord& step) { return step.skipped; });
  EXPECT_GT(skipped, 0);
  EXPECT_EQ(static_cast<std::ptrdiff_t>(history.non_finite.size()), skipped);
}

// What the loss scale is for: the step is skipped, the scale falls, and that is no accident.
TEST(TrainLoop, TheLossScaleSkipsSteps) {
  const SmallStudy study("training: {loss: cross_entropy, loss_scale: {mode: dynamic, initial: "
                         "1.0e+29, backoff: 1.0e-6}, optimizer: adam}\nsteps: 3\n"
                         "variants: {single: {arithmetic: fp32}}\n",
                         perceptron(), "{mean: 0, deviation: 1.0e-10}");
  const TrainSetup setup = study.setup();
  TrainRun run(setup, {.seed = 1});
  run_to_its_end(run);
  const std::vector<StepRecord>& steps = run.history().steps;
  EXPECT_TRUE(steps[0].skipped);
  EXPECT_FLOAT_EQ(static_cast<float>(*steps[0].scale), 1e29F);
  EXPECT_FALSE(steps[1].skipped);
  EXPECT_FLOAT_EQ(static_cast<float>(*steps[1].scale), 1e23F);
  EXPECT_TRUE(run.history().non_finite.empty());
  EXPECT_EQ(run.state().updates, 2); // Adam counts from the first step that was taken
  EXPECT_EQ(run.state().advances, 3);
}

std::string refusal(const std::string& keys, const std::string& network = perceptron()) {
  std::string said;
  const SmallStudy study(keys, network);
  said = error_of([&] { study.setup(); });
  return said.substr(said.rfind('/') + 1);
}

TEST(TrainLoop, WhatDoesNotFitIsRefused) {
  ModelMaker other;
  other.input("images", {-1, 3, 8, 8}).output("scores").weight("v", {3, 192});
  other.node("Flatten", {"images"}, {"flat"});
  ModelMaker::set(other.node("Gemm", {"flat", "v"}, {"scores"}), "transB", 1);
  EXPECT_EQ(refusal(kSgd + "steps: 1", other.bytes()),
            "e.yaml:1:10: 'images' is [4, 3, 8, 8], the images of the data are [1, 8, 8]");
  EXPECT_EQ(refusal("training: {loss: mse}\nsteps: 1"),
            "e.yaml:5:11: the targets of the loss are not one class per image (for example 'loss: "
            "cross_entropy')");
  EXPECT_EQ(refusal("training: {trainable: {lora: {rank: 2}}}\nsteps: 1"),
            "e.yaml:5:11: tests do not read the weights that 'lora' creates (train whole weights)");
  ModelMaker narrow;
  narrow.input("images", {-1, 1, 8, 8}).output("scores").weight("v", {2, 64});
  narrow.node("Flatten", {"images"}, {"flat"});
  ModelMaker::set(narrow.node("Gemm", {"flat", "v"}, {"scores"}), "transB", 1);
  EXPECT_EQ(refusal(kSgd + "steps: 1", narrow.bytes()),
            "e.yaml:1:10: no output has a number for each of 3 classes");
}

TEST(TrainLoop, MoreImagesThanThereAreAreInfeasible) {
  const SmallStudy study("training: {loss: cross_entropy, micro_batches: 4}\nsteps: 1");
  EXPECT_THROW(study.setup(), InfeasibleError);
}

// Without batch normalisation, the gradients of the whole batch.
TEST(TrainLoop, MicroBatchesAreOneStep) {
  const std::string rest = "steps: 1\nevaluate_every: 0\n";
  const SmallStudy study("training: {loss: cross_entropy, optimizer: {type: sgd}}\n" + rest +
                         "variants: {whole: {batch: 8}, parts: {training: {micro_batches: 2}}}\n");
  const TrainSetup whole = study.setup(0), parts = study.setup(1);
  TrainRun a(whole, {}), b(parts, {});
  a.step();
  b.step();
  EXPECT_NEAR(a.history().steps[0].loss, b.history().steps[0].loss, 1e-12);
  EXPECT_EQ(a.history().steps[0].accuracy, b.history().steps[0].accuracy);
  const RunState of_a = a.state(), of_b = b.state();
  for (std::size_t i = 0; i < 320; ++i)
    ASSERT_NEAR(tensor_of(of_a, "w").numbers[i], tensor_of(of_b, "w").numbers[i], 1e-12);
}

// A checkpoint's tensors are a folder of weights.
TEST(TrainLoop, WeightsComeFromACheckpoint) {
  const SmallStudy study(kSgd + "steps: 3\nvariants: {first: {}, second: {initial: {scheme: file, "
                                "path: c/step_00000003/tensors}}}\n");
  const TrainSetup first = study.setup(0), second = study.setup(1);
  TrainRun run(first, {.seed = 1});
  run_to_its_end(run);
  EXPECT_THROW(TrainRun(second, {.seed = 9}), InputError); // the folder is not there yet
  CheckpointFolder(study.path("c"), first.identity).write(run.state(), 1);
  const RunState begun = TrainRun(second, {.seed = 9}).state();
  EXPECT_EQ(tensor_of(begun, "w").numbers, tensor_of(run.state(), "w").numbers);
  EXPECT_EQ(tensor_of(begun, "c").numbers, tensor_of(run.state(), "c").numbers);
}

} // namespace
} // namespace monet::test
