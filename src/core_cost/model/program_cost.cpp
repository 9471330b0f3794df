// Cycles of instructions, waves and kernel starts on programmed cores; latency and the search add
// them.
#include "core_cost/model/program_cost.hpp"

#include "hardware/shared/core_program.hpp"

#include <algorithm>
#include <utility>

namespace monet::core_cost_detail {

namespace {

bool touches(const OperandModel& operand, std::size_t dim) {
  return operand.relevance[dim] != Relevance::irrelevant;
}

/// Elements that windows along the operand's axes have in all, padding included, where they
/// overlap; else 0.
double unfolded(const NestModel& model, const OperandModel& operand) {
  constexpr std::int64_t kUnbounded = std::int64_t{1} << 62;
  OperandModel unclipped = operand; // an axis that ends early is no overlap
  for (std::size_t a = 0; a < unclipped.axes; ++a)
    unclipped.axis[a].extent = kUnbounded;
  Footprint distinct(unclipped);
  double all = operand.fixed;
  for (std::size_t d = 0; d < model.dims.size(); ++d) {
    const auto size = static_cast<double>(model.dims[d].size);
    distinct.multiply({static_cast<std::uint32_t>(d), size});
    if (touches(operand, d))
      all *= size;
  }
  return operand.axes > 0 && all > distinct.elements() ? all : 0;
}

bool outermost(const Hierarchy& hierarchy, std::size_t operand, std::size_t level) {
  const std::size_t above = level + 1;
  return above == hierarchy.levels[operand].size() || hierarchy.is_offchip(operand, above);
}

/// The nest as products of matrices: rows are those of the first operand, columns of the second.
ProductSize product_size(const NestModel& model) {
  std::array<const OperandModel*, 2> factors{};
  std::size_t found = 0;
  for (std::size_t i = 0; i < model.operands.size() && found < factors.size(); ++i) {
    if (i != model.output && !model.operands[i].aside)
      factors[found++] = &model.operands[i];
  }
  ProductSize product;
  for (std::size_t d = 0; d < model.dims.size(); ++d) {
    const auto size = static_cast<double>(model.dims[d].size);
    const bool first = factors[0] != nullptr && touches(*factors[0], d);
    const bool second = factors[1] != nullptr && touches(*factors[1], d);
    if (!touches(model.operands[model.output], d))
      product.sums *= size;
    else if (first && second)
      product.batch *= size;
    else if (second)
      product.columns *= size;
    else
      product.rows *= size;
  }
  return product;
}

/// Either operand may give the rows.
double min_work(const TileWaves& waves, const ProductSize& product) {
  ProductSize turned = product;
  std::swap(turned.rows, turned.columns);
  return std::min(worked_multiplications(waves, product), worked_multiplications(waves, turned));
}

} // namespace

void set_program(const NestModel& model, const Core& core, Hierarchy& hierarchy) {
  ProgramCycles& cycles = hierarchy.program;
  cycles.any = true;
  const auto lanes = static_cast<double>(core.lanes());
  if (const auto& issue = core.program->issue) {
    cycles.per_iteration = issue->cycles_per_mac;
    cycles.per_sum = issue->loop_overhead;
    cycles.per_slice = issue->dma_setup;
    for (const OperandModel& operand : model.operands)
      cycles.before += issue->im2col * unfolded(model, operand) / lanes;
  }
  if (const auto& kernels = core.program->kernels) {
    cycles.least = min_work(kernels->waves, product_size(model)) / (lanes * kernels->sustained);
    cycles.before += kernels->host_cycles;
    for (Port& port : hierarchy.ports) {
      port.in_unit = std::ranges::none_of(port.activities, [&](const PortActivity& a) {
        const Node& node = hierarchy.nodes[hierarchy.levels[a.operand][a.level].node];
        return node.serves[kernels->unit_dim] || outermost(hierarchy, a.operand, a.level);
      });
    }
  }
}

double issued_cycles(const NestModel& model, const Hierarchy& hierarchy,
                     std::span<const std::int64_t> temporal) {
  const ProgramCycles& program = hierarchy.program;
  if (!program.any)
    return 0;
  double iterations = 1;
  double sums = 1;
  for (std::size_t d = 0; d < temporal.size(); ++d) {
    iterations *= static_cast<double>(temporal[d]);
    if (touches(model.operands[model.output], d))
      sums *= static_cast<double>(temporal[d]);
  }
  return std::max(iterations * program.per_iteration + sums * program.per_sum, program.least);
}

double cycles_beside(const NestModel& model, const Hierarchy& hierarchy,
                     const DataMovement& movement) {
  const ProgramCycles& program = hierarchy.program;
  double slices = 0;
  for (std::size_t i = 0; program.per_slice > 0 && i < model.operands.size(); ++i) {
    const std::size_t top = hierarchy.levels[i].size() - 1;
    if (!hierarchy.is_offchip(i, top)) {
      slices += 1; // the whole of it, once
      continue;
    }
    for (const Movement& moved : movement[i].levels[top])
      slices += static_cast<double>(moved.transfers);
  }
  return program.before + slices * program.per_slice;
}

double min_program_cycles(const NestModel& model, const Hierarchy& hierarchy, double lanes) {
  const ProgramCycles& program = hierarchy.program;
  if (!program.any)
    return 0;
  const double issued =
      static_cast<double>(model.iterations) * program.per_iteration / std::max(1.0, lanes);
  return program.before + std::max(issued, program.least);
}

} // namespace monet::core_cost_detail
