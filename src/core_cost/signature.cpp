#include "monet/core_cost/core_cost.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <set>
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

void add(Bytes& out, const AxisExpr& axis) {
  out.count(axis.terms.size());
  for (const AffineTerm& term : axis.terms) {
    out.integer(term.dim);
    out.integer(term.coefficient);
  }
  out.integer(axis.offset);
  out.flag(axis.data_dependent);
}

void add(Bytes& out, const ProblemOperand& operand) {
  out.choice(operand.mode);
  out.choice(operand.memory);
  out.integer(operand.bits);
  out.integer(operand.partial_bits);
  out.integer(operand.passes);
  out.flag(operand.opaque);
  out.flag(operand.offchip);
}

void add_whole(Bytes& out, const ProblemOperand& operand) {
  add(out, operand);
  out.count(operand.axes.size());
  for (const AxisExpr& axis : operand.axes)
    add(out, axis);
  out.count(operand.extents.size());
  for (const std::int64_t extent : operand.extents)
    out.integer(extent);
}

/// An axis as the array model sees it. Where it begins does not matter, nor where a loop that is
/// alone on it steps to, nor how far an input reaches beyond such a loop.
std::string seen_by_array(const ProblemOperand& operand, std::size_t a) {
  AxisExpr axis = operand.axes[a];
  axis.offset = 0;
  for (AffineTerm& term : axis.terms)
    term.coefficient = axis.terms.size() == 1 ? 1 : std::abs(term.coefficient);
  Bytes out;
  add(out, axis);
  const bool bounded = axis.data_dependent || axis.terms.size() > 1;
  out.integer(bounded || operand.mode != AccessMode::read ? operand.extents[a] : 0);
  return out.take();
}

void add_seen_by_array(Bytes& out, const ProblemOperand& operand) {
  if (operand.opaque || operand.axes.size() != operand.extents.size()) {
    add_whole(out, operand);
    return;
  }
  add(out, operand);
  // In the order given: slices of fractional unrollings are multiplied in it, and slices that leave
  // as many accesses are told apart by the last digit.
  out.count(operand.axes.size());
  for (std::size_t a = 0; a < operand.axes.size(); ++a)
    out.text(seen_by_array(operand, a));
}

void add(Bytes& out, const VectorWork& work) {
  for (const int n : {work.add, work.multiply, work.divide, work.compare, work.square_root,
                      work.transcendental}) {
    out.integer(n);
  }
}

using Names = std::set<std::string_view>;

void add_names(const std::vector<std::vector<Unrolling>>& unrollings, Names& names) {
  for (const auto& on_dim : unrollings) {
    for (const Unrolling& u : on_dim)
      names.insert(u.dim);
  }
}

/// Where unrollings are generated as ZigZag does, ties go by the hashes of names: all count.
Names names_in(const CoreProblem& problem, const Core& core, const CoreCostOptions& options) {
  Names names;
  if (!options.model.free_unrolling) {
    for (const LoopDim& dim : problem.dims)
      names.insert(dim.name);
  }
  add_names(core.dataflow, names);
  add_names(options.spatial, names);
  for (const auto& on_dim : options.spatial_hints)
    names.insert(on_dim.begin(), on_dim.end());
  for (const OrderedLoop& loop : options.temporal_order)
    names.insert(loop.dim);
  return names;
}

/// Loops are told apart by name where somebody names them. Otherwise only the sequence of orders
/// depends on names, through their alphabetical order: so a loop's place in that is all that
/// counts, and equal bytes give the same mapping, not only the same cost. Loops are not renumbered,
/// so that the mapping's indices mean the same.
void add_dims(Bytes& out, const CoreProblem& problem, const Names& named) {
  out.count(problem.dims.size());
  for (const LoopDim& dim : problem.dims) {
    out.integer(dim.size);
    const bool known = named.contains(dim.name);
    out.flag(known);
    if (known)
      out.text(dim.name);
    if (dim.size > 1) {
      out.count(static_cast<std::size_t>(
          std::count_if(problem.dims.begin(), problem.dims.end(), [&](const LoopDim& other) {
            return other.size > 1 && other.name < dim.name;
          })));
    }
  }
}

void add(Bytes& out, const std::vector<std::vector<Unrolling>>& unrollings) {
  out.count(unrollings.size());
  for (const auto& on_dim : unrollings) {
    out.count(on_dim.size());
    for (const Unrolling& u : on_dim) {
      out.text(u.dim);
      out.integer(u.factor);
    }
  }
}

void add(Bytes& out, const CoreCostOptions& options) {
  out.choice(options.objective);
  out.text(signature(options.model));
  out.integer(options.lpf_limit);
  out.flag(options.fixed_dataflow);
  add(out, options.spatial);
  out.count(options.spatial_hints.size());
  for (const auto& on_dim : options.spatial_hints) {
    out.count(on_dim.size());
    for (const std::string& dim : on_dim)
      out.text(dim);
  }
  out.integer(options.free_unrollings);
  out.integer(options.generated_unrollings);
  out.flag(options.mixed_unrollings);
  out.count(options.temporal_order.size());
  for (const OrderedLoop& loop : options.temporal_order) {
    out.text(loop.dim);
    out.integer(loop.size.value_or(0));
  }
  out.flag(options.even_allocation);
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
    add_whole(out, operand);
  add(out, problem.work);
  return out.take();
}

std::string signature(const CoreProblem& problem, const Core& core,
                      const CoreCostOptions& options) {
  Bytes out;
  out.text(signature(core));
  add(out, options);
  out.choice(problem.compute);
  const bool vector = problem.compute != ComputeKind::mac;
  // How a scattering output can be rewritten depends on where its axes begin.
  const bool scatters = std::any_of(
      problem.operands.begin(), problem.operands.end(),
      [](const ProblemOperand& operand) { return operand.mode == AccessMode::accumulate; });
  if (scatters && !vector)
    out.choice(options.input_gradient);
  if (streams(problem))
    out.text(signature(options.offchip));
  if (vector) {
    for (const LoopDim& dim : problem.dims)
      out.integer(dim.size);
  } else {
    add_dims(out, problem, names_in(problem, core, options));
  }
  out.count(problem.operands.size());
  for (const ProblemOperand& operand : problem.operands) {
    if (vector || scatters)
      add_whole(out, operand);
    else
      add_seen_by_array(out, operand);
  }
  add(out, problem.work);
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
  add(out, core.dataflow);
  out.flag(core.runs_vector_operators);
  out.number(core.cycles_per_transcendental);
  out.number(core.cycles_per_divide);
  return out.take();
}

} // namespace monet
