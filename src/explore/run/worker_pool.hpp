// A pool of threads that evaluate designs from one queue and collect the results.
#pragma once

#include "monet/explore/explore.hpp"
#include "monet/explore/space.hpp"
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

/// CPU time of the calling thread in seconds, without waiting and without other programs.
double thread_seconds();

/// The evaluation of a design threw.
struct PoolFailure {
  std::size_t position = 0; ///< of the design in the queue
  std::exception_ptr error;
};

class WorkerPool {
public:
  /// `jobs`: number of threads; 0 means one per core.
  WorkerPool(DesignEvaluator& evaluator, int jobs);
  /// Calls drop() and joins the threads.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  std::size_t threads() const { return threads_.size(); }
  /// Queues designs, first in first out. `position` is that of the first design, for failures.
  /// With fronts the designs are raced: they are given up when beaten.
  void add(std::span<const DesignId> ids, const SharedFronts& fronts, std::size_t position = 0);
  /// Removes queued designs and stops those being evaluated; neither yields a result.
  void drop();
  /// Number of designs that are queued or being evaluated.
  std::size_t unfinished();
  /// Returns when `most` results are ready, `patience` has elapsed, or nothing is unfinished.
  void wait(std::size_t most, std::chrono::milliseconds patience);
  /// Results since the last call, in order of completion.
  std::vector<DesignResult> take();
  /// The failure of the design that was queued first. A failure drops designs queued later, so the
  /// answer does not depend on thread timing. Valid only when nothing is unfinished.
  std::optional<PoolFailure> failure();
  /// CPU time that all threads spent evaluating, in seconds.
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
  std::atomic<bool> dropping_{false}; ///< until all dropped evaluations have ended
  std::vector<std::jthread> threads_; ///< last member: joined before others are destroyed
};

} // namespace monet
