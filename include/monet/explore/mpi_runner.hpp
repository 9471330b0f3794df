// Evaluation of designs by the processes of an MPI job. Rank 0 selects designs, keeps the store and
// evaluates as well; the other ranks evaluate what it sends.
// Example:
//   void run_rank(MpiSession& session, const MpiWorker& worker, Strategy& strategy,
//                 DesignStore& store) {
//     if (session.rank() > 0)
//       return serve_mpi(session, 0, [&] { return worker; });
//     const std::unique_ptr<MpiRunner> runner = mpi_runner(session, worker, 0);
//     explore(*worker.space, strategy, store, *runner, {});
//     runner->end();
//   }
#pragma once

#include "monet/explore/explore.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace monet {

/// This process's MPI session. MPI is initialised and finalised with it, once per process.
class MpiSession {
public:
  virtual ~MpiSession() = default;
  virtual int rank() const = 0;
  virtual int processes() const = 0;
};

/// Creates the session in a process started by mpirun or another launcher that Open MPI supports;
/// returns null in a build without MPI. Call it before any thread uses MPI. At its end, the session
/// of rank 0 ends the other processes.
std::unique_ptr<MpiSession> mpi_session();

/// Communication and computation of an MPI job.
struct MpiFigures {
  int processes = 1;
  std::uint64_t messages = 0;
  double communication_seconds = 0; ///< seconds in MPI functions, over all processes
  double evaluation_seconds = 0;    ///< seconds of evaluation, over all threads of all processes
  double communication_share() const {
    const double all = communication_seconds + evaluation_seconds;
    return all > 0 ? communication_seconds / all : 0;
  }
};

/// Evaluator of a process, with its identity: a hash of the space and the tool's version. A process
/// whose identity differs from rank 0's is rejected.
struct MpiWorker {
  std::string identity;
  std::shared_ptr<const Space> space; ///< keeps the evaluator's space alive; may be null
  std::shared_ptr<DesignEvaluator> evaluator;
};

class MpiRunner : public DesignRunner {
public:
  /// Ends the other processes and sums up their figures. Throws InputError if one of them failed to
  /// start.
  virtual MpiFigures end() = 0;
};

/// Runner of rank 0. Every process evaluates on `jobs` threads (0 = all cores). Designs are sent as
/// processes finish, about a quarter of a second's work at a time, to limit the number of messages.
/// An error in any process is thrown here; of several, that of the design requested first.
std::unique_ptr<MpiRunner> mpi_runner(MpiSession& session, const MpiWorker& worker, int jobs);

/// Serves as any other rank: evaluates until rank 0 ends the job. User errors, including those of
/// `make`, are thrown by rank 0 only.
void serve_mpi(MpiSession& session, int jobs, const std::function<MpiWorker()>& make);

} // namespace monet
