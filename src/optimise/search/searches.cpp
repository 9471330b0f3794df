// Lists the searches of a step, in the order of docs/explanation/searches.md.
#include "optimise/shared/searches.hpp"

namespace monet {

std::vector<SearchInfo> searches() {
  return {kAllocationSearch, kFusionSearch, kCheckpointSearch, kJointSearch};
}

} // namespace monet
