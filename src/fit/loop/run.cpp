// The training loop: feeds batches, runs steps, detects numbers that are not finite, runs tests.
#include "monet/fit/run.hpp"

#include "base/shared/rng.hpp"
#include "fit/loop/initial.hpp"

#include "monet/base/errors.hpp"
#include "monet/fit/dataset.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>

namespace monet {

/// Score sums over images.
struct ScoreSums {
  std::int64_t images = 0;
  std::int64_t right = 0; ///< images whose first largest score is the label's; NaN never counts
  double loss = 0;        ///< negative logarithm of the label's probability

  double accuracy() const { return static_cast<double>(right) / static_cast<double>(images); }
};

namespace {

/// Adds the first `counted` images to `sums`. Scores are row-major [image][class]: logits, or
/// log-probabilities.
void add_scores(ScoreSums& sums, std::span<const double> scores,
                std::span<const std::int64_t> labels, std::int64_t counted, bool logarithms) {
  internal_check(!labels.empty() && scores.size() % labels.size() == 0 &&
                     counted <= static_cast<std::int64_t>(labels.size()),
                 "scores of other images than labels");
  const std::size_t classes = scores.size() / labels.size();
  for (std::size_t i = 0; i < static_cast<std::size_t>(counted); ++i) {
    const auto row = scores.subspan(i * classes, classes);
    const auto label = static_cast<std::size_t>(labels[i]);
    const bool numbers = std::ranges::none_of(row, [](double x) { return std::isnan(x); });
    const auto best = static_cast<std::size_t>(std::ranges::max_element(row) - row.begin());
    sums.right += numbers && best == label ? 1 : 0;
    double shares = 0;
    for (const double score : row)
      shares += std::exp(score - row[best]);
    sums.loss += logarithms ? -row[label] : std::log(shares) - (row[label] - row[best]);
  }
  sums.images += counted;
}

constexpr std::uint64_t kMaskTag = 0x3A5C; ///< separates masks from orders and augmentations

ExecuteOptions options_of(const TrainSetup& setup, const TrainRunOptions& options,
                          std::int64_t advances) {
  ExecuteOptions made;
  made.arithmetic = setup.recipe->arithmetic;
  made.formats = setup.step.arithmetic;
  made.seed = random_bits(options.seed, kMaskTag) + static_cast<std::uint64_t>(advances);
  made.keep_all = false;
  made.jobs = options.jobs;
  made.instructions = options.instructions;
  made.memory_limit_bytes = options.memory_limit_bytes;
  return made;
}

/// Whether a tensor persists from one step to the next.
bool is_lasting(const Tensor& tensor) {
  const bool kind = tensor.kind == TensorKind::parameter || tensor.kind == TensorKind::buffer ||
                    tensor.kind == TensorKind::optimizer_state;
  return kind && !tensor.producer && !tensor.alias_of && !tensor.values &&
         !tensor.consumers.empty();
}

} // namespace

struct TrainRun::Parts {
  Parts(const TrainSetup& of, const TrainRunOptions& with, RunState from)
      : setup(of), options(with), now(std::move(from)),
        training(of.step.graph, options_of(of, with, now.advances)),
        tests(of.test.graph, options_of(of, with, 0)) {}

  const Graph& graph() const { return setup.step.graph; }
  const TrainRecipe& recipe() const { return *setup.recipe; }

  void set_rates(double share) {
    for (const StepInput& rate : setup.step.learning_rates)
      training.set(rate.tensor, std::array{rate.value * share});
  }

  /// Sets all inputs of a step.
  void feed(std::int64_t step) {
    const std::int64_t epoch = step / setup.length.steps_of_epoch;
    const std::int64_t images = setup.batch * setup.step.micro_batches;
    if (epoch != epoch_of_batches) {
      batches =
          training_batches(epoch_order(setup.data->train.size(), options.seed, epoch), images);
      epoch_of_batches = epoch;
    }
    const std::span<const std::int64_t> all =
        batches[static_cast<std::size_t>(step % setup.length.steps_of_epoch)].images;
    const ImageView view{setup.data->normalisation, setup.data->augmentation, options.seed, epoch};
    labels = labels_of(setup.data->train, all);
    const auto batch = static_cast<std::size_t>(setup.batch);
    numbers.resize(batch * static_cast<std::size_t>(setup.data->train.shape.size()));
    for (std::size_t micro = 0; micro < setup.images.size(); ++micro) {
      fill_images(setup.data->train, all.subspan(micro * batch, batch), view, numbers);
      training.set(setup.images[micro], numbers);
      training.set_integers(setup.labels[micro],
                            std::span<const std::int64_t>(labels).subspan(micro * batch, batch));
    }
    set_rates(recipe().rate.share(step, setup.length));
    set_step_number(training, setup.step, now.updates + 1);
  }

  /// Runs the step and checks temporary tensors as soon as they are computed.
  void run_step() {
    sums = {};
    overflowed = false;
    training.run([this](OpId op) {
      const auto flag = setup.step.found_inf;
      if (flag && graph().tensor(*flag).producer == op)
        overflowed = training.get(*flag).at(0) != 0.0;
      for (std::size_t micro = 0; micro < setup.step_scores.size(); ++micro) {
        const auto scores = setup.step_scores[micro];
        if (!scores || graph().tensor(*scores).producer != op)
          continue;
        const auto batch = static_cast<std::size_t>(setup.batch);
        add_scores(sums, training.get(*scores),
                   std::span<const std::int64_t>(labels).subspan(micro * batch, batch), setup.batch,
                   false);
      }
    });
  }

  StepRecord record(std::int64_t step) const {
    StepRecord made;
    const double share = recipe().rate.share(step, setup.length);
    if (!setup.step.learning_rates.empty())
      made.rate = setup.step.learning_rates.front().value * share;
    made.loss = training.get(*setup.step.loss).at(0);
    if (sums.images > 0)
      made.accuracy = sums.accuracy();
    if (setup.step.loss_scale)
      made.scale = training.get(*setup.step.loss_scale).at(0);
    made.skipped = overflowed;
    if (const GradientRounding& rounded = training.gradient_rounding(); rounded.numbers > 0)
      made.flushed = static_cast<double>(rounded.flushed) / static_cast<double>(rounded.numbers);
    return made;
  }

  /// Whether the step failed. With a loss scale, gradients that are not finite are expected.
  bool went_wrong(const StepRecord& made) const {
    if (!std::isfinite(made.loss))
      return true;
    return std::ranges::any_of(setup.step.parameters, [&](const ParameterRecord& parameter) {
      return (!setup.step.found_inf && !training.is_finite(parameter.gradient)) ||
             !training.is_finite(parameter.updated);
    });
  }

  /// Repeats the step and finds the first tensor with numbers that are not finite.
  NonFiniteRecord find_first() {
    NonFiniteRecord found{static_cast<std::int64_t>(now.history.steps.size()), {}, {}};
    for (std::size_t i = 0; i < graph().tensors().size() && !found.tensor; ++i) {
      const Tensor& tensor = graph().tensors()[i];
      if ((is_lasting(tensor) && tensor.kind != TensorKind::buffer && training.has(TensorId(i)) &&
           !training.is_finite(TensorId(i))))
        found.tensor = TensorId(i);
    }
    if (found.tensor)
      return found;
    training.run([&](OpId op) {
      for (const TensorId output : present(graph().op(op).outputs)) {
        if (!found.tensor && !training.is_finite(output)) {
          found.op = op;
          found.tensor = output;
        }
      }
    });
    return found;
  }

  void set_test_numbers() {
    const Graph& to = setup.test.graph;
    for (std::size_t i = 0; i < to.tensors().size(); ++i) {
      const Tensor& tensor = to.tensors()[i];
      const bool lasts = tensor.kind == TensorKind::parameter || tensor.kind == TensorKind::buffer;
      if (!lasts || tensor.producer || tensor.alias_of || tensor.values)
        continue;
      const auto same = graph().find_tensor(tensor.name);
      if (same && training.has(*same) && graph().tensor(*same).shape == tensor.shape)
        tests.set(TensorId(i), training.get(*same));
    }
  }

  const TrainSetup& setup;
  TrainRunOptions options;
  RunState now; ///< excludes tensors
  Execution training;
  Execution tests;
  std::vector<ImageBatch> batches; ///< of the current epoch
  std::int64_t epoch_of_batches = -1;
  bool is_first_test = true;
  Integers labels;             ///< of this step
  ScoreSums sums;              ///< of this step
  bool overflowed = false;     ///< in a scaled gradient of the step
  std::vector<double> numbers; ///< one micro-batch of images
};

TrainRun::TrainRun(const TrainSetup& setup, const TrainRunOptions& options)
    : parts_(std::make_unique<Parts>(setup, options, RunState{})) {
  parts_->set_rates(1);
  set_step_number(parts_->training, setup.step, 1);
  set_initial_numbers(parts_->training, setup.step, *setup.recipe, options.seed);
}

TrainRun::TrainRun(const TrainSetup& setup, const TrainRunOptions& options, RunState state,
                   const std::string& from) {
  const std::vector<SavedTensor> saved = std::exchange(state.tensors, {});
  parts_ = std::make_unique<Parts>(setup, options, std::move(state));
  const Graph& graph = setup.step.graph;
  ProblemList problems;
  for (std::size_t i = 0; i < graph.tensors().size(); ++i) {
    const Tensor& tensor = graph.tensors()[i];
    if (!is_lasting(tensor))
      continue;
    const auto same = std::ranges::find(saved, tensor.name, &SavedTensor::name);
    if (same != saved.end() && same->shape == tensor.shape)
      parts_->training.set(TensorId(i), same->numbers);
    else
      problems.add({from}, fmt::format("has no '{}' of shape [{}]", tensor.name,
                                       fmt::join(tensor.shape, ", ")));
  }
  problems.throw_if_any();
  parts_->set_rates(1);
  set_step_number(parts_->training, setup.step, 1);
  fill(parts_->training, setup.step, options.seed);
}

TrainRun::~TrainRun() = default;
TrainRun::TrainRun(TrainRun&&) noexcept = default;

const RunHistory& TrainRun::history() const {
  return parts_->now.history;
}

bool TrainRun::is_over() const {
  return parts_->now.ended || steps() >= parts_->setup.length.steps;
}

void TrainRun::step() {
  Parts& run = *parts_;
  const std::int64_t step = steps();
  run.feed(step);
  run.run_step();
  StepRecord made = run.record(step);
  const bool wrong = run.went_wrong(made);
  made.skipped = made.skipped || wrong;
  run.now.history.steps.push_back(made);
  if (wrong) {
    run.now.history.non_finite.push_back(run.find_first());
    run.now.ended = run.recipe().on_nonfinite == OnNonFinite::stop;
    return;
  }
  run.training.advance();
  ++run.now.advances;
  run.now.updates += made.skipped ? 0 : 1;
}

bool TrainRun::test_is_due() const {
  const std::int64_t done = steps();
  const std::vector<TestRecord>& tests = history().tests;
  if (!tests.empty() && tests.back().step == done)
    return false;
  const std::int64_t every = parts_->recipe().evaluate_every * parts_->setup.length.steps_of_epoch;
  return is_over() || (every > 0 && done > 0 && done % every == 0);
}

void TrainRun::test() {
  Parts& run = *parts_;
  const TrainSetup& setup = run.setup;
  run.set_test_numbers();
  if (std::exchange(run.is_first_test, false)) // tensors not in the step keep the file's numbers
    set_initial_numbers(run.tests, setup.test, run.recipe(), run.options.seed);
  const Dataset& data = setup.data->test;
  ScoreSums sums;
  for (const ImageBatch& batch : test_batches(data.size(), setup.batch)) {
    run.numbers.resize(static_cast<std::size_t>(setup.batch * data.shape.size()));
    fill_images(data, batch.images, {setup.data->normalisation, {}, 0, 0}, run.numbers);
    run.tests.set(setup.test_images, run.numbers);
    run.tests.run();
    add_scores(sums, run.tests.get(setup.scores), labels_of(data, batch.images), batch.counted,
               setup.scores_are_logarithms.value_or(false));
  }
  TestRecord made{steps(), {}, sums.accuracy()};
  if (setup.scores_are_logarithms)
    made.loss = sums.loss / static_cast<double>(sums.images);
  run.now.history.tests.push_back(made);
}

RunState TrainRun::state() const {
  RunState state = parts_->now;
  const Graph& graph = parts_->graph();
  for (std::size_t i = 0; i < graph.tensors().size(); ++i) {
    const Tensor& tensor = graph.tensors()[i];
    if (is_lasting(tensor))
      state.tensors.push_back({tensor.name, tensor.shape, parts_->training.get(TensorId(i))});
  }
  return state;
}

} // namespace monet
