// One fused update per trained parameter: reads weight, gradient and states once, writes weight and
// states in place.
#pragma once

#include "training/step_builder.hpp"

namespace monet {

ParameterRecord add_update(StepBuilder& builder, const OptimizerOptions& options, TensorId weight,
                           TensorId gradient);

} // namespace monet
