// monet explore --compare: two explorations side by side.
#include "explore.hpp"

namespace monet::cli {

int compare_explorations(const ExploreArguments&, Session&) {
  throw UsageError("--compare is not there yet");
}

} // namespace monet::cli
