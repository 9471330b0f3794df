// Random cores, problems and unrollings, small enough to enumerate.
#pragma once

#include "base/shared/rng.hpp"
#include "core_cost/cores.hpp"
#include "core_cost/search/spatial_choice.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace monet::test {

class Dice {
public:
  explicit Dice(std::uint64_t seed) : seed_(seed) {}
  /// Uniform in [low, high].
  std::int64_t number(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random_bits(seed_, counter_++) %
                                           static_cast<std::uint64_t>(high - low + 1));
  }
  bool chance(int percent) { return number(0, 99) < percent; }
  template <class T>
  T any_of(std::vector<T> values) {
    return values[static_cast<std::size_t>(
        number(0, static_cast<std::int64_t>(values.size()) - 1))];
  }

private:
  std::uint64_t seed_;
  std::uint64_t counter_ = 0;
};

/// Ports that serve the operands: one for everything, one per direction, or one per operand too.
inline std::vector<MemoryPort> random_ports(Dice& dice,
                                            const std::vector<MemoryOperand>& operands) {
  using enum Direction;
  const std::int64_t least = dice.any_of<std::int64_t>({8, 16, 64});
  const std::int64_t widest = least * dice.any_of<std::int64_t>({1, 1, 2, 8});
  const auto uses = [&](const std::vector<MemoryOperand>& of,
                        const std::vector<Direction>& directions) {
    std::vector<PortUse> all;
    for (const MemoryOperand operand : of) {
      for (const Direction d : directions) {
        if (operand == MemoryOperand::O || d == fh || d == tl)
          all.push_back({operand, d});
      }
    }
    return all;
  };
  switch (dice.number(0, 2)) {
  case 0:
    return {port(PortType::read_write, least, widest, uses(operands, {fh, tl, fl, th}))};
  case 1:
    return {port(PortType::read, least, widest, uses(operands, {tl, th})),
            port(PortType::write, least, widest, uses(operands, {fh, fl}))};
  default:
    std::vector<MemoryPort> ports;
    for (const MemoryOperand operand : operands) {
      ports.push_back(port(PortType::read, least, widest, uses({operand}, {tl, th})));
      ports.push_back(port(PortType::write, least, widest, uses({operand}, {fh, fl})));
    }
    return ports;
  }
}

/// 1 to 3 array dims, registers for some operands, a shared memory or two, and one for everything.
inline Core random_core(Dice& dice) {
  using enum MemoryOperand;
  Core core;
  core.name = "random";
  core.mac_energy_pj = 0.5;
  const std::int64_t dims = dice.number(1, 3);
  for (std::int64_t d = 0; d < dims; ++d)
    core.array.push_back({"D" + std::to_string(d + 1), dice.number(2, 5)});
  const auto serves = [&](int percent) {
    std::vector<bool> served;
    for (std::int64_t d = 0; d < dims; ++d)
      served.push_back(dice.chance(percent));
    return served;
  };
  for (const MemoryOperand operand : {I1, I2, O}) {
    if (dice.chance(60)) {
      const std::int64_t bits = dice.any_of<std::int64_t>({16, 16, 48, 128, 512});
      core.memories.push_back(memory("register", bits, static_cast<double>(dice.number(1, 9)) / 8,
                                     {operand}, serves(30), random_ports(dice, {operand})));
    }
  }
  for (int n = 0; n < 2; ++n) {
    if (!dice.chance(60))
      continue;
    const auto operands =
        dice.any_of<std::vector<MemoryOperand>>({{I1, O}, {I1, I2}, {I1, I2, O}, {I2, O}, {O}});
    core.memories.push_back(memory("buffer", dice.any_of<std::int64_t>({512, 2048, 8192, 1 << 16}),
                                   static_cast<double>(dice.number(10, 80)) / 8, operands,
                                   serves(80), random_ports(dice, operands)));
  }
  core.memories.push_back(memory("dram", std::int64_t{1} << 33, 100, {I1, I2, O},
                                 std::vector<bool>(core.array.size(), true),
                                 random_ports(dice, {I1, I2, O})));
  return core;
}

/// Convolutions (three products, stride, depthwise) and products, with odd sizes too.
inline CoreProblem random_problem(Dice& dice) {
  const std::int64_t bits = dice.any_of<std::int64_t>({4, 8, 8, 16});
  const std::int64_t partial = bits + dice.any_of<std::int64_t>({0, 8, 8});
  CoreProblem problem;
  if (dice.chance(35)) {
    problem = product(dice.number(1, 12), dice.number(1, 12), dice.number(1, 12), bits, partial);
  } else {
    ConvSizes s{.b = dice.number(1, 2),
                .k = dice.number(1, 6),
                .ox = dice.number(1, 6),
                .oy = dice.number(1, 4),
                .c = dice.number(1, 6),
                .fx = dice.number(1, 3),
                .fy = dice.number(1, 2),
                .stride = dice.number(1, 2)};
    s.ix = s.stride * (s.ox - 1) + s.fx - dice.number(0, 1);
    s.iy = s.stride * (s.oy - 1) + s.fy;
    problem = convolution(
        s,
        dice.any_of<ConvProduct>({ConvProduct::forward, ConvProduct::forward,
                                  ConvProduct::input_gradient, ConvProduct::weight_gradient}),
        bits, partial);
  }
  for (ProblemOperand& operand : problem.operands)
    operand.offchip = dice.chance(10);
  return problem;
}

/// Any loops on any array dims; factors that do not divide too.
inline core_cost_detail::ArrayUnrolling random_unrolling(Dice& dice, const CoreProblem& problem,
                                                         const Core& core) {
  core_cost_detail::ArrayUnrolling unrolling(core.array.size());
  std::vector<std::int64_t> left;
  for (const LoopDim& dim : problem.dims)
    left.push_back(dim.size);
  for (std::size_t d = 0; d < core.array.size(); ++d) {
    const auto dim = static_cast<std::size_t>(
        dice.number(0, static_cast<std::int64_t>(problem.dims.size()) - 1));
    const std::int64_t factor = std::min(left[dim], dice.number(1, core.array[d].size));
    if (factor < 2)
      continue;
    unrolling[d].push_back({static_cast<std::uint32_t>(dim), factor});
    left[dim] = ceil_div(left[dim], factor);
  }
  return unrolling;
}

} // namespace monet::test
