// Reason of a design whose parameter values form no valid chip, cluster or step. Evaluators write
// it; monet explore recognises it.
#pragma once

#include "monet/base/errors.hpp"

#include <string>
#include <string_view>

namespace monet {

/// Beginning of the reason of an invalid design.
inline constexpr std::string_view kInvalidDesign = "not valid: ";

/// The reason: the first problem, and how many more there are.
inline std::string invalid_design(const InputError& error) {
  const std::size_t more = error.problems().size() - 1;
  return std::string(kInvalidDesign) + error.problems().front().to_string() +
         (more == 0 ? "" : " (and " + std::to_string(more) + " more problems)");
}

} // namespace monet
