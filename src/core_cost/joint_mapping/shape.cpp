// Memory and traffic of a structure, by the equations of docs/explanation/backward-dataflow.md.
#include "core_cost/joint_mapping/plan.hpp"

#include <algorithm>

namespace monet::joint_mapping {
namespace {

int place_in(const std::array<int, kDims>& order, int dim) {
  return static_cast<int>(std::ranges::find(order, dim) - order.begin());
}

} // namespace

int position(const Structure& structure, int product, int dim) {
  return place_in(structure.order[at(product)], dim);
}

Shape::Shape(const PairProblem& problem, const Structure& structure) : problem_(&problem) {
  for (const int product : {kDx, kDw}) {
    for (int place = 0; place < 3 && structure.uses(product); ++place) {
      if (operand_of(product, place) != BackwardOperand::dy || structure.dy == DyUse::separate)
        hold_own(structure, product, place);
    }
  }
  if (structure.dy != DyUse::separate)
    hold_dy(structure);
  if (problem.update && structure.uses(kDw))
    add_term(BackwardOperand::dw, problem.update_held, structure.form == Form::lockstep ? 0 : 2,
             {Extent::tile, Extent::tile, Extent::tile});
  count_traffic(structure);
}

void Shape::add_term(BackwardOperand operand, std::int64_t bits, int group,
                     const std::array<Extent, kDims>& extents) {
  Term& term = terms_[size_++];
  term.bits = bits;
  term.group = static_cast<std::uint8_t>(group);
  std::size_t next = 0;
  for (int d = 0; d < kDims; ++d) {
    if (d != absent_dim(operand)) {
      term.dims[next] = static_cast<std::uint8_t>(d);
      term.extents[next++] = extents[at(d)];
    }
  }
}

void Shape::hold_own(const Structure& structure, int product, int place) {
  const BackwardOperand operand = operand_of(product, place);
  const int absent = absent_dim(operand);
  const int loop = position(structure, product, absent);
  const bool once = structure.once[at(product)][at(place)];
  std::array<Extent, kDims> extents{};
  for (int d = 0; d < kDims; ++d) {
    if (once) {
      extents[at(d)] = position(structure, product, d) < loop ? Extent::tile : Extent::full;
    } else if (structure.sliced) {
      // Loops outside of the absent one start anew with every element, those inside hold theirs.
      const std::array<int, kDims>& inner = structure.inner[at(product)];
      extents[at(d)] = place_in(inner, d) < place_in(inner, absent) ? Extent::unit : Extent::tile;
    }
  }
  const bool always = structure.form == Form::lockstep ||
                      (structure.form == Form::shared && once && loop < structure.shared);
  add_term(operand, problem_->held[at(operand)], always ? 0 : product + 1, extents);
}

void Shape::hold_dy(const Structure& structure) {
  std::array<Extent, kDims> extents{Extent::full, Extent::full, Extent::full};
  if (structure.form == Form::shared) {
    const int loop = position(structure, kDx, absent_dim(BackwardOperand::dy));
    const int cut =
        structure.dy == DyUse::block ? structure.shared : std::min(loop, structure.shared);
    for (int d = 0; d < kDims; ++d) {
      if (position(structure, kDx, d) < cut)
        extents[at(d)] = Extent::tile;
    }
  }
  add_term(BackwardOperand::dy, problem_->held[at(BackwardOperand::dy)], 0, extents);
}

template <class Number>
Number Shape::sum_of_terms(const std::array<Number, kDims>& tile) const {
  Number always = 0;
  std::array<Number, 2> running{};
  for (std::size_t i = 0; i < size_; ++i) {
    const Term& term = terms_[i];
    auto bits = static_cast<Number>(term.bits);
    for (std::size_t e = 0; e < 2; ++e) {
      if (term.extents[e] != Extent::unit)
        bits *= term.extents[e] == Extent::full ? static_cast<Number>(problem_->size[term.dims[e]])
                                                : tile[term.dims[e]];
    }
    (term.group == 0 ? always : running[term.group - 1U]) += bits;
  }
  return always + std::max(running[0], running[1]);
}

std::int64_t Shape::held(const Tile& tile) const {
  constexpr Wide kMax = INT64_MAX;
  return static_cast<std::int64_t>(
      std::min(sum_of_terms(std::array<Wide, kDims>{tile[0], tile[1], tile[2]}), kMax));
}

double Shape::held(const std::array<double, kDims>& tile) const {
  return sum_of_terms(tile);
}

void Shape::count_traffic(const Structure& structure) {
  all_.base = traffic_of(*problem_, structure, {1, 1, 1}).bits();
  for (std::size_t d = 0; d < kDims; ++d) {
    std::array<std::int64_t, kDims> parts{1, 1, 1};
    parts[d] = 2;
    all_.more[d] = traffic_of(*problem_, structure, parts).bits() - all_.base;
  }
}

std::int64_t FineTraffic::of(int product) const {
  if (product == kDx)
    return dy_of[kDx] + w_read + dx_read + dx_write;
  return dy_of[kDw] + x_read + dw_read + dw_write + update_read + update_write;
}

namespace {

/// Passes over dY: by both products' steps, and additional ones that either product may make.
struct DyPasses {
  std::array<std::int64_t, 2> by{};
  std::int64_t either = 0;
};

DyPasses dy_passes(const Structure& s, std::int64_t parts_of_k) {
  DyPasses passes;
  switch (s.dy) {
  case DyUse::separate:
    if (s.uses(kDx))
      passes.by[kDx] = s.once[kDx][0] ? 1 : parts_of_k;
    if (s.uses(kDw))
      passes.by[kDw] = s.once[kDw][1] ? 1 : parts_of_k;
    break;
  case DyUse::block: // a loop over k among the shared ones fetches it anew each time
    passes.by[at(s.first())] = position(s, kDx, 1) < s.shared ? parts_of_k : 1;
    break;
  case DyUse::once:
    (s.form == Form::lockstep ? passes.either : passes.by[at(s.first())]) = 1;
    break;
  case DyUse::present:
    break;
  }
  return passes;
}

} // namespace

FineTraffic traffic_of(const PairProblem& problem, const Structure& structure,
                       const std::array<std::int64_t, kDims>& parts) {
  FineTraffic traffic;
  const DyPasses dy = dy_passes(structure, parts[1]);
  const std::int64_t once =
      problem.elements(BackwardOperand::dy) * problem.moved[at(BackwardOperand::dy)];
  traffic.dy_of = {dy.by[0] * once, dy.by[1] * once};
  traffic.dy_read = traffic.dy_of[0] + traffic.dy_of[1] + dy.either * once;
  for (const int product : {kDx, kDw}) {
    if (!structure.uses(product))
      continue;
    const int own = product == kDx ? 1 : 0;
    const auto passes = [&](int place) {
      const int absent = absent_dim(operand_of(product, place));
      return structure.once[at(product)][at(place)] ? 1 : parts[at(absent)];
    };
    const BackwardOperand factor = operand_of(product, own);
    (product == kDx ? traffic.w_read : traffic.x_read) =
        passes(own) * problem.elements(factor) * problem.moved[at(factor)];
    const BackwardOperand result = operand_of(product, kResult);
    const std::int64_t elements = problem.elements(result);
    const std::int64_t partial =
        (passes(kResult) - 1) * elements * problem.moved_partial[at(result)];
    const bool updated = problem.update && product == kDw;
    (product == kDx ? traffic.dx_read : traffic.dw_read) = partial;
    (product == kDx ? traffic.dx_write : traffic.dw_write) =
        partial + (updated ? 0 : elements * problem.moved[at(result)]);
    if (updated) {
      traffic.update_read = elements * problem.update_read;
      traffic.update_write = elements * problem.update_write;
    }
  }
  return traffic;
}

} // namespace monet::joint_mapping
