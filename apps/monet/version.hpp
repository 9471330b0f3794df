#pragma once

#include <string>

namespace monet::cli {

std::string version();  ///< "0.1.0"
std::string git_hash(); ///< short hash of the built commit, "-dirty" appended for local changes;
                        ///< "unknown" outside git

/// The optional components of this build, as `--version` lists them: "reference, mpi"; empty if it
/// has none.
std::string components();

} // namespace monet::cli
