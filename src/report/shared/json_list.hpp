// Builds JSON from ranges and arrays; used by the writers of results.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <string>

namespace monet {

/// JSON array of f(entry) for every entry of the range.
template <class Json = nlohmann::ordered_json, class Range, class F>
Json json_list(const Range& range, F f) {
  Json list = Json::array();
  for (const auto& entry : range)
    list.push_back(f(entry));
  return list;
}

/// Object of cycles by the names of an enumeration's values: "compute_cycles".
template <class Enum, class Json = nlohmann::ordered_json, class Cycles>
Json cycles_json(const Cycles& cycles) {
  Json json = Json::object();
  for (std::size_t i = 0; i < cycles.size(); ++i)
    json[std::string(name_of(static_cast<Enum>(i))) + "_cycles"] = cycles[i].value;
  return json;
}

} // namespace monet
