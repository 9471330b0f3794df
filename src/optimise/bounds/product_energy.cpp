// Lower bound on the on-chip memory energy of a product's tiles; step_bounds() uses it through
// core_work.
//
// Proof sketch. Boundary 0 lies between the multipliers and an operand's innermost memory. An
// element crosses it once per product, except for lanes that share it below that memory and for
// cycles in which an input stays in the multipliers. Boundary 1 lies between the innermost memory
// and the next one. An element crosses it again after a number of products: its reuse by loops
// inside the memory, times the lanes that share it.
//
// Loops outside the axes of two operands are irrelevant, so products are divided by their sizes.
// Each other loop leaves at most one operand unchanged. Sort the operands by the number of temporal
// loops in their innermost memories. The loops that reuse the first operand change the other two
// and lie inside their memories. The reuse of the first operand is therefore at most the number of
// elements that either other memory holds. The reuse of the second is at most the elements that the
// third holds, and the third may stay forever.
//
// Along an axis of several loops (a convolution's input), products per element are at most either
// loop's iterations, without products on padding, so the bound holds there as well. The product of
// the numbers of lanes that share an operand is at most the number of all lanes, except for lanes
// along such an axis, which may count twice.
#include "optimise/bounds/product_energy.hpp"

#include "schedule/shared/bounds.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace monet {

namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kStep = 1.122462048309373; ///< step of the tried lane counts: 2^(1/6)
constexpr double kBelow = 1 - 1e-9;
constexpr std::size_t kOperands = 3; ///< the result, then two inputs

/// Energy of an element that crosses a memory's boundary.
struct ElementEnergy {
  double pj = 0;      ///< energy of the element's share of words
  double word_pj = 0; ///< energy of a whole word
  bool whole = true;  ///< whether counts are whole words, without rounding loss per tile
  bool there = false;
};

ElementEnergy passing(const Memory& memory, MemoryOperand operand, Direction direction,
                      std::int64_t bits) {
  ElementEnergy cost;
  double words = kInfinite;
  for (const MemoryPort& port : memory.ports) {
    for (const PortUse& use : port.allocation) {
      if (use.operand != operand || use.direction != direction)
        continue;
      words = std::min(words, static_cast<double>(bits) / static_cast<double>(port.bandwidth_max));
      cost.whole = cost.whole && port.bandwidth_min == port.bandwidth_max;
      cost.there = true;
    }
  }
  const bool write = direction == Direction::fh || direction == Direction::fl;
  cost.word_pj = write ? memory.write_energy_pj : memory.read_energy_pj;
  cost.pj = cost.there ? words * cost.word_pj : 0;
  return cost;
}

/// Minimum share of lanes that remains when accesses are counted with whole lanes (1.5 becomes
/// 2, 2.5 becomes 2).
double rounded_share(double lanes) {
  constexpr double kWorst = 0.8; // for 2.5 to 2; no unrolling has between 1 and 1.5 lanes
  return lanes <= 1 / (2 * (1 - kWorst)) ? kWorst : 1 - 0.5 / lanes;
}

struct OperandCost {
  double products = 0; ///< minimum products that use it
  double capacity = 1; ///< elements in one innermost memory
  double served = 1;   ///< maximum lanes per innermost memory
  double shared = 1;   ///< maximum lanes per next memory
  /// Energy per element: transfers to or from the multipliers, reading back, transfers of the
  /// innermost memory to or from the next one, and accesses of the next memory.
  double use = 0, back = 0, fill = 0, feed = 0;
  double part = 1;   ///< share of its counts after rounding, except lane rounding
  bool next = false; ///< whether there is a next memory
  bool result = false;
  bool overlaps = false; ///< whether an axis has several loops

  void append_to(std::vector<double>& key) const {
    key.insert(key.end(), {products, capacity, served, shared, use, back, fill, feed, part,
                           next ? 1.0 : 0.0, result ? 1.0 : 0.0, overlaps ? 1.0 : 0.0});
  }
};
using Costs = std::array<OperandCost, kOperands>;

/// Maximum lanes along loops that leave each operand unchanged, and all lanes.
struct Lanes {
  std::array<double, kOperands> most{};
  double all = 1;
};

class Product {
public:
  Product(const TrainingGraph& step, const Operator& op, const Core& core, ProductMemo& memo)
      : step_(step), op_(op), core_(core), operands_(array_operands(step, op, core)), memo_(memo) {}

  ProductEnergy find() {
    if (!choose_operands())
      return {};
    ProductEnergy energy;
    for (const bool all : {false, true}) {
      Costs costs;
      double lost = 0;
      for (std::size_t p = 0; p < kOperands; ++p)
        if (!describe(p, all, costs[p], lost))
          return {};
      (all ? energy.in_all : energy.certain) = least(costs) * kBelow;
      energy.lost = all ? lost : energy.lost;
    }
    return energy;
  }

private:
  bool touches(std::size_t p, std::size_t loop) const { return operands_[of_[p]].moved_by[loop]; }

  /// Selects the result and the first input of each of two memory operands, and the loops that
  /// leave each unchanged.
  bool choose_operands() {
    if (operands_.size() < kOperands)
      return false;
    std::size_t found = 1;
    for (std::size_t k = 1; k < operands_.size() && found < kOperands; ++k)
      if (!operands_[k].aside)
        of_[found++] = k;
    if (found < kOperands)
      return false;
    for (const std::size_t k : of_) {
      const Access& access = op_.nest.operands[k];
      if (access.opaque)
        return false;
      std::vector<int> uses(op_.nest.dims.size(), 0);
      for (const AxisExpr& axis : access.axes) {
        if (axis.data_dependent || axis.terms.size() > 2)
          return false;
        for (const AffineTerm& term : axis.terms)
          if (term.coefficient == 0 || ++uses[term.dim] > 1)
            return false;
      }
    }
    lanes_.most.fill(1);
    lanes_.all = static_cast<double>(std::max<std::int64_t>(1, core_.lanes()));
    for (std::size_t d = 0; d < op_.nest.dims.size(); ++d) {
      const auto size = static_cast<double>(op_.nest.dims[d].size);
      std::size_t alone = 0;
      for (std::size_t p = 0; p < kOperands; ++p)
        alone += touches(p, d) ? 0U : 1U;
      idle_ *= alone > 1 ? size : 1;
      for (std::size_t p = 0; p < kOperands && alone == 1; ++p)
        lanes_.most[p] *= touches(p, d) ? 1 : size;
    }
    return true;
  }

  /// Products on elements of the tensor, without its padding.
  double landing(const Access& access, bool& shared) const {
    double count = 1;
    std::vector<bool> seen(op_.nest.dims.size(), false);
    const auto& shape = step_.graph.tensor(access.tensor).shape;
    for (std::size_t a = 0; a < access.axes.size(); ++a) {
      const AxisExpr& axis = access.axes[a];
      for (const AffineTerm& term : axis.terms)
        seen[term.dim] = true;
      if (axis.terms.empty())
        continue;
      shared = shared || axis.terms.size() > 1;
      const AffineTerm& outer = axis.terms.back();
      const AffineTerm* inner = axis.terms.size() > 1 ? &axis.terms.front() : nullptr;
      const std::int64_t inner_size = inner != nullptr ? op_.nest.dims[inner->dim].size : 1;
      double inside = 0;
      for (std::int64_t o = 0; o < op_.nest.dims[outer.dim].size; ++o)
        for (std::int64_t i = 0; i < inner_size; ++i) {
          const std::int64_t at =
              axis.offset + outer.coefficient * o + (inner != nullptr ? inner->coefficient * i : 0);
          inside += at >= 0 && at < shape[a] ? 1 : 0;
        }
      count *= inside;
    }
    for (std::size_t d = 0; d < seen.size(); ++d)
      count *= seen[d] ? 1 : static_cast<double>(op_.nest.dims[d].size);
    return count;
  }

  /// Describes the two innermost memories. Returns false if these may differ between tiles.
  bool describe(std::size_t p, bool all, OperandCost& cost, double& lost) {
    const ArrayOperand& operand = operands_[of_[p]];
    cost.result = p == 0;
    bool shared_axis = false;
    cost.products = landing(op_.nest.operands[of_[p]], shared_axis) / idle_;
    if (shared_axis && cost.result)
      return false;
    cost.overlaps = shared_axis;
    std::vector<const Memory*> levels;
    for (const std::size_t m : core_.levels(operand.memory)) {
      if (const Memory& memory = core_.memories[m]; memory.size.value >= operand.bits)
        levels.push_back(&memory);
      else if (memory.size.value >= operand.min_bits)
        return false;
    }
    if (levels.empty())
      return false;
    // Fractional lanes along an axis of two loops are rounded down.
    for (const AxisExpr& axis : op_.nest.operands[of_[p]].axes)
      cost.part *= axis.terms.size() > 1 ? 0.5 : 1;
    price(operand, levels, all, cost, lost);
    return true;
  }

  double lanes_served(const std::vector<const Memory*>& levels, std::size_t count) const {
    double lanes = 1;
    for (std::size_t d = 0; d < core_.array.size(); ++d) {
      const bool served =
          std::any_of(levels.begin(), levels.begin() + static_cast<std::ptrdiff_t>(count),
                      [&](const Memory* m) { return d < m->serves.size() && m->serves[d]; });
      lanes *= served ? static_cast<double>(core_.array[d].size) : 1;
    }
    return lanes;
  }

  void price(const ArrayOperand& operand, const std::vector<const Memory*>& levels, bool all,
             OperandCost& cost, double& lost) const {
    const auto at = [&](const Memory& memory, Direction direction) {
      const ElementEnergy one = passing(memory, operand.memory, direction, operand.min_bits);
      lost += one.whole ? 0 : one.word_pj;
      return one.there && (all || one.whole) ? one.pj : 0;
    };
    const Memory& low = *levels[0];
    cost.capacity =
        static_cast<double>(low.size.value / std::max<std::int64_t>(1, operand.min_bits));
    cost.served = lanes_served(levels, 1);
    cost.use = at(low, cost.result ? Direction::fl : Direction::tl);
    cost.back = cost.result ? at(low, Direction::tl) : 0;
    cost.next = levels.size() > 1;
    if (!cost.next)
      return;
    cost.shared = lanes_served(levels, 2);
    cost.fill = at(low, cost.result ? Direction::th : Direction::fh);
    cost.feed = at(*levels[1], cost.result ? Direction::fl : Direction::tl);
  }

  /// Minimum energy of an operand if `share` lanes share it, at least `used` lanes work, loops
  /// inside its innermost memory reuse it `reuse` times and the multipliers `held` times.
  double cost_of(const OperandCost& o, double share, double used, double reuse, double held) const {
    constexpr double kTwo = 0.64; // minimum share of counts rounded two or three times
    constexpr double kThree = 0.512;
    const double lanes = rounded_share(std::max(1.0, used));
    const double rounded = rounded_share(std::max(1.0, used / share));
    const bool below = o.served >= lanes_.all; // all lanes are below the innermost memory
    const double low_part = below ? rounded : o.served > 1 ? kTwo : lanes;
    const double high_part = below || (o.served <= 1 && o.shared >= lanes_.all) ? rounded : kThree;
    const double again = 1 / reuse;
    // Sums that stay in the memory are read back, except the first time.
    const double low = o.use / held + o.fill * again + o.back * (1 - again);
    return o.part * o.products *
           (low * low_part / std::min(share, o.served) +
            o.feed * again * high_part / std::min(share, o.shared));
  }

  /// Minimum energy over the operand that stays longest, the operand kept in the multipliers, and
  /// the reuse of the result.
  double over_orders(const Costs& o, const std::array<double, kOperands>& share,
                     double used) const {
    std::array<std::size_t, kOperands> order{0, 1, 2};
    double least = kInfinite;
    do {
      std::array<double, kOperands> reuse{};
      reuse[order[0]] = std::min(o[order[1]].capacity, o[order[2]].capacity);
      reuse[order[1]] = o[order[2]].capacity;
      reuse[order[2]] = kInfinite;
      for (std::size_t p = 0; p < kOperands; ++p)
        reuse[p] = o[p].next ? std::max(1.0, reuse[p]) : kInfinite;
      const auto cost = [&](std::size_t p, double again, double held) {
        return cost_of(o[p], share[p], used, again, held);
      };
      const double result = std::min(cost(0, 1, 1), cost(0, reuse[0], 1));
      least = std::min({least, result + cost(1, reuse[1], reuse[1]) + cost(2, reuse[2], 1),
                        result + cost(1, reuse[1], 1) + cost(2, reuse[2], reuse[2])});
    } while (std::next_permutation(order.begin(), order.end()));
    return least;
  }

  /// Minimum energy over steps of the lanes along loops that leave the first and the second input
  /// unchanged. Each input counts with the lanes at a step's end, the result with the lanes left at
  /// its start.
  double least(const Costs& costs) {
    std::vector<double> key(lanes_.most.begin(), lanes_.most.end());
    key.push_back(lanes_.all);
    for (const OperandCost& cost : costs)
      cost.append_to(key);
    const auto [known, added] = memo_.emplace(std::move(key), 0);
    if (!added)
      return known->second;
    double best = kInfinite;
    for (double first = 1; first <= std::min(lanes_.all, lanes_.most[1]); first *= kStep)
      for (double second = 1; first * second <= lanes_.all * kStep && second <= lanes_.most[2];
           second *= kStep)
        best = std::min(best, in_step(costs, first, second));
    return known->second = best;
  }

  double in_step(const Costs& costs, double first, double second) const {
    const double left = std::max(1.0, std::min(lanes_.all / (first * second), lanes_.most[0]));
    const std::array<double, kOperands> own{0, std::min(first * kStep, lanes_.most[1]),
                                            std::min(second * kStep, lanes_.most[2])};
    constexpr std::array<double, 3> kFrom{1, 4, 16}; // share of the remaining lanes
    double best = kInfinite;
    for (std::size_t i = 0; i < kFrom.size() && kFrom[i] <= left; ++i) {
      std::array<double, kOperands> share = own;
      share[0] = i + 1 < kFrom.size() ? std::min(left, kFrom[i + 1]) : left;
      const std::array<double, kOperands> along = share;
      for (std::size_t p = 1; p < kOperands; ++p)
        if (costs[p].overlaps)
          share[p] *= std::min(along[0], along[kOperands - p]);
      best = std::min(best, over_orders(costs, share, first * second * kFrom[i]));
    }
    return best;
  }

  const TrainingGraph& step_;
  const Operator& op_;
  const Core& core_;
  std::vector<ArrayOperand> operands_;
  std::array<std::size_t, kOperands> of_{0, 0, 0};
  ProductMemo& memo_;
  double idle_ = 1; ///< iterations of loops that leave two operands unchanged
  Lanes lanes_;
};

} // namespace

ProductEnergy min_product_energy(const TrainingGraph& step, const Operator& op, const Core& core,
                                 ProductMemo& memo) {
  return Product(step, op, core, memo).find();
}

} // namespace monet
