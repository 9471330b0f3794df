// What the steps that bring nodes into the form of opset 17 share.
#pragma once

#include "workload/onnx/model.hpp"

#include <initializer_list>
#include <string_view>
#include <vector>

namespace monet::onnx_file {

Attributes without(const Attributes& attributes, std::initializer_list<std::string_view> dropped);
/// Makes a constant vector input `index`.
void set_integers(Node& node, std::size_t index, std::string_view name,
                  std::vector<std::int64_t> list, Values& values);

/// InputError where the node has attributes, or words for them, that its opset has not.
void check_opset(const Model& model, const Node& node);
/// A node of opset 18 or later. InputError where opset 17 has no such form.
void from_newer(const Model& model, Node& node, Values& values);
/// Axes of a reduction, of any opset, are known; those of all but ReduceSum are an attribute. One
/// over no axes becomes what it computes then. InputError where they depend on data.
void settle_axes(const Model& model, Node& node, Values& values);

} // namespace monet::onnx_file
