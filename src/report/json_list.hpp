// JSON arrays made entry by entry.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace monet {

/// f(entry) of every entry, as an array.
template <class Json = nlohmann::ordered_json, class Range, class F>
Json json_list(const Range& range, F f) {
  Json list = Json::array();
  for (const auto& entry : range)
    list.push_back(f(entry));
  return list;
}

} // namespace monet
