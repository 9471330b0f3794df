// Training runs: steps with batches of a data set, tests in between, and the complete state of a
// run, from which it can be resumed.
// Example:
//   double train(const TrainRecipe& recipe, const TrainingData& data) {
//     const TrainSetup setup = prepare_training(recipe, data);
//     TrainRun run(setup, {});
//     while (!run.is_over())
//       run.step();
//     run.test();
//     return run.history().tests.back().accuracy;
//   }
#pragma once

#include "monet/fit/dataset.hpp"
#include "monet/fit/study.hpp"
#include "monet/training_graph/training.hpp"

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace monet {

/// Record of one step, a line of curves.csv. Losses can be NaN or infinite.
struct StepRecord {
  double rate = 0; ///< learning rate of the optimiser, without its groups
  double loss = 0;
  std::optional<double> accuracy; ///< batch accuracy, if the step outputs scores
  std::optional<double> scale;    ///< loss scale of this step
  bool skipped = false;           ///< the step changed no weight
  /// Share of nonzero gradient values that were rounded to 0 in their formats; nullopt without
  /// rounding.
  std::optional<double> flushed;
};

/// Result of a test on all test images.
struct TestRecord {
  std::int64_t step = 0;      ///< number of steps before the test
  std::optional<double> loss; ///< cross-entropy, if that is the loss
  double accuracy = 0;
};

/// Origin of the first non-finite number of a step.
struct NonFiniteRecord {
  std::int64_t step = 0;          ///< counted from 1
  std::optional<OpId> op;         ///< nullopt: it existed before the step
  std::optional<TensorId> tensor; ///< nullopt: every visible tensor is finite
};

/// All records of a run.
struct RunHistory {
  std::vector<StepRecord> steps;
  std::vector<TestRecord> tests;
  std::vector<NonFiniteRecord> non_finite;
};

/// A tensor that persists between steps.
struct SavedTensor {
  std::string name;
  Integers shape;
  std::vector<double> numbers;
};

/// State of a run. Its continuation depends only on this state and the recipe.
struct RunState {
  std::int64_t updates = 0;  ///< steps that changed weights, as counted by the optimiser
  std::int64_t advances = 0; ///< steps whose results were kept; selects the random masks
  bool ended = false;        ///< stopped by a non-finite number
  RunHistory history;
  std::vector<SavedTensor> tensors;
};

/// Data shared by the runs of a recipe.
struct TrainSetup {
  const TrainRecipe* recipe = nullptr; ///< must outlive the setup, as must the data
  const TrainingData* data = nullptr;
  TrainingGraph step;
  TrainingGraph test;           ///< the network with its running statistics
  std::vector<TensorId> images; ///< inputs of the step, one per micro-batch
  std::vector<TensorId> labels;
  TensorId test_images;
  TensorId scores;                                  ///< output of the test: [batch][class]
  std::vector<std::optional<TensorId>> step_scores; ///< one per micro-batch
  std::optional<bool> scores_are_logarithms;        ///< nullopt: the loss is not a cross-entropy
  std::int64_t batch = 0; ///< number of images of a micro-batch and of a test batch
  RunLength length;
  std::string identity; ///< differs between different recipes or networks
};

/// Reads the network and builds both graphs. Throws InputError, with positions in the experiment,
/// if the network does not accept the data set's images or the loss its labels. Throws
/// InfeasibleError if the data set is smaller than a batch.
TrainSetup prepare_training(const TrainRecipe& recipe, const TrainingData& data);

/// Options of a run.
struct TrainRunOptions {
  std::uint64_t seed = 1;
  int jobs = 1; ///< threads, 0: all cores; the results do not depend on it
  Instructions instructions = Instructions::best; ///< instructions of `formats`; same results
  std::int64_t memory_limit_bytes = std::numeric_limits<std::int64_t>::max(); ///< per graph
};

/// One training run. Its numbers depend only on the setup and the seed.
class TrainRun {
public:
  /// Starts a run.
  TrainRun(const TrainSetup& setup, const TrainRunOptions& options);
  /// Resumes a run from a state. Throws InputError, naming `from`, if the state belongs to another
  /// run.
  TrainRun(const TrainSetup& setup, const TrainRunOptions& options, RunState state,
           const std::string& from);
  ~TrainRun();
  TrainRun(TrainRun&&) noexcept;

  const RunHistory& history() const;
  std::int64_t steps() const { return static_cast<std::int64_t>(history().steps.size()); }
  /// Whether the run is complete, except possibly for a test.
  bool is_over() const;
  void step();
  /// Whether a test is due: after the last step, and at the interval of epochs that the recipe
  /// sets.
  bool test_is_due() const;
  /// Runs a test. If it throws Stopped, the state is unchanged.
  void test();
  RunState state() const;

private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

} // namespace monet
