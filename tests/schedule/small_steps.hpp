// Chips and steps small enough to schedule by hand.
#pragma once

#include "monet/hardware/chip.hpp"
#include "monet/training_graph/training.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

namespace monet::testing {

struct ChipShape {
  int cores = 1;
  std::int64_t core_bits = 1 << 20; ///< top memory of each core
  std::int64_t link_bandwidth = 0;  ///< bits/cycle between each two cores, both ways; 0 = no links
  bool bus = false;                 ///< one bus for all core to core traffic instead
  std::int64_t dram_bandwidth = 64; ///< bits/cycle, one port for reads and writes
  std::int64_t dram_bits = 1LL << 40;
  std::int64_t lanes = 16;
};

inline Memory one_memory(const std::string& name, std::int64_t bits, std::int64_t bandwidth) {
  Memory memory;
  memory.name = name;
  memory.size = {bits};
  memory.read_energy_pj = 8;
  memory.write_energy_pj = 16;
  memory.operands = {MemoryOperand::I1, MemoryOperand::I2, MemoryOperand::O};
  memory.serves = {true};
  MemoryPort port;
  port.name = "rw";
  port.type = PortType::read_write;
  port.bandwidth_min = bandwidth;
  port.bandwidth_max = bandwidth;
  for (const MemoryOperand operand : memory.operands) {
    for (const Direction d : {Direction::fh, Direction::tl, Direction::fl, Direction::th}) {
      port.allocation.push_back({operand, d});
    }
  }
  memory.ports = {port};
  return memory;
}

/// Cores 0..n-1 of `lanes` lanes that run everything, and the off-chip memory on one shared link.
inline Chip make_chip(const ChipShape& shape) {
  Chip chip;
  chip.name = "small";
  for (int c = 0; c < shape.cores; ++c) {
    Core core;
    core.name = fmt::format("core{}", c);
    core.memories = {one_memory("sram", shape.core_bits, 64)};
    core.mac_energy_pj = 1;
    core.array = {{"D1", shape.lanes}};
    core.runs_vector_operators = true;
    chip.cores.push_back(core);
  }
  Core dram;
  dram.name = "dram";
  dram.kind = CoreKind::offchip;
  dram.memories = {one_memory("dram", shape.dram_bits, shape.dram_bandwidth)};
  dram.array = {{"D1", 1}};
  chip.cores.push_back(dram);
  chip.offchip = CoreId(chip.cores.size() - 1);

  const auto add_link = [&](std::vector<CoreId> cores, LinkReach reach, std::int64_t bandwidth) {
    Link link;
    link.name = fmt::format("link{}", chip.links.size());
    link.cores = std::move(cores);
    link.reach = reach;
    link.bandwidth_bits_per_cycle = bandwidth;
    link.energy_pj_per_cycle = 2;
    chip.links.push_back(link);
  };
  std::vector<CoreId> all;
  for (int c = 0; c < shape.cores; ++c)
    all.push_back(CoreId(static_cast<std::size_t>(c)));
  if (shape.bus && shape.link_bandwidth > 0) {
    add_link(all, LinkReach::any_pair, shape.link_bandwidth);
  } else if (shape.link_bandwidth > 0) {
    for (const CoreId a : all) {
      for (const CoreId b : all) {
        if (a != b)
          add_link({a, b}, LinkReach::forward, shape.link_bandwidth);
      }
    }
  }
  all.push_back(*chip.offchip);
  add_link(all, LinkReach::offchip_both, shape.dram_bandwidth);
  make_routes(chip);
  return chip;
}

/// Builds steps whose operators are element-wise over one axis, or products.
class StepBuilder {
public:
  TensorId source(const std::string& name, std::vector<std::int64_t> shape,
                  TensorKind kind = TensorKind::parameter) {
    return add(name, std::move(shape), kind,
               kind == TensorKind::parameter         ? MemoryOwner::parameters
               : kind == TensorKind::optimizer_state ? MemoryOwner::optimizer_state
                                                     : MemoryOwner::temporaries);
  }

  /// out[i] = f(inputs[i]...): every input has the output's shape.
  TensorId elementwise(const std::string& name, const std::vector<TensorId>& inputs,
                       Phase phase = Phase::forward, MemoryOwner owner = MemoryOwner::temporaries) {
    const std::vector<std::int64_t> shape = graph().tensor(inputs.front()).shape;
    const TensorId out = add(name, shape, TensorKind::activation, owner);
    Operator op;
    op.name = "op_" + name;
    op.op_type = "Sum";
    op.phase = phase;
    op.outputs = {out};
    op.nest.compute = ComputeKind::vector;
    op.nest.work.add = 1;
    std::vector<AxisExpr> axes;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      op.nest.dims.push_back({d == 0 ? "B" : fmt::format("D{}", d), shape[d]});
      axes.push_back({{{static_cast<std::uint32_t>(d), 1}}});
    }
    op.nest.operands.push_back({out, AccessMode::write, "O", axes});
    for (const TensorId input : inputs) {
      op.inputs.push_back(input);
      op.nest.operands.push_back({input, AccessMode::read, "I", axes});
    }
    graph().add_operator(op);
    return out;
  }

  /// out[b][k] = sum_c x[b][c] * w[c][k]
  TensorId product(const std::string& name, TensorId x, TensorId w, Phase phase = Phase::forward,
                   MemoryOwner owner = MemoryOwner::temporaries) {
    const std::int64_t b = graph().tensor(x).shape[0];
    const std::int64_t c = graph().tensor(x).shape[1];
    const std::int64_t k = graph().tensor(w).shape[1];
    const TensorId out = add(name, {b, k}, TensorKind::activation, owner);
    Operator op;
    op.name = "op_" + name;
    op.op_type = "MatMul";
    op.phase = phase;
    op.inputs = {x, w};
    op.outputs = {out};
    op.nest.compute = ComputeKind::mac;
    op.nest.dims = {{"B", b}, {"K", k}, {"C", c}};
    const auto axis = [](std::uint32_t d) { return AxisExpr{{{d, 1}}}; };
    op.nest.operands = {{out, AccessMode::write, "O", {axis(0), axis(1)}},
                        {x, AccessMode::read, "I", {axis(0), axis(2)}},
                        {w, AccessMode::read, "W", {axis(2), axis(1)}}};
    graph().add_operator(op);
    return out;
  }

  /// Overwrites `weight` from weight and gradient, element by element, in the update phase.
  TensorId update(TensorId weight, TensorId gradient) {
    const std::string name = graph().tensor(weight).name;
    const TensorId out =
        elementwise(name + "_new", {weight, gradient}, Phase::update, MemoryOwner::parameters);
    graph().tensor(out).alias_of = weight;
    graph().tensor(out).kind = TensorKind::parameter;
    return out;
  }

  void output(TensorId tensor) { graph().outputs.push_back(tensor); }
  Graph& graph() { return step_.graph; }
  const TrainingGraph& step() const { return step_; }

private:
  TensorId add(const std::string& name, std::vector<std::int64_t> shape, TensorKind kind,
               MemoryOwner owner) {
    Tensor tensor;
    tensor.name = name;
    tensor.shape = std::move(shape);
    tensor.kind = kind;
    step_.owner.push_back(owner);
    return step_.graph.add_tensor(tensor);
  }

  TrainingGraph step_;
};

} // namespace monet::testing
