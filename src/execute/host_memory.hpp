// Host memory of an execution, computed before anything is allocated.
#pragma once

#include "monet/execute/execute.hpp"

#include <vector>

namespace monet {

/// Intermediate tensors whose last reader this operator is: freed unless all are kept.
std::vector<TensorId> freed_after(const Graph& graph, OpId op);

/// InfeasibleError where execution_bytes() is more than the options allow.
void check_memory(const Graph& graph, const ExecuteOptions& options);

} // namespace monet
