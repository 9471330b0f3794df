// Version, commit and optional components of this build, for --version and the provenance of
// results.
#pragma once

#include <string>

namespace monet::cli {

std::string version();  ///< version number: "0.2.0"
std::string git_hash(); ///< short commit hash, "-dirty" for local changes; "unknown" outside git

/// Optional components of this build in the form of `--version`: "reference, mpi"; may be empty.
std::string components();

} // namespace monet::cli
