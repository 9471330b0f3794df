// The structure of a network that cannot be read: what there is to say about all of its operators
// at once, although the shapes behind the first unsupported one are unknown.
#pragma once

#include "monet/base/errors.hpp"
#include "monet/workload/graph.hpp"

#include <string>
#include <vector>

namespace monet {

struct UnsupportedOperator {
  OpId op;
  std::string what; ///< for people: "operator NonZero of domain 'ai.onnx' is not supported"
};

/// Tensors and operators as in the file. Operators have no loop nests.
struct NetworkOutline {
  Graph graph;
  std::vector<bool> known; ///< by tensor: shape and type are known; else the shape is empty and the
                           ///< type a guess by what usually comes out of such an operator
  std::vector<UnsupportedOperator> unsupported;
};

} // namespace monet
