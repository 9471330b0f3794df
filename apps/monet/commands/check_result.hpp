// The check of a result file, which monet report and monet validate share.
#pragma once

#include "console.hpp"

#include <string>

namespace monet::cli {

/// Throws InputError unless `result` has the members that its page needs. `path` names the file.
void check_result(const Json& result, const std::string& path);

} // namespace monet::cli
