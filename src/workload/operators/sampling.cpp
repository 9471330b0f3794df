// Rules of image sampling at data-dependent coordinates, listed in registry.cpp: GridSample at grid
// points, RoiAlign over the bins of regions.
//
// The image is swept once per pixel of a sample; each sweep reads one pixel per output. Coordinate
// arithmetic is shared by all channels and not counted. Loops N,C,H,W (GridSample) and R,C,OY,OX
// (RoiAlign).
#include "workload/operators/families.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace monet {

namespace {

using Shape = Integers;

/// Samples per axis of a bin if the network derives them from the regions' sizes: the value that
/// torchvision's and Detectron's detectors use.
constexpr std::int64_t kAdaptiveSamples = 2;
constexpr std::int64_t kMaxSamples = 1024;

/// Work of a sum of `taps` products per output.
VectorWork weighted_sum(int taps) {
  return {taps, taps, 0, 0, 0, 0};
}

void check_choice(const Graph& graph, const Operator& op, std::string_view name,
                  std::string_view fallback, std::initializer_list<std::string_view> known) {
  const std::string chosen = op.attributes.text(name, fallback);
  if (std::ranges::find(known, chosen) == known.end())
    fail(graph, op, fmt::format("'{}' is not one of the modes", chosen),
         fmt::format("attribute '{}'", name));
}

// --- GridSample ---

/// Number of pixels that contribute to a sample.
int grid_taps(const Graph& graph, const Operator& op) {
  check_choice(graph, op, "mode", "bilinear", {"nearest", "bilinear", "bicubic"});
  check_choice(graph, op, "padding_mode", "zeros", {"zeros", "border", "reflection"});
  const std::string mode = op.attributes.text("mode", "bilinear");
  return mode == "nearest" ? 1 : mode == "bilinear" ? 4 : 16;
}

void check_grid(const Graph& graph, const Operator& op, const Shape& image, const Shape& grid,
                const Shape& samples) {
  if (image.size() != 4 || grid.size() != 4 || samples.size() != 4)
    fail(graph, op, "an image, a grid and samples of four axes are expected");
  if (grid[0] != image[0] || grid[3] != 2)
    fail(graph, op,
         fmt::format("a grid of {} images with {} coordinates does not fit {} images", grid[0],
                     grid[3], image[0]));
  if (samples != Shape{image[0], image[1], grid[1], grid[2]})
    fail(graph, op, "the samples have not the grid's places and the image's channels");
  if (image[2] < 1 || image[3] < 1)
    fail(graph, op, "the image is empty");
}

/// Axes of the pixels of one sample: any row and column.
std::vector<AxisExpr> pixels_of(AxisExpr image, LoopIndex channel) {
  return {std::move(image), axis(channel), axis_data_dependent(), axis_data_dependent()};
}

/// Adds reads of a position's column and row, each in -1 to 1.
void read_coordinates(LoopNestBuilder& nest, std::size_t grid, std::vector<AxisExpr> place) {
  place.push_back(axis_fixed(0));
  nest.input(grid, "x", place);
  place.back() = axis_fixed(1);
  nest.input(grid, "y", place);
}

// --- RoiAlign ---

/// Samples of a bin along one axis.
std::int64_t samples_per_axis(const Graph& graph, const Operator& op) {
  const std::int64_t ratio = op.attributes.integer("sampling_ratio", 0);
  if (ratio < 0 || ratio > kMaxSamples)
    fail(graph, op, fmt::format("0 to {} samples are expected", kMaxSamples),
         "attribute 'sampling_ratio'");
  return ratio == 0 ? kAdaptiveSamples : ratio;
}

void check_regions(const Graph& graph, const Operator& op, const Shape& image, const Shape& regions,
                   const Shape& images, const Shape& bins) {
  check_choice(graph, op, "mode", "avg", {"avg", "max"});
  check_choice(graph, op, "coordinate_transformation_mode", "half_pixel",
               {"half_pixel", "output_half_pixel"});
  if (image.size() != 4 || bins.size() != 4)
    fail(graph, op, "an image and bins of four axes are expected");
  if (regions.size() != 2 || regions[1] != 4 || images != Shape{regions[0]})
    fail(graph, op, "regions of four numbers with the number of an image each are expected");
  const Shape expected{regions[0], image[1], op.attributes.integer("output_height", 1),
                       op.attributes.integer("output_width", 1)};
  if (bins != expected || bins[2] < 1 || bins[3] < 1)
    fail(graph, op, "the bins are not those of the regions and the image's channels");
  if (image[2] < 1 || image[3] < 1)
    fail(graph, op, "the image is empty");
}

struct RegionAxes {
  std::vector<AxisExpr> bins, image;
  LoopIndex region;
};

RegionAxes region_axes(LoopNestBuilder& nest, const Shape& bins) {
  const LoopIndex r = nest.loop("R", bins[0]);
  const LoopIndex c = nest.loop("C", bins[1]);
  const LoopIndex y = nest.loop("OY", bins[2]);
  const LoopIndex x = nest.loop("OX", bins[3]);
  return {{axis(r), axis(c), axis(y), axis(x)}, pixels_of(axis_data_dependent(), c), r};
}

/// Adds reads of a region's corners and image index.
void read_region(LoopNestBuilder& nest, const RegionAxes& axes) {
  constexpr std::array<const char*, 4> kCorners{"x1", "y1", "x2", "y2"};
  for (std::size_t i = 0; i < kCorners.size(); ++i)
    nest.input(1, kCorners[i], {axis(axes.region), axis_fixed(static_cast<std::int64_t>(i))});
  nest.input(2, "images", {axis(axes.region)});
}

VectorWork region_work(const Operator& op, int samples) {
  VectorWork work = weighted_sum(4 * samples);
  if (op.attributes.text("mode", "avg") == "max")
    work.compare = samples;
  return work;
}

} // namespace

LoopNest build_grid_sample(const Graph& graph, const Operator& op) {
  const Shape& image = input_shape(graph, op, 0);
  const Shape& out = output_shape(graph, op, 0);
  check_grid(graph, op, image, input_shape(graph, op, 1), out);
  const int taps = grid_taps(graph, op);
  LoopNestBuilder nest(graph, op, taps > 1 ? ComputeKind::vector : ComputeKind::copy,
                       taps > 1 ? weighted_sum(taps) : VectorWork{});
  const auto loops = nest.loops_over(out);
  nest.output(0, "O", axes_of(loops));
  nest.input(0, "I", pixels_of(axis(loops[0]), loops[1]), taps);
  read_coordinates(nest, 1, {axis(loops[0]), axis(loops[2]), axis(loops[3])});
  return nest.finish();
}

/// (dY, grid) -> dX: every sample adds to its pixels.
LoopNest build_grid_sample_grad_input(const Graph& graph, const Operator& op) {
  const Shape& dy = input_shape(graph, op, 0);
  check_grid(graph, op, output_shape(graph, op, 0), input_shape(graph, op, 1), dy);
  const int taps = grid_taps(graph, op);
  LoopNestBuilder nest(graph, op, ComputeKind::vector, weighted_sum(taps));
  const auto loops = nest.loops_over(dy);
  nest.output(0, "O", pixels_of(axis(loops[0]), loops[1]), AccessMode::accumulate, taps);
  nest.input(0, "I", axes_of(loops));
  read_coordinates(nest, 1, {axis(loops[0]), axis(loops[2]), axis(loops[3])});
  return nest.finish();
}

/// (dY, X, grid) -> dgrid: derivative of the sample along coordinate D, times dY, summed over
/// channels. Both coordinates read the same pixels, so each is charged half of them.
LoopNest build_grid_sample_grad_grid(const Graph& graph, const Operator& op) {
  const Shape& dy = input_shape(graph, op, 0);
  const Shape& image = input_shape(graph, op, 1);
  const Shape& grid = input_shape(graph, op, 2);
  check_grid(graph, op, image, grid, dy);
  const int taps = grid_taps(graph, op);
  LoopNestBuilder nest(graph, op, ComputeKind::vector, {taps, 2 * taps, 0, 0, 0, 0});
  const LoopIndex n = nest.loop("N", grid[0]);
  const LoopIndex h = nest.loop("H", grid[1]);
  const LoopIndex w = nest.loop("W", grid[2]);
  const LoopIndex d = nest.loop("D", grid[3]);
  const LoopIndex c = nest.loop("C", image[1]);
  nest.output(0, "O", {axis(n), axis(h), axis(w), axis(d)});
  nest.input(0, "I", {axis(n), axis(c), axis(h), axis(w)});
  nest.input(1, "X", pixels_of(axis(n), c), std::max(taps / 2, 1));
  read_coordinates(nest, 2, {axis(n), axis(h), axis(w)});
  return nest.finish();
}

LoopNest build_roi_align(const Graph& graph, const Operator& op) {
  const Shape& bins = output_shape(graph, op, 0);
  check_regions(graph, op, input_shape(graph, op, 0), input_shape(graph, op, 1),
                input_shape(graph, op, 2), bins);
  const std::int64_t per_axis = samples_per_axis(graph, op);
  const int samples = static_cast<int>(per_axis * per_axis);
  LoopNestBuilder nest(graph, op, ComputeKind::vector, region_work(op, samples));
  const RegionAxes axes = region_axes(nest, bins);
  nest.output(0, "O", axes.bins);
  nest.input(0, "I", axes.image, 4 * samples);
  read_region(nest, axes);
  return nest.finish();
}

/// (dY, regions, images[, X]) -> dX: a mean distributes dY to the pixels of all its samples; a
/// maximum finds its sample again.
LoopNest build_roi_align_grad(const Graph& graph, const Operator& op) {
  const Shape& bins = input_shape(graph, op, 0);
  const Shape& image = output_shape(graph, op, 0);
  check_regions(graph, op, image, input_shape(graph, op, 1), input_shape(graph, op, 2), bins);
  const bool is_max = op.attributes.text("mode", "avg") == "max";
  if (is_max && (!has_input(op, 3) || input_shape(graph, op, 3) != image))
    fail(graph, op, "the gradient of a maximum needs the input of the maximum");
  const std::int64_t per_axis = samples_per_axis(graph, op);
  const int samples = static_cast<int>(per_axis * per_axis);
  LoopNestBuilder nest(graph, op, ComputeKind::vector, region_work(op, samples));
  const RegionAxes axes = region_axes(nest, bins);
  nest.output(0, "O", axes.image, AccessMode::accumulate, is_max ? 4 : 4 * samples);
  nest.input(0, "I", axes.bins);
  read_region(nest, axes);
  if (is_max)
    nest.input(3, "X", axes.image, 4 * samples);
  return nest.finish();
}

} // namespace monet
