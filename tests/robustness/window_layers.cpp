// Convolutions, pooling and resizing of one to three axes: any stride, dilation and padding.
#include "robustness/network_grower.hpp"

namespace monet::testing {

namespace {

/// Sizes along the axes of an image.
struct Windows {
  Shape kernel, strides, dilations, pads;

  AttributeList attributes() const {
    return {
        {"kernel_shape", kernel}, {"strides", strides}, {"dilations", dilations}, {"pads", pads}};
  }
};

/// Strides beyond the image and pads that cut off of it, now and then.
Windows windows(const NetworkGrower& network, Random& random, std::int64_t axes) {
  Windows w;
  const std::int64_t max_kernel = std::min<std::int64_t>(network.largest(), axes < 3 ? 4 : 2);
  const bool wide = random.chance(20);
  const bool negative = random.chance(15);
  for (std::int64_t i = 0; i < axes; ++i) {
    w.kernel.push_back(random.between(1, max_kernel));
    w.strides.push_back(random.between(1, wide ? 9 : 3));
    w.dilations.push_back(random.chance(75) ? 1 : random.between(2, 3));
  }
  for (std::int64_t i = 0; i < 2 * axes; ++i)
    w.pads.push_back(random.between(negative ? -2 : 0, random.chance(20) ? 4 : 1));
  return w;
}

Value image(NetworkGrower& network, Random& random, std::int64_t& axes) {
  axes = random.one_of<std::int64_t>({1, 2, 2, 2, 3});
  return network.of_rank(random, axes + 2);
}

std::int64_t some_divisor(Random& random, std::int64_t of) {
  std::vector<std::int64_t> divisors;
  for (std::int64_t d = 1; d <= of; ++d)
    if (of % d == 0)
      divisors.push_back(d);
  return random.chance(50) ? 1 : random.pick(divisors);
}

void choose_padding(Random& random, AttributeList& attributes) {
  if (!random.chance(12))
    return;
  std::erase_if(attributes, [](const auto& a) { return a.first == "pads"; });
  attributes.emplace_back("auto_pad",
                          random.one_of<std::string>({"SAME_UPPER", "SAME_LOWER", "VALID"}));
}

void convolution(NetworkGrower& network, Random& random) {
  std::int64_t axes = 0;
  const Value x = image(network, random, axes);
  const Windows w = windows(network, random, axes);
  const std::int64_t groups = some_divisor(random, x.size(1));
  const std::int64_t k = groups * random.between(1, groups > 1 ? 3 : network.largest());
  Shape shape{k, x.size(1) / groups};
  shape.insert(shape.end(), w.kernel.begin(), w.kernel.end());
  std::vector<std::string> inputs{x.name, network.weight(shape, x.type).name};
  if (random.chance(40))
    inputs.push_back(network.weight({k}, x.type).name);
  AttributeList attributes = w.attributes();
  attributes.emplace_back("group", groups);
  choose_padding(random, attributes);
  network.add("Conv", inputs, attributes);
}

void transposed_convolution(NetworkGrower& network, Random& random) {
  std::int64_t axes = 0;
  const Value x = image(network, random, axes);
  const Windows w = windows(network, random, axes);
  const std::int64_t groups = some_divisor(random, x.size(1));
  const std::int64_t k = random.between(1, 3);
  Shape shape{x.size(1), k};
  shape.insert(shape.end(), w.kernel.begin(), w.kernel.end());
  std::vector<std::string> inputs{x.name, network.weight(shape, x.type).name};
  if (random.chance(40))
    inputs.push_back(network.weight({groups * k}, x.type).name);
  AttributeList attributes = w.attributes();
  attributes.emplace_back("group", groups);
  if (random.chance(25)) {
    Shape more;
    for (const std::int64_t stride : w.strides)
      more.push_back(random.between(0, stride - 1));
    attributes.emplace_back("output_padding", more);
  }
  network.add("ConvTranspose", inputs, attributes);
}

void pooling(NetworkGrower& network, Random& random) {
  std::int64_t axes = 0;
  const Value x = image(network, random, axes);
  Windows w = windows(network, random, axes);
  const auto type = random.one_of<std::string>({"MaxPool", "AveragePool", "LpPool"});
  for (std::size_t i = 0; i < w.pads.size(); ++i)
    w.pads[i] = std::min(w.pads[i], w.kernel[i % w.kernel.size()] - 1);
  AttributeList attributes = w.attributes();
  if (type != "MaxPool")
    std::erase_if(attributes, [](const auto& a) { return a.first == "dilations"; });
  if (type != "LpPool" && random.chance(30))
    attributes.emplace_back("ceil_mode", std::int64_t{1});
  if (type == "AveragePool" && random.chance(40))
    attributes.emplace_back("count_include_pad", std::int64_t{1});
  choose_padding(random, attributes);
  network.add_all(type, {x.name}, attributes, type == "MaxPool" && random.chance(15) ? 2 : 1);
}

void global_pooling(NetworkGrower& network, Random& random) {
  std::int64_t axes = 0;
  const Value x = image(network, random, axes);
  network.add(random.one_of<std::string>({"GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"}),
              {x.name});
}

void resizing(NetworkGrower& network, Random& random) {
  const Value x = network.with_axes(random);
  const auto mode = random.one_of<std::string>({"nearest", "linear", "cubic"});
  AttributeList attributes{
      {"mode", mode},
      {"coordinate_transformation_mode",
       random.one_of<std::string>(
           {"half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"})},
      {"nearest_mode", random.one_of<std::string>({"floor", "round_prefer_floor", "ceil"})}};
  if (random.chance(50)) {
    Shape sizes;
    for (const std::int64_t size : x.shape)
      sizes.push_back(random.chance(50) ? size : network.size(random));
    network.add("Resize", {x.name, "", "", network.integers(sizes)}, attributes);
    return;
  }
  std::vector<double> scales;
  for (std::int64_t i = 0; i < x.rank(); ++i)
    scales.push_back(random.one_of({1.0, 1.0, 2.0, 0.5, 1.5, 3.0}));
  network.add("Resize", {x.name, "", network.floats(scales)}, attributes);
}

void blocks_of_depth(NetworkGrower& network, Random& random) {
  const Value x = network.of_rank(random, 4);
  const AttributeList attributes{{"blocksize", random.between(1, 3)}};
  if (random.chance(50)) {
    network.add("SpaceToDepth", {x.name}, attributes);
  } else {
    network.add("DepthToSpace", {x.name}, attributes);
  }
}

void grid_sample(NetworkGrower& network, Random& random) {
  const Value x = network.of_rank(random, 4);
  const Value grid =
      network.weight({x.size(0), network.size(random), network.size(random), 2}, x.type);
  network.add("GridSample", {x.name, grid.name},
              {{"mode", random.one_of<std::string>({"bilinear", "nearest", "bicubic"})},
               {"align_corners", random.between(0, 1)}});
}

} // namespace

const std::vector<LayerFamily>& window_layers() {
  static const std::vector<LayerFamily> families{
      {"Conv", convolution},
      {"Conv", convolution},
      {"ConvTranspose", transposed_convolution},
      {"pooling", pooling},
      {"global pooling", global_pooling},
      {"Resize", resizing},
      {"blocks of depth", blocks_of_depth},
      {"GridSample", grid_sample},
  };
  return families;
}

} // namespace monet::testing
