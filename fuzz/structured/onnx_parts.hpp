// Mutations of one graph of an ONNX model, by what they change. Each says whether it found
// anything to change.
#pragma once

#include "structured/random.hpp"

#include <onnx/onnx_pb.h>

#include <string>
#include <vector>

namespace monet::fuzz {

struct Place {
  onnx::ModelProto& model;
  onnx::GraphProto& graph; ///< of the model, or of a node's attribute
  Random& random;
};
using Mutation = bool (*)(const Place&);

const std::vector<Mutation>& tensor_mutations();    ///< types, shapes, constants
const std::vector<Mutation>& attribute_mutations(); ///< values, kinds, names
const std::vector<Mutation>& node_mutations();      ///< edges, operators, subgraphs, versions

/// Every tensor that the graph names; may repeat.
std::vector<std::string> tensor_names(const onnx::GraphProto& graph);
/// One of them, or a name that nobody has. Never fails.
std::string some_tensor(const Place& place);
/// One of ONNX's element types, seldom a number that none has.
int some_type(Random& random);

/// An element of a repeated field; null where there is none.
template <class Field>
auto* some(Field& field, Random& random) {
  return field.empty() ? nullptr : field.Mutable(random.index(field.size()));
}
template <class Field>
bool remove_some(Field& field, Random& random) {
  if (field.empty())
    return false;
  field.DeleteSubrange(random.index(field.size()), 1);
  return true;
}

} // namespace monet::fuzz
