#include "json_file.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/files.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace monet::cli {

namespace {

using Json = nlohmann::ordered_json;

/// Deeper than any result; nested values are written recursively.
constexpr int kDeepest = 64;

SourceLoc location_in(const std::string& path, const std::string& text, std::size_t byte) {
  const std::string_view before = std::string_view(text).substr(0, byte > 0 ? byte - 1 : 0);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t line_begin = before.rfind('\n') + 1; // npos + 1 = 0
  return {path, static_cast<int>(line), static_cast<int>(before.size() - line_begin + 1), {}};
}

} // namespace

Json read_json(const std::string& path) {
  const std::string text = read_file(path);
  try {
    return Json::parse(text, [&](int depth, Json::parse_event_t, Json&) {
      if (depth > kDeepest)
        throw InputError({path}, "is not a result: nested too deeply");
      return true;
    });
  } catch (const Json::parse_error& error) {
    throw InputError(location_in(path, text, error.byte), "is not valid JSON");
  }
}

} // namespace monet::cli
