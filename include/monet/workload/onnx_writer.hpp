// Graph -> ONNX bytes that other tools open: standard operators where ONNX has them, domain
// ai.monet for the rest, a value_info with type and shape for every tensor. Parameters, buffers and
// optimiser states are graph inputs: this needs no data, and the ONNX checker and viewers take it.
// Meant for graphs before fold_views(): folded nests read tensors that their operators' ONNX
// definitions do not.
#pragma once

#include "monet/workload/graph.hpp"

#include <string>

namespace monet {

/// Serialised ModelProto; deterministic. `phase`, `gradient_of` and `forward_op` are in each node's
/// doc_string, kinds, element types and shared storage of tensors in metadata_props; read_onnx
/// reads both back, so that a graph survives the trip.
std::string write_onnx(const Graph& graph);

} // namespace monet
