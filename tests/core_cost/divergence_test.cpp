// Where the model departs from ZigZag 3.8.5: every choice both ways, by hand or by brute force.
#include "core_cost/cores.hpp"
#include "core_cost/model/candidate.hpp"
#include "core_cost/model/loading.hpp"
#include "core_cost/order_walk.hpp"
#include "core_cost/search/temporal_order.hpp"

#include "monet/base/errors.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <vector>

namespace monet::core_cost_detail {
namespace {

using test::axis;
using test::convolution;
using test::ConvProduct;
using test::memory;
using test::one_mac;
using test::port;
using test::product;
using test::tpu_like;
using test::use;

constexpr ModelChoices kZigZag = ModelChoices::zigzag_3_8();

/// ZigZag's model with one choice made our way.
ModelChoices zigzag_but(bool ModelChoices::*choice) {
  ModelChoices choices = kZigZag;
  choices.*choice = true;
  return choices;
}

struct Prepared {
  NestModel model;
  Hierarchy hierarchy;
  SpatialModel spatial;
};

Prepared prepare(const CoreProblem& problem, const Core& core, const ModelChoices& choices,
                 ArrayUnrolling unrolling = {}) {
  unrolling.resize(core.array.size());
  NestModel model = make_nest_model(problem, choices);
  Hierarchy hierarchy = make_hierarchy(problem, model, core);
  SpatialModel spatial = make_spatial_model(model, hierarchy, unrolling);
  return {std::move(model), std::move(hierarchy), std::move(spatial)};
}

/// False when the order does not fit.
bool evaluate_order(const Prepared& p, const std::vector<Loop>& order, Candidate& candidate) {
  candidate.size = order.size();
  std::copy(order.begin(), order.end(), candidate.loops.begin());
  return evaluate(p.model, p.hierarchy, p.spatial, candidate);
}

Candidate evaluate_order(const Prepared& p, const std::vector<Loop>& order) {
  Candidate candidate;
  EXPECT_TRUE(evaluate_order(p, order, candidate));
  return candidate;
}

std::int64_t words(const Prepared& p, const Candidate& c, std::size_t operand, std::size_t level,
                   Direction direction) {
  std::array<std::int64_t, kDirections> accesses{};
  level_energy(p.hierarchy, p.spatial.exact, c.exact, operand, level, &accesses);
  return accesses[index_of(direction)];
}

// O[D,K] += I[D,C] * W[C,K] with C=2, D=3, K=4 on one MAC, C outermost: the register holds one sum
// for one cycle. 24 MACs write it 24 times and send it up 24 times. The second half finds the sums
// of the first half: 12 are fetched into the register, and 12 read there. ZigZag reads 24 of both.
TEST(Divergence, FirstPartialSumsAreFree) {
  const std::vector<Loop> order{{2, 4}, {1, 3}, {0, 2}};
  for (const bool free : {false, true}) {
    const Prepared p = prepare(product(2, 3, 4), one_mac(),
                               free ? zigzag_but(&ModelChoices::first_partial_sums_free) : kZigZag);
    const Candidate c = evaluate_order(p, order);
    EXPECT_EQ(words(p, c, 0, 0, Direction::fl), 24);
    EXPECT_EQ(words(p, c, 0, 0, Direction::tl), free ? 12 : 24);
    EXPECT_EQ(words(p, c, 0, 0, Direction::th), 24);
    EXPECT_EQ(words(p, c, 0, 0, Direction::fh), free ? 12 : 24);
    EXPECT_EQ(words(p, c, 0, 1, Direction::fl), 24);
    EXPECT_EQ(words(p, c, 0, 1, Direction::tl), free ? 12 : 24);
  }
}

// C innermost: all of a sum is made in the register, 12 sums of 2 terms.
TEST(Divergence, FirstPartialSumsAreFreeInTheRegister) {
  for (const bool free : {false, true}) {
    const Prepared p = prepare(product(2, 3, 4), one_mac(),
                               free ? zigzag_but(&ModelChoices::first_partial_sums_free) : kZigZag);
    const Candidate c = evaluate_order(p, {{0, 2}, {1, 3}, {2, 4}});
    EXPECT_EQ(words(p, c, 0, 0, Direction::tl), free ? 12 : 24);
    EXPECT_EQ(words(p, c, 0, 0, Direction::fh), 0);
    EXPECT_EQ(words(p, c, 0, 1, Direction::tl), 0);
  }
}

// The first order again, 24 cycles. The sram's read port gives W and a sum, a word each, in every
// cycle, and I, which K does not touch, in every fourth; the first of each comes before the first
// cycle. That is 23 + 23 + 5 words; ours has 12 sums to read.
TEST(Divergence, FirstPartialSumsDoNotStall) {
  const std::vector<Loop> order{{2, 4}, {1, 3}, {0, 2}};
  const Prepared zigzag = prepare(product(2, 3, 4), one_mac(), kZigZag);
  EXPECT_DOUBLE_EQ(evaluate_order(zigzag, order).latency.stall, 23 + 23 + 5 - 24);
  const Prepared ours =
      prepare(product(2, 3, 4), one_mac(), zigzag_but(&ModelChoices::first_partial_sums_free));
  EXPECT_DOUBLE_EQ(evaluate_order(ours, order).latency.stall, 23 + 12 + 5 - 24);
}

using Element = std::vector<std::int64_t>;

Element element_at(const CoreProblem& problem, std::size_t operand, std::span<const Loop> order,
                   const std::vector<std::int64_t>& at) {
  std::vector<std::int64_t> value(problem.dims.size(), 0);
  std::vector<std::int64_t> stride(problem.dims.size(), 1);
  for (std::size_t i = 0; i < order.size(); ++i) { // inner loops are the low digits of their dim
    value[order[i].dim] += at[i] * stride[order[i].dim];
    stride[order[i].dim] *= static_cast<std::int64_t>(order[i].size);
  }
  Element element;
  for (const AxisExpr& expr : problem.operands[operand].axes) {
    std::int64_t index = expr.offset;
    for (const AffineTerm& term : expr.terms)
      index += term.coefficient * value[term.dim];
    element.push_back(index);
  }
  return element;
}

/// Walks the nest; every run of the `inner` innermost loops sends its elements of the output up.
/// Returns how many elements had been sent before by another run, which have to be fetched again.
std::int64_t simulated_reads(const CoreProblem& problem, std::span<const Loop> order,
                             std::size_t inner) {
  std::vector<std::int64_t> at(order.size(), 0);
  std::set<Element> sent;
  std::set<Element> held;
  std::int64_t reads = 0;
  for (;;) {
    held.insert(element_at(problem, 0, order, at));
    std::size_t i = 0;
    for (; i < order.size(); ++i) {
      if (++at[i] < static_cast<std::int64_t>(order[i].size))
        break;
      at[i] = 0;
    }
    if (i < order.size() && i < inner)
      continue;
    for (const Element& element : held)
      reads += sent.insert(element).second ? 0 : 1;
    held.clear();
    if (i == order.size())
      return reads;
  }
}

/// Sizes of a small convolution without padding; register and sram of `core` are cut down too.
CoreProblem any_convolution(ConvProduct which, Core& core) {
  const auto size = [](int low, int high) {
    return *rc::gen::inRange<std::int64_t>(low, high + 1);
  };
  test::ConvSizes s{.b = size(1, 2),
                    .k = size(1, 4),
                    .ox = size(1, 4),
                    .oy = size(1, 3),
                    .c = size(1, 4),
                    .fx = size(1, 3),
                    .fy = size(1, 3),
                    .stride = size(1, 3)};
  s.ix = s.stride * s.ox + s.fx;
  s.iy = s.stride * s.oy + s.fy;
  core.memories[0].size = {8 * size(1, 16)};
  core.memories[1].size = {16 * size(1, 8)};
  core.memories[2].size = {8 * size(24, 200)};
  return convolution(s, which);
}

bool any_candidate(const Prepared& p, Candidate& candidate) {
  OrderWalk walk(p.model, temporal_factors(p.spatial.temporal, 6));
  candidate.size = walk.size();
  for (int skip = *rc::gen::inRange(0, 41); skip >= 0 && walk.next(candidate.loops.data());
       --skip) {
  }
  return evaluate(p.model, p.hierarchy, p.spatial, candidate);
}

RC_GTEST_PROP(Divergence, PartialSumsReadAreThoseThatWereWritten, ()) {
  Core core = tpu_like(true);
  const auto which = *rc::gen::element(ConvProduct::forward, ConvProduct::input_gradient,
                                       ConvProduct::weight_gradient);
  const CoreProblem problem = any_convolution(which, core);
  const Prepared p = prepare(problem, core, ModelChoices{});
  Candidate c;
  RC_PRE(any_candidate(p, c));
  for (std::size_t l = 0; l < p.hierarchy.levels[0].size(); ++l) {
    const std::size_t inner = l == 0 ? 0 : c.allocation.cut[0][l - 1];
    const std::int64_t reads = simulated_reads(problem, c.order(), inner);
    const Movement& m = c.exact[0].levels[l][index_of(Direction::tl)];
    RC_ASSERT(m.transfers < std::max<std::int64_t>(m.count, 1));
    RC_ASSERT(m.amount * m.transfers >= reads);
    // Where slices overlap (scattered outputs) only a part of the last transfer may be needed.
    if (which == ConvProduct::input_gradient) {
      RC_ASSERT(m.amount * m.transfers < reads + std::max<std::int64_t>(m.amount, 1));
    } else {
      RC_ASSERT(m.amount * m.transfers == reads);
    }
    if (l > 0) { // the same data on the other side of the boundary
      const Movement& below = c.exact[0].levels[l - 1][index_of(Direction::fh)];
      RC_ASSERT(below.amount * below.transfers == m.amount * m.transfers);
    }
  }
}

RC_GTEST_PROP(Divergence, FirstPartialSumsOnlySave, ()) {
  Core core = tpu_like(true);
  const CoreProblem problem =
      any_convolution(*rc::gen::element(ConvProduct::forward, ConvProduct::weight_gradient), core);
  const Prepared zigzag = prepare(problem, core, kZigZag);
  const Prepared ours = prepare(problem, core, zigzag_but(&ModelChoices::first_partial_sums_free));
  Candidate a;
  RC_PRE(any_candidate(zigzag, a));
  Candidate b = a;
  RC_ASSERT(evaluate(ours.model, ours.hierarchy, ours.spatial, b));
  RC_ASSERT(b.energy.total() <= a.energy.total());
  RC_ASSERT(b.latency.stall <= a.latency.stall);
  RC_ASSERT(b.exact[0].levels[0][index_of(Direction::fl)].count ==
            a.exact[0].levels[0][index_of(Direction::fl)].count);
}

/// Three memories in a row for the weights; only the middle one shares its ports with the inputs.
Core with_shared_middle() {
  using enum MemoryOperand;
  using enum Direction;
  using enum PortType;
  Core core = one_mac();
  core.memories.insert(core.memories.begin(),
                       memory("weights", 8, 1, {I2}, {false},
                              {port(read, 8, 8, {use(I2, tl)}), port(write, 8, 8, {use(I2, fh)})}));
  core.memories.push_back(memory("dram", 1 << 20, 100, {I1, I2, O}, {true},
                                 {port(read, 1, 1, {use(I2, tl)}), port(read, 8, 8, {use(I1, tl)}),
                                  port(read, 8, 8, {use(O, tl), use(O, th)}),
                                  port(write, 8, 8, {use(I1, fh), use(I2, fh)}),
                                  port(write, 8, 8, {use(O, fh), use(O, fl)})}));
  return core;
}

// C=4, K=2, C inside. W goes dram -> sram -> register, I dram -> sram. Either pair of memories of W
// has the sram at one end, whose ports serve both inputs: half shared.
//   8 cycles of computing; the sram's read port is asked for I and W in each but the first: 7 + 7
//   of 8 cycles, so 6 of stall. W into its register: 1 word. W into the sram: 8 weights of 8 bits
//   at 1 bit per cycle are 64 cycles, of which 14 hide behind computing and stalling: 50. I: 4
//   values at 8 bits, 4 cycles.
// W takes 51 cycles; in ZigZag the last pair counts, 50.
TEST(Divergence, HalfSharedLoadsAdd) {
  const std::vector<Loop> order{{0, 4}, {2, 2}};
  const Prepared zigzag = prepare(product(4, 1, 2), with_shared_middle(), kZigZag);
  const Prepared ours = prepare(product(4, 1, 2), with_shared_middle(),
                                zigzag_but(&ModelChoices::half_shared_loads_add));
  const Candidate a = evaluate_order(zigzag, order);
  const Candidate b = evaluate_order(ours, order);
  EXPECT_DOUBLE_EQ(a.latency.stall, 6);
  EXPECT_DOUBLE_EQ(a.latency.onload, 50);
  EXPECT_DOUBLE_EQ(b.latency.onload, 51);
  EXPECT_EQ(a.energy.total(), b.energy.total());
  EXPECT_EQ(a.latency.stall, b.latency.stall);
}

std::vector<double> cycles_of(const std::vector<SingleTransfer>& transfers) {
  std::vector<double> cycles;
  for (const SingleTransfer& t : transfers)
    cycles.push_back(t.cycles);
  return cycles;
}

// 10 and 9 cycles, of which 8 and 1 must stay, and 20 to hide in. ZigZag takes from the first the 2
// it may lose, then for the second's 8 from both: 8 - 8 = 0 and 9 - 8 = 1. Ours stops at 8 and 1.
TEST(Divergence, LoadsKeepTheirMinimum) {
  std::vector<SingleTransfer> zigzag{{0, 0, 0, 10, 8}, {1, 0, 0, 9, 1}};
  hide_as_zigzag(zigzag, 20);
  EXPECT_EQ(cycles_of(zigzag), (std::vector<double>{0, 1}));
  std::vector<SingleTransfer> ours{{0, 0, 0, 10, 8}, {1, 0, 0, 9, 1}};
  hide_in_spare_cycles(ours, 20);
  EXPECT_EQ(cycles_of(ours), (std::vector<double>{8, 1}));
  // With 3 to hide in: from the first until it meets the second (1), then from both (1 and 1).
  ours = {{0, 0, 0, 10, 2}, {1, 0, 0, 9, 1}};
  hide_in_spare_cycles(ours, 3);
  EXPECT_EQ(cycles_of(ours), (std::vector<double>{8, 8}));
  // ZigZag's third transfer pushes the first below zero: 5 - 1 - 8 = -4 of 5.
  zigzag = {{0, 0, 0, 5, 4}, {1, 0, 0, 5, 4}, {2, 0, 0, 5, 0}};
  hide_as_zigzag(zigzag, 100);
  EXPECT_LT(zigzag[0].cycles, 0);
}

RC_GTEST_PROP(Divergence, HidingIsLevelAndWithinTheSurplus, ()) {
  std::vector<SingleTransfer> transfers(*rc::gen::inRange<std::size_t>(1, 8));
  for (SingleTransfer& t : transfers) {
    t.cycles = *rc::gen::inRange(0, 40);
    t.least = *rc::gen::inRange(0, 40);
  }
  const double surplus = *rc::gen::inRange(0, 150);
  std::vector<SingleTransfer> hidden = transfers;
  hide_in_spare_cycles(hidden, surplus);
  double taken = 0;
  double could = 0;
  double highest = 0; // of those that can still lose something
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    const double least = std::min(transfers[i].cycles, static_cast<double>(transfers[i].least));
    RC_ASSERT(hidden[i].cycles >= least && hidden[i].cycles <= transfers[i].cycles);
    taken += transfers[i].cycles - hidden[i].cycles;
    could += transfers[i].cycles - least;
    if (hidden[i].cycles > least)
      highest = std::max(highest, hidden[i].cycles);
  }
  RC_ASSERT(std::abs(taken - std::min(surplus, could)) < 1e-9);
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    if (hidden[i].cycles < transfers[i].cycles)
      RC_ASSERT(hidden[i].cycles >= highest - 1e-9); // none was lowered below one still higher
  }
}

// Axis 2*OX + 5*FX: ZigZag counts 2 x 3 points as 6 - max(0, 3 - 2) * (2 - 5) = 9, ours as 6.
RC_GTEST_PROP(Divergence, GapsAreNotFetched, ()) {
  const auto count = [](int low, int high) {
    return *rc::gen::inRange<std::int64_t>(low, high + 1);
  };
  const std::int64_t a = count(1, 12);
  const std::int64_t b = count(1, 12);
  const std::int64_t sa = count(1, 6);
  const std::int64_t sb = count(1, 6);
  const CoreProblem problem =
      convolution({.ox = a, .fx = b, .stride = sa, .ix = 1000, .iy = 1000}, ConvProduct::forward);
  CoreProblem dilated = problem;
  for (AxisExpr& expr : dilated.operands[2].axes) {
    for (AffineTerm& term : expr.terms) {
      if (term.dim == 6)
        term.coefficient = sb;
    }
  }
  std::set<std::int64_t> distinct;
  for (std::int64_t x = 0; x < a; ++x) {
    for (std::int64_t y = 0; y < b; ++y)
      distinct.insert(sa * x + sb * y);
  }
  const auto elements = [&](const ModelChoices& choices) {
    const NestModel model = make_nest_model(dilated, choices);
    Footprint footprint(model.operands[2]);
    footprint.multiply({3, static_cast<double>(a)});
    footprint.multiply({6, static_cast<double>(b)});
    return static_cast<std::int64_t>(footprint.elements());
  };
  const auto exact = static_cast<std::int64_t>(distinct.size());
  RC_ASSERT(elements(zigzag_but(&ModelChoices::gaps_not_fetched)) == exact);
  RC_ASSERT(elements(kZigZag) >= exact);
  const std::int64_t divisor = std::gcd(sa, sb);
  if (a >= sb / divisor || b <= sa / divisor) // no gaps
    RC_ASSERT(elements(kZigZag) == exact);
}

TEST(Divergence, GapsByHand) {
  CoreProblem problem =
      convolution({.ox = 2, .fx = 3, .stride = 2, .ix = 100, .iy = 100}, ConvProduct::forward);
  problem.operands[2].axes[3].terms[1].coefficient = 5;
  for (const bool fetched : {true, false}) {
    const NestModel model =
        make_nest_model(problem, fetched ? kZigZag : zigzag_but(&ModelChoices::gaps_not_fetched));
    Footprint footprint(model.operands[2]);
    footprint.multiply({3, 2});
    footprint.multiply({6, 3});
    EXPECT_EQ(footprint.elements(), fetched ? 9 : 6);
  }
}

// K=3 on two lanes takes two steps of 1.5 lanes. One MAC row, so two lanes ask the sram for two
// weights of 8 bits in the first step: a word of 16 bits every cycle. ZigZag sees 1 lane and half a
// word. At a port of 8 bits the widest step takes 2 cycles instead of 1.
TEST(Divergence, LatencySeesTheWidestStep) {
  Core core = one_mac();
  core.array = {{"D1", 2}};
  core.memories[1].ports[0].bandwidth_min = 8;
  core.memories[1].ports[0].bandwidth_max = 8;
  for (const bool widest : {false, true}) {
    const Prepared p =
        prepare(product(4, 1, 3), core, widest ? zigzag_but(&ModelChoices::widest_step) : kZigZag,
                {{{2, 2}}});
    const Candidate c = evaluate_order(p, {{0, 4}, {2, 2}});
    EXPECT_DOUBLE_EQ(p.spatial.exact.loops[0][0].size, 1.5);
    EXPECT_DOUBLE_EQ(p.spatial.truncated.loops[0][0].size, widest ? 2 : 1);
    const Movement& weights = c.truncated[2].levels[0][index_of(Direction::tl)];
    EXPECT_EQ(weights.amount, widest ? 2 : 1);
    EXPECT_EQ(weights.count, 8);
    // 8 cycles; I takes 1 of the port in each, W 1 or 2, and the first of both come before.
    EXPECT_DOUBLE_EQ(c.latency.ideal_temporal, 8);
    EXPECT_DOUBLE_EQ(c.latency.stall, widest ? 7 * 1 + 7 - 1 : 2 * 7 - 8);
  }
}

// Whole factors are what they are both ways: 96 on 32 lanes, also where the quotient is rounded.
TEST(Divergence, WidestStepOfWholeFactors) {
  for (std::int64_t size = 1; size <= 300; ++size) {
    const std::int64_t lanes = std::min<std::int64_t>(size, 32);
    const Prepared p = prepare(product(1, 1, size), tpu_like(true),
                               zigzag_but(&ModelChoices::widest_step), {{{2, lanes}}, {}});
    const std::int64_t steps = (size + lanes - 1) / lanes;
    EXPECT_EQ(p.spatial.temporal[2], steps);
    EXPECT_EQ(p.spatial.truncated.loops[0][0].size,
              static_cast<double>((size + steps - 1) / steps));
  }
}

TEST(Divergence, NarrowMemoriesArePassedBy) {
  const CoreProblem problem =
      product(4, 4, 4, 8, 32); // partial sums of 32 bits, 16 in the register
  Core core = one_mac();
  const Prepared ours = prepare(problem, core, zigzag_but(&ModelChoices::bypass_narrow_memories));
  ASSERT_EQ(ours.hierarchy.levels[0].size(), 1U);
  EXPECT_EQ(ours.hierarchy.nodes[ours.hierarchy.levels[0][0].node].memory->name, "sram");
  evaluate_order(ours, {{0, 4}, {1, 4}, {2, 4}});
  const Prepared zigzag = prepare(problem, core, kZigZag);
  ASSERT_EQ(zigzag.hierarchy.levels[0].size(), 2U);
  Candidate c;
  EXPECT_FALSE(evaluate_order(zigzag, {{1, 4}, {2, 4}, {0, 4}}, c));
  // Finished values have 8 bits: with all of the sum below, the register could send them up, but a
  // sum of 32 bits never fits it.
  EXPECT_FALSE(evaluate_order(zigzag, {{0, 4}, {1, 4}, {2, 4}}, c));
  CoreCostOptions options;
  options.model = kZigZag;
  options.fixed_dataflow = true;
  core.dataflow = {{{"K", 1}}};
  EXPECT_THROW(core_cost(problem, core, options), InfeasibleError);
}

// Everything temporal on one MAC with a read port of its own for I and for W, both half as wide as
// an element: each of 8 MACs needs 2 cycles of both ports. Loops C, D, K of 2: I changes in all
// cycles but half of the K loop's (it is outermost, so in all 8), W in all 8 too. Both ports are
// late by 1 cycle 7 times. ZigZag counts the worst port, 7; in turn they are 14.
TEST(Divergence, PortStallsAdd) {
  using enum MemoryOperand;
  using enum Direction;
  Core core = one_mac();
  core.memories[1].ports = {
      port(PortType::read, 4, 4, {use(I1, tl)}), port(PortType::read, 4, 4, {use(I2, tl)}),
      port(PortType::read, 64, 64, {use(O, tl), use(O, th)}),
      port(PortType::write, 64, 64, {use(I1, fh), use(I2, fh), use(O, fh), use(O, fl)})};
  const std::vector<Loop> order{{0, 2}, {1, 2}, {2, 2}};
  EXPECT_DOUBLE_EQ(evaluate_order(prepare(product(2, 2, 2), core, kZigZag), order).latency.stall,
                   7);
  EXPECT_DOUBLE_EQ(
      evaluate_order(prepare(product(2, 2, 2), core, zigzag_but(&ModelChoices::port_stalls_add)),
                     order)
          .latency.stall,
      14);
}

// The register holds two partial sums of 16 bits. Filled to the brim it takes K = 2; with room for
// the next one while this one is in use, a single sum.
TEST(Divergence, SecondBuffersTakeRoom) {
  Core core = one_mac();
  core.memories[0].size = {32};
  const std::vector<Loop> order{{2, 2}, {1, 3}, {0, 2}};
  const Candidate full = evaluate_order(prepare(product(2, 3, 2), core, kZigZag), order);
  EXPECT_EQ(full.allocation.cut[0][0], 1);
  EXPECT_EQ(full.exact[0].held_bits[1], 32);
  const Candidate halves = evaluate_order(
      prepare(product(2, 3, 2), core, zigzag_but(&ModelChoices::reserve_double_buffers)), order);
  EXPECT_EQ(halves.allocation.cut[0][0], 0);
  EXPECT_EQ(halves.exact[0].held_bits[1], 16);
  EXPECT_TRUE(halves.double_buffered[0][1]);
  // A memory for one element keeps it, second buffer or not.
  core.memories[0].size = {16};
  EXPECT_EQ(
      evaluate_order(
          prepare(product(2, 3, 2), core, zigzag_but(&ModelChoices::reserve_double_buffers)), order)
          .exact[0]
          .held_bits[1],
      16);
}

// One product: an input of 8 bits is an eighth of a word of 64 bits, which costs 10 pJ. A word that
// is full costs the same both ways.
TEST(Divergence, PartWordsCost) {
  for (const bool part : {false, true}) {
    Core core = one_mac();
    for (const std::int64_t width : {64, 8}) {
      for (MemoryPort& port : core.memories[1].ports) {
        port.bandwidth_min = 8;
        port.bandwidth_max = width;
      }
      const Prepared p = prepare(product(1, 1, 1), core,
                                 part ? zigzag_but(&ModelChoices::part_words_cost) : kZigZag);
      const Candidate c = evaluate_order(p, {});
      const double words_read = part || width == 8 ? 8.0 / static_cast<double>(width) : 0.0;
      EXPECT_DOUBLE_EQ(level_energy(p.hierarchy, p.spatial.exact, c.exact, 1, 0), 10 * words_read);
      EXPECT_EQ(words(p, c, 1, 0, Direction::tl), words_read > 0 ? 1 : 0);
    }
  }
}

TEST(Divergence, DefaultsAreThoseOfTheDocumentation) {
  const ModelChoices ours;
  EXPECT_TRUE(ours.first_partial_sums_free && ours.half_shared_loads_add &&
              ours.loads_keep_minimum && ours.gaps_not_fetched && ours.widest_step &&
              ours.bypass_narrow_memories && ours.part_words_cost &&
              ours.rows_shift_at_their_loop && ours.free_unrolling);
  EXPECT_FALSE(ours.reserve_double_buffers || ours.port_stalls_add);
  EXPECT_NE(signature(ours), signature(kZigZag));
}

} // namespace
} // namespace monet::core_cost_detail
