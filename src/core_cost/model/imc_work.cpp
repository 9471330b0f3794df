// Rows, columns, reads and energy of arrays that compute in memory; the spatial and energy models
// use it.
#include "core_cost/model/imc_work.hpp"

#include "base/shared/checked.hpp"
#include "core_cost/model/set_order.hpp"

#include <optional>

namespace monet::core_cost_detail {

namespace {

std::int64_t product_of_factors(const std::vector<Unrolled>& loops) {
  std::int64_t product = 1;
  for (const Unrolled& u : loops)
    product = checked_multiply(product, u.factor);
  return product;
}

std::optional<std::size_t> weights_of(const NestModel& model, const Hierarchy& hierarchy) {
  for (std::size_t i = 0; i < model.operands.size(); ++i) {
    const OperandModel& operand = model.operands[i];
    if (!operand.output && !operand.aside && operand.memory == MemoryOperand::I2 &&
        !hierarchy.levels[i].empty())
      return i;
  }
  return std::nullopt;
}

/// The columns take different inputs: a loop that the weights lack is unrolled along the wordlines.
bool inputs_differ(const NestModel& model, std::size_t weights,
                   const std::vector<Unrolled>& along_wordlines) {
  for (const Unrolled& u : along_wordlines) {
    if (u.factor > 1 && model.operands[weights].relevance[u.dim] == Relevance::irrelevant)
      return true;
  }
  return false;
}

/// Additional rows used by adjacent columns if their inputs lie at distance one on an axis that the
/// loop shares with loops along the wordlines (OX for FX): the shift of the last column, plus one.
std::int64_t shifts(const NestModel& model, std::uint32_t dim,
                    const std::vector<Unrolled>& along_wordlines) {
  std::int64_t steps = 1;
  for (const OperandModel& operand : model.operands) {
    if (operand.output || operand.relevance[dim] != Relevance::partial)
      continue;
    for (const Unrolled& u : along_wordlines) {
      if (u.dim != dim && operand.relevance[u.dim] == Relevance::partial &&
          operand.axis_of[u.dim] == operand.axis_of[dim])
        steps = checked_multiply(steps, u.factor);
    }
  }
  return steps;
}

/// The rows that take an input in any column.
std::int64_t rows_in_use(const NestModel& model, const Hierarchy& hierarchy,
                         const std::vector<Unrolled>& along_wordlines,
                         const std::vector<Unrolled>& along_bitlines) {
  const std::int64_t rows = product_of_factors(along_bitlines);
  const std::optional<std::size_t> weights = weights_of(model, hierarchy);
  if (rows == 1 || !weights || !inputs_differ(model, *weights, along_wordlines))
    return rows;
  std::vector<std::size_t> loop_of(along_bitlines.size()); // whose shift counts at each factor
  for (std::size_t i = 0; i < loop_of.size(); ++i)
    loop_of[i] = i;
  if (!model.choices.rows_shift_at_their_loop) {
    std::vector<std::string> names;
    for (const Unrolled& u : along_bitlines)
      names.push_back(model.dims[u.dim].name);
    loop_of = set_order(names, NameKind::layer_dim);
  }
  std::int64_t shifted = 1;
  for (std::size_t i = 0; i < loop_of.size(); ++i) {
    if (model.choices.rows_shift_at_their_loop && along_bitlines[i].factor == 1)
      continue;
    const std::uint32_t loop = along_bitlines[loop_of[i]].dim;
    shifted = checked_multiply(shifted,
                               along_bitlines[i].factor + shifts(model, loop, along_wordlines) - 1);
  }
  return shifted;
}

} // namespace

ImcWork imc_work(const NestModel& model, const Hierarchy& hierarchy,
                 const ArrayUnrolling& unrolling) {
  const auto& along_wordlines = unrolling[hierarchy.imc->wordline];
  const auto& along_bitlines = unrolling[hierarchy.imc->bitline];
  ImcWork work;
  work.columns = product_of_factors(along_wordlines);
  work.rows = rows_in_use(model, hierarchy, along_wordlines, along_bitlines);
  work.waves = static_cast<double>(model.iterations) /
               static_cast<double>(work.columns * product_of_factors(along_bitlines));
  return work;
}

void limit_rows(const NestModel& model, const Hierarchy& hierarchy, ArrayUnrolling& unrolling) {
  if (hierarchy.imc == nullptr || !model.choices.rows_shift_at_their_loop)
    return;
  const auto& along_wordlines = unrolling[hierarchy.imc->wordline];
  auto& along_bitlines = unrolling[hierarchy.imc->bitline];
  while (imc_work(model, hierarchy, unrolling).rows > hierarchy.imc->rows) {
    Unrolled* longest = nullptr;
    for (Unrolled& u : along_bitlines) {
      const bool shifts_rows = u.factor > 1 && shifts(model, u.dim, along_wordlines) > 1;
      if (shifts_rows && (longest == nullptr || u.factor > longest->factor))
        longest = &u;
    }
    if (longest == nullptr)
      return;
    longest->factor /= 2;
  }
  std::erase_if(along_bitlines, [](const Unrolled& u) { return u.factor == 1; });
}

double weight_reads(const NestModel& model, const Hierarchy& hierarchy, const SpatialModel& spatial,
                    const DataMovement& movement) {
  const std::optional<std::size_t> weights = weights_of(model, hierarchy);
  if (!weights)
    return 0;
  // Every element has a separate memory, which provides one weight at a time.
  auto reads = static_cast<double>(movement[*weights].levels[0][index_of(Direction::tl)].count);
  for (const auto& on_dim : spatial.exact.loops) {
    for (const Loop& loop : on_dim)
      reads *= loop.size;
  }
  return reads;
}

ImcCost imc_cost(const NestModel& model, const Hierarchy& hierarchy, const SpatialModel& spatial,
                 const DataMovement& movement) {
  ImcCost cost;
  cost.work = spatial.imc;
  cost.work.weight_reads = weight_reads(model, hierarchy, spatial, movement);
  cost.energy_pj = imc_energy_pj(*hierarchy.imc, cost.work);
  return cost;
}

} // namespace monet::core_cost_detail
