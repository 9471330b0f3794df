// A pool of threads that evaluates designs from a queue. The thread runner (explore.cpp) and the
// MPI runner (mpi_runner.cpp) use it.
#include "explore/run/worker_pool.hpp"

#include "explore/strategy/design_fronts.hpp"

#include "monet/base/stop.hpp"
#include "monet/base/warnings.hpp"

#include <algorithm>
#include <ctime>
#include <system_error>
#include <utility>

namespace monet {

double thread_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

WorkerPool::WorkerPool(DesignEvaluator& evaluator, int jobs) : evaluator_(evaluator) {
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  const unsigned count = jobs <= 0 ? cores : static_cast<unsigned>(jobs);
  try {
    for (unsigned t = 0; t < count; ++t)
      threads_.emplace_back([this, warnings = WarningScope::current()] {
        const WarningScope::Adopt adopted(warnings);
        work();
      });
  } catch (const std::system_error&) { // continue with the threads created so far
    if (threads_.empty())
      throw;
  }
}

WorkerPool::~WorkerPool() {
  drop();
  const std::lock_guard lock(mutex_);
  ending_ = true;
  queued_.notify_all();
}

void WorkerPool::add(std::span<const DesignId> ids, const SharedFronts& fronts,
                     std::size_t position) {
  const std::lock_guard lock(mutex_);
  for (const DesignId id : ids)
    queue_.push_back({id, position++, fronts});
  queued_.notify_all();
}

void WorkerPool::drop() {
  const std::lock_guard lock(mutex_);
  queue_.clear();
  dropping_ = under_way_ > 0;
  if (under_way_ == 0)
    finished_.notify_all();
}

std::size_t WorkerPool::unfinished() {
  const std::lock_guard lock(mutex_);
  return queue_.size() + under_way_;
}

void WorkerPool::wait(std::size_t most, std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  finished_.wait_for(lock, patience,
                     [&] { return results_.size() >= most || queue_.size() + under_way_ == 0; });
}

std::vector<DesignResult> WorkerPool::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(results_, {});
}

std::optional<PoolFailure> WorkerPool::failure() {
  const std::lock_guard lock(mutex_);
  return failure_;
}

double WorkerPool::busy_seconds() {
  const std::lock_guard lock(mutex_);
  return busy_seconds_;
}

DesignResult WorkerPool::evaluate(const Job& job) {
  const StopScope scope({&dropping_});
  if (!job.fronts)
    return evaluator_.evaluate(job.id);
  DesignResult given_up;
  given_up.id = job.id;
  return evaluator_
      .evaluate_unless(job.id, [&](const DesignBound& bound) { return job.fronts->beat(bound); })
      .value_or(given_up);
}

void WorkerPool::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    queued_.wait(lock, [&] { return ending_ || (!queue_.empty() && !dropping_); });
    if (ending_)
      return;
    const Job job = queue_.front();
    queue_.pop_front();
    ++under_way_;
    lock.unlock();
    std::optional<DesignResult> result;
    std::exception_ptr error;
    const double begin = thread_seconds();
    try {
      result = evaluate(job);
    } catch (const Stopped&) { // drop() was called
    } catch (...) {
      error = std::current_exception();
    }
    const double took = thread_seconds() - begin;
    lock.lock();
    busy_seconds_ += took;
    finish(job, std::move(result), error);
  }
}

void WorkerPool::finish(const Job& job, std::optional<DesignResult>&& result,
                        std::exception_ptr error) {
  --under_way_;
  if (under_way_ == 0 && dropping_.exchange(false))
    queued_.notify_all();
  if (result) {
    results_.push_back(std::move(*result));
  } else if (!error) {
    // Dropped: neither a result nor a failure.
  } else if (!failure_ || job.position < failure_->position) {
    // Designs queued before the failed one have already started.
    failure_ = PoolFailure{job.position, std::move(error)};
    queue_.clear();
  }
  finished_.notify_all();
}

} // namespace monet
