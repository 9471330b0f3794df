// Which operator types a training step can go backwards through.
#pragma once

#include <string_view>

namespace monet {

enum class GradientSupport {
  yes,
  stops, ///< outputs do not depend differentiably on inputs: no gradient passes
  no,    ///< a training step through it is refused
};
GradientSupport gradient_support(std::string_view domain, std::string_view op_type);

} // namespace monet
