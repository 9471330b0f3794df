// Unrollings as ZigZag chooses them: the order of its sets, cases worked by hand, and a plain
// enumeration.
#include "core_cost/cores.hpp"
#include "core_cost/model/set_order.hpp"
#include "core_cost/zigzag/spatial_generator.hpp"

#include "monet/base/errors.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace monet::core_cost_detail {
namespace {

using test::convolution;
using test::ConvProduct;
using test::product;
using test::tpu_like;

using Named = std::vector<std::vector<Unrolling>>;

std::vector<std::string> in_set_order(const std::vector<std::string>& names, NameKind kind) {
  std::vector<std::string> ordered;
  for (const std::size_t i : set_order(names, kind))
    ordered.push_back(names[i]);
  return ordered;
}

TEST(SetOrder, IsThatOfZigZagsSets) { // as ZigZag 3.8.5 prints them
  using Names = std::vector<std::string>;
  const auto dims = [](const Names& names) { return in_set_order(names, NameKind::layer_dim); };
  EXPECT_EQ(dims({"B", "K", "G", "OX", "OY", "C", "FX", "FY"}),
            (Names{"FY", "FX", "B", "G", "OX", "C", "K", "OY"}));
  EXPECT_EQ(dims({"C", "D", "K"}), (Names{"K", "D", "C"}));
  EXPECT_EQ(dims({"C", "D", "K", "B"}), (Names{"K", "B", "D", "C"}));
  EXPECT_EQ(dims({"OX", "OY"}), (Names{"OY", "OX"}));
  const auto array = [](const Names& names) { return in_set_order(names, NameKind::array_dim); };
  EXPECT_EQ(array({"D2", "D1"}), (Names{"D1", "D2"}));
  EXPECT_EQ(array({"D1", "D2", "D3", "D4"}), (Names{"D1", "D2", "D4", "D3"}));
  EXPECT_EQ(array({"D1", "D3"}), (Names{"D1", "D3"})); // these two collide
  EXPECT_EQ(array({"D3", "D1"}), (Names{"D3", "D1"}));
}

struct Prepared {
  NestModel model;
  Hierarchy hierarchy;
  Core core;
  CoreProblem problem;
};

Prepared prepare(CoreProblem problem, Core core) {
  Prepared p{{}, {}, std::move(core), std::move(problem)};
  p.model = make_nest_model(p.problem, ModelChoices::zigzag_3_8());
  p.hierarchy = make_hierarchy(p.problem, p.model, p.core);
  return p;
}

/// "K 32|C 32"; an array dim without loops is empty.
std::string text(const Prepared& p, const ArrayUnrolling& unrolling) {
  std::string result;
  for (std::size_t d = 0; d < unrolling.size(); ++d) {
    result += d == 0 ? "" : "|";
    for (std::size_t i = 0; i < unrolling[d].size(); ++i) {
      const Unrolled& u = unrolling[d][i];
      result += (i == 0 ? "" : ",") + p.model.dims[u.dim].name + ' ' + std::to_string(u.factor);
    }
  }
  return result;
}

std::vector<std::string> unrollings(const Prepared& p, const Named& named,
                                    const CoreCostOptions& options = {}) {
  std::vector<std::string> list;
  for (const ArrayUnrolling& u : zigzag_unrollings(p.model, p.hierarchy, named, options))
    list.push_back(text(p, u));
  return list;
}

using List = std::vector<std::string>;

TEST(SpatialGenerator, AGivenMappingIsReducedToLayerAndArray) {
  const Prepared p = prepare(product(64, 12, 20), tpu_like(true)); // C D K on 32 x 32
  EXPECT_EQ(unrollings(p, {{{"K", 32}}, {{"C", 32}}}), List{"K 20|C 32"});
  EXPECT_EQ(unrollings(p, {{{"K", 64}}, {{"C", 64}}}), List{"K 20|C 32"});
  EXPECT_EQ(unrollings(p, {{{"OX", 8}}, {{"C", 16}}}), List{"|C 16"}) << "absent, but given";
  EXPECT_EQ(unrollings(p, {{{"K", 4}, {"K", 8}}, {{"C", 16}}}), List{"K 8|C 16"});
}

TEST(SpatialGenerator, WhatDoesNotFitIsDroppedWhole) {
  const Prepared p = prepare(product(64, 12, 20), tpu_like(true));
  // 20 * 12 > 32: K goes first in the set {K, D}; then D fits.
  EXPECT_EQ(unrollings(p, {{{"D", 12}, {"K", 20}}, {{"C", 32}}}), List{"D 12|C 32"});
  // K 10 twice is more than 20: the first array dim in the order of the set loses it.
  EXPECT_EQ(unrollings(p, {{{"K", 10}, {"D", 2}}, {{"K", 10}}}), List{"D 2|K 10"});
}

TEST(SpatialGenerator, PortsOfInnermostMemoriesCapLoops) {
  // The weights' register serves D2 and gives 8 bits in a cycle: one weight, so that no loop that
  // the weights have is unrolled there.
  Core core = tpu_like(true);
  core.memories[0].serves = {false, true};
  core.memories[0].size = {1 << 20};
  const Prepared p = prepare(product(64, 12, 20), core);
  EXPECT_EQ(unrollings(p, {{{"K", 16}}, {{"C", 16}}}), List{"K 16|"});
  EXPECT_EQ(unrollings(p, {{{"K", 16}}, {{"D", 16}}}), List{"K 16|D 12"});
}

TEST(SpatialGenerator, OpenArrayDimsTakeDivisors) {
  const Prepared p = prepare(product(64, 12, 20), tpu_like(true));
  CoreCostOptions options;
  options.generated_unrollings = 4;
  // On D2, by lanes: C 32 (32 * 16 = 512, indicator 512 + 512/32 - 1), then D 12, then C 16, D 6...
  // K 20 would go beyond 20 together with K 16.
  EXPECT_EQ(unrollings(p, {{{"K", 16}}, {}}, options),
            (List{"K 16|C 32", "K 16|C 16", "K 16|D 12", "K 16|C 8"}));
}

TEST(SpatialGenerator, MoreDimsRankAheadOfEqualLanes) {
  Core core = tpu_like(true);
  core.array = {{"D1", 4}, {"D2", 4}};
  const Prepared p = prepare(product(64, 64, 64), core);
  CoreCostOptions options;
  options.generated_unrollings = 7;
  // 16 lanes by two dims: 16 + 16/4 - 1. The set walks K, D, C.
  EXPECT_EQ(unrollings(p, {}, options),
            (List{"K 4|D 4", "K 4|C 4", "D 4|K 4", "D 4|C 4", "C 4|K 4", "C 4|D 4", "K 4|K 4"}));
}

TEST(SpatialGenerator, HintsChooseTheLoops) {
  Core core = tpu_like(true);
  core.array = {{"D1", 4}, {"D2", 4}};
  const Prepared p = prepare(product(64, 64, 64), core);
  CoreCostOptions options;
  options.generated_unrollings = 2;
  options.spatial_hints = {{"D", "OX"}, {"OX"}}; // no loop of this layer on D2: all of them
  EXPECT_EQ(unrollings(p, {}, options), (List{"D 4|K 4", "D 4|C 4"}));
}

TEST(SpatialGenerator, MixedLoopsFillAnArrayDim) {
  Core core = tpu_like(true);
  core.array = {{"D1", 6}, {"D2", 1}};
  const Prepared p = prepare(product(3, 2, 1), core);
  CoreCostOptions options;
  options.generated_unrollings = 2;
  options.mixed_unrollings = true;
  EXPECT_EQ(unrollings(p, {{}, {{"K", 1}}}, options), (List{"D 2,C 3|", "C 3|"}));
}

TEST(SpatialGenerator, EqualFactorsShrinkTogether) {
  // Outputs of 16 bits in a register of 160 that serves both array dims: ten fit. K 4 * D 4 = 16
  // is shrunk to 3 * 3 in two steps, 4 * 3 being 12 still.
  Core core = tpu_like(true);
  core.array = {{"D1", 4}, {"D2", 4}};
  core.memories[1].serves = {true, true};
  core.memories[1].size = {160};
  core.memories[1].ports = {test::port(
      PortType::read_write, 64, 64,
      {test::use(MemoryOperand::O, Direction::tl), test::use(MemoryOperand::O, Direction::th),
       test::use(MemoryOperand::O, Direction::fh), test::use(MemoryOperand::O, Direction::fl)})};
  const Prepared p = prepare(product(64, 64, 64), core);
  EXPECT_EQ(unrollings(p, {{{"K", 4}}, {{"D", 4}}}), List{"K 3|D 3"});
  // 12 fit: one of them would go to 3, but both get the value of the last one, which stays.
  core.memories[1].size = {192};
  const Prepared q = prepare(product(64, 64, 64), core);
  EXPECT_EQ(unrollings(q, {{{"K", 4}}, {{"D", 4}}}), List{"K 4|D 4"});
}

TEST(SpatialGenerator, NothingToUnrollIsInfeasible) {
  Core core = tpu_like(true);
  core.memories[0].serves = {true, true};
  core.memories[1].serves = {true, true};
  core.memories[0].ports[0].bandwidth_max = 4; // narrower than a weight
  core.memories[1].ports[3].bandwidth_max = 4; // and than a sum
  const Prepared p = prepare(product(64, 12, 20), core);
  EXPECT_THROW(unrollings(p, {}), InfeasibleError);
}

TEST(SpatialGenerator, TooManyCombinationsAreRefused) {
  Core core = tpu_like(true);
  core.array.clear();
  core.dataflow.clear();
  for (int i = 1; i <= 8; ++i)
    core.array.push_back({"D" + std::to_string(i), 7});
  for (Memory& memory : core.memories)
    memory.serves.assign(8, memory.serves[0]);
  CoreProblem problem = convolution({.b = 6, .k = 6, .ox = 6, .oy = 6, .c = 6, .fx = 6, .fy = 6},
                                    ConvProduct::forward);
  CoreCostOptions options;
  options.mixed_unrollings = true;
  options.generated_unrollings = 1000;
  EXPECT_THROW(unrollings(prepare(problem, core), {}, options), InfeasibleError);
}

/// All combinations in a list, sorted by the indicator: what zigzag_unrollings() must agree with
/// where no memory is too small.
List enumerated(const Prepared& p, const CoreCostOptions& options) {
  std::vector<std::string> names;
  for (const LoopDim& dim : p.model.dims)
    names.push_back(dim.name);
  const std::vector<std::size_t> loops = set_order(names, NameKind::layer_dim);
  std::vector<std::vector<std::vector<Unrolled>>> choices(p.hierarchy.array_dims);
  for (std::size_t d = 0; d < choices.size(); ++d) {
    const std::int64_t lanes = p.hierarchy.array_size[d];
    for (const std::size_t i : loops) {
      for (std::int64_t f = std::min(p.model.dims[i].size, lanes), top = f; f >= 1; --f) {
        if (top % f == 0)
          choices[d].push_back({{static_cast<std::uint32_t>(i), f}});
      }
    }
    for (std::size_t a = 0; options.mixed_unrollings && a < loops.size(); ++a) {
      for (std::size_t b = a + 1; b < loops.size(); ++b) {
        const std::int64_t top_a = std::min(p.model.dims[loops[a]].size, lanes);
        const std::int64_t top_b = std::min(p.model.dims[loops[b]].size, lanes);
        for (std::int64_t f = 2; f <= top_a; ++f) {
          for (std::int64_t g = 2; g <= top_b; ++g) {
            if (top_a % f == 0 && top_b % g == 0 && f * g <= lanes)
              choices[d].push_back({{static_cast<std::uint32_t>(loops[a]), f},
                                    {static_cast<std::uint32_t>(loops[b]), g}});
          }
        }
      }
    }
  }
  struct Ranked {
    double indicator;
    ArrayUnrolling unrolling;
  };
  std::vector<Ranked> all;
  for (const auto& first : choices[0]) {
    for (const auto& second : choices[1]) {
      const ArrayUnrolling both{first, second};
      std::map<std::uint32_t, std::int64_t> totals;
      double lanes = 1;
      for (const auto& on_dim : both) {
        for (const Unrolled& u : on_dim) {
          totals[u.dim] = std::max<std::int64_t>(1, totals[u.dim]) * u.factor;
          lanes *= static_cast<double>(u.factor);
        }
      }
      std::int64_t largest = 1;
      bool fits = true;
      for (const auto& [dim, total] : totals) {
        fits = fits && total <= p.model.dims[dim].size;
        largest = std::max(largest, total);
      }
      if (fits)
        all.push_back({lanes + (lanes / static_cast<double>(largest) - 1), both});
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Ranked& a, const Ranked& b) { return a.indicator > b.indicator; });
  List list;
  for (Ranked& ranked : all) {
    if (list.size() == static_cast<std::size_t>(options.generated_unrollings))
      break;
    for (auto& on_dim : ranked.unrolling)
      std::erase_if(on_dim, [](const Unrolled& u) { return u.factor == 1; });
    list.push_back(text(p, ranked.unrolling));
  }
  return list;
}

RC_GTEST_PROP(SpatialGenerator, AgreesWithAPlainEnumeration, ()) {
  const auto size = [](int low, int high) {
    return *rc::gen::inRange<std::int64_t>(low, high + 1);
  };
  Core core = tpu_like(true);
  core.array = {{"D1", size(1, 12)}, {"D2", size(1, 12)}};
  const Prepared p = prepare(product(size(1, 30), size(1, 30), size(1, 30)), core);
  CoreCostOptions options;
  options.generated_unrollings = static_cast<int>(size(1, 20));
  // Three loops of 2 on up to seven lanes do not fit: pairs are all that mixing gives.
  options.mixed_unrollings =
      *rc::gen::arbitrary<bool>() && core.array[0].size < 8 && core.array[1].size < 8;
  RC_ASSERT(unrollings(p, {}, options) == enumerated(p, options));
}

TEST(FreeUnrolling, KeepsToHintsAndGivenArrayDims) {
  const auto unrolled = [](const Core& core, const CoreCostOptions& options, std::size_t d) {
    const CoreCost cost = core_cost(product(64, 64, 64), core, options); // C D K
    std::string loops;
    for (const MappedLoop& loop : cost.spatial.unrolled[d])
      loops += "CDK"[loop.dim];
    return loops;
  };
  Core core = tpu_like(true);
  core.dataflow.clear();
  CoreCostOptions options;
  options.spatial_hints = {{"D"}, {"C", "OX"}};
  EXPECT_EQ(unrolled(core, options, 0), "D");
  EXPECT_EQ(unrolled(core, options, 1), "C");
  // D1 is given, D2 is open.
  core.dataflow = {{{"K", 16}}, {}};
  options.fixed_dataflow = true;
  EXPECT_EQ(unrolled(core, options, 0), "K");
  EXPECT_EQ(unrolled(core, options, 1), "C");
  options.spatial_hints = {{}, {"D"}};
  EXPECT_EQ(unrolled(core, options, 1), "D");
  // Nothing that the layer has on D2: it stays unused.
  core.dataflow = {{{"K", 16}}, {{"OX", 4}}};
  EXPECT_EQ(unrolled(core, options, 1), "");
}

} // namespace
} // namespace monet::core_cost_detail
