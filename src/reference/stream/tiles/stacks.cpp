// Which layers are fused.
#include "reference/stream/tiles/stages.hpp"

#include "monet/base/checked.hpp"

#include <fmt/core.h>

namespace monet::stream {

namespace {

using Stacks = std::vector<std::vector<std::uint32_t>>;

/// Bits of the layer's first constant operand: padding, as it is never fetched, does not count.
std::int64_t first_constant_bits(const Layer& layer) {
  const OperandUse& use = layer.use(layer.constants.front());
  std::int64_t bits = use.bits;
  for (const std::uint32_t axis : use.axes) {
    bits = checked_multiply(bits, axis < layer.dims.size()
                                      ? layer.dims[axis].parsed
                                      : layer.partial[axis - layer.dims.size()].size);
  }
  return bits;
}

std::int64_t weight_capacity(const Chip& chip) {
  std::int64_t bits = 0;
  for (std::size_t core = 0; core < chip.compute_cores(); ++core) {
    const Memory* memory = chip.cores[core].top(MemoryOperand::I2);
    if (memory != nullptr)
      bits = checked_add(bits, memory->size.value);
  }
  return bits;
}

/// Layers join the first stack until their weights no longer fit on the chip.
Stacks one_stack(const std::vector<Layer>& layers, const Chip& chip) {
  const std::int64_t capacity = weight_capacity(chip);
  Stacks stacks(1);
  std::int64_t bits = 0;
  bool complete = false;
  for (std::uint32_t i = 0; i < layers.size(); ++i) {
    if (!complete && !layers[i].constants.empty()) {
      bits = checked_add(bits, first_constant_bits(layers[i]));
      if (bits > capacity) {
        complete = true;
        stacks.emplace_back();
      }
    } else if (complete) {
      stacks.emplace_back();
    }
    stacks.back().push_back(i);
  }
  return stacks;
}

Stacks given_stacks(const Network& network, const std::vector<std::vector<int>>& given) {
  Stacks stacks;
  std::vector<bool> placed(network.nodes.size(), false);
  for (const std::vector<int>& ids : given) {
    std::vector<std::uint32_t>& stack = stacks.emplace_back();
    for (const int id : ids) {
      if (id < 0 || static_cast<std::size_t>(id) >= network.nodes.size())
        continue; // the reference passes over them as well
      const Node& node = network.nodes[static_cast<std::size_t>(id)];
      if (node.layer == kNone)
        continue;
      if (placed[static_cast<std::size_t>(id)]) {
        throw InputError(
            {{}, 0, 0, fmt::format("layer {} ({})", id, network.layers[node.layer].name)},
            "is in two fused stacks, or twice in one");
      }
      placed[static_cast<std::size_t>(id)] = true;
      stack.push_back(node.layer);
    }
  }
  for (std::size_t id = 0; id < network.nodes.size(); ++id) {
    if (network.nodes[id].layer != kNone && !placed[id])
      stacks.push_back({network.nodes[id].layer});
  }
  return stacks;
}

} // namespace

std::vector<std::vector<std::uint32_t>> make_stacks(const Network& network, const Chip& chip,
                                                    const StreamOptions& options) {
  if (options.mode == StreamOptions::Mode::fused && options.stacks.empty())
    return one_stack(network.layers, chip);
  return given_stacks(network, options.mode == StreamOptions::Mode::fused
                                   ? options.stacks
                                   : std::vector<std::vector<int>>{});
}

} // namespace monet::stream
