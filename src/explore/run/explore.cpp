// The main loop of an exploration: gets designs from the strategy, looks them up in the store,
// evaluates missing ones on a DesignRunner, and passes the results to the strategy.
#include "monet/explore/explore.hpp"

#include "explore/run/worker_pool.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/stop.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <thread>

namespace monet {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kFewResults = 256;             // results that are passed on at once
constexpr std::chrono::milliseconds kHandOn{50};     // maximum delay of a result
constexpr std::chrono::milliseconds kOthersPoll{50}; // between looks for other processes' results
/// Designs of about this many seconds of work are claimed at a time. Processes that join later find
/// work, and a process that leaves returns most of its designs.
constexpr double kClaimSeconds = 20;
constexpr std::size_t kClaimPerWorker = 4;
constexpr std::size_t kLargestClaim = 16384;

class ThreadRunner final : public DesignRunner {
public:
  ThreadRunner(DesignEvaluator& evaluator, int jobs) : pool_(evaluator, jobs) {}

  void run(std::span<const DesignId> ids, const SharedFronts& fronts, const SearchControl& control,
           const std::function<void(std::span<const DesignResult>)>& done) override {
    pool_.add(ids, fronts);
    while (pool_.unfinished() > 0) {
      pool_.wait(kFewResults, kHandOn);
      if (control.interrupted())
        pool_.drop();
      hand_on(done);
    }
    hand_on(done);
    if (const auto failure = pool_.failure())
      std::rethrow_exception(failure->error);
  }

  std::size_t workers() const override { return pool_.threads(); }

private:
  void hand_on(const std::function<void(std::span<const DesignResult>)>& done) {
    try {
      const std::vector<DesignResult> results = pool_.take();
      if (!results.empty())
        done(results);
    } catch (...) {
      pool_.drop();
      throw;
    }
  }

  WorkerPool pool_;
};

double plain(double value) {
  return value == 0 ? 0.0 : value;
}

/// Results in the form in which the store returns them (no negative zeros), so that a run from
/// stored results is the same. Throws InternalError if a result is invalid.
std::vector<DesignResult> plain(std::span<const DesignResult> results, bool race) {
  std::vector<DesignResult> all(results.begin(), results.end());
  for (DesignResult& result : all) {
    bool valid = !std::isnan(result.area_mm2) && !std::isnan(result.peak_power_w) &&
                 !std::isnan(result.frequency_hz) && result.feasible == result.reason.empty() &&
                 result.feasible != result.runs.empty();
    result.area_mm2 = plain(result.area_mm2);
    result.peak_power_w = plain(result.peak_power_w);
    result.frequency_hz = plain(result.frequency_hz);
    for (StepFigures& run : result.runs) {
      valid = valid && !std::isnan(run.energy_pj);
      run.energy_pj = plain(run.energy_pj);
    }
    for (Metric& metric : result.metrics) {
      valid = valid && !std::isnan(metric.value);
      metric.value = plain(metric.value);
    }
    internal_check(valid || (race && result.given_up()),
                   fmt::format("the evaluation of design {} is no result", result.id));
  }
  return all;
}

class Exploration {
public:
  Exploration(const Space& space, Strategy& strategy, DesignStore& store, DesignRunner& runner,
              const SearchControl& control)
      : space_(space), strategy_(strategy), store_(store), runner_(runner), control_(control) {}

  ExplorationResult run() {
    if (!control_.finishes([&] { explore(); }))
      result_.interrupted = true;
    finish();
    return std::move(result_);
  }

private:
  void explore() {
    const StopScope scope(control_.stop_request());
    for (;;) {
      const std::vector<DesignId> ids = strategy_.ask();
      if (ids.empty() && strategy_.ended())
        break;
      if (ids.empty())
        tell(); // the strategy has made progress
      result_.interrupted = ids.empty() ? !race() : !complete(ids);
      if (result_.interrupted)
        break;
      if (ids.empty())
        continue;
      std::vector<DesignResult> told;
      told.reserve(ids.size());
      for (const DesignId id : ids)
        told.push_back(known_.at(id));
      strategy_.tell(told);
    }
  }

  /// Races the strategy's candidates, except stored ones. Returns whether each was evaluated or
  /// given up; false if the run was interrupted.
  bool race() {
    const DesignRace race = strategy_.race();
    std::vector<std::optional<DesignResult>> results = store_.find(race.ids);
    std::vector<DesignId> missing;
    for (std::size_t i = 0; i < race.ids.size(); ++i) {
      if (!results[i])
        missing.push_back(race.ids[i]);
    }
    raced_.clear();
    run(missing, race.fronts, [&](std::vector<DesignResult> part) {
      for (DesignResult& result : part)
        raced_.emplace(result.id, std::move(result));
    });
    if (raced_.size() < missing.size() || control_.interrupted())
      return false;
    std::vector<DesignResult> told;
    for (std::size_t i = 0; i < race.ids.size(); ++i)
      told.push_back(results[i] ? std::move(*results[i]) : raced_.at(race.ids[i]));
    if (!told.empty())
      strategy_.tell_race(told);
    return true;
  }

  /// Evaluates all designs that are not known. Returns false if the run was interrupted.
  bool complete(const std::vector<DesignId>& ids) {
    std::vector<DesignId> missing = look_up(ids);
    tell();
    // Designs that another process had claimed.
    std::vector<DesignId> others;
    std::size_t at = 0;
    while (at < missing.size()) {
      if (control_.interrupted())
        return false;
      const std::span<const DesignId> rest = std::span(missing).subspan(at);
      const std::vector<DesignId> mine = store_.claim(rest, claim_size(rest.size()));
      // Designs before the last claimed one that were not claimed belong to other processes.
      std::size_t next = 0;
      for (; at < missing.size() && (next < mine.size() || mine.empty()); ++at) {
        if (next < mine.size() && missing[at] == mine[next])
          ++next;
        else
          others.push_back(missing[at]);
      }
      if (!mine.empty() && !evaluate(mine))
        return false;
    }
    return wait_for(std::move(others));
  }

  /// Waits for results of other processes, and evaluates designs of processes that died.
  bool wait_for(std::vector<DesignId> others) {
    for (bool first = true; !others.empty(); first = false) {
      if (control_.interrupted())
        return false;
      if (!first)
        std::this_thread::sleep_for(kOthersPoll);
      others = look_up(others);
      tell();
      const std::vector<DesignId> mine = store_.claim(others, claim_size(others.size()));
      if (!mine.empty() && !evaluate(mine))
        return false;
      std::erase_if(others, [&](DesignId id) { return known_.contains(id); });
    }
    return true;
  }

  /// Adds stored results to known_. Returns the designs that are not known.
  std::vector<DesignId> look_up(const std::vector<DesignId>& ids) {
    std::vector<std::optional<DesignResult>> found = store_.find(ids);
    std::vector<DesignId> missing;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (found[i])
        known_.emplace(ids[i], std::move(*found[i]));
      else if (!known_.contains(ids[i]))
        missing.push_back(ids[i]);
    }
    return missing;
  }

  std::size_t claim_size(std::size_t rest) const {
    const std::size_t least = kClaimPerWorker * runner_.workers();
    if (seconds_evaluating_ <= 0)
      return least;
    const double rate = static_cast<double>(result_.evaluated_now) / seconds_evaluating_;
    const double wanted = std::min(rate * kClaimSeconds, static_cast<double>(kLargestClaim));
    // Smaller claims towards the end, so that processes that share the run end together.
    return std::max(least, std::min(static_cast<std::size_t>(wanted), rest / 4));
  }

  bool evaluate(const std::vector<DesignId>& ids) {
    const std::uint64_t before = result_.evaluated_now;
    const auto keep = [&](std::vector<DesignResult> results) {
      store_.put(results);
      for (DesignResult& result : results)
        known_.emplace(result.id, std::move(result));
      result_.evaluated_now += results.size();
    };
    std::vector<DesignResult> finished; // results of the last race
    std::vector<DesignId> rest;
    for (const DesignId id : ids) {
      if (const auto raced = raced_.find(id); raced != raced_.end())
        finished.push_back(raced->second);
      else
        rest.push_back(id);
    }
    if (!finished.empty())
      keep(std::move(finished));
    run(rest, nullptr, keep);
    const bool all = result_.evaluated_now - before == ids.size();
    internal_check(all || control_.interrupted(), "designs are missing from a batch");
    return all;
  }

  template <class Take>
  void run(const std::vector<DesignId>& ids, const SharedFronts& fronts, const Take& take) {
    const Clock::time_point begin = Clock::now();
    runner_.run(ids, fronts, control_, [&](std::span<const DesignResult> raw) {
      take(plain(raw, fronts != nullptr));
      tell();
    });
    seconds_evaluating_ += std::chrono::duration<double>(Clock::now() - begin).count();
  }

  void tell() const {
    SearchProgress progress;
    progress.phase = "explore";
    progress.done = static_cast<std::int64_t>(known_.size() + strategy_.skipped_by_bound());
    progress.total =
        static_cast<std::int64_t>(space_.size() - std::min(space_.size(), strategy_.excluded()));
    control_.tell(progress);
  }

  void finish() {
    result_.results.reserve(known_.size());
    for (auto& [id, result] : known_)
      result_.results.push_back(std::move(result));
    result_.skipped_by_bound = strategy_.skipped_by_bound();
    result_.excluded = strategy_.excluded();
    result_.seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
  }

  const Space& space_;
  Strategy& strategy_;
  DesignStore& store_;
  DesignRunner& runner_;
  const SearchControl& control_;
  Clock::time_point begin_ = Clock::now();
  double seconds_evaluating_ = 0;
  std::map<DesignId, DesignResult> known_; ///< known results of the strategy's designs
  std::map<DesignId, DesignResult> raced_; ///< of the last race
  ExplorationResult result_;
};

} // namespace

std::unique_ptr<DesignRunner> thread_runner(DesignEvaluator& evaluator, int jobs) {
  return std::make_unique<ThreadRunner>(evaluator, jobs);
}

ExplorationResult explore(const Space& space, Strategy& strategy, DesignStore& store,
                          DesignRunner& runner, const SearchControl& control) {
  return Exploration(space, strategy, store, runner, control).run();
}

} // namespace monet
