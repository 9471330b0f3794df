// Both gradients of a product in one operator: they share the loops, and dY.
#pragma once

#include "monet/workload/graph.hpp"

#include <string>
#include <vector>

namespace monet {

/// The graph with `ai.monet.ProductGrad` (A, B, dY) -> dA, dB in place of the two gradients of
/// every product that a glob pattern names, by the name of the forward operator. Products with one
/// gradient only (first layers, frozen weights), and pairs that something between them keeps apart,
/// stay as they are. Tensors keep their ids. InputError at the network's file for a pattern that
/// pairs nothing; "*" may.
Graph with_paired_gradients(const Graph& graph, const std::vector<std::string>& patterns);

/// Names of the products whose gradients are paired, each once, ascending.
std::vector<std::string> paired_products(const Graph& graph);

} // namespace monet
