#include "monet/base/stage.hpp"

namespace monet {

void StageContext::check_stop(std::string_view stage) const {
  if (stop != nullptr && stop->load(std::memory_order_relaxed)) {
    throw Stopped("stopped before stage " + std::string(stage));
  }
}

} // namespace monet
