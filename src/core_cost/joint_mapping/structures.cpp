#include "core_cost/joint_mapping/structures.hpp"

#include <algorithm>

namespace monet::joint_mapping {
namespace {

/// A flag of a structure that may be either way.
struct Flag {
  int product = kDx;
  int place = 0;
};

/// Whether moving an operand in every step may be better than holding it: not where the loop that
/// it does not depend on is innermost, so that nothing but its tile is held.
bool may_come_again(const PairProblem& problem, const Structure& s, int product, int place) {
  const int loop = position(s, product, absent_dim(operand_of(product, place)));
  const bool interrupted = s.form == Form::shared && loop < s.shared;
  return loop < kDims - 1 || interrupted || problem.timing == TileTiming::none;
}

void add_flags(const PairProblem& problem, Structure base, std::vector<Structure>& out) {
  std::vector<Flag> open;
  for (const int product : {kDx, kDw}) {
    for (int place = 0; place < 3 && base.uses(product); ++place) {
      const bool dy = operand_of(product, place) == BackwardOperand::dy;
      base.once[at(product)][at(place)] = true;
      if ((!dy || base.dy == DyUse::apart) && may_come_again(problem, base, product, place))
        open.push_back({product, place});
    }
  }
  for (unsigned choice = 0; choice < 1U << open.size(); ++choice) {
    Structure s = base;
    for (std::size_t i = 0; i < open.size(); ++i)
      s.once[at(open[i].product)][at(open[i].place)] = (choice >> i & 1U) == 0;
    out.push_back(s);
  }
}

/// Orders of the elements inside of tiles, without time. What is moved in every step needs least
/// room when its loops come last: one element where the loop that it does not depend on is the
/// innermost.
std::vector<Order> inner_orders(const Structure& s, int product) {
  std::array<bool, kDims> again{};
  for (int place = 0; place < 3 && s.uses(product); ++place) {
    const BackwardOperand operand = operand_of(product, place);
    const bool own = operand != BackwardOperand::dy || s.dy == DyUse::apart;
    if (own && !s.once[at(product)][at(place)])
      again[at(absent_dim(operand))] = true;
  }
  std::vector<Order> out;
  for (const Order& order : all_orders()) {
    bool sorted = true;
    for (std::size_t q = 0; q + 1 < kDims; ++q) {
      const bool here = again[at(order[q])];
      const bool next = again[at(order[q + 1])];
      sorted = sorted && (!here || next) && (here || next || order[q] < order[q + 1]);
    }
    if (sorted)
      out.push_back(order);
  }
  return out;
}

void add_choices(const PairProblem& problem, const Structure& base, std::vector<Structure>& out) {
  if (problem.timing != TileTiming::none) {
    add_flags(problem, base, out);
    return;
  }
  std::vector<Structure> flagged;
  add_flags(problem, base, flagged);
  for (Structure& s : flagged) {
    s.sliced = true;
    for (const Order& dx : inner_orders(s, kDx)) {
      for (const Order& dw : inner_orders(s, kDw)) {
        s.inner = {dx, dw};
        out.push_back(s);
      }
    }
  }
}

/// A factor that stays longer than from one step to the next.
bool keeps_factor(const Structure& s, int product, int place) {
  const BackwardOperand operand = operand_of(product, place);
  const int loop = position(s, product, absent_dim(operand));
  const bool between_steps = loop == kDims - 1 && s.form != Form::shared;
  const bool shared_step = loop == kDims - 1 && s.shared == kDims;
  if (operand == BackwardOperand::dy && s.dy != DyUse::apart)
    return s.dy == DyUse::once && !shared_step;
  return s.once[at(product)][at(place)] && !between_steps && !shared_step;
}

bool same_beginning(const Order& a, const Order& b, int length) {
  return std::equal(a.begin(), a.begin() + length, b.begin());
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
  Structure s;
  s.form = Form::single;
  s.product = product;
  s.order = {order, order};
  s.dy = dy;
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
  for (const DyUse dy : {DyUse::once, DyUse::block, DyUse::apart}) {
    // A block that changes with every iteration over k is not the same as one that stays; one that
    // lies outside of k, or right outside, is.
    if (dy == DyUse::block && loop >= shared - 1)
      continue;
    // Taking turns with all loops in common, a tile of dY is there for both.
    if (dy == DyUse::apart && shared == kDims)
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
  for (const DyUse dy : {DyUse::once, DyUse::apart}) {
    s.dy = dy;
    add_choices(problem, s, out);
  }
  return out;
}

std::vector<Structure> joint_structures(const PairProblem& problem) {
  std::vector<Structure> out;
  const auto append = [&](const std::vector<Structure>& more) {
    out.insert(out.end(), more.begin(), more.end());
  };
  for (const Order& dx : all_orders()) {
    for (const Order& dw : all_orders()) {
      for (int shared = 1; shared < kDims; ++shared) {
        // The last two loops of each, or only the last, are its own.
        if (same_beginning(dx, dw, shared))
          append(shared_structures(problem, shared, dx, dw, false));
      }
      // Of two orders in turn, dW could finish a weight that dX has yet to use.
      if (dx == dw || (!problem.update && problem.timing != TileTiming::none))
        append(interleaved_structures(problem, dx, dw, false));
    }
  }
  return out;
}

} // namespace monet::joint_mapping
