// Views, copies, and what picks elements by index.
#include "robustness/network_grower.hpp"

#include <algorithm>

namespace monet::testing {

namespace {

void pad(NetworkGrower& network, Random& random) {
  const Value x = network.with_axes(random);
  const bool negative = random.chance(40);
  Shape pads;
  for (std::int64_t i = 0; i < 2 * x.rank(); ++i)
    pads.push_back(random.chance(50) ? 0 : random.between(negative ? -2 : 0, 2));
  network.add("Pad", {x.name, network.integers(pads)},
              {{"mode", random.one_of<std::string>({"constant", "constant", "reflect", "edge"})}});
}

void slice(NetworkGrower& network, Random& random) {
  const Value x = network.with_axes(random);
  Shape begins, ends, axes, steps;
  for (std::int64_t axis = 0; axis < x.rank(); ++axis) {
    if (!random.chance(60))
      continue;
    const std::int64_t size = x.size(axis);
    const std::int64_t begin = random.between(0, size - 1);
    const std::int64_t end = random.between(begin + 1, size);
    const bool backwards = random.chance(20);
    axes.push_back(random.chance(30) ? axis - x.rank() : axis);
    begins.push_back(backwards ? end - 1 : begin);
    ends.push_back(backwards ? begin - 1 - (begin == 0 ? size + 1 : 0)
                             : (random.chance(20) ? std::int64_t{1} << 40 : end));
    steps.push_back((backwards ? -1 : 1) * random.one_of<std::int64_t>({1, 1, 2, 3, 5}));
  }
  network.add("Slice", {x.name, network.integers(begins), network.integers(ends),
                        network.integers(axes), network.integers(steps)});
}

void concat(NetworkGrower& network, Random& random) {
  const Value x = network.of_rank(random, random.between(1, 4));
  const auto axis = random.index(x.shape.size());
  std::vector<std::string> inputs{x.name};
  for (std::int64_t n = random.between(0, 2); n > 0; --n) {
    if (random.chance(40)) {
      inputs.push_back(random.chance(50) ? x.name : network.some(random).name);
      continue;
    }
    Shape shape = x.shape;
    shape[axis] = network.size(random);
    inputs.push_back(network.weight(shape, x.type).name);
  }
  network.add("Concat", inputs, {{"axis", static_cast<std::int64_t>(axis)}});
}

void split(NetworkGrower& network, Random& random) {
  const Value x = network.with_axes(random);
  const std::int64_t axis = random.between(0, x.rank() - 1);
  const std::int64_t size = x.size(axis);
  if (size % 2 == 0 && random.chance(40)) {
    network.add_all("Split", {x.name}, {{"axis", axis}}, 2);
    return;
  }
  const std::int64_t first = random.between(1, std::max<std::int64_t>(1, size - 1));
  Shape parts{first};
  if (first < size)
    parts.push_back(size - first);
  network.add_all("Split", {x.name, network.integers(parts)}, {{"axis", axis}}, parts.size());
}

void transpose(NetworkGrower& network, Random& random) {
  const Value x = network.with_axes(random);
  Shape order;
  for (std::int64_t axis = 0; axis < x.rank(); ++axis)
    order.insert(order.begin() + static_cast<std::ptrdiff_t>(random.index(order.size() + 1)), axis);
  network.add("Transpose", {x.name}, {{"perm", order}});
}

/// Any shape of as many elements.
void reshape(NetworkGrower& network, Random& random) {
  const Value x = network.with_axes(random);
  std::int64_t left = 1;
  for (const std::int64_t size : x.shape)
    left *= size;
  Shape shape;
  while (left > 1 && shape.size() < 4) {
    std::vector<std::int64_t> divisors;
    for (std::int64_t d = 1; d <= left; ++d)
      if (left % d == 0)
        divisors.push_back(d);
    shape.push_back(random.pick(divisors));
    left /= shape.back();
  }
  if (left > 1 || shape.empty())
    shape.push_back(left);
  std::reverse(shape.begin(), shape.end());
  network.reshape(x, shape);
}

void axes_of_one(NetworkGrower& network, Random& random) {
  const Value x = network.with_axes(random);
  if (random.chance(40)) {
    network.add("Unsqueeze", {x.name, network.integers({random.between(0, x.rank())})});
  } else if (random.chance(50)) {
    network.add("Flatten", {x.name}, {{"axis", random.between(0, x.rank())}});
  } else {
    network.add("Squeeze", {x.name});
  }
}

void expand(NetworkGrower& network, Random& random) {
  const Value x = network.with_axes(random);
  Shape shape = x.shape;
  for (std::int64_t& size : shape)
    if (size == 1)
      size = network.size(random);
  if (random.chance(30))
    shape.insert(shape.begin(), network.size(random));
  network.add("Expand", {x.name, network.integers(shape)});
}

void tile(NetworkGrower& network, Random& random) {
  const Value x = network.with_axes(random);
  Shape repeats;
  for (std::int64_t i = 0; i < x.rank(); ++i)
    repeats.push_back(random.chance(60) ? 1 : random.between(1, 3));
  network.add("Tile", {x.name, network.integers(repeats)});
}

void embedding(NetworkGrower& network, Random& random) {
  const std::int64_t rows = network.size(random);
  const Value like = network.some(random);
  Shape shape{network.size(random)};
  if (random.chance(60))
    shape.push_back(network.size(random));
  Shape table{rows, network.size(random)};
  if (random.chance(10))
    table.push_back(network.size(random));
  const Value indices = network.indices(random, shape, rows, random.chance(20));
  network.add("Gather", {network.weight(table, like.type).name, indices.name});
}

void gather(NetworkGrower& network, Random& random) {
  const Value x = network.with_axes(random);
  const std::int64_t axis = random.between(0, x.rank() - 1);
  Shape shape;
  for (std::int64_t n = random.between(0, 2); n > 0; --n)
    shape.push_back(network.size(random));
  const Value indices = network.indices(random, shape, x.size(axis), random.chance(60));
  network.add("Gather", {x.name, indices.name}, {{"axis", axis}});
}

void gather_elements(NetworkGrower& network, Random& random) {
  const Value x = network.with_axes(random);
  const std::int64_t axis = random.between(0, x.rank() - 1);
  Shape shape;
  for (std::int64_t i = 0; i < x.rank(); ++i)
    shape.push_back(i == axis ? network.size(random) : random.between(1, x.size(i)));
  const Value indices = network.indices(random, shape, x.size(axis), random.chance(50));
  if (random.chance(60)) {
    network.add("GatherElements", {x.name, indices.name}, {{"axis", axis}});
  } else {
    network.add("ScatterElements", {x.name, indices.name, network.weight(shape, x.type).name},
                {{"axis", axis}});
  }
}

void gather_nd(NetworkGrower& network, Random& random) {
  const Value x = network.with_axes(random);
  const std::int64_t depth = random.between(1, x.rank());
  std::int64_t bound = x.size(0);
  for (std::int64_t i = 1; i < depth; ++i)
    bound = std::min(bound, x.size(i));
  const std::int64_t rows = network.size(random);
  const Value indices = network.indices(random, {rows, depth}, bound, random.chance(50));
  if (random.chance(50)) {
    network.add("GatherND", {x.name, indices.name});
    return;
  }
  Shape updates{rows};
  updates.insert(updates.end(), x.shape.begin() + static_cast<std::ptrdiff_t>(depth),
                 x.shape.end());
  network.add("ScatterND", {x.name, indices.name, network.weight(updates, x.type).name});
}

void top_k(NetworkGrower& network, Random& random) {
  const Value x = network.with_axes(random);
  const std::int64_t axis = random.between(0, x.rank() - 1);
  if (random.chance(60)) {
    network.add_all("TopK", {x.name, network.integers({random.between(1, x.size(axis))})},
                    {{"axis", axis}}, 2);
  } else {
    network.add(random.one_of<std::string>({"ArgMax", "ArgMin"}), {x.name},
                {{"axis", axis}, {"keepdims", random.between(0, 1)}});
  }
}

void triangle(NetworkGrower& network, Random& random) {
  const Value x = network.of_rank(random, random.between(2, 3));
  network.add("Trilu", {x.name}, {{"upper", random.between(0, 1)}});
}

void reverse_rows(NetworkGrower& network, Random& random) {
  const Value x = network.of_rank(random, random.between(2, 3));
  const Value lengths = network.indices(random, {x.size(1)}, x.size(0) + 1, true);
  network.add("ReverseSequence", {x.name, lengths.name});
}

} // namespace

const std::vector<LayerFamily>& layout_layers() {
  static const std::vector<LayerFamily> families{
      {"Pad", pad},
      {"Slice", slice},
      {"Concat", concat},
      {"Split", split},
      {"Transpose", transpose},
      {"Reshape", reshape},
      {"axes of one", axes_of_one},
      {"Expand", expand},
      {"Tile", tile},
      {"embedding", embedding},
      {"Gather", gather},
      {"elements by index", gather_elements},
      {"slices by index", gather_nd},
      {"TopK, ArgMax", top_k},
      {"Trilu", triangle},
      {"ReverseSequence", reverse_rows},
  };
  return families;
}

} // namespace monet::testing
