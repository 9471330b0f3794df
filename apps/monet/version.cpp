// Version, commit and optional components of this build, for --version and the provenance of
// results.
#include "version.hpp"

#include "git_hash.hpp"

#include "monet/version.hpp"

namespace monet::cli {

std::string version() {
  return MONET_VERSION;
}
std::string git_hash() {
  return MONET_GIT_HASH;
}

std::string components() {
  return MONET_COMPONENTS;
}

} // namespace monet::cli
