// Evaluating a mapping asks nothing of the heap, and a search asks no more for visiting more. An
// executable of its own: it counts every allocation of the process.
#include "core_cost/model/candidate.hpp"
#include "core_cost/search/spatial_choice.hpp"
#include "core_cost/search/temporal_order.hpp"
#include "core_cost/cores.hpp"
#include "core_cost/order_walk.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

namespace {

std::atomic<std::int64_t> allocations{0};

void* counted(std::size_t size) {
  ++allocations;
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr)
    throw std::bad_alloc();
  return memory;
}

} // namespace

void* operator new(std::size_t size) {
  return counted(size);
}
void* operator new[](std::size_t size) {
  return counted(size);
}
// std::stable_sort and others that can do without memory ask like this.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size == 0 ? 1 : size);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size == 0 ? 1 : size);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace monet::core_cost_detail {
namespace {

using test::convolution;
using test::ConvProduct;
using test::product;
using test::tpu_like;

CoreProblem layer(ConvProduct which) {
  return convolution({.b = 2,
                      .k = 48,
                      .ox = 14,
                      .oy = 14,
                      .c = 40,
                      .fx = 3,
                      .fy = 3,
                      .stride = 2,
                      .padding = 1,
                      .ix = 28,
                      .iy = 28},
                     which);
}

TEST(AllocationCount, TheCounterCounts) {
  const std::int64_t before = allocations;
  const std::vector<int> some(100);
  EXPECT_EQ(allocations - before, 1);
}

TEST(AllocationCount, EvaluatingACandidateAllocatesNothing) {
  std::vector<CoreProblem> problems{product(1000, 7, 768)};
  for (const auto which :
       {ConvProduct::forward, ConvProduct::input_gradient, ConvProduct::weight_gradient})
    problems.push_back(layer(which));
  ModelChoices all_ours;
  all_ours.reserve_double_buffers = all_ours.port_stalls_add = true;
  const Core core = tpu_like(true);
  Candidate candidate;
  std::int64_t evaluated = 0;
  for (const ModelChoices& choices : {ModelChoices{}, ModelChoices::zigzag_3_8(), all_ours}) {
    for (const CoreProblem& problem : problems) {
      const NestModel model = make_nest_model(problem, choices);
      const Hierarchy hierarchy = make_hierarchy(problem, model, core);
      const SpatialModel spatial = make_spatial_model(
          model, hierarchy,
          from_dataflow(model, hierarchy, unroll_caps(model, hierarchy), core.dataflow));
      OrderWalk walk(model, temporal_factors(spatial.temporal, 6));
      candidate.size = walk.size();
      const std::int64_t before = allocations;
      for (int n = 0; n < 1000 && walk.next(candidate.loops.data()); ++n) {
        AllocationFailure failure;
        evaluated += evaluate(model, hierarchy, spatial, candidate, &failure) ? 1 : 0;
      }
      EXPECT_EQ(allocations - before, 0);
    }
  }
  EXPECT_GT(evaluated, 4000);
}

struct Searched {
  std::int64_t allocations = 0;
  double orders = 0;
};

Searched search(const CoreProblem& problem, int lpf_limit) {
  CoreCostOptions options;
  options.fixed_dataflow = true;
  options.lpf_limit = lpf_limit;
  const std::int64_t before = allocations;
  const CoreCost cost = core_cost(problem, tpu_like(true), options);
  return {allocations - before, cost.effort.space};
}

// Only tables that double and mappings that are better than all before need room.
TEST(AllocationCount, ASearchAllocatesNoMoreForMoreCandidates) {
  for (const CoreProblem& problem : {product(768, 128, 3072), layer(ConvProduct::forward)}) {
    const Searched few = search(problem, 4);
    const Searched many = search(problem, 9);
    EXPECT_GT(many.orders, 40 * few.orders);
    EXPECT_LE(many.allocations, few.allocations + 100);
    RecordProperty("allocations of " + std::to_string(many.orders) + " orders",
                   std::to_string(many.allocations));
  }
}

} // namespace
} // namespace monet::core_cost_detail
