// Training a network: step after step with batches of a data set, tests in between, and everything
// that a run is, so that it can be put down and taken up again.
#pragma once

#include "monet/fit/data_options.hpp"
#include "monet/fit/study.hpp"
#include "monet/training_graph/training.hpp"

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace monet {

/// One step, as a line of curves.csv. Losses are as computed: they may be no numbers.
struct StepRecord {
  double rate = 0; ///< the optimiser's own
  double loss = 0;
  std::optional<double> accuracy; ///< of the batch, where the step gives the network's output
  std::optional<double> scale;    ///< of the loss, in this step
  bool skipped = false;           ///< changed no weight
  /// Share of the gradients' numbers other than 0 that became 0 when they were rounded to their
  /// formats; none: nothing was rounded.
  std::optional<double> flushed;
};

/// A test of all images for tests.
struct TestRecord {
  std::int64_t step = 0;      ///< after so many
  std::optional<double> loss; ///< cross-entropy, where that is the loss
  double accuracy = 0;
};

/// Where the first number of a step that is not finite came from.
struct NonFiniteRecord {
  std::int64_t step = 0;          ///< counted from 1
  std::optional<OpId> op;         ///< none: it was there before the step
  std::optional<TensorId> tensor; ///< none: every tensor that can be seen is finite
};

struct RunHistory {
  std::vector<StepRecord> steps;
  std::vector<TestRecord> tests;
  std::vector<NonFiniteRecord> non_finite;
};

/// A tensor that lasts from one step to the next.
struct SavedTensor {
  std::string name;
  Integers shape;
  std::vector<double> numbers;
};

/// Everything that a run has come to; what follows depends on it and the recipe alone.
struct RunState {
  std::int64_t updates = 0;  ///< steps that changed weights, which the optimiser counts
  std::int64_t advances = 0; ///< steps whose results were taken, which masks follow
  bool ended = false;        ///< by a number that is not finite
  RunHistory history;
  std::vector<SavedTensor> tensors;
};

/// What the runs of a recipe share.
struct TrainSetup {
  const TrainRecipe* recipe = nullptr; ///< outlives it, as the data do
  const TrainingData* data = nullptr;
  TrainingGraph step;
  TrainingGraph test;           ///< the network with its running statistics
  std::vector<TensorId> images; ///< inputs of the step, one a micro-batch
  std::vector<TensorId> labels;
  TensorId test_images;
  TensorId scores;                                  ///< of the test: [batch][class]
  std::vector<std::optional<TensorId>> step_scores; ///< one a micro-batch
  std::optional<bool> scores_are_logarithms;        ///< none: the loss is no cross-entropy
  std::int64_t batch = 0;                           ///< images of a micro-batch, and of a test's
  RunLength length;
  std::string identity; ///< differs where recipes or networks do
};

/// Reads the network and makes both graphs. InputError, in the experiment's words, where the
/// network does not take the data set's images or the loss its labels; InfeasibleError where the
/// data set has no batch.
TrainSetup prepare_training(const TrainRecipe& recipe, const TrainingData& data);

struct TrainRunOptions {
  std::uint64_t seed = 1;
  int jobs = 1; ///< threads, 0: all cores; the numbers are the same for any
  Instructions instructions = Instructions::best; ///< of arithmetic `formats`, alike
  std::int64_t memory_limit_bytes = std::numeric_limits<std::int64_t>::max(); ///< of each graph
};

/// One run. Numbers follow from the setup and the seed alone.
class TrainRun {
public:
  /// At its beginning, or where it was put down: InputError, naming `from`, where the state is that
  /// of another run.
  TrainRun(const TrainSetup& setup, const TrainRunOptions& options);
  TrainRun(const TrainSetup& setup, const TrainRunOptions& options, RunState state,
           const std::string& from);
  ~TrainRun();
  TrainRun(TrainRun&&) noexcept;

  const RunHistory& history() const;
  std::int64_t steps() const { return static_cast<std::int64_t>(history().steps.size()); }
  /// Nothing is left but perhaps a test.
  bool is_over() const;
  void step();
  /// After the last step, and after every so many epochs as the recipe says.
  bool test_is_due() const;
  /// Stopped while it runs: nothing has happened.
  void test();
  RunState state() const;

private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

} // namespace monet
