// Stored activations that wait for the backward part in the host's memory.
#pragma once

#include "monet/workload/graph.hpp"

#include <string>
#include <vector>

namespace monet {

/// Of one pass. What is stored, or read by the backward part, and matches a pattern is copied to
/// the host behind its last reader of the forward part (ai.monet.Offload) and back in front of the
/// first backward operator that needs it (ai.monet.Fetch), whose copy is read from then on. Tensors
/// keep their ids; in `stored` the copy in the host stands for its tensor. `losses`, which the step
/// gives back, stay. InputError when a pattern other than "*" matches nothing that is stored.
Graph offload(const Graph& graph, const std::vector<std::string>& patterns,
              const std::vector<TensorId>& losses, std::vector<TensorId>& stored);

} // namespace monet
