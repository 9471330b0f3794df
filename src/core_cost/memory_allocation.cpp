#include "memory_allocation.hpp"

namespace monet::core_cost_detail {

namespace {

/// Slices of one operand that fit in a memory on their own.
struct Slices {
  std::size_t operand = 0;
  std::size_t level = 0;
  std::size_t first = 0; ///< the smallest allowed choice
  std::size_t count = 0; ///< choices [first, count): so many further loops
  std::array<double, kMaxTemporalLoops + 1> bits;
  std::array<double, kMaxTemporalLoops + 1> accesses;
};

struct State {
  std::array<std::size_t, kMaxOperands> done{};  ///< loops placed so far
  std::array<std::size_t, kMaxOperands> level{}; ///< next level of the operand
};

bool reduces(const OperandModel& output, const Loop& loop) {
  return output.relevance[loop.dim] != Relevance::relevant && loop.size > 1;
}

/// Width of the output in a memory: that of partial sums as long as a loop outside still adds to
/// them.
std::int64_t output_bits(const NestModel& model, const SpatialForm& spatial,
                         std::span<const Loop> order, const State& state, std::size_t operand,
                         std::size_t levels) {
  const OperandModel& o = model.operands[operand];
  for (std::size_t i = state.done[operand]; i < order.size(); ++i) {
    if (reduces(o, order[i]))
      return o.partial_bits;
  }
  for (std::size_t l = state.level[operand] + 1; l <= levels; ++l) {
    for (const Loop& loop : spatial.operands[operand].lists[l]) {
      if (reduces(o, loop))
        return o.partial_bits;
    }
  }
  return o.bits;
}

void find_slices(const Footprint& allocated, double bits, double capacity,
                 std::span<const Loop> order, std::size_t done, bool top, Slices& slices) {
  Footprint footprint = allocated;
  slices.first = 0;
  slices.count = 0;
  for (std::size_t i = done;; ++i) {
    const double size = footprint.elements() * bits;
    if (size > capacity) {
      if (i == done)
        slices.bits[0] = size;
      break;
    }
    slices.bits[slices.count++] = size;
    if (i == order.size())
      break;
    footprint.multiply(order[i]);
  }
  if (slices.count == 0)
    return;
  if (top) {
    slices.first = slices.count - 1;
    slices.accesses[slices.first] = 0;
    return;
  }
  double outside = 1;
  for (std::size_t i = order.size(); i-- > done;) {
    if (i - done + 1 < slices.count)
      slices.accesses[i - done + 1] = outside * slices.bits[i - done + 1];
    outside *= order[i].size;
  }
  slices.accesses[0] = outside * slices.bits[0];
}

/// The chosen slice per user; false when nothing fits together. The first user varies slowest.
bool choose(const std::array<Slices, kMaxOperands>& slices, std::size_t users, double capacity,
            std::array<std::size_t, kMaxOperands>& best) {
  std::array<std::size_t, kMaxOperands> at{};
  for (std::size_t u = 0; u < users; ++u)
    at[u] = slices[u].first;
  bool found = false;
  double least = 0;
  for (;;) {
    double bits = 0;
    double accesses = 0;
    for (std::size_t u = 0; u < users; ++u) {
      bits += slices[u].bits[at[u]];
      accesses += slices[u].accesses[at[u]];
    }
    if (bits <= capacity && (!found || accesses <= least)) {
      found = true;
      least = accesses;
      best = at;
    }
    std::size_t u = users;
    while (u-- > 0) {
      if (++at[u] < slices[u].count)
        break;
      at[u] = slices[u].first;
    }
    if (u == static_cast<std::size_t>(-1))
      return found;
  }
}

/// The smallest slices of all users together.
double minimum_bits(const std::array<Slices, kMaxOperands>& slices, std::size_t users) {
  double bits = 0;
  for (std::size_t u = 0; u < users; ++u)
    bits += slices[u].bits[slices[u].first];
  return bits;
}

bool fail(AllocationFailure* failure, const AllocationFailure& why) {
  if (failure != nullptr)
    *failure = why;
  return false;
}

/// Bits of the operand with all its loops: what its top memory has to hold.
double whole_bits(Footprint footprint, std::span<const Loop> order, std::size_t done,
                  std::int64_t bits) {
  for (const Loop& loop : order.subspan(done))
    footprint.multiply(loop);
  return footprint.elements() * static_cast<double>(bits);
}

} // namespace

bool allocate(const NestModel& model, const Hierarchy& hierarchy, const SpatialForm& spatial,
              std::span<const Loop> order, Allocation& allocation, AllocationFailure* failure) {
  State state;
  std::array<Slices, kMaxOperands> slices;
  std::array<std::size_t, kMaxOperands> chosen{};
  // One running footprint per operand; loops of the spatial lists join once their level has been
  // passed.
  static_assert(kMaxOperands == 4);
  std::array<Footprint, kMaxOperands> footprint{
      Footprint(model.operands[0]), Footprint(model.operands[model.operands.size() > 1 ? 1 : 0]),
      Footprint(model.operands[model.operands.size() > 2 ? 2 : 0]),
      Footprint(model.operands[model.operands.size() > 3 ? 3 : 0])};
  for (std::size_t i = 0; i < model.operands.size(); ++i) {
    for (const Loop& loop : spatial.operands[i].lists[0])
      footprint[i].multiply(loop);
  }
  for (std::size_t n = 0; n < hierarchy.nodes.size(); ++n) {
    const Node& node = hierarchy.nodes[n];
    const std::size_t users = node.uses.size();
    for (std::size_t u = 0; u < users; ++u) {
      const NodeUse& use = node.uses[u];
      const OperandModel& o = model.operands[use.operand];
      const std::int64_t bits = o.output ? output_bits(model, spatial, order, state, use.operand,
                                                       hierarchy.levels[use.operand].size())
                                         : o.bits;
      find_slices(footprint[use.operand], static_cast<double>(bits), node.size_bits, order,
                  state.done[use.operand], use.top, slices[u]);
      if (slices[u].count == 0)
        return fail(failure, {n, use.operand, slices[u].bits[0], false});
      if (use.top && state.done[use.operand] + slices[u].first != order.size()) {
        const double whole =
            whole_bits(footprint[use.operand], order, state.done[use.operand], bits);
        return fail(failure, {n, use.operand, whole, false});
      }
    }
    if (minimum_bits(slices, users) > node.size_bits ||
        !choose(slices, users, node.size_bits, chosen)) {
      return fail(failure, {n, node.uses[0].operand, minimum_bits(slices, users), true});
    }
    for (std::size_t u = 0; u < users; ++u) {
      const auto [operand, level, top] = node.uses[u];
      for (std::size_t k = 0; k < chosen[u]; ++k) {
        footprint[operand].multiply(order[state.done[operand] + k]);
      }
      state.done[operand] += chosen[u];
      allocation.cut[operand][level] = static_cast<std::uint8_t>(state.done[operand]);
      for (const Loop& loop : spatial.operands[operand].lists[level + 1])
        footprint[operand].multiply(loop);
      state.level[operand] = level + 1;
    }
  }
  return true;
}

} // namespace monet::core_cost_detail
