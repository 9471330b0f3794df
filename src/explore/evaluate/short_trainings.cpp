// Runs the short trainings that give a design's error, and caches them by key and seed. The
// evaluator of chips calls this for spaces with `accuracy:`.
#include "explore/evaluate/short_trainings.hpp"

#include "base/shared/sha512.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/files.hpp"
#include "monet/base/stop.hpp"
#include "monet/fit/run.hpp"

#include <chrono>
#include <cmath>

namespace monet {

namespace {

/// Trainings use one thread: the one that evaluates the design.
constexpr int kTrainingJobs = 1;

double mean_flushed(const RunHistory& history) {
  double sum = 0;
  double steps = 0;
  for (const StepRecord& step : history.steps) {
    sum += step.flushed.value_or(0);
    steps += step.flushed ? 1 : 0;
  }
  return steps > 0 ? sum / steps : 0;
}

/// Trains with one seed until the last step, or until a non-finite number ends the run, then tests.
TrainingRecord train(const TrainStudy& study, const std::string& key, std::uint64_t seed) {
  const TrainRecipe& recipe = study.variants.front();
  const TrainingData data = load_data(study.data[recipe.data], kTrainingJobs);
  const TrainSetup setup = prepare_training(recipe, data);
  TrainRunOptions options{.seed = seed, .jobs = kTrainingJobs};
  TrainRun run(setup, options);
  while (!run.is_over()) {
    check_stop();
    run.step();
  }
  run.test();
  const auto images = static_cast<double>(data.test.size());
  const double wrong = std::round((1 - run.history().tests.back().accuracy) * images); // an integer
  return {key, seed, wrong / images, mean_flushed(run.history())};
}

} // namespace

TrainingCache::TrainingCache(DesignStore* store) : store_(store) {
  if (store_ == nullptr)
    return;
  for (const TrainingRecord& record : store_->trainings()) {
    known_.emplace(Key(record.key, record.seed), record);
    new_.push_back(record);
  }
}

std::vector<TrainingRecord>
TrainingCache::of(const std::string& key, std::span<const std::uint64_t> seeds,
                  const std::function<TrainingRecord(std::uint64_t seed)>& make) {
  constexpr std::chrono::milliseconds kLookAround{50}; // between checks for a stop request
  std::unique_lock lock(mutex_);
  for (;;) {
    std::size_t missing = 0;
    const std::uint64_t* free = nullptr;
    for (const std::uint64_t& seed : seeds) {
      if (has({key, seed}))
        continue;
      ++missing;
      if (free == nullptr && !under_way_.contains({key, seed}))
        free = &seed;
    }
    if (missing == 0)
      break;
    if (free != nullptr) {
      make_one({key, *free}, lock, make);
    } else {
      check_stop();
      changed_.wait_for(lock, kLookAround);
    }
  }
  std::vector<TrainingRecord> records;
  for (const std::uint64_t seed : seeds)
    records.push_back(known_.at({key, seed}));
  return records;
}

/// Whether a record is known. Also looks into the store, where another process may have written it.
bool TrainingCache::has(const Key& key) {
  if (known_.contains(key))
    return true;
  if (store_ == nullptr || under_way_.contains(key))
    return false;
  const auto stored = store_->find_training(key.first, key.second);
  if (stored) {
    known_.emplace(key, *stored);
    new_.push_back(*stored);
  }
  return stored.has_value();
}

void TrainingCache::make_one(const Key& key, std::unique_lock<std::mutex>& lock,
                             const std::function<TrainingRecord(std::uint64_t seed)>& make) {
  under_way_.insert(key);
  lock.unlock();
  try {
    const TrainingRecord made = make(key.second);
    lock.lock();
    keep(made);
    new_.push_back(made);
  } catch (...) {
    if (!lock.owns_lock())
      lock.lock();
    under_way_.erase(key);
    changed_.notify_all();
    throw;
  }
  under_way_.erase(key);
  changed_.notify_all();
}

void TrainingCache::keep(const TrainingRecord& record) {
  if (known_.emplace(Key(record.key, record.seed), record).second && store_ != nullptr)
    store_->put_training(record);
}

std::vector<TrainingRecord> TrainingCache::take_new() {
  const std::lock_guard lock(mutex_);
  return std::exchange(new_, {});
}

void TrainingCache::learn(std::span<const TrainingRecord> records) {
  const std::lock_guard lock(mutex_);
  for (const TrainingRecord& record : records)
    keep(record);
  changed_.notify_all();
}

ShortTrainings::ShortTrainings(const Space& space, DesignStore* store, DesignId first)
    : space_(space), cache_(space.workload.metrics.empty() ? nullptr : store) {
  const std::optional<TrainStudy> study = space.short_training(first);
  if (!study)
    return;
  const TrainRecipe& recipe = study->variants.front();
  const TrainingData data = load_data(study->data[recipe.data], kTrainingJobs);
  prepare_training(recipe, data);
}

std::vector<Metric> ShortTrainings::metrics_of(DesignId id) {
  const std::optional<TrainStudy> study = space_.short_training(id);
  if (!study)
    return {};
  const TrainRecipe& recipe = study->variants.front();
  const std::string key = sha512_hex(recipe.text + '\n' + read_file(recipe.network.value));
  const std::vector<TrainingRecord> runs =
      cache_.of(key, recipe.seeds, [&](std::uint64_t seed) { return train(*study, key, seed); });
  double error = 0;
  double flushed = 0;
  for (const TrainingRecord& run : runs) {
    error += run.error;
    flushed += run.gradients_flushed;
  }
  const auto count = static_cast<double>(runs.size());
  return {{std::string(kTrainedMetrics[0]), error / count},
          {std::string(kTrainedMetrics[1]), flushed / count}};
}

} // namespace monet
