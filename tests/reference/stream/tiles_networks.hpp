// Networks and mappings for tests of stream-coala, made without files.
#pragma once

#include "monet/core_cost/mapping_file.hpp"
#include "monet/workload/graph.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

namespace monet::testing {

/// A network operator by operator. Nests stay empty: stream-coala reads types, shapes and
/// attributes.
class StreamNetwork {
public:
  using Shape = std::vector<std::int64_t>;
  Graph graph;

  TensorId input(Shape shape) {
    const TensorId id = tensor(std::move(shape), TensorKind::input);
    graph.inputs.push_back(id);
    return id;
  }
  TensorId weight(Shape shape) { return tensor(std::move(shape), TensorKind::parameter); }
  TensorId integers(std::vector<std::int64_t> values) {
    const TensorId id = tensor({static_cast<std::int64_t>(values.size())}, TensorKind::constant);
    graph.tensor(id).values = std::move(values);
    return id;
  }
  TensorId op(const std::string& type, const std::vector<TensorId>& inputs, Shape shape,
              Attributes attributes = {}) {
    Operator made;
    made.name = fmt::format("n{}", graph.operators().size());
    made.op_type = type;
    made.attributes = std::move(attributes);
    for (const TensorId id : inputs)
      made.inputs.emplace_back(id);
    const TensorId output = tensor(std::move(shape), TensorKind::activation);
    made.outputs.emplace_back(output);
    graph.add_operator(std::move(made));
    return output;
  }
  TensorId relu(TensorId x) { return op("Relu", {x}, shape(x)); }
  TensorId add(TensorId a, TensorId b) { return op("Add", {a, b}, shape(a)); }
  /// A square convolution with padding kernel / 2.
  TensorId conv(TensorId x, std::int64_t channels, std::int64_t kernel, std::int64_t stride = 1,
                std::int64_t groups = 1) {
    Shape out = shape(x);
    const TensorId w = weight({channels, out[1] / groups, kernel, kernel});
    out[1] = channels;
    for (std::size_t i : {2U, 3U})
      out[i] = (out[i] + 2 * (kernel / 2) - kernel) / stride + 1;
    return op("Conv", {x, w}, out, window(kernel, stride, groups));
  }
  TensorId max_pool(TensorId x, std::int64_t kernel, std::int64_t stride) {
    Shape out = shape(x);
    for (std::size_t i : {2U, 3U})
      out[i] = (out[i] + 2 * (kernel / 2) - kernel) / stride + 1;
    return op("MaxPool", {x}, out, window(kernel, stride, 1));
  }
  TensorId product(TensorId x, std::int64_t columns) {
    Shape out = shape(x);
    const TensorId w = weight({out.back(), columns});
    out.back() = columns;
    return op("MatMul", {x, w}, out);
  }
  TensorId transpose(TensorId x, const Shape& order) {
    Shape out;
    for (const std::int64_t axis : order)
      out.push_back(shape(x)[static_cast<std::size_t>(axis)]);
    Attributes attributes;
    attributes.set("perm", order);
    return op("Transpose", {x}, out, attributes);
  }
  TensorId reshape(TensorId x, const Shape& to) { return op("Reshape", {x, integers(to)}, to); }
  const Shape& shape(TensorId id) const { return graph.tensor(id).shape; }

private:
  static Attributes window(std::int64_t kernel, std::int64_t stride, std::int64_t groups) {
    Attributes attributes;
    attributes.set("kernel_shape", Shape{kernel, kernel});
    attributes.set("strides", Shape{stride, stride});
    attributes.set("pads", Shape(4, kernel / 2));
    attributes.set("group", groups);
    return attributes;
  }
  TensorId tensor(Shape shape, TensorKind kind) {
    Tensor made;
    made.name = fmt::format("t{}", graph.tensors().size());
    made.shape = std::move(shape);
    made.kind = kind;
    return graph.add_tensor(std::move(made));
  }
};

/// Two convolutions and the shortcut around them, one that is convolved where sizes change.
inline TensorId residual_block(StreamNetwork& net, TensorId x, std::int64_t channels,
                               std::int64_t stride) {
  const TensorId first = net.relu(net.conv(x, channels, 3, stride));
  const TensorId second = net.conv(first, channels, 3);
  const TensorId shortcut = stride == 1 ? x : net.conv(x, channels, 1, stride);
  return net.relu(net.add(second, shortcut));
}

/// ResNet-18 on 224 x 224 pixels; `blocks` of its 8 blocks, and the classifier after all of them.
inline Graph resnet18(int blocks) {
  StreamNetwork net;
  TensorId x = net.max_pool(net.relu(net.conv(net.input({1, 3, 224, 224}), 64, 7, 2)), 3, 2);
  for (int block = 0; block < blocks; ++block) {
    const std::int64_t channels = std::int64_t{64} << (block / 2);
    x = residual_block(net, x, channels, block > 0 && block % 2 == 0 ? 2 : 1);
  }
  if (blocks < 8)
    return net.graph;
  x = net.op("GlobalAveragePool", {x}, {1, 512, 1, 1});
  Attributes axis;
  axis.set("axis", std::int64_t{1});
  x = net.op("Flatten", {x}, {1, 512}, axis);
  net.op("Gemm", {x, net.weight({1000, 512}), net.weight({1000})}, {1, 1000});
  return net.graph;
}

/// Its last two blocks.
inline Graph resnet18_end() {
  StreamNetwork net;
  const TensorId x = residual_block(net, net.input({1, 256, 14, 14}), 512, 2);
  residual_block(net, x, 512, 1);
  return net.graph;
}

/// The first convolutions of MobileNet v2: depthwise ones, and clips, which cost nothing.
inline Graph mobilenet_beginning() {
  StreamNetwork net;
  const auto clip = [&](TensorId x) { return net.op("Clip", {x}, net.shape(x)); };
  TensorId x = clip(net.conv(net.input({1, 3, 224, 224}), 32, 3, 2));
  x = net.conv(clip(net.conv(x, 32, 3, 1, 32)), 16, 1);
  x = clip(net.conv(x, 96, 1));
  net.conv(clip(net.conv(x, 96, 3, 2, 96)), 24, 1);
  return net.graph;
}

/// Attention of 4 heads over 64 tokens of 128 features, with V added to the result.
inline Graph attention() {
  StreamNetwork net;
  const TensorId x = net.input({1, 64, 128});
  const TensorId q = net.product(x, 128);
  const TensorId k = net.product(x, 128);
  const TensorId v = net.product(x, 128);
  const auto heads = [&](TensorId t, const std::vector<std::int64_t>& order) {
    return net.transpose(net.reshape(t, {1, 64, 4, 32}), order);
  };
  const TensorId qt = heads(q, {0, 2, 1, 3});
  const TensorId kt = heads(k, {0, 2, 3, 1});
  const TensorId vt = heads(v, {0, 2, 1, 3});
  const TensorId scores = net.op("MatMul", {qt, kt}, {1, 4, 64, 64});
  const TensorId softmax = net.op("Softmax", {scores}, {1, 4, 64, 64});
  const TensorId mixed = net.op("MatMul", {softmax, vt}, {1, 4, 64, 32});
  const TensorId joined = net.reshape(net.transpose(mixed, {0, 2, 1, 3}), {1, 64, 128});
  net.add(net.product(joined, 128), v);
  return net.graph;
}

/// An entry of a mapping file. Tilings like "OY, 4"; empty for none.
inline std::string mapping_entry(const std::string& name, const std::string& cores,
                                 const std::string& intra, const std::string& inter) {
  return fmt::format("- name: {}\n  core_allocation: [{}]\n  intra_core_tiling: [{}]\n"
                     "  inter_core_tiling: [{}]\n",
                     name, cores, intra.empty() ? "" : "'" + intra + "'",
                     inter.empty() ? "" : "'" + inter + "'");
}

/// Four arrays side by side, pooling on core 4 and additions on core 5; `steps` over time, for
/// convolutions, for what has no entry, and for the rest.
inline MappingFile quad_mapping(const std::string& conv = "all", const std::string& other = "all",
                                const std::string& rest = "all", const std::string& cut = "K") {
  std::string text = mapping_entry("default", "0, 1, 2, 3", "D, " + other, cut + ", 4") +
                     mapping_entry("Conv", "0, 1, 2, 3", "OY, " + conv, "K, 4") +
                     mapping_entry("Gemm", "0, 1, 2, 3", "D, " + rest, "H, 4") +
                     mapping_entry("Add", "5", "D, " + rest, "H, 1");
  for (const char* pool : {"MaxPool", "AveragePool", "GlobalAveragePool"})
    text += mapping_entry(pool, "4", "OY, " + rest, "K, 1");
  return parse_mapping(text, "quad.yaml");
}

} // namespace monet::testing
