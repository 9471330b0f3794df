// The only file that calls MPI (mpi_session.hpp); mpi_runner.cpp uses it.
#include "explore/run/mpi_session.hpp"

#include "explore/run/worker_pool.hpp"

#include "monet/base/errors.hpp"

// Only the C interface of MPI is used. The standard has removed the C++ one, which would need
// another library.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <limits>
#include <thread>
#include <utility>

namespace monet {

namespace {

/// Adds the time of its scope to a sum.
struct MpiTimer {
  explicit MpiTimer(double& sum) : into(sum) {}
  ~MpiTimer() { into += thread_seconds() - begin; }
  MpiTimer(const MpiTimer&) = delete;
  MpiTimer& operator=(const MpiTimer&) = delete;
  double& into;
  double begin = thread_seconds();
};

void check_mpi(int code) {
  internal_check(code == MPI_SUCCESS, "MPI failed");
}

} // namespace

struct MpiConnection::PendingSend {
  MPI_Request request = MPI_REQUEST_NULL;
  std::string bytes;
};

MpiConnection::MpiConnection() {
  int provided = 0;
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided));
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank_));
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &processes_));
}

MpiConnection::~MpiConnection() {
  try {
    if (rank_ == 0)
      end_all([](const MpiMessage&) {});
    for (PendingSend& sent : sent_)
      check_mpi(MPI_Wait(&sent.request, MPI_STATUS_IGNORE));
    sent_.clear();
  } catch (const std::exception&) {
    // Open MPI aborts the job.
  }
  MPI_Finalize();
}

void MpiConnection::send(int to, MpiTag tag, std::string bytes) {
  internal_check(bytes.size() <= static_cast<std::size_t>(std::numeric_limits<int>::max()),
                 "a message of more than 2 GiB");
  const MpiTimer timer(seconds_);
  PendingSend& sent = sent_.emplace_back();
  sent.bytes = std::move(bytes);
  check_mpi(MPI_Isend(sent.bytes.data(), static_cast<int>(sent.bytes.size()), MPI_BYTE, to,
                      static_cast<int>(tag), MPI_COMM_WORLD, &sent.request));
  ++messages_;
  forget_arrived();
}

std::optional<MpiMessage> MpiConnection::poll() {
  const MpiTimer timer(seconds_);
  forget_arrived();
  int there = 0;
  MPI_Status status;
  check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &there, &status));
  if (there == 0)
    return std::nullopt;
  int size = 0;
  check_mpi(MPI_Get_count(&status, MPI_BYTE, &size));
  MpiMessage message{status.MPI_SOURCE, static_cast<MpiTag>(status.MPI_TAG),
                     std::string(static_cast<std::size_t>(size), '\0')};
  check_mpi(MPI_Recv(message.bytes.data(), size, MPI_BYTE, message.rank, status.MPI_TAG,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  return message;
}

MpiMessage MpiConnection::wait() {
  for (;;) {
    if (std::optional<MpiMessage> message = poll())
      return *std::move(message);
    std::this_thread::sleep_for(kNap);
  }
}

void MpiConnection::end_all(const std::function<void(const MpiMessage&)>& take) {
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

void MpiConnection::forget_arrived() {
  std::erase_if(sent_, [](PendingSend& sent) {
    int arrived = 0;
    check_mpi(MPI_Test(&sent.request, &arrived, MPI_STATUS_IGNORE));
    return arrived != 0;
  });
}

} // namespace monet
