// Enumerates the structures of the joint mapping and drops equivalent ones; techniques.cpp searches
// them.
#include "core_cost/joint_mapping/structures.hpp"

#include <algorithm>

namespace monet::joint_mapping {
namespace {

/// A flag of a structure that may be either way.
struct Flag {
  int product = kDx;
  int place = 0;
};

/// Whether moving an operand in every step may be better than holding it. It is not if the loop it
/// lacks is innermost, since then only its tile is held.
bool may_come_again(const PairProblem& problem, const Structure& s, int product, int place) {
  const int loop = position(s, product, absent_dim(operand_of(product, place)));
  const bool interrupted = s.form == Form::shared && loop < s.shared;
  return loop < kDims - 1 || interrupted || problem.timing == TileTiming::none;
}

/// The loop of a dimension with one part may have any position without changing time or traffic.
/// The structure with minimum memory has it innermost and not shared (unless it is the only shared
/// loop), and operands without it moved once. Returns true for such structures, and while this is
/// undecided.
bool stands_for_others(const Structure& s, unsigned cuts) {
  const auto state = [&](int dim) { return cuts / kPlaceOfCut[at(dim)] % 3; };
  const int shared = s.form == Form::shared ? s.shared : 0;
  for (const int product : {kDx, kDw}) {
    if (!s.uses(product))
      continue;
    const std::array<int, kDims>& order = s.order[at(product)];
    for (int q = 0; q < kDims; ++q) {
      const int dim = order[at(q)];
      if (state(dim) != kWhole)
        continue;
      const bool outside = q < shared;
      if (outside && shared > 1)
        return false;
      // With several such loops, only the first counts.
      for (int other = 0; other < dim && outside; ++other) {
        if (state(other) == kWhole)
          return false;
      }
      for (int r = q + 1; r < kDims && !outside; ++r) {
        const unsigned behind = state(order[at(r)]);
        if (behind == kCut || (behind == kWhole && order[at(r)] < dim))
          return false;
      }
      for (int place = 0; place < 3; ++place) {
        const BackwardOperand operand = operand_of(product, place);
        const bool once = s.once[at(product)][at(place)];
        // Outside, what is moved in every step, which is once, need not stay for it.
        const bool idle = outside ? once && operand != BackwardOperand::dy : !once && !s.sliced;
        if (absent_dim(operand) == dim && idle)
          return false;
      }
    }
  }
  return true;
}

void add_flags(const PairProblem& problem, Structure base, std::vector<Structure>& out) {
  std::vector<Flag> open;
  for (const int product : {kDx, kDw}) {
    for (int place = 0; place < 3 && base.uses(product); ++place) {
      const bool dy = operand_of(product, place) == BackwardOperand::dy;
      base.once[at(product)][at(place)] = true;
      if ((!dy || base.dy == DyUse::separate) && may_come_again(problem, base, product, place))
        open.push_back({product, place});
    }
  }
  for (unsigned choice = 0; choice < 1U << open.size(); ++choice) {
    Structure s = base;
    for (std::size_t i = 0; i < open.size(); ++i)
      s.once[at(open[i].product)][at(open[i].place)] = (choice >> i & 1U) == 0;
    s.stands = 0;
    for (unsigned cuts = 0; cuts < kCuts; ++cuts)
      s.stands |= (stands_for_others(s, cuts) ? 1U : 0U) << cuts;
    out.push_back(s);
  }
}

/// Orders of the elements inside tiles, without time. Operands moved in every step need the minimum
/// memory if their loops come last: one element if the loop they lack is innermost.
std::vector<Order> inner_orders(const Structure& s, int product) {
  std::array<bool, kDims> again{};
  for (int place = 0; place < 3 && s.uses(product); ++place) {
    const BackwardOperand operand = operand_of(product, place);
    const bool own = operand != BackwardOperand::dy || s.dy == DyUse::separate;
    if (own && !s.once[at(product)][at(place)])
      again[at(absent_dim(operand))] = true;
  }
  std::vector<Order> out;
  for (const Order& order : all_orders()) {
    // Loops that come last may do so in any order.
    if (std::ranges::is_sorted(order, {}, [&](int dim) { return again[at(dim)] ? kDims : dim; }))
      out.push_back(order);
  }
  return out;
}

void add_choices(const PairProblem& problem, const Structure& base, std::vector<Structure>& out) {
  if (problem.timing != TileTiming::none) {
    add_flags(problem, base, out);
    return;
  }
  Structure sliced = base;
  sliced.sliced = true;
  std::vector<Structure> flagged;
  add_flags(problem, sliced, flagged);
  for (Structure& s : flagged) {
    for (const Order& dx : inner_orders(s, kDx)) {
      for (const Order& dw : inner_orders(s, kDw)) {
        s.inner = {dx, dw};
        out.push_back(s);
      }
    }
  }
}

/// Whether a factor stays longer than from one step to the next.
bool keeps_factor(const Structure& s, int product, int place) {
  const BackwardOperand operand = operand_of(product, place);
  const int loop = position(s, product, absent_dim(operand));
  const bool between_steps = loop == kDims - 1 && s.form != Form::shared;
  const bool shared_step = loop == kDims - 1 && s.shared == kDims;
  if (operand == BackwardOperand::dy && s.dy != DyUse::separate)
    return s.dy == DyUse::once && !shared_step;
  return s.once[at(product)][at(place)] && !between_steps && !shared_step;
}

bool same_beginning(const Order& a, const Order& b, int length) {
  return std::equal(a.begin(), a.begin() + length, b.begin());
}

std::vector<Structure> make_joint_structures(bool update, bool timed) {
  PairProblem kind{.update = update, .timing = timed ? TileTiming::systolic_os : TileTiming::none};
  std::vector<Structure> out;
  const auto append = [&](const std::vector<Structure>& more) {
    out.insert(out.end(), more.begin(), more.end());
  };
  for (const Order& dx : all_orders()) {
    for (const Order& dw : all_orders()) {
      for (int shared = 1; shared < kDims; ++shared) {
        // The last two loops of each, or only the last, are its own.
        if (same_beginning(dx, dw, shared))
          append(shared_structures(kind, shared, dx, dw, false));
      }
      // With two interleaved orders, dW could finish a weight before dX has used it.
      if (dx == dw || (!update && timed))
        append(interleaved_structures(kind, dx, dw, false));
    }
  }
  return out;
}

} // namespace

const std::array<Order, 6>& all_orders() {
  static const std::array<Order, 6> orders{
      {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}};
  return orders;
}

std::vector<Structure> kept_by_steps(std::vector<Structure> structures) {
  std::erase_if(structures, [](const Structure& s) {
    for (const int product : {kDx, kDw}) {
      for (int place = 0; place < kResult && s.uses(product); ++place) {
        if (keeps_factor(s, product, place))
          return true;
      }
    }
    return false;
  });
  return structures;
}

std::vector<Structure> single_structures(const PairProblem& problem, int product,
                                         const Order& order, DyUse dy) {
  Structure s{.form = Form::single, .product = product, .order = {order, order}, .dy = dy};
  std::vector<Structure> out;
  add_choices(problem, s, out);
  return out;
}

std::vector<Structure> shared_structures(const PairProblem& problem, int shared, const Order& dx,
                                         const Order& dw, bool dw_first) {
  Structure s;
  s.form = Form::shared;
  s.shared = shared;
  s.order = {dx, dw};
  s.dw_first = dw_first;
  std::vector<Structure> out;
  const int loop = position(s, kDx, absent_dim(BackwardOperand::dy));
  for (const DyUse dy : {DyUse::once, DyUse::block, DyUse::separate}) {
    // A block that changes with every iteration over k differs from one that stays. A block outside
    // k, or directly outside it, does not.
    if (dy == DyUse::block && loop >= shared - 1)
      continue;
    // Taking turns with all loops in common, a tile of dY is there for both.
    if (dy == DyUse::separate && shared == kDims)
      continue;
    s.dy = dy;
    add_choices(problem, s, out);
  }
  return out;
}

std::vector<Structure> interleaved_structures(const PairProblem& problem, const Order& dx,
                                              const Order& dw, bool dw_first) {
  if (dx == dw)
    return shared_structures(problem, kDims, dx, dw, dw_first);
  Structure s;
  s.form = Form::lockstep;
  s.order = {dx, dw};
  s.dw_first = dw_first;
  std::vector<Structure> out;
  for (const DyUse dy : {DyUse::once, DyUse::separate}) {
    s.dy = dy;
    add_choices(problem, s, out);
  }
  return out;
}

const std::vector<Structure>& joint_structures(const PairProblem& problem) {
  static const std::array<std::vector<Structure>, 4> kinds{
      make_joint_structures(false, false), make_joint_structures(false, true),
      make_joint_structures(true, false), make_joint_structures(true, true)};
  const bool timed = problem.timing != TileTiming::none;
  return kinds[(problem.update ? 2U : 0U) + (timed ? 1U : 0U)];
}

} // namespace monet::joint_mapping
