// Operators that only rename or rearrange storage. fold_views() composes them into their readers.
#include "workload/operators/families.hpp"

namespace monet {

std::vector<OperatorRule> view_rules() {
  const auto view = [](std::string_view op_type) {
    return OperatorRule{"", op_type, nullptr, true};
  };
  return {
      view("Expand"), view("Flatten"), view("Identity"),  view("Reshape"),   view("Slice"),
      view("Split"),  view("Squeeze"), view("Transpose"), view("Unsqueeze"),
  };
}

} // namespace monet
