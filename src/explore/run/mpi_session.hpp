// The only file that uses MPI: messages between the processes of a job. Sends do not block, so
// there is no deadlock, and waiting sleeps because Open MPI's blocking calls would occupy a whole
// core.
#pragma once

#include "explore/run/worker_pool.hpp"

#include "monet/base/errors.hpp"
#include "monet/explore/mpi_runner.hpp"

// Only the C interface of MPI is used. The standard has removed the C++ one, which would need
// another library.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <list>
#include <optional>
#include <string>
#include <thread>
#include <utility>

namespace monet {

enum class MpiTag : int { kHello = 1, kWork, kDrop, kEnd, kResults, kBye };

struct MpiMessage {
  int rank = 0; ///< of the sender
  MpiTag tag{};
  std::string bytes;
};

class MpiConnection final : public MpiSession {
public:
  /// Pause between polls for messages. A poll costs microseconds, and the designs queued in a
  /// process last longer than the pause.
  static constexpr std::chrono::milliseconds kNap{8};

  MpiConnection() {
    int provided = 0;
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    check(MPI_Comm_rank(MPI_COMM_WORLD, &rank_));
    check(MPI_Comm_size(MPI_COMM_WORLD, &processes_));
  }

  ~MpiConnection() override {
    try {
      if (rank_ == 0)
        end_all([](const MpiMessage&) {});
      for (PendingSend& sent : sent_)
        check(MPI_Wait(&sent.request, MPI_STATUS_IGNORE));
      sent_.clear();
    } catch (const std::exception&) {
      // Open MPI aborts the job.
    }
    MPI_Finalize();
  }

  int rank() const override { return rank_; }
  int processes() const override { return processes_; }
  double seconds() const { return seconds_; }          ///< in MPI functions
  std::uint64_t messages() const { return messages_; } ///< sent

  void send(int to, MpiTag tag, std::string bytes) {
    internal_check(bytes.size() <= static_cast<std::size_t>(std::numeric_limits<int>::max()),
                   "a message of more than 2 GiB");
    const Timer timer(seconds_);
    PendingSend& sent = sent_.emplace_back();
    sent.bytes = std::move(bytes);
    check(MPI_Isend(sent.bytes.data(), static_cast<int>(sent.bytes.size()), MPI_BYTE, to,
                    static_cast<int>(tag), MPI_COMM_WORLD, &sent.request));
    ++messages_;
    forget_arrived();
  }

  /// The next message; empty if none has arrived.
  std::optional<MpiMessage> poll() {
    const Timer timer(seconds_);
    forget_arrived();
    int there = 0;
    MPI_Status status;
    check(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &there, &status));
    if (there == 0)
      return std::nullopt;
    int size = 0;
    check(MPI_Get_count(&status, MPI_BYTE, &size));
    MpiMessage message{status.MPI_SOURCE, static_cast<MpiTag>(status.MPI_TAG),
                       std::string(static_cast<std::size_t>(size), '\0')};
    check(MPI_Recv(message.bytes.data(), size, MPI_BYTE, message.rank, status.MPI_TAG,
                   MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    return message;
  }

  /// The next message, for which it waits.
  MpiMessage wait() {
    for (;;) {
      if (std::optional<MpiMessage> message = poll())
        return *std::move(message);
      std::this_thread::sleep_for(kNap);
    }
  }

  /// Ends all other processes and passes their last messages to `take`. Only rank 0 calls this;
  /// later calls have no effect.
  template <class Take>
  void end_all(const Take& take) {
    if (is_over_)
      return;
    is_over_ = true;
    for (int rank = 1; rank < processes_; ++rank)
      send(rank, MpiTag::kEnd, {});
    for (int left = processes_ - 1; left > 0;) {
      const MpiMessage message = wait();
      left -= message.tag == MpiTag::kBye ? 1 : 0;
      take(message);
    }
  }

private:
  struct PendingSend {
    MPI_Request request = MPI_REQUEST_NULL;
    std::string bytes;
  };
  struct Timer {
    explicit Timer(double& sum) : into(sum) {}
    ~Timer() { into += thread_seconds() - begin; }
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;
    double& into;
    double begin = thread_seconds();
  };

  static void check(int code) { internal_check(code == MPI_SUCCESS, "MPI failed"); }

  void forget_arrived() {
    std::erase_if(sent_, [](PendingSend& sent) {
      int arrived = 0;
      check(MPI_Test(&sent.request, &arrived, MPI_STATUS_IGNORE));
      return arrived != 0;
    });
  }

  int rank_ = 0;
  int processes_ = 1;
  bool is_over_ = false;
  std::list<PendingSend> sent_;
  double seconds_ = 0;
  std::uint64_t messages_ = 0;
};

} // namespace monet
