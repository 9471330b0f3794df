// Pictures of stages over time.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace monet {

/// An SVG: of some stages what happens from `from_ns` to `to_ns`, a row each. Passes too narrow to
/// be seen are drawn together, in their shares of time. Sends are lines where `with_sends`, unless
/// there are too many.
struct GanttPicture {
  std::vector<std::size_t> stages;
  double from_ns = 0;
  double to_ns = 1;
  bool with_sends = false;
};
std::string gantt_svg(const nlohmann::ordered_json& result, const GanttPicture& picture);

/// What colours stand for, as HTML.
std::string gantt_key();

} // namespace monet
