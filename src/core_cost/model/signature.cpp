// Key of everything that the cost of a problem depends on; the cost cache uses it.
#include "base/shared/bytes.hpp"
#include "hardware/shared/array_modes.hpp"
#include "hardware/shared/core_program.hpp"

#include "monet/core_cost/core_cost.hpp"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>
#include <string_view>

namespace monet {

namespace {

void add(ByteWriter& out, const AxisExpr& axis) {
  out.list(axis.terms, [&](const AffineTerm& term) { out.number(term.dim, term.coefficient); });
  out.number(axis.offset, axis.data_dependent);
}

void add(ByteWriter& out, const ProblemOperand& operand) {
  out.number(operand.mode, operand.memory, operand.bits, operand.partial_bits, operand.passes,
             operand.opaque, operand.offchip);
}

void add_whole(ByteWriter& out, const ProblemOperand& operand) {
  add(out, operand);
  out.list(operand.axes, [&](const AxisExpr& axis) { add(out, axis); });
  out.list(operand.extents, [&](std::int64_t extent) { out.number(extent); });
}

/// An axis as the array model sees it. Where it begins does not matter, nor where a loop that is
/// alone on it steps to, nor how far an input reaches beyond such a loop.
std::string seen_by_array(const ProblemOperand& operand, std::size_t a) {
  AxisExpr axis = operand.axes[a];
  axis.offset = 0;
  for (AffineTerm& term : axis.terms)
    term.coefficient = axis.terms.size() == 1 ? 1 : std::abs(term.coefficient);
  ByteWriter out;
  add(out, axis);
  const bool bounded = axis.data_dependent || axis.terms.size() > 1;
  out.number(bounded || operand.mode != AccessMode::read ? operand.extents[a] : 0);
  return out.take();
}

void add_seen_by_array(ByteWriter& out, const ProblemOperand& operand) {
  if (operand.opaque || operand.axes.size() != operand.extents.size()) {
    add_whole(out, operand);
    return;
  }
  add(out, operand);
  // In the order given: slices of fractional unrollings are multiplied in it, and slices that leave
  // equal accesses are separated by the last digit.
  out.number(operand.axes.size());
  for (std::size_t a = 0; a < operand.axes.size(); ++a)
    out.text(seen_by_array(operand, a));
}

void add(ByteWriter& out, const VectorWork& work) {
  out.number(work.add, work.multiply, work.divide, work.compare, work.square_root,
             work.transcendental);
}

void add(ByteWriter& out, const std::vector<NestProduct>& products) {
  const auto place = [](const std::optional<std::uint32_t>& operand) {
    return operand ? std::int64_t{*operand} : -1;
  };
  out.list(products, [&](const NestProduct& product) {
    out.number(place(product.result), place(product.first), place(product.second));
  });
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

/// Writes the loops. Names count if a user or dataflow refers to them. Otherwise names matter only
/// through their alphabetical order, so a loop's rank in it is written; equal bytes then yield the
/// same mapping. Loops are not renumbered, so the mapping's indices stay valid.
void add_dims(ByteWriter& out, const CoreProblem& problem, const Names& named) {
  out.list(problem.dims, [&](const LoopDim& dim) {
    const bool known = named.contains(dim.name);
    out.number(dim.size, known);
    if (known)
      out.text(dim.name);
    if (dim.size > 1) {
      out.number(std::ranges::count_if(problem.dims, [&](const LoopDim& other) {
        return other.size > 1 && other.name < dim.name;
      }));
    }
  });
}

void add(ByteWriter& out, const std::vector<std::vector<Unrolling>>& unrollings) {
  out.list(unrollings, [&](const auto& on_dim) {
    out.list(on_dim, [&](const Unrolling& u) {
      out.text(u.dim);
      out.number(u.factor);
    });
  });
}

void add(ByteWriter& out, const CoreCostOptions& options) {
  out.text(signature(options.model));
  add(out, options.spatial);
  out.list(options.spatial_hints, [&](const auto& on_dim) {
    out.list(on_dim, [&](const std::string& dim) { out.text(dim); });
  });
  out.list(options.temporal_order, [&](const OrderedLoop& loop) {
    out.text(loop.dim);
    out.number(loop.size.value_or(0));
  });
  out.number(options.objective, options.lpf_limit, options.fixed_dataflow, options.free_unrollings,
             options.generated_unrollings, options.mixed_unrollings, options.even_allocation);
}

void add(ByteWriter& out, const CoreProgram& program) {
  out.number(program.issue.has_value(), program.kernels.has_value());
  if (program.issue) {
    out.number(program.issue->cycles_per_mac, program.issue->loop_overhead, program.issue->im2col,
               program.issue->dma_setup);
  }
  if (program.kernels) {
    const KernelCosts& kernels = *program.kernels;
    out.number(kernels.unit_dim, kernels.waves.units, kernels.waves.fill, kernels.sustained,
               kernels.host_cycles);
    out.number(kernels.waves.tile_count);
    for (std::size_t i = 0; i < kernels.waves.tile_count; ++i) {
      const TileWaves::TileShape& tile = kernels.waves.tiles[i];
      out.number(tile.rows, tile.columns, tile.share);
    }
  }
}

void add(ByteWriter& out, const Memory& memory) {
  out.text(memory.name);
  out.number(memory.size.value, memory.read_energy_pj, memory.write_energy_pj,
             memory.latency_cycles, memory.non_volatile);
  out.list(memory.operands, [&](MemoryOperand operand) { out.number(operand); });
  out.list(memory.ports, [&](const MemoryPort& port) {
    out.number(port.type, port.bandwidth_min, port.bandwidth_max);
    out.list(port.allocation, [&](const PortUse& use) { out.number(use.operand, use.direction); });
  });
  out.list(memory.serves, [&](bool serves) { out.number(serves); });
}

} // namespace

std::string signature(const CoreProblem& problem) {
  ByteWriter out;
  out.number(problem.compute);
  out.list(problem.dims, [&](const LoopDim& dim) {
    out.text(dim.name);
    out.number(dim.size);
  });
  out.list(problem.operands, [&](const ProblemOperand& operand) { add_whole(out, operand); });
  add(out, problem.work);
  add(out, problem.products);
  out.number(problem.across_blocks);
  return out.take();
}

std::string signature(const CoreProblem& problem, const Core& core,
                      const CoreCostOptions& options) {
  ByteWriter out;
  out.text(signature(core));
  add(out, options);
  out.number(problem.compute);
  const bool vector = problem.compute != ComputeKind::mac;
  // How a scattering output can be rewritten depends on where its axes begin.
  const bool scatters = std::any_of(
      problem.operands.begin(), problem.operands.end(),
      [](const ProblemOperand& operand) { return operand.mode == AccessMode::accumulate; });
  if (scatters && !vector)
    out.number(options.input_gradient);
  if (streams(problem))
    out.text(signature(options.offchip));
  if (vector) {
    out.list(problem.dims, [&](const LoopDim& dim) { out.number(dim.size); });
  } else {
    add_dims(out, problem, names_in(problem, core, options));
  }
  out.list(problem.operands, [&](const ProblemOperand& operand) {
    if (vector || scatters)
      add_whole(out, operand);
    else
      add_seen_by_array(out, operand);
  });
  add(out, problem.work);
  add(out, problem.products);
  out.number(problem.across_blocks);
  return out.take();
}

std::string signature(const OffchipRate& rate) {
  ByteWriter out;
  out.number(rate.read_bits_per_cycle, rate.write_bits_per_cycle, rate.shared, rate.read_pj_per_bit,
             rate.write_pj_per_bit);
  return out.take();
}

std::string signature(const ModelChoices& model) {
  std::string bits;
  for (const bool choice :
       {model.first_partial_sums_free, model.reserve_double_buffers, model.port_stalls_add,
        model.half_shared_loads_add, model.loads_keep_minimum, model.gaps_not_fetched,
        model.widest_step, model.bypass_narrow_memories, model.part_words_cost,
        model.rows_shift_at_their_loop, model.instruction_costs, model.free_unrolling}) {
    bits.push_back(choice ? '1' : '0');
  }
  return bits;
}

std::string signature(const Core& core) {
  ByteWriter out;
  out.number(core.kind, core.mac_energy_pj, core.runs_vector_operators,
             core.cycles_per_transcendental, core.cycles_per_divide);
  out.list(core.memories, [&](const Memory& memory) { add(out, memory); });
  out.list(core.array, [&](const ArrayDim& dim) { out.number(dim.size, dim.sums); });
  if (core.imc != nullptr) {
    const ImcArray& imc = *core.imc;
    out.number(imc.kind, imc.activation_bits, imc.weight_bits, imc.serial_bits, imc.adc_bits,
               imc.wordline, imc.bitline, imc.cells);
  }
  if (core.program != nullptr)
    add(out, *core.program);
  out.list(core.modes, [&](const ArrayMode& mode) {
    out.number(mode.products, mode.energy_pj);
    out.text(modes_text(std::span(&mode, 1)));
  });
  add(out, core.dataflow);
  return out.take();
}

} // namespace monet
