// Finds the memories that a layer bypasses since its data come from the previous layer or go to the
// next; the layer cost command uses it.
#include "base/shared/checked.hpp"
#include "hardware/shared/array_modes.hpp"

#include "monet/core_cost/layers.hpp"

#include <algorithm>
#include <memory>

namespace monet {

namespace {

/// Indices into Core::memories: the outermost source or destination of each operand of a layer.
struct Outermost {
  std::size_t input = 0;
  std::size_t output = 0;
};

bool holds(const Memory& memory, MemoryOperand operand) {
  return std::ranges::find(memory.operands, operand) != memory.operands.end();
}

std::size_t top_of(const Core& core, MemoryOperand operand) {
  const std::vector<std::size_t> levels = core.levels(operand);
  return levels.empty() ? 0 : levels.back();
}

std::int64_t bits_of(const Layer& layer, MemoryOperand memory) {
  std::int64_t bits = 0;
  for (const ProblemOperand& operand : layer.problem.operands) {
    const bool other_input = !layer.constant_weights && memory == MemoryOperand::I1 &&
                             operand.memory == MemoryOperand::I2;
    if (operand.memory == memory || other_input)
      bits = checked_add(bits, footprint(operand));
  }
  return bits;
}

std::shared_ptr<const ImcArray> with_cells_at(ImcArray array, std::size_t memory) {
  array.cells = memory;
  return std::make_shared<const ImcArray>(array);
}

class Locality {
public:
  Locality(const std::vector<Layer>& layers, const Core& core)
      : layers_(layers), core_(core), weights_(top_of(core, MemoryOperand::I2)) {
    for (const Layer& layer : layers) {
      if (layer.constant_weights)
        all_weights_ = checked_add(all_weights_, bits_of(layer, MemoryOperand::I2));
    }
    for (std::size_t i = 0; i < layers.size(); ++i)
      place(i);
  }

  Core core_of(std::size_t i) const {
    const std::size_t weights = layers_[i].constant_weights ? weights_ : second_input(i);
    Core kept = core_;
    kept.memories.clear();
    for (std::size_t m = 0; m < core_.memories.size(); ++m) {
      Memory memory = core_.memories[m];
      const auto leaves = [&](MemoryOperand operand) {
        return m > (operand == MemoryOperand::I1   ? places_[i].input
                    : operand == MemoryOperand::I2 ? weights
                                                   : places_[i].output);
      };
      std::erase_if(memory.operands, leaves);
      for (MemoryPort& port : memory.ports)
        std::erase_if(port.allocation, [&](const PortUse& use) { return leaves(use.operand); });
      if (core_.imc != nullptr && m == core_.imc->cells)
        kept.imc = with_cells_at(*core_.imc, kept.memories.size());
      if (!memory.operands.empty())
        kept.memories.push_back(std::move(memory));
    }
    if (!kept.modes.empty()) {
      auto made = std::make_shared<std::vector<Core>>();
      for (const ArrayMode& mode : kept.modes)
        made->push_back(in_mode(kept, mode));
      kept.in_modes = std::move(made);
    }
    return kept;
  }

private:
  /// Source of a second operand that another layer makes: that of inputs. Computing cells keep
  /// their operand, and data below them pass through the lowest memory above.
  std::size_t second_input(std::size_t i) const {
    const std::size_t inputs = places_[i].input;
    if (core_.imc == nullptr || inputs > core_.imc->cells)
      return inputs;
    const std::vector<std::size_t> levels = core_.levels(MemoryOperand::I2);
    const auto above = std::ranges::upper_bound(levels, core_.imc->cells);
    return above != levels.end() ? *above : core_.imc->cells;
  }

  void place(std::size_t i) {
    const Layer& layer = layers_[i];
    const bool first = i == 0;
    Outermost& place = places_.emplace_back();
    place.input = top_of(core_, MemoryOperand::I1);
    place.output = top_of(core_, MemoryOperand::O);
    if (!layer.makers.empty())
      place.input = std::min(place.input, places_.at(layer.makers.front()).output);
    const bool last_of_branch =
        layer.takers.size() == 1 && layers_.at(layer.takers.front()).makers.size() > 1;
    if (layer.takers.size() > 1 || last_of_branch)
      return; // stays in the outermost memory
    for (std::size_t m = core_.memories.size(); m-- > 0;) {
      const Memory& memory = core_.memories[m];
      const bool both = holds(memory, MemoryOperand::I1) && holds(memory, MemoryOperand::O);
      const bool weights = holds(memory, MemoryOperand::I2);
      if ((!both && !weights) || needed_bits(layer, memory) > room(memory))
        continue;
      if (both && first)
        place.input = std::min(place.input, m);
      if (both)
        place.output = std::min(place.output, m);
      const bool serves_all = std::ranges::find(memory.serves, false) == memory.serves.end();
      if (weights && serves_all)
        weights_ = std::min(weights_, m);
    }
  }

  std::int64_t room(const Memory& memory) const {
    return checked_multiply(memory.size.value, instances(core_, memory));
  }

  /// Bits of the layer in the memory, plus all weights unless it has none and both
  /// input and output lie here.
  std::int64_t needed_bits(const Layer& layer, const Memory& memory) const {
    const bool both = holds(memory, MemoryOperand::I1) && holds(memory, MemoryOperand::O);
    const bool weights = holds(memory, MemoryOperand::I2) && (layer.constant_weights || !both);
    std::int64_t bits = weights ? all_weights_ : 0;
    for (const MemoryOperand operand : {MemoryOperand::I1, MemoryOperand::O}) {
      if (holds(memory, operand))
        bits = checked_add(bits, bits_of(layer, operand));
    }
    return bits;
  }

  const std::vector<Layer>& layers_;
  const Core& core_;
  std::vector<Outermost> places_;
  std::size_t weights_;
  std::int64_t all_weights_ = 0;
};

} // namespace

std::vector<Core> with_data_locality(const std::vector<Layer>& layers, const Core& core) {
  const Locality locality(layers, core);
  std::vector<Core> cores;
  for (std::size_t i = 0; i < layers.size(); ++i)
    cores.push_back(locality.core_of(i));
  return cores;
}

} // namespace monet
