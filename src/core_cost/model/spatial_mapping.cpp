// Derives each operand's spatial unrolling and the remaining temporal iterations; the temporal
// search starts from it.
#include "core_cost/model/spatial_mapping.hpp"

#include "core_cost/model/imc_work.hpp"
#include "core_cost/model/program_cost.hpp"

#include "monet/base/errors.hpp"

#include <cmath>

namespace monet::core_cost_detail {

namespace {

/// Fractional factors: a dim of 1000 on 32 lanes takes ceil(1000/32) = 32 steps and so is 31.25
/// wide. The array dim with the largest factor of a layer dim takes the fraction; factors on other
/// array dims stay whole.
std::vector<std::vector<Loop>> exact_factors(const NestModel& model,
                                             const ArrayUnrolling& unrolling) {
  std::vector<std::vector<Loop>> exact(unrolling.size());
  for (std::size_t d = 0; d < unrolling.size(); ++d) {
    for (const Unrolled& u : unrolling[d]) {
      std::int64_t early = 1; // factors of the same dim on earlier array dims
      std::int64_t largest = 0;
      std::size_t first_largest = d;
      for (std::size_t e = 0; e < unrolling.size(); ++e) {
        for (const Unrolled& v : unrolling[e]) {
          if (v.dim != u.dim)
            continue;
          if (e < d)
            early *= v.factor;
          if (v.factor > largest) {
            largest = v.factor;
            first_largest = e;
          }
        }
      }
      double factor = static_cast<double>(u.factor);
      if (first_largest == d) {
        const std::int64_t size = model.dims[u.dim].size;
        const std::int64_t steps = ceil_div(size, u.factor * early);
        factor =
            static_cast<double>(size) / static_cast<double>(steps) / static_cast<double>(early);
      }
      exact[d].push_back({u.dim, factor});
    }
  }
  return exact;
}

void append(LoopList& list, const Loop& loop) {
  for (std::size_t i = 0; i < list.size; ++i) {
    if (list.loops[i].dim == loop.dim) {
      list.loops[i].size *= loop.size;
      return;
    }
  }
  internal_check(list.size < kMaxSpatialLoops, "few unrolled loops");
  list.loops[list.size++] = loop;
}

OperandUnrolling distribute(const NestModel& model, const Hierarchy& hierarchy,
                            const std::vector<std::vector<Loop>>& loops, std::size_t operand) {
  OperandUnrolling result;
  const std::vector<Level>& levels = hierarchy.levels[operand];
  std::vector<bool> placed(loops.size(), false);
  for (std::size_t l = 0; l <= levels.size(); ++l) {
    for (std::size_t d = 0; d < loops.size(); ++d) {
      if (placed[d] || (l < levels.size() && !hierarchy.nodes[levels[l].node].serves[d]))
        continue;
      placed[d] = true;
      for (const Loop& loop : loops[d])
        append(result.lists[l], loop);
    }
  }
  std::array<double, kMaxLevels + 2> unique{};
  std::array<double, kMaxLevels + 2> total{};
  Footprint footprint(model.operands[operand]);
  double before = footprint.elements();
  for (std::size_t l = 0; l <= levels.size(); ++l) {
    total[l] = 1;
    for (const Loop& loop : result.lists[l]) {
      total[l] *= loop.size;
      footprint.multiply(loop);
    }
    unique[l] = footprint.elements() / before;
    before = footprint.elements();
  }
  unique[levels.size() + 1] = 1;
  total[levels.size() + 1] = 1;
  for (std::size_t l = levels.size() + 1; l-- > 0;) {
    unique[l] *= unique[l + 1];
    total[l] *= total[l + 1];
    result.units[l] = std::nearbyint(std::nearbyint(total[l] * 1000) / 1000);
    result.boost[l] = static_cast<std::int64_t>(std::nearbyint(unique[l] / unique[l + 1]));
  }
  return result;
}

SpatialForm make_form(const NestModel& model, const Hierarchy& hierarchy,
                      std::vector<std::vector<Loop>> loops) {
  SpatialForm form;
  for (const auto& on_dim : loops) {
    for (const Loop& loop : on_dim)
      form.fractional = form.fractional || loop.size != std::floor(loop.size);
  }
  for (std::size_t i = 0; i < model.operands.size(); ++i)
    form.operands[i] = distribute(model, hierarchy, loops, i);
  form.loops = std::move(loops);
  return form;
}

/// Unrolled loops of one dim are taken together where they meet between two memory levels of the
/// first input: 9 on 2 and 2.25 lanes leaves 2 iterations, not ceil(ceil(9 / 2) / 2.25) = 3.
std::vector<std::int64_t> iterations_left(const NestModel& model, const SpatialForm& exact) {
  std::vector<std::int64_t> left;
  for (const LoopDim& dim : model.dims)
    left.push_back(dim.size);
  std::size_t first = 0;
  while (first + 1 < model.operands.size() && model.operands[first].output)
    ++first;
  for (const LoopList& list : exact.operands[first].lists) {
    for (const Loop& loop : list) {
      std::int64_t& n = left[loop.dim];
      n = static_cast<std::int64_t>(std::ceil(static_cast<double>(n) / loop.size));
    }
  }
  return left;
}

} // namespace

SpatialModel make_spatial_model(const NestModel& model, const Hierarchy& hierarchy,
                                const ArrayUnrolling& unrolling) {
  SpatialModel result;
  std::vector<std::vector<Loop>> exact = exact_factors(model, unrolling);
  std::vector<std::vector<Loop>> truncated = exact;
  for (auto& on_dim : truncated) {
    for (Loop& loop : on_dim) {
      const double whole =
          model.choices.widest_step ? std::ceil(loop.size - kRounding) : std::trunc(loop.size);
      result.same = result.same && whole == loop.size;
      loop.size = whole;
    }
  }
  result.exact = make_form(model, hierarchy, std::move(exact));
  result.temporal = iterations_left(model, result.exact);
  result.issued = issued_cycles(model, hierarchy, result.temporal);
  result.truncated = result.same ? result.exact : make_form(model, hierarchy, std::move(truncated));
  if (hierarchy.imc != nullptr) {
    result.imc = imc_work(model, hierarchy, unrolling);
    result.compute_pj = imc_energy_pj(*hierarchy.imc, result.imc).total();
  } else {
    result.compute_pj = hierarchy.mac_energy_pj * static_cast<double>(model.iterations);
  }
  return result;
}

} // namespace monet::core_cost_detail
