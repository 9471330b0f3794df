// Builds the workload of the reference scheduler in six steps: layers, stacks, tilings, tiles,
// edges, order. The command for `--model stream-coala` calls make_stream_workload().
#include "monet/reference/stream_tiles.hpp"

#include "reference/stream/tiles/stages.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <tuple>

namespace monet::stream {

MemoryOperand memory_of(Operand operand) {
  return operand == Operand::O   ? MemoryOperand::O
         : operand == Operand::I ? MemoryOperand::I1
                                 : MemoryOperand::I2;
}

char letter_of(Operand operand) {
  return operand == Operand::O ? 'O' : operand == Operand::I ? 'I' : 'W';
}

std::string Workload::name_of(const Tensor& tensor) const {
  return fmt::format("Tensor({}, {}, {})", layers[tensor.layer].id, tiles[tensor.tile].sub,
                     letter_of(tensor.operand));
}

namespace {

/// Removes duplicate notes, which parsers and stages may add several times.
void drop_repeated(std::vector<Note>& notes) {
  std::set<std::tuple<std::string, std::string, std::string>> seen;
  std::erase_if(notes, [&](const Note& note) {
    return !seen.emplace(note.name, note.node, note.what).second;
  });
}

/// Sets the scheduling order. Adds notes.
void make_order(Workload& workload) {
  const auto steps_of = [&](std::uint32_t layer) {
    std::int64_t steps = 1;
    for (const Factor& factor : workload.layers[layer].intra)
      steps *= factor.count;
    return steps;
  };
  workload.order.reserve(workload.tiles.size());
  for (const std::vector<std::uint32_t>& stack : workload.stacks) {
    if (stack.empty())
      continue;
    std::int64_t slots = steps_of(stack[0]);
    for (const std::uint32_t layer : stack)
      slots = std::min(slots, steps_of(layer));
    for (const std::uint32_t layer : stack) {
      if (steps_of(layer) % slots != 0) {
        workload.notes.push_back({"uneven-slots", workload.layers[layer].name,
                                  fmt::format("{} steps over time are not a multiple of the {} of "
                                              "its stack; the reference stops",
                                              steps_of(layer), slots)});
      }
    }
    for (std::int64_t slot = 0; slot < slots; ++slot) {
      for (const std::uint32_t index : stack) {
        const Layer& layer = workload.layers[index];
        const std::int64_t steps = steps_of(index);
        const std::int64_t parallel = layer.tiles / steps;
        for (std::int64_t sub = slot * steps / slots * parallel;
             sub < (slot + 1) * steps / slots * parallel; ++sub)
          workload.order.push_back(layer.first_tile + static_cast<std::uint32_t>(sub));
      }
    }
  }
  workload.rank.assign(workload.tiles.size(), 0);
  for (std::uint32_t i = 0; i < workload.order.size(); ++i)
    workload.rank[workload.order[i]] = i;
}

} // namespace

Workload make_stream_workload(const Graph& network, const Chip& chip, const MappingFile& mapping,
                              const StreamOptions& options) {
  Network parsed = parse_network(network, chip, mapping, options.pools_channels_twice);
  Workload workload;
  workload.stacks = make_stacks(parsed, chip, options);
  set_tilings(parsed, workload.stacks, options.mode);
  workload.layers = parsed.layers;
  make_tiles(workload);
  make_edges(workload, network, parsed);
  workload.notes = std::move(parsed.notes);
  make_order(workload);
  drop_repeated(workload.notes);
  return workload;
}

} // namespace monet::stream
