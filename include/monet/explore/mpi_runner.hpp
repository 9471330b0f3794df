// Designs evaluated by the processes of an MPI job: one process chooses them, keeps the store and
// evaluates beside that, the others evaluate what it sends.
#pragma once

#include "monet/explore/explore.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace monet {

/// This process in its job. MPI begins with it and ends with it, once in a process's life.
class MpiSession {
public:
  virtual ~MpiSession() = default;
  virtual int rank() const = 0;
  virtual int processes() const = 0;
};

/// To be called from a process that mpirun, or another launcher that Open MPI knows, started,
/// before it has threads that use MPI. The session of rank 0 sends the others home when it goes.
/// Null in a build without MPI.
std::unique_ptr<MpiSession> mpi_session();

/// How much of the work was talk.
struct MpiFigures {
  int processes = 1;
  std::uint64_t messages = 0;
  double communication_seconds = 0; ///< of computing in MPI's functions, of all processes
  double evaluation_seconds = 0;    ///< of computing, of all threads of all processes
  double communication_share() const {
    const double all = communication_seconds + evaluation_seconds;
    return all > 0 ? communication_seconds / all : 0;
  }
};

/// What a process evaluates with. Processes whose `identity` differs from the first one's are
/// refused: hash of the space and version of the tool.
struct MpiWorker {
  std::string identity;
  std::shared_ptr<const Space> space; ///< kept for the evaluator; may be null
  std::shared_ptr<DesignEvaluator> evaluator;
};

class MpiRunner : public DesignRunner {
public:
  /// Sends the others home and adds up what they did. InputError when one of them could not begin.
  virtual MpiFigures end() = 0;
};

/// Of rank 0. Every process evaluates on `jobs` threads (0 = all cores); designs are handed out as
/// processes finish, about a quarter of a second's work at a time, so that few messages are needed.
/// Errors of any process are thrown here: that of the design that was asked for first.
std::unique_ptr<MpiRunner> mpi_runner(MpiSession& session, const MpiWorker& worker, int jobs);

/// Of all other ranks: evaluates until rank 0 sends it home. Throws nothing that concerns the user:
/// what `make` throws is thrown by rank 0.
void serve_mpi(MpiSession& session, int jobs, const std::function<MpiWorker()>& make);

} // namespace monet
