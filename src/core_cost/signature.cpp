#include "monet/core_cost/core_cost.hpp"

#include <bit>
#include <string_view>

namespace monet {

namespace {

/// Fixed-width integers and length-prefixed strings: no two different inputs give the same bytes.
class Bytes {
public:
  void integer(std::int64_t value) {
    const auto bits = static_cast<std::uint64_t>(value);
    for (int shift = 0; shift < 64; shift += 8) {
      text_.push_back(static_cast<char>(static_cast<unsigned char>(bits >> shift)));
    }
  }
  void count(std::size_t value) { integer(static_cast<std::int64_t>(value)); }
  void flag(bool value) { text_.push_back(value ? '\1' : '\0'); }
  void number(double value) { integer(std::bit_cast<std::int64_t>(value)); }
  template <class Enum>
  void choice(Enum value) {
    text_.push_back(static_cast<char>(value));
  }
  void text(std::string_view value) {
    count(value.size());
    text_.append(value);
  }
  std::string take() { return std::move(text_); }

private:
  std::string text_;
};

void add(Bytes& out, const ProblemOperand& operand) {
  out.choice(operand.mode);
  out.choice(operand.memory);
  out.count(operand.axes.size());
  for (const AxisExpr& axis : operand.axes) {
    out.count(axis.terms.size());
    for (const AffineTerm& term : axis.terms) {
      out.integer(term.dim);
      out.integer(term.coefficient);
    }
    out.integer(axis.offset);
    out.flag(axis.data_dependent);
  }
  out.count(operand.extents.size());
  for (const std::int64_t extent : operand.extents)
    out.integer(extent);
  out.integer(operand.bits);
  out.integer(operand.partial_bits);
  out.integer(operand.passes);
  out.flag(operand.opaque);
  out.flag(operand.offchip);
}

void add(Bytes& out, const Memory& memory) {
  out.text(memory.name);
  out.integer(memory.size.value);
  out.number(memory.read_energy_pj);
  out.number(memory.write_energy_pj);
  out.integer(memory.latency_cycles);
  out.count(memory.operands.size());
  for (const MemoryOperand operand : memory.operands)
    out.choice(operand);
  out.count(memory.ports.size());
  for (const MemoryPort& port : memory.ports) {
    out.choice(port.type);
    out.integer(port.bandwidth_min);
    out.integer(port.bandwidth_max);
    out.count(port.allocation.size());
    for (const PortUse& use : port.allocation) {
      out.choice(use.operand);
      out.choice(use.direction);
    }
  }
  out.count(memory.serves.size());
  for (const bool serves : memory.serves)
    out.flag(serves);
  out.flag(memory.non_volatile);
}

} // namespace

std::string signature(const CoreProblem& problem) {
  Bytes out;
  out.choice(problem.compute);
  out.count(problem.dims.size());
  for (const LoopDim& dim : problem.dims) {
    out.text(dim.name);
    out.integer(dim.size);
  }
  out.count(problem.operands.size());
  for (const ProblemOperand& operand : problem.operands)
    add(out, operand);
  const VectorWork& work = problem.work;
  for (const int n : {work.add, work.multiply, work.divide, work.compare, work.square_root,
                      work.transcendental}) {
    out.integer(n);
  }
  return out.take();
}

std::string signature(const OffchipRate& rate) {
  Bytes out;
  out.number(rate.read_bits_per_cycle);
  out.number(rate.write_bits_per_cycle);
  out.flag(rate.shared);
  out.number(rate.read_pj_per_bit);
  out.number(rate.write_pj_per_bit);
  return out.take();
}

std::string signature(const ModelChoices& model) {
  std::string bits;
  for (const bool choice :
       {model.first_partial_sums_free, model.reserve_double_buffers, model.port_stalls_add,
        model.half_shared_loads_add, model.loads_keep_minimum, model.gaps_not_fetched,
        model.widest_step, model.bypass_narrow_memories, model.free_unrolling}) {
    bits.push_back(choice ? '1' : '0');
  }
  return bits;
}

std::string signature(const Core& core) {
  Bytes out;
  out.choice(core.kind);
  out.count(core.memories.size());
  for (const Memory& memory : core.memories)
    add(out, memory);
  out.number(core.mac_energy_pj);
  out.count(core.array.size());
  for (const ArrayDim& dim : core.array)
    out.integer(dim.size);
  out.count(core.dataflow.size());
  for (const auto& on_dim : core.dataflow) {
    out.count(on_dim.size());
    for (const Unrolling& u : on_dim) {
      out.text(u.dim);
      out.integer(u.factor);
    }
  }
  out.flag(core.runs_vector_operators);
  out.number(core.cycles_per_transcendental);
  out.number(core.cycles_per_divide);
  return out.take();
}

} // namespace monet
