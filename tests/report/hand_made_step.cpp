#include "report/hand_made_step.hpp"

namespace monet::test {

namespace {

Energy pj(double value) {
  return Energy::from({value});
}

Memory memory(const std::string& name, std::int64_t bytes) {
  Memory m;
  m.name = name;
  m.size = {bytes * 8};
  m.operands = {MemoryOperand::I1, MemoryOperand::I2, MemoryOperand::O};
  MemoryPort port;
  port.name = "rw";
  port.bandwidth_min = port.bandwidth_max = 64;
  for (const MemoryOperand operand : m.operands) {
    for (const Direction direction : {Direction::fh, Direction::tl, Direction::fl, Direction::th}) {
      port.allocation.push_back({operand, direction});
    }
  }
  m.ports.push_back(port);
  return m;
}

Chip make_chip() {
  Chip chip;
  chip.name = "chip";
  chip.frequency_hz = 1e9;
  for (const auto& [name, kind, bytes] :
       {std::tuple{"pe", CoreKind::array, 1024}, std::tuple{"simd", CoreKind::vector, 512},
        std::tuple{"dram", CoreKind::offchip, 1 << 20}}) {
    Core core;
    core.name = name;
    core.kind = kind;
    core.memories = {memory("memory", bytes)};
    chip.cores.push_back(core);
  }
  chip.offchip = CoreId(2);
  Link link{"0-1", {CoreId(0), CoreId(1)}, LinkReach::any_pair, 64, 5.0, 0.0};
  Link bus{"dram", {CoreId(0), CoreId(1), CoreId(2)}, LinkReach::any_pair, 64, 0.0, 0.5};
  chip.links = {link, bus};
  return chip;
}

LoopNest nest(ComputeKind kind) {
  LoopNest n;
  n.compute = kind;
  n.dims = {{"K", 2}, {"C", 4}};
  return n;
}

TensorId add(TrainingGraph& step, const std::string& name, TensorKind kind, MemoryOwner owner,
             std::vector<std::int64_t> shape) {
  Tensor tensor;
  tensor.name = name;
  tensor.kind = kind;
  tensor.shape = std::move(shape);
  step.owner.push_back(owner);
  return step.graph.add_tensor(std::move(tensor));
}

TrainingGraph make_step(const std::string& layer) {
  TrainingGraph step;
  step.training = true;
  step.graph.name = layer;
  using enum MemoryOwner;
  const TensorId x = add(step, layer + ".x", TensorKind::input, stored_activations, {4});
  const TensorId w = add(step, layer + ".w", TensorKind::parameter, parameters, {2, 4});
  const TensorId y = add(step, layer + ".y", TensorKind::activation, temporaries, {2});
  const TensorId dw = add(step, layer + ".dw", TensorKind::parameter_gradient, gradients, {2, 4});
  const TensorId updated = add(step, layer + ".w'", TensorKind::buffer, parameters, {2, 4});
  step.graph.tensor(updated).alias_of = w;
  const auto append = [&](const std::string& name, const char* type, Phase phase, GradientOf of,
                          std::vector<std::optional<TensorId>> in, TensorId out, ComputeKind kind) {
    Operator op;
    op.name = name;
    op.op_type = type;
    op.phase = phase;
    op.gradient_of = of;
    op.inputs = std::move(in);
    op.outputs = {out};
    op.nest = nest(kind);
    step.graph.add_operator(op);
  };
  append(layer, "Gemm", Phase::forward, GradientOf::none, {x, w}, y, ComputeKind::mac);
  append(layer + "/dw", "GemmGradWeight", Phase::backward, GradientOf::weight, {x, y}, dw,
         ComputeKind::mac);
  append(layer + "/update", "SgdUpdate", Phase::update, GradientOf::none, {w, dw}, updated,
         ComputeKind::vector);
  return step;
}

Timeline make_timeline() {
  Timeline t;
  t.runs = {{TileId(0), OpId(0), CoreId(0), 0, {10}, {30}},
            {TileId(1), OpId(1), CoreId(0), 1, {40}, {70}},
            {TileId(2), OpId(2), CoreId(1), 2, {74}, {80}}};
  t.costs = {{pj(8), pj(3.25), 8, ""}, {pj(8.5), pj(4), 8, ""}, {pj(1), pj(0.5), 0, "", {6}, {{{3}, {3}}}}};
  using enum TransferKind;
  t.transfers = {{{0}, {10}, TensorId(0), OpId(0), 0, fetch},
                 {{70}, {74}, TensorId(3), OpId(2), 1, fetch},
                 {{80}, {90}, TensorId(4), OpId(2), 2, write_back}};
  t.routes = {{CoreId(2), {CoreId(0)}, {LinkId(1)}},
              {CoreId(0), {CoreId(1)}, {LinkId(0)}},
              {CoreId(1), {CoreId(2)}, {LinkId(0), LinkId(1)}}};
  // Over both links: link 0 charges 256 / 64 cycles * 5 pJ = 20 pJ, the bus 256 bits * 0.5 pJ.
  t.transfer_costs = {{0, {128}, pj(64), pj(100.25), pj(1.5)},
                      {1, {256}, pj(8), pj(0), pj(2.5)},
                      {2, {256}, pj(148), pj(200), pj(0.75)}};
  t.places = {{CoreId(0), {128}}, {CoreId(0), {256}}, {CoreId(0), {64}}, {CoreId(1), {256}}};
  t.stays = {{{0}, ResidencyInterval::kKept, TensorId(0), 0},
             {{0}, ResidencyInterval::kKept, TensorId(1), 1},
             {{10}, {40}, TensorId(2), 2},
             {{40}, ResidencyInterval::kKept, TensorId(3), 1},
             {{70}, ResidencyInterval::kKept, TensorId(3), 3},
             {{74}, ResidencyInterval::kKept, TensorId(1), 3}};
  t.live = {{{0}, {32, 0, 0, 16, 0}},
            {{10}, {32, 0, 0, 16, 8}},
            {{40}, {32, 32, 0, 16, 0}},
            {{70}, {32, 32, 0, 0, 0}},
            {{90}, {32, 0, 0, 0, 0}}};
  t.phases = {
      {Phase::forward, {0}, {30}}, {Phase::backward, {30}, {70}}, {Phase::update, {70}, {90}}};
  t.makespan = {90};
  t.peak = t.live[2];
  return t;
}

} // namespace

HandMade hand_made_step(const std::string& layer) {
  return {make_chip(), make_step(layer), {}, make_timeline()};
}

nlohmann::ordered_json HandMade::json(const std::string& name) const {
  Provenance provenance{"0.1.0", "abc", 0, {{"net.onnx", "00ff"}}, {{"mode", "layer-by-layer"}}};
  TrainingGraph alone = step;
  alone.training = false;
  const StepResult inference{&alone, &tiles, &timeline};
  return result_json(name, result(), &inference, chip, provenance);
}

} // namespace monet::test
