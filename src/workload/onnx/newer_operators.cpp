// Expresses operators that opset 17 lacks: AffineGrid (opset 20) as a product with grid
// coordinates, CenterCropPad (18) as Slice and Pad, Col2Im (18) as a scattered sum. expand.cpp
// calls it.
#include "base/shared/checked.hpp"
#include "workload/onnx/expand.hpp"
#include "workload/shared/op_types.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

namespace monet::onnx_file {

namespace {

constexpr std::int64_t kMaxResizedElements = std::int64_t{1} << 31;

/// Node being expanded.
class Expansion {
public:
  Expansion(const Model& model, const Node& node, Values& values)
      : write(node, values), model_(model), node_(node), values_(values) {}

  NodeWriter write;

  [[noreturn]] void refuse(std::string_view what, std::string_view detail = {}) const {
    throw InputError(at_node(model_, node_, detail), what);
  }
  const Value& input(std::size_t i) const {
    const Value* value = input_value(node_, i, values_);
    if (value == nullptr)
      refuse(fmt::format("input {} is missing", i));
    return *value;
  }
  /// Input `i` as a constant vector of numbers between 0 and 2^31.
  Integers sizes(std::size_t i) const {
    const Value& value = input(i);
    const auto* list = value.is_constant ? integers_of(value.values) : nullptr;
    if (list == nullptr)
      refuse(fmt::format("input {} depends on data", i));
    return checked(*list, fmt::format("input {}", i));
  }
  /// Attribute of `count` numbers between 0 and 2^31, which default to `fallback`.
  Integers sizes(const char* name, std::size_t count, std::int64_t fallback) const {
    const Integers list = node_.attributes.integers(name, Integers(count, fallback));
    if (list.size() != count)
      refuse(fmt::format("{} numbers are expected", count), fmt::format("attribute '{}'", name));
    return checked(list, fmt::format("attribute '{}'", name));
  }
  std::string constant(const std::string& name, Value value) {
    const std::string full = fmt::format("{}/{}", node_.name, name);
    values_.emplace(full, std::move(value));
    return full;
  }
  const Attributes& attributes() const { return node_.attributes; }
  const std::string& operand(std::size_t i) const { return node_.inputs[i]; }
  const std::string& result() const {
    if (node_.outputs.size() != 1 || node_.outputs[0].empty())
      refuse("one output is expected");
    return node_.outputs[0];
  }

private:
  Integers checked(const Integers& list, const std::string& place) const {
    if (std::ranges::any_of(list, [](auto v) { return v < 0 || v > kMaxResizedElements; }))
      refuse("numbers between 0 and 2^31 are expected", place);
    return list;
  }

  const Model& model_;
  const Node& node_;
  Values& values_;
};

// --- AffineGrid ---

/// Coordinates of pixels along an axis: -1 and 1 are centres of the outer pixels, or their borders.
std::vector<double> places(std::int64_t count, bool align_corners) {
  std::vector<double> at(static_cast<std::size_t>(count), 0.0);
  for (std::size_t i = 0; i < at.size(); ++i) {
    const auto index = static_cast<double>(i);
    if (!align_corners)
      at[i] = (2 * index + 1) / static_cast<double>(count) - 1;
    else if (count > 1)
      at[i] = 2 * index / static_cast<double>(count - 1) - 1;
  }
  return at;
}

/// Computes sampling coordinates [N, (D,) H, W, r], x first, from theta [N, r, r + 1] and the size
/// [N, C, (D,) H, W]: the grid's (x, y, (z,) 1) times theta.
void affine_grid(Expansion& at) {
  const Integers size = at.sizes(1);
  const std::size_t rank = size.size() < 2 ? 0 : size.size() - 2;
  const Value& theta = at.input(0);
  const auto axes = static_cast<std::int64_t>(rank);
  if ((rank != 2 && rank != 3) || theta.shape != Integers{size[0], axes, axes + 1})
    at.refuse("theta and the size do not fit each other");
  const Integers image(size.begin() + 2, size.end());
  const std::int64_t pixels = checked_product(image);
  if (pixels > kMaxFoldedElements / (axes + 1))
    at.refuse(fmt::format("a grid of {} pixels is too large", pixels));
  const bool align_corners = at.attributes().integer("align_corners", 0) != 0;
  std::vector<double> grid;
  std::vector<std::vector<double>> along;
  for (const std::int64_t count : image)
    along.push_back(places(count, align_corners));
  for (std::int64_t pixel = 0; pixel < pixels; ++pixel) {
    std::int64_t left = pixel;
    for (std::size_t i = rank; i-- > 0; left /= image[i]) // x is the last axis
      grid.push_back(along[i][static_cast<std::size_t>(left % image[i])]);
    grid.push_back(1.0);
  }
  const ElementType type = theta.type;
  const std::string base = at.constant(
      "grid", {.type = type, .shape = {pixels, axes + 1}, .values = grid, .is_constant = true});
  const std::string turned = at.write.transpose("theta", at.operand(0), {0, 2, 1});
  const std::string moved = at.write.add(ops::MatMul, "moved", {base, turned});
  Integers shape{size[0]};
  shape.insert(shape.end(), image.begin(), image.end());
  shape.push_back(axes);
  at.write.add(ops::Reshape, "whole", {moved, at.write.integers(shape)}, {}, at.result());
}

// --- CenterCropPad ---

void center_crop_pad(Expansion& at) {
  const Integers shape = at.input(0).shape;
  const auto rank = static_cast<std::int64_t>(shape.size());
  const Integers wanted = at.sizes(1);
  Integers axes(shape.size());
  std::iota(axes.begin(), axes.end(), 0);
  axes = at.attributes().integers("axes", axes);
  if (axes.size() != wanted.size())
    at.refuse(fmt::format("{} sizes are given for {} axes", wanted.size(), axes.size()));
  Integers starts(shape.size(), 0);
  Integers ends = shape;
  Integers pads(2 * shape.size(), 0);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
    if (axis < 0 || axis >= rank)
      at.refuse("the axis is outside the tensor", "attribute 'axes'");
    const auto a = static_cast<std::size_t>(axis);
    const std::int64_t more = wanted[i] - shape[a];
    if (more < 0) {
      starts[a] = -more / 2;
      ends[a] = starts[a] + wanted[i];
    } else {
      pads[a] = more / 2;
      pads[a + shape.size()] = more - more / 2;
    }
  }
  Integers all(shape.size());
  std::iota(all.begin(), all.end(), 0);
  const std::string cropped = at.write.add(
      ops::Slice, "cropped",
      {at.operand(0), at.write.integers(starts), at.write.integers(ends), at.write.integers(all)});
  at.write.add(ops::Pad, "padded", {cropped, at.write.integers(pads)}, {}, at.result());
}

// --- Col2Im ---

/// Positions of a convolution's windows in an image.
struct Windows {
  Integers image;
  Integers block;
  Integers dilations;
  Integers pads;
  Integers strides;
  Integers counts; ///< windows along each axis

  std::int64_t pixels() const { return checked_product(image); }
  std::int64_t elements() const { return checked_product(block); }
  std::int64_t windows() const { return checked_product(counts); }

  /// Pixel of an element of a window; one past the last if the element is outside the image.
  std::int64_t pixel(std::int64_t element, std::int64_t window) const {
    std::int64_t at = 0;
    std::int64_t stride = 1;
    for (std::size_t i = image.size(); i-- > 0;) {
      const std::int64_t place =
          window % counts[i] * strides[i] + element % block[i] * dilations[i] - pads[i];
      if (place < 0 || place >= image[i])
        return pixels();
      at += place * stride;
      stride *= image[i];
      window /= counts[i];
      element /= block[i];
    }
    return at;
  }
};

Windows windows_of(const Expansion& at) {
  Windows made;
  made.image = at.sizes(1);
  made.block = at.sizes(2);
  const std::size_t rank = made.image.size();
  if (rank == 0 || made.block.size() != rank)
    at.refuse("image_shape and block_shape do not fit each other");
  made.dilations = at.sizes("dilations", rank, 1);
  made.strides = at.sizes("strides", rank, 1);
  made.pads = at.sizes("pads", 2 * rank, 0);
  for (std::size_t i = 0; i < rank; ++i) {
    if (made.block[i] < 1 || made.strides[i] < 1 || made.dilations[i] < 1 || made.image[i] < 1)
      at.refuse("sizes, strides and dilations of at least 1 are expected");
    const std::int64_t room = made.image[i] + made.pads[i] + made.pads[rank + i] -
                              checked_multiply(made.dilations[i], made.block[i] - 1) - 1;
    if (room < 0)
      at.refuse("the blocks are larger than the image");
    made.counts.push_back(room / made.strides[i] + 1);
  }
  return made;
}

/// X [N, C * elements of a block, blocks] -> [N, C, image]: sums elements at the same pixel.
void col2im(Expansion& at) {
  const Windows geometry = windows_of(at);
  const Value& x = at.input(0);
  const std::int64_t elements = geometry.elements();
  const std::int64_t blocks = geometry.windows();
  if (x.shape.size() != 3 || x.shape[1] % elements != 0 || x.shape[2] != blocks)
    at.refuse(
        fmt::format("blocks of {} elements in {} places do not fit the input", elements, blocks));
  const std::int64_t values = checked_multiply(elements, blocks);
  if (values > kMaxFoldedElements)
    at.refuse(fmt::format("{} places are too many", values));
  const std::int64_t channels = checked_multiply(x.shape[0], x.shape[1] / elements);
  const std::int64_t pixels = geometry.pixels();
  Integers to;
  for (std::int64_t element = 0; element < elements; ++element) {
    for (std::int64_t window = 0; window < blocks; ++window)
      to.push_back(geometry.pixel(element, window));
  }
  const bool outside = std::ranges::find(to, pixels) != to.end();
  const std::string places = at.constant(
      "places",
      {.type = ElementType::int64, .shape = {values, 1}, .values = to, .is_constant = true});
  const std::string rows =
      at.write.add(ops::Reshape, "rows", {at.operand(0), at.write.integers({channels, values})});
  const std::string turned = at.write.transpose("by_place", rows, {1, 0});
  const std::string zeros = at.write.zeros("zeros", {pixels + (outside ? 1 : 0), channels}, x.type);
  std::string sum = at.write.add(ops::ScatterND, "sum", {zeros, places, turned},
                                 {{"reduction", std::string("add")}});
  if (outside)
    sum = at.write.add(
        ops::Slice, "inside",
        {sum, at.write.integers({0}), at.write.integers({pixels}), at.write.integers({0})});
  Integers shape{x.shape[0], x.shape[1] / elements};
  shape.insert(shape.end(), geometry.image.begin(), geometry.image.end());
  const std::string back = at.write.transpose("by_channel", sum, {1, 0});
  at.write.add(ops::Reshape, "image", {back, at.write.integers(shape)}, {}, at.result());
}

struct NewerOperator {
  OpType op_type;
  void (*write)(Expansion&);
};
constexpr NewerOperator kNewerOperators[]{
    {ops::AffineGrid, affine_grid}, {ops::CenterCropPad, center_crop_pad}, {ops::Col2Im, col2im}};

const NewerOperator* newer_operator(const Node& node) {
  const auto* found = std::ranges::find(kNewerOperators, node.op_type, &NewerOperator::op_type);
  return found == std::end(kNewerOperators) || !node.domain.empty() ? nullptr : found;
}

} // namespace

bool is_newer_operator(const Node& node) {
  return newer_operator(node) != nullptr;
}

std::vector<Node> write_newer_operator(const Model& model, const Node& node, Values& values) {
  Expansion at(model, node, values);
  newer_operator(node)->write(at);
  return at.write.take();
}

} // namespace monet::onnx_file
