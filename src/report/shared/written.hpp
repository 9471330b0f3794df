// Checks the keys of results when they are written; every writer of a result returns through here.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace monet {

/// JSON Schema of a result: docs/<name>.schema.json.
enum class ResultSchema {
  backward,
  cluster,
  comparison,
  explain,
  explore,
  formats,
  optimise,
  result,
  train
};

/// The result itself. Throws InternalError if one of its objects has a key that its schema lacks,
/// or lacks a required one. Only developer builds check.
nlohmann::ordered_json written(ResultSchema schema, nlohmann::ordered_json json);

} // namespace monet
