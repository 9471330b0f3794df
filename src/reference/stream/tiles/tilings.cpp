// Groups layers into fused stacks and turns the factors of the mapping file into valid factors.
// These are the second and third steps of make_stream_workload() (stream_tiles.cpp).
#include "base/shared/checked.hpp"
#include "reference/stream/tiles/stages.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace monet::stream {

namespace {

std::uint32_t find_loop(const Layer& layer, std::string_view name) {
  const auto found = std::ranges::find(layer.dims, name, &Dim::name);
  return found == layer.dims.end() ? kNone : static_cast<std::uint32_t>(found - layer.dims.begin());
}

std::string_view usual_fusion_loop(std::string_view type) {
  constexpr std::pair<std::string_view, std::string_view> kLoops[] = {
      {"conv", "OY"}, {"pooling", "OY"}, {"matmul", "D"}, {"gemm", "D"}, {"add", "D"}, {"mul", "D"},
  };
  for (const auto& [name, loop] : kLoops) {
    if (name == type)
      return loop;
  }
  return "K";
}

/// The default intra-core factor if the mapping has none: two tiles over time.
Factor usual_intra(const Layer& layer) {
  std::uint32_t dim = find_loop(layer, usual_fusion_loop(layer.type));
  for (std::uint32_t i = 0; dim == kNone && i < layer.dims.size(); ++i) {
    if (layer.dims[i].name != "B" && layer.dims[i].name != "G")
      dim = i;
  }
  dim = dim == kNone ? 0 : dim;
  return {dim, std::min<std::int64_t>(2, layer.dims[dim].size)};
}

Factor usual_inter(const Layer& layer) {
  for (const char* name : {"G", "H", "K"}) {
    const std::uint32_t dim = find_loop(layer, name);
    if (dim != kNone && layer.dims[dim].size > 1)
      return {dim, 1};
  }
  return {0, 1};
}

/// Calls visit(loop, given) for each factor whose loop the layer has.
template <class Visit>
void each_known(const Layer& layer, const std::vector<TilingFactor>& given, const Visit& visit) {
  for (const TilingFactor& factor : given) {
    if (const std::uint32_t dim = find_loop(layer, factor.dim); dim != kNone)
      visit(dim, factor);
  }
}

/// Valid intra-core factors. Rounds each loop up to a multiple of its factor.
std::vector<Factor> valid_intra(Layer& layer, const std::vector<TilingFactor>& given,
                                std::vector<Note>& notes) {
  std::vector<Factor> factors;
  each_known(layer, given, [&](std::uint32_t dim, const TilingFactor& factor) {
    if (factor.amount == TilingFactor::Amount::chosen) {
      notes.push_back({"wildcard", layer.name,
                       fmt::format("intra-core factor '{}, *' is ignored", factor.dim)});
      return;
    }
    std::int64_t& size = layer.dims[dim].size;
    const std::int64_t count =
        factor.amount == TilingFactor::Amount::all ? size : std::min(factor.factor, size);
    size = checked_multiply(ceil_div(size, count), count);
    factors.push_back({dim, count});
  });
  return factors;
}

std::vector<Factor> valid_inter(const Layer& layer, const std::vector<TilingFactor>& given,
                                std::vector<Note>& notes) {
  std::vector<Factor> factors;
  each_known(layer, given, [&](std::uint32_t dim, const TilingFactor& factor) {
    const std::int64_t size = layer.dims[dim].size;
    std::int64_t count = factor.factor;
    if (factor.amount != TilingFactor::Amount::number) {
      const bool chosen = factor.amount == TilingFactor::Amount::chosen;
      count = chosen ? static_cast<std::int64_t>(layer.cores.size()) : size;
      notes.push_back({"wildcard", layer.name,
                       fmt::format("inter-core factor '{}, {}' counts as {}", factor.dim,
                                   chosen ? "*" : "all", std::min(count, size))});
    }
    factors.push_back({dim, std::min(count, size)});
  });
  return factors;
}

/// Sets padded and tile sizes: every loop is rounded up to a multiple of all its factors.
void set_sizes(Layer& layer) {
  std::vector<std::int64_t> counts(layer.dims.size(), 1);
  layer.inter_splits = 1;
  for (const Factor& factor : layer.inter) {
    counts[factor.dim] = checked_multiply(counts[factor.dim], factor.count);
    layer.inter_splits = checked_multiply(layer.inter_splits, factor.count);
  }
  for (const Factor& factor : layer.intra)
    counts[factor.dim] = checked_multiply(counts[factor.dim], factor.count);
  for (std::size_t i = 0; i < layer.dims.size(); ++i) {
    layer.dims[i].tile = ceil_div(layer.dims[i].size, counts[i]);
    layer.dims[i].padded = checked_multiply(layer.dims[i].tile, counts[i]);
  }
}

using Stacks = std::vector<std::vector<std::uint32_t>>;

/// Bits of the layer's first constant operand, without padding, which is never fetched.
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

/// Stacks by capacity: layers join the first stack until their weights no longer fit on the chip.
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
        continue; // the reference ignores unknown ids, too
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

void set_tilings(Network& network, const std::vector<std::vector<std::uint32_t>>& stacks,
                 StreamOptions::Mode mode) {
  for (std::uint32_t stack = 0; stack < stacks.size(); ++stack) {
    for (const std::uint32_t index : stacks[stack]) {
      Layer& layer = network.layers[index];
      layer.stack = stack;
      layer.alone = stacks[stack].size() == 1;
    }
  }
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    Layer& layer = network.layers[i];
    // Rounding comes first and remains even if its factors are removed below.
    layer.intra = valid_intra(layer, *network.tilings[i].intra, network.notes);
    if (layer.intra.empty() && mode == StreamOptions::Mode::fused)
      layer.intra.push_back(usual_intra(layer));
    if (layer.alone)
      layer.intra.clear();
    layer.inter = valid_inter(layer, *network.tilings[i].inter, network.notes);
    if (layer.inter.empty())
      layer.inter.push_back(usual_inter(layer));
    set_sizes(layer);
  }
}

std::vector<std::vector<std::uint32_t>> make_stacks(const Network& network, const Chip& chip,
                                                    const StreamOptions& options) {
  if (options.mode == StreamOptions::Mode::fused && options.stacks.empty())
    return one_stack(network.layers, chip);
  return given_stacks(network, options.mode == StreamOptions::Mode::fused
                                   ? options.stacks
                                   : std::vector<std::vector<int>>{});
}

} // namespace monet::stream
