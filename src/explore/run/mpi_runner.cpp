// The DesignRunner of an MPI job. Rank 0 distributes designs to the WorkerPool of every process;
// only the first thread communicates.
#include "monet/explore/mpi_runner.hpp"

#include "explore/run/mpi_messages.hpp"
#include "explore/run/mpi_session.hpp"
#include "explore/run/worker_pool.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <thread>

namespace monet {

namespace {

using Clock = std::chrono::steady_clock;
using enum MpiTag;

constexpr std::chrono::milliseconds kNap = MpiConnection::kNap;
constexpr std::chrono::milliseconds kTellOthers{200};
constexpr std::size_t kManyResults = 4096;
/// Work queued in a process in addition to the designs being evaluated, in seconds of its time:
/// long compared to a message's latency, short compared to a run.
constexpr double kAheadSeconds = 0.25;
constexpr std::size_t kMaxDesignsAhead = 4096;

/// State of a process as rank 0 knows it; there is one for rank 0, too.
struct Worker {
  std::size_t threads = 0; ///< 0: its HelloMessage has not arrived
  std::uint64_t sent = 0;  ///< designs
  std::size_t outstanding = 0;
  std::uint64_t returned = 0;
  double evaluation_seconds = 0;
  double communication_seconds = 0;
  std::uint64_t messages = 0;
  std::size_t trainings_heard = 0; ///< records of trainings_ sent to it

  /// Number of designs that the process should have: one per thread, and some in its queue.
  std::size_t target(std::size_t rest, std::size_t all_threads) const {
    if (threads == 0)
      return 0;
    // The time per design is unknown until a process has returned a result.
    const double each = returned == 0
                            ? kAheadSeconds
                            : std::max(evaluation_seconds / static_cast<double>(returned), 1e-9);
    const double ahead = std::ceil(kAheadSeconds / each * static_cast<double>(threads));
    // Short queues when few designs are left, so that all processes end together.
    return threads + std::min({static_cast<std::size_t>(std::min(ahead, 1e9)), kMaxDesignsAhead,
                               rest / (2 * std::max<std::size_t>(all_threads, 1))});
  }
};

class Runner final : public MpiRunner {
public:
  Runner(MpiConnection& session, const MpiWorker& worker, int jobs)
      : session_(session), identity_(worker.identity), keeps_(worker),
        evaluator_(*worker.evaluator), pool_(*worker.evaluator, jobs),
        workers_(static_cast<std::size_t>(session.processes())) {
    workers_.front().threads = pool_.threads();
  }

  std::size_t workers() const override { return pool_.threads() * workers_.size(); }

  void run(std::span<const DesignId> ids, const SharedFronts& fronts, const SearchControl& control,
           const std::function<void(std::span<const DesignResult>)>& done) override {
    next_ = 0;
    stopping_ = failed_.has_value();
    Clock::time_point handed_on = Clock::now();
    while (!have_all_returned(ids) || !results_.empty()) {
      if (!stopping_ && control.interrupted())
        stop();
      hand_out(ids, fronts);
      tell_news();
      receive();
      pool_.wait(kManyResults, kNap);
      if (pool_.unfinished() == 0)
        std::this_thread::sleep_for(kNap / 4); // other processes are still busy
      take_own();
      const bool due = Clock::now() - handed_on >= kTellOthers || results_.size() >= kManyResults;
      if ((due || have_all_returned(ids)) && !results_.empty()) {
        done(std::exchange(results_, {}));
        handed_on = Clock::now();
      }
    }
    if (failed_)
      throw_error(failed_->error, failed_rank_);
  }

  MpiFigures end() override {
    session_.end_all([this](const MpiMessage& message) { take(message); });
    if (failed_)
      throw_error(failed_->error, failed_rank_);
    MpiFigures figures;
    figures.processes = session_.processes();
    Worker& own = workers_.front();
    own.evaluation_seconds = pool_.busy_seconds();
    own.communication_seconds = session_.seconds();
    own.messages = session_.messages();
    for (const Worker& worker : workers_) {
      figures.messages += worker.messages;
      figures.communication_seconds += worker.communication_seconds;
      figures.evaluation_seconds += worker.evaluation_seconds;
    }
    return figures;
  }

private:
  bool have_all_returned(std::span<const DesignId> ids) const {
    const auto is_busy = [](const Worker& worker) { return worker.outstanding > 0; };
    return (next_ == ids.size() || stopping_) && std::ranges::none_of(workers_, is_busy);
  }

  void stop() {
    stopping_ = true;
    pool_.drop();
    for (std::size_t rank = 1; rank < workers_.size(); ++rank)
      session_.send(static_cast<int>(rank), kDrop, {});
  }

  void hand_out(std::span<const DesignId> ids, const SharedFronts& fronts) {
    std::size_t threads = 0;
    for (const Worker& worker : workers_)
      threads += worker.threads;
    for (std::size_t rank = 0; rank < workers_.size() && !stopping_; ++rank) {
      Worker& worker = workers_[rank];
      const std::size_t rest = ids.size() - next_;
      const std::size_t target = worker.target(rest, threads);
      // Send only when half of the queue is empty, or a thread has no design.
      if (rest == 0 || target == 0 ||
          worker.outstanding >= worker.threads + (target - worker.threads) / 2)
        continue;
      const std::size_t count = std::min(rest, target - worker.outstanding);
      const std::span<const DesignId> batch = ids.subspan(next_, count);
      if (rank == 0)
        pool_.add(batch, fronts, next_);
      else
        send_work(static_cast<int>(rank), batch, fronts);
      worker.sent += count;
      worker.outstanding += count;
      next_ += count;
    }
  }

  void send_work(int rank, std::span<const DesignId> ids, const SharedFronts& fronts) {
    const WorkMessage work{next_, {ids.begin(), ids.end()}, fronts, news_for(rank)};
    if (!work.ids.empty() || !work.trainings.empty())
      session_.send(rank, kWork, pack(work));
  }

  /// Sends new trainings to all processes at once, so that none repeats another's training.
  void tell_news() {
    for (int rank = 1; rank < session_.processes() && !stopping_; ++rank)
      send_work(rank, {}, nullptr);
  }

  /// Short trainings that other processes made since the last message to `rank`.
  std::vector<TrainingRecord> news_for(int rank) {
    for (TrainingRecord& own : evaluator_.new_trainings())
      trainings_.emplace_back(0, std::move(own));
    std::vector<TrainingRecord> news;
    std::size_t& heard = workers_[static_cast<std::size_t>(rank)].trainings_heard;
    for (; heard < trainings_.size(); ++heard) {
      if (trainings_[heard].first != rank)
        news.push_back(trainings_[heard].second);
    }
    return news;
  }

  void receive() {
    while (const std::optional<MpiMessage> message = session_.poll())
      take(*message);
  }

  void take(const MpiMessage& message) {
    Worker& worker = workers_.at(static_cast<std::size_t>(message.rank));
    if (message.tag == kHello) {
      const auto hello = unpack<HelloMessage>(message.bytes);
      worker.threads = hello.threads;
      if (hello.failure)
        fail(*hello.failure, message.rank);
      else if (hello.identity != identity_)
        fail({0, pack_error(std::make_exception_ptr(InputError(
                     {fmt::format("process {}", message.rank)},
                     fmt::format("has another space or version of the tool than process 0 ({} and "
                                 "{})",
                                 hello.identity, identity_))))},
             message.rank);
      return;
    }
    auto results = unpack<ResultsMessage>(message.bytes);
    worker.outstanding -= std::min(worker.outstanding, results.results.size());
    worker.returned += results.results.size();
    worker.evaluation_seconds = results.evaluation_seconds;
    worker.communication_seconds = results.communication_seconds;
    worker.messages = results.messages;
    if (results.idle) // only designs still in transit to it are outstanding
      worker.outstanding = worker.sent - results.received;
    if (results.failure)
      fail(*results.failure, message.rank);
    evaluator_.learn(results.trainings);
    for (TrainingRecord& training : results.trainings)
      trainings_.emplace_back(message.rank, std::move(training));
    std::move(results.results.begin(), results.results.end(), std::back_inserter(results_));
  }

  void take_own() {
    Worker& own = workers_.front();
    const bool idle = pool_.unfinished() == 0;
    std::vector<DesignResult> results = pool_.take();
    own.outstanding -= results.size();
    own.returned += results.size();
    own.evaluation_seconds = pool_.busy_seconds();
    if (idle) {
      own.outstanding = 0;
      if (const auto failure = pool_.failure())
        fail({failure->position, pack_error(failure->error)}, 0);
    }
    std::move(results.begin(), results.end(), std::back_inserter(results_));
  }

  /// Records a failure and stops distributing designs. Designs already sent are waited for, since
  /// one at an earlier position may fail, too; the earliest failure counts.
  void fail(const RemoteFailure& failure, int rank) {
    stopping_ = true;
    if (failed_ && failed_->position <= failure.position)
      return;
    failed_ = failure;
    failed_rank_ = rank;
  }

  MpiConnection& session_;
  std::string identity_;
  MpiWorker keeps_;
  DesignEvaluator& evaluator_;
  WorkerPool pool_;
  std::vector<Worker> workers_;
  std::size_t next_ = 0; ///< next id of this run to distribute
  bool stopping_ = false;
  std::vector<DesignResult> results_;
  std::vector<std::pair<int, TrainingRecord>> trainings_; ///< with the rank that made it
  std::optional<RemoteFailure> failed_;
  int failed_rank_ = 0;
};

/// Main loop of every process except rank 0: evaluates the designs that it receives.
class Server {
public:
  Server(MpiConnection& session, DesignEvaluator& evaluator, int jobs)
      : session_(session), evaluator_(evaluator), pool_(evaluator, jobs) {}

  std::size_t threads() const { return pool_.threads(); }

  void run() {
    Clock::time_point told = Clock::now();
    bool is_idle = true; // as rank 0 knows it
    for (;;) {
      while (const std::optional<MpiMessage> message = session_.poll()) {
        if (message->tag == kEnd)
          return end();
        take(*message);
        is_idle = false; // there will be something to report
      }
      pool_.wait(kManyResults, kNap);
      const bool idle = pool_.unfinished() == 0;
      if (idle && is_idle) {
        std::this_thread::sleep_for(kNap);
        continue;
      }
      collect();
      const bool hungry = pool_.unfinished() < pool_.threads() && !results_.empty();
      if (idle || hungry || results_.size() >= kManyResults ||
          (!results_.empty() && Clock::now() - told >= kTellOthers)) {
        tell(kResults, idle);
        told = Clock::now();
        is_idle = idle;
      }
    }
  }

private:
  void take(const MpiMessage& message) {
    if (message.tag == kDrop)
      return pool_.drop();
    internal_check(message.tag == kWork, "a message without a sender");
    const auto work = unpack<WorkMessage>(message.bytes);
    received_ += work.ids.size();
    evaluator_.learn(work.trainings);
    pool_.add(work.ids, work.fronts, work.position);
  }

  void collect() {
    std::vector<DesignResult> results = pool_.take();
    std::move(results.begin(), results.end(), std::back_inserter(results_));
  }

  void tell(MpiTag tag, bool idle) {
    ResultsMessage message;
    message.results = std::exchange(results_, {});
    message.received = received_;
    message.idle = idle;
    message.evaluation_seconds = pool_.busy_seconds();
    message.communication_seconds = session_.seconds();
    message.messages = session_.messages() + 1;
    message.trainings = evaluator_.new_trainings();
    if (const auto failure = pool_.failure(); failure && idle)
      message.failure = RemoteFailure{failure->position, pack_error(failure->error)};
    session_.send(0, tag, pack(message));
  }

  void end() {
    pool_.drop();
    while (pool_.unfinished() > 0)
      pool_.wait(std::numeric_limits<std::size_t>::max(), kTellOthers);
    collect();
    tell(kBye, true);
  }

  MpiConnection& session_;
  DesignEvaluator& evaluator_;
  std::uint64_t received_ = 0;
  std::vector<DesignResult> results_;
  WorkerPool pool_;
};

/// Waits for the end message and answers it, in a process that could not create its evaluator.
void say_goodbye(MpiConnection& session) {
  while (session.wait().tag != kEnd) {
  }
  ResultsMessage bye;
  bye.idle = true;
  session.send(0, kBye, pack(bye));
}

} // namespace

std::unique_ptr<MpiSession> mpi_session() {
  return std::make_unique<MpiConnection>();
}

std::unique_ptr<MpiRunner> mpi_runner(MpiSession& session, const MpiWorker& worker, int jobs) {
  return std::make_unique<Runner>(dynamic_cast<MpiConnection&>(session), worker, jobs);
}

void serve_mpi(MpiSession& any, int jobs, const std::function<MpiWorker()>& make) {
  auto& session = dynamic_cast<MpiConnection&>(any);
  HelloMessage hello;
  MpiWorker worker;
  try {
    worker = make();
  } catch (...) {
    hello.failure = RemoteFailure{0, pack_error(std::current_exception())};
    session.send(0, kHello, pack(hello));
    say_goodbye(session);
    return;
  }
  Server server(session, *worker.evaluator, jobs);
  hello.identity = worker.identity;
  hello.threads = server.threads();
  session.send(0, kHello, pack(hello));
  server.run();
}

} // namespace monet
