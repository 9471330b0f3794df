// Time and traffic of a structure with given tiles, in closed form over classes of equal steps; the
// joint search evaluates plans here.
#include "core_cost/joint_mapping/plan.hpp"

#include "monet/base/units.hpp"

#include <algorithm>

namespace monet::joint_mapping {
namespace {

/// Place of dY among a product's operands.
constexpr int dy_place(int product) {
  return product == kDx ? 0 : 1;
}

} // namespace

Plan::Plan(const PairProblem& problem, const Structure& structure, const Tile& tile)
    : problem_(problem), structure_(structure) {
  Tile last{};
  for (std::size_t d = 0; d < kDims; ++d) {
    parts_[d] = ceil_div(problem.size[d], tile[d]);
    last[d] = problem.size[d] - (parts_[d] - 1) * tile[d];
  }
  unsigned only = 0; // dimensions with a single part
  for (unsigned d = 0; d < kDims; ++d)
    only |= (parts_[d] == 1 ? 1U : 0U) << d;
  for (unsigned mask = 0; mask < 8; ++mask) {
    if ((mask & only) != only)
      continue;
    Tile extents{};
    for (unsigned d = 0; d < kDims; ++d)
      extents[d] = (mask >> d & 1U) != 0 ? last[d] : tile[d];
    for (const int product : {kDx, kDw}) {
      if (structure.uses(product))
        cycles_[at(product)][mask] = problem.cycles(product, extents);
    }
    for (int o = 0; o < 5; ++o)
      elements_[at(o)][mask] = elements_of(static_cast<BackwardOperand>(o), extents);
  }
  for (const int product : {kDx, kDw}) {
    std::int64_t stride = 1;
    for (int q = kDims - 1; q >= 0; --q) {
      const int dim = structure.order[at(product)][at(q)];
      position_[at(product)][at(dim)] = q;
      stride_[at(product)][at(dim)] = stride;
      stride *= parts_[at(dim)];
    }
  }
}

double Plan::steps() const {
  return static_cast<double>(parts_[0]) * static_cast<double>(parts_[1]) *
         static_cast<double>(parts_[2]);
}

Wide Plan::compute_cycles() const {
  Wide sum = 0;
  for (const int product : {kDx, kDw}) {
    for (unsigned mask = 0; mask < 8; ++mask) {
      Wide tiles = 1;
      for (unsigned d = 0; d < kDims; ++d)
        tiles *= (mask >> d & 1U) != 0 ? 1 : parts_[d] - 1;
      sum += tiles * cycles_[at(product)][mask];
    }
  }
  return sum;
}

/// In `lockstep`: number of turns by which this product reaches a tile of dY later than the other
/// one, in the first iteration over k of both.
std::int64_t Plan::lag(int product, std::int64_t m, std::int64_t n) const {
  const auto& own = stride_[at(product)];
  const auto& other = stride_[at(1 - product)];
  return (own[0] - other[0]) * m + (own[2] - other[2]) * n;
}

/// Whether this product touches the part of dY first and fetches it, if all of dY is kept and both
/// run in their own orders.
bool Plan::first_touch(const Position& place) const {
  const std::int64_t turns = lag(place.product, place.index[0], place.index[2]);
  return turns < 0 || (turns == 0 && place.product == structure_.first());
}

bool Plan::reads_dy(const Position& place) const {
  const bool starts = place.index[1] == 0;
  switch (structure_.dy) {
  case DyUse::separate:
    return starts || !structure_.once[at(place.product)][at(dy_place(place.product))];
  case DyUse::block:
    return place.product == structure_.first() && (starts || position_[kDx][1] < structure_.shared);
  case DyUse::once:
    return starts && (structure_.form == Form::lockstep ? first_touch(place)
                                                        : place.product == structure_.first());
  default:
    return false;
  }
}

bool Plan::reads(const Position& place, int operand_place) const {
  const BackwardOperand operand = operand_of(place.product, operand_place);
  if (operand == BackwardOperand::dy)
    return reads_dy(place);
  return !structure_.once[at(place.product)][at(operand_place)] ||
         place.index[at(absent_dim(operand))] == 0;
}

Step Plan::step(const Position& place) const {
  unsigned last = 0;
  for (unsigned d = 0; d < kDims; ++d)
    last |= (place.index[d] == parts_[d] - 1 ? 1U : 0U) << d;
  Step step;
  step.cycles = cycles_[at(place.product)][last];
  for (int p = 0; p < kResult; ++p) {
    const BackwardOperand operand = operand_of(place.product, p);
    if (reads(place, p))
      step.read += elements_[at(operand)][last] * problem_.moved[at(operand)];
  }
  read_write(step, place, kResult, last);
  return step;
}

/// Adds the result's traffic: incomplete sums are read and written unless they are kept.
void Plan::read_write(Step& step, const Position& place, int operand_place, unsigned last) const {
  const BackwardOperand result = operand_of(place.product, operand_place);
  const int absent = absent_dim(result);
  const std::int64_t elements = elements_[at(result)][last];
  const bool once = structure_.once[at(place.product)][at(operand_place)];
  if (!once && place.index[at(absent)] > 0)
    step.read += elements * problem_.moved_partial[at(result)];
  const bool complete = (last >> static_cast<unsigned>(absent) & 1U) != 0;
  if (!complete) {
    if (!once)
      step.write += elements * problem_.moved_partial[at(result)];
  } else if (problem_.update && place.product == kDw) {
    step.read += elements * problem_.update_read;
    step.write += elements * problem_.update_write;
  } else {
    step.write += elements * problem_.moved[at(result)];
  }
}

template <bool kForward>
bool Plan::advance(Position& place) const {
  const int shared = structure_.form == Form::shared ? structure_.shared : 0;
  const std::array<int, kDims>& order = structure_.order[at(place.product)];
  const auto turn = [&](int innermost, int outermost) {
    for (int q = innermost; q >= outermost; --q) {
      const std::size_t dim = at(order[at(q)]);
      place.index[dim] += kForward ? 1 : -1;
      if (kForward ? place.index[dim] < parts_[dim] : place.index[dim] >= 0)
        return true;
      place.index[dim] = kForward ? 0 : parts_[dim] - 1;
    }
    return false;
  };
  if (turn(kDims - 1, shared))
    return true;
  if (structure_.form != Form::shared)
    return false;
  const bool same_turn = (place.product == structure_.first()) == kForward;
  place.product = 1 - place.product;
  return same_turn || turn(shared - 1, 0);
}
template bool Plan::advance<true>(Position& place) const;
template bool Plan::advance<false>(Position& place) const;

Wide longer(const PairProblem& problem, std::int64_t cycles, std::int64_t reads,
            std::int64_t writes) {
  const Wide compute = static_cast<Wide>(cycles) * problem.cycle_units;
  if (problem.hide_writes)
    return std::max(compute, (static_cast<Wide>(reads) + writes) * problem.move_units);
  return std::max(compute, static_cast<Wide>(reads) * problem.move_units) +
         static_cast<Wide>(writes) * problem.move_units;
}

/// Time to move the reads of the first step and the writes of the last one.
Wide Plan::not_hidden(const Step& first, const Step& last) const {
  return (static_cast<Wide>(first.read) + last.write) * problem_.move_units;
}

PlanEnds Plan::ends() const {
  Position first{structure_.first(), {}};
  Position last = first;
  advance<false>(last);
  PlanEnds ends{known(first), {}, {}, known(last)};
  if (advance<true>(first))
    ends.second = known(first);
  if (advance<false>(last))
    ends.last_but_one = known(last);
  return ends;
}

namespace {

/// Representative indices, each for `count` equal ones. A step's reads depend on whether an index
/// is 0, its part's size on whether it is last, and the next step on whether it is last but one.
struct Kinds {
  std::array<std::int64_t, 4> index{};
  std::array<std::int64_t, 4> count{};
  std::size_t size = 0;

  explicit Kinds(std::int64_t parts) {
    const auto add = [&](std::int64_t i, std::int64_t n) {
      index[size] = i;
      count[size++] = n;
    };
    add(0, 1);
    if (parts > 3)
      add(1, parts - 3);
    if (parts > 2)
      add(parts - 2, 1);
    if (parts > 1)
      add(parts - 1, 1);
  }
};

} // namespace

Wide Plan::grouped(int product) const {
  const std::array<int, kDims>& order = structure_.order[at(product)];
  const Kinds outer(parts_[at(order[0])]);
  const Kinds middle(parts_[at(order[1])]);
  const Kinds inner(parts_[at(order[2])]);
  Wide sum = 0;
  Position place{product, {}};
  for (std::size_t a = 0; a < outer.size; ++a) {
    place.index[at(order[0])] = outer.index[a];
    for (std::size_t b = 0; b < middle.size; ++b) {
      place.index[at(order[1])] = middle.index[b];
      for (std::size_t c = 0; c < inner.size; ++c) {
        place.index[at(order[2])] = inner.index[c];
        Position after = place;
        Position before = place;
        const std::int64_t reads = advance<true>(after) ? known(after).read : 0;
        const std::int64_t writes = advance<false>(before) ? known(before).write : 0;
        const Wide count = static_cast<Wide>(outer.count[a]) * middle.count[b] * inner.count[c];
        sum += count * longer(known(place).cycles, reads, writes);
      }
    }
  }
  return sum;
}

/// Cached step. If both products share an order, steps differ only in which indices are 0 and which
/// are last.
const Step& Plan::known(const Position& place) const {
  unsigned kind = place.product == kDx ? 0 : 64;
  for (unsigned d = 0; d < kDims; ++d) {
    kind |= (place.index[d] == 0 ? 1U : 0U) << d;
    kind |= (place.index[d] == parts_[d] - 1 ? 8U : 0U) << d;
  }
  if (!is_known_[kind]) {
    is_known_[kind] = true;
    known_[kind] = step(place);
  }
  return known_[kind];
}

Wide Plan::grouped() const {
  Wide sum = 0;
  for (const int product : {kDx, kDw}) {
    if (structure_.uses(product))
      sum += grouped(product);
  }
  Position first{structure_.first(), {}};
  Position last = first;
  advance<false>(last);
  return sum + not_hidden(known(first), known(last));
}

Wide Plan::time() const {
  return structure_.form == Form::lockstep ? walked() : grouped();
}

} // namespace monet::joint_mapping
