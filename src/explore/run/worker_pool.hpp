// Threads that evaluate designs from one queue, and hand results to whoever asks.
#pragma once

#include "monet/explore/design.hpp"
#include "monet/explore/evaluator.hpp"
#include "monet/explore/strategy.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

namespace monet {

/// That the calling thread has computed; waiting, and other programs on the same core, leave it as
/// it is.
double thread_seconds();

/// The evaluation of a design threw.
struct PoolFailure {
  std::size_t position = 0; ///< of the design, as it was queued
  std::exception_ptr error;
};

class WorkerPool {
public:
  /// jobs: threads; 0 = all cores.
  WorkerPool(DesignEvaluator& evaluator, int jobs);
  /// Drops everything.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  std::size_t threads() const { return threads_.size(); }
  /// Queues designs, first in first out; `position` of the first is what a failure gives. With
  /// fronts they are raced: given up when beaten.
  void add(std::span<const DesignId> ids, const SharedFronts& fronts, std::size_t position = 0);
  /// Forgets what is queued, and gives up what is under way, which has no result then.
  void drop();
  /// Queued or under way.
  std::size_t unfinished();
  /// Returns when `most` results lie ready, `patience` is over, or nothing is unfinished.
  void wait(std::size_t most, std::chrono::milliseconds patience);
  /// Results since the last time, in the order they came.
  std::vector<DesignResult> take();
  /// Of all failures the one that was queued first; after a failure what was queued later is
  /// dropped, so that it is the same whichever thread came first. Asked when nothing is unfinished.
  std::optional<PoolFailure> failure();
  /// Of computing that threads spent evaluating, summed.
  double busy_seconds();

private:
  struct Job {
    DesignId id = 0;
    std::size_t position = 0;
    SharedFronts fronts;
  };
  DesignResult evaluate(const Job& job);
  void work();
  void finish(const Job& job, std::optional<DesignResult>&& result, std::exception_ptr error);

  DesignEvaluator& evaluator_;
  std::mutex mutex_;
  std::condition_variable queued_;
  std::condition_variable finished_;
  std::deque<Job> queue_;
  std::vector<DesignResult> results_;
  std::optional<PoolFailure> failure_;
  std::size_t under_way_ = 0;
  double busy_seconds_ = 0;
  bool ending_ = false;
  std::atomic<bool> dropping_{false}; ///< until nothing that was dropped is under way
  std::vector<std::jthread> threads_; ///< last, so that they end before the rest goes
};

} // namespace monet
