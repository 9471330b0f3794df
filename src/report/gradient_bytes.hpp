// What the gradients of products move from and to the off-chip memory, by tensor.
#pragma once

#include "monet/report/result.hpp"

#include <nlohmann/json_fwd.hpp>

namespace monet {

/// Per product of the step with a gradient, in the products' order: name, whether both gradients
/// are computed by one operator, and the bytes that pass the off-chip port for the operators that
/// compute them, by what is moved (X, W, dY, dX, dW, and what has to make room for these). Empty
/// where nothing is differentiated.
nlohmann::ordered_json gradient_bytes_json(const StepResult& result, const Chip& chip);

} // namespace monet
