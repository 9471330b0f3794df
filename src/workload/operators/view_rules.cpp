// Operators that only rename or rearrange storage. fold_views() composes them into their readers.
#include "workload/operators/families.hpp"

namespace monet {

std::span<const OperatorRule> view_rules() {
  static constexpr auto view = [](std::string_view op_type) {
    return OperatorRule{"", op_type, nullptr, true};
  };
  static constexpr OperatorRule kRules[]{
      view("Expand"), view("Flatten"), view("Identity"),  view("Reshape"),   view("Slice"),
      view("Split"),  view("Squeeze"), view("Transpose"), view("Unsqueeze"),
  };
  return kRules;
}

} // namespace monet
