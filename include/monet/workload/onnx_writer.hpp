// write_onnx(): converts a Graph to ONNX bytes that other tools open. It uses standard operators if
// ONNX has them and the domain ai.monet for others, with a value_info (type and shape) for every
// tensor. Parameters, buffers and optimiser states are graph inputs. They need no data, and the
// ONNX checker and viewers accept them. Graphs should be written before fold_views(), since folded
// nests read tensors that the ONNX definitions of their operators do not.
// Example:
//   #include "monet/base/files.hpp"
//   void export_graph(const Graph& graph, const std::string& path) {
//     write_file_atomically(path, write_onnx(graph));
//   }
#pragma once

#include "monet/workload/graph.hpp"

#include <string>

namespace monet {

/// Serialises a graph to a ModelProto, deterministically. `phase`, `gradient_of` and `forward_op`
/// are in each node's doc_string. Kinds, element types and shared storage of tensors are in
/// metadata_props. read_onnx() reads both, so that a graph is preserved.
std::string write_onnx(const Graph& graph);

} // namespace monet
