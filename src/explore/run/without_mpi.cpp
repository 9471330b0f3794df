// Replaces mpi_runner.cpp in a build without MPI: there is no session.
#include "monet/base/errors.hpp"
#include "monet/explore/mpi_runner.hpp"

namespace monet {

std::unique_ptr<MpiSession> mpi_session() {
  return nullptr;
}
std::unique_ptr<MpiRunner> mpi_runner(MpiSession&, const MpiWorker&, int) {
  throw InternalError("this build has no MPI");
}
void serve_mpi(MpiSession&, int, const std::function<MpiWorker()>&) {
  throw InternalError("this build has no MPI");
}

} // namespace monet
