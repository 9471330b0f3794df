// One line for each pass of a list, for people.
#include "monet/base/stage.hpp"

#include <fmt/core.h>

namespace monet {

std::string line_of(const PassRecord& pass) {
  const std::string what = fmt::format("{}: {} -> {}", pass.name, pass.needs, pass.makes);
  if (pass.skipped)
    return what + " (skipped)";
  return fmt::format("{} ({} -> {} operators, {} -> {} tensors)", what, pass.before.operators,
                     pass.after.operators, pass.before.tensors, pass.after.tensors);
}

} // namespace monet
