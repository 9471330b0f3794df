// Builds JSON arrays from ranges; used by the writers of results.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace monet {

/// JSON array of f(entry) for every entry of the range.
template <class Json = nlohmann::ordered_json, class Range, class F>
Json json_list(const Range& range, F f) {
  Json list = Json::array();
  for (const auto& entry : range)
    list.push_back(f(entry));
  return list;
}

} // namespace monet
