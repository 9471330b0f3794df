// Graph -> ONNX bytes that other tools open: standard operators where ONNX has them, domain ai.monet for the rest,
// a value_info with type and shape for every tensor, parameters as initialisers with external (absent) data.
#pragma once

#include "monet/workload/graph.hpp"

#include <string>

namespace monet {

/// Serialised ModelProto; deterministic. Node attributes `phase` etc. are in each node's doc_string.
std::string write_onnx(const Graph& graph);

}  // namespace monet
