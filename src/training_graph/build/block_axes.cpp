// Finds the axes that products sum over, along which blocks must lie; block_copies.cpp uses them.
#include "training_graph/build/block_copies.hpp"
#include "workload/shared/views.hpp"

#include <algorithm>
#include <cstdlib>
#include <optional>

namespace monet {

namespace {

/// Neighbours along an axis that one sum runs over.
struct SumRun {
  std::size_t axis = 0;
  std::int64_t length = 1;
  std::vector<std::size_t> loops;
};

struct Factor {
  SummedFactor what;
  std::vector<SumRun> runs;
  std::optional<std::size_t> widest; ///< the axis with the longest loop of the sum
};

/// The loops of the sum at the fine end of an axis; nothing where a loop of the result comes before
/// them or between their steps.
std::optional<SumRun> run_of(const LoopNest& nest, std::size_t at, const AxisExpr& axis) {
  std::vector<AffineTerm> terms;
  for (const AffineTerm& term : axis.terms) {
    if (nest.dims[term.dim].size > 1 && term.coefficient != 0)
      terms.push_back({term.dim, std::abs(term.coefficient)});
  }
  std::ranges::stable_sort(terms, {}, &AffineTerm::coefficient);
  SumRun run{at, 1, {}};
  for (const AffineTerm& term : terms) {
    if (!is_reduction(nest, term.dim)) {
      if (term.coefficient < run.length || run.loops.empty())
        return std::nullopt;
      break;
    }
    if (term.coefficient > run.length)
      break;
    run.length += (nest.dims[term.dim].size - 1) * term.coefficient;
    run.loops.push_back(term.dim);
  }
  return run.loops.empty() ? std::nullopt : std::optional(run);
}

Factor examine(const LoopNest& nest, std::size_t operand) {
  const Access& access = nest.operands[operand];
  Factor factor;
  factor.what.stored = access.tensor;
  std::int64_t longest = 1;
  for (std::size_t a = 0; a < access.axes.size(); ++a) {
    const AxisExpr& axis = access.axes[a];
    if (axis.data_dependent)
      continue;
    if (auto run = run_of(nest, a, axis))
      factor.runs.push_back(std::move(*run));
    for (const AffineTerm& term : axis.terms) {
      const std::int64_t size = nest.dims[term.dim].size;
      if (size < 2 || size < longest || !is_reduction(nest, term.dim))
        continue;
      longest = size;
      factor.widest = a;
    }
  }
  return factor;
}

const SumRun* run_with(const Factor& factor, std::size_t loop) {
  const auto found = std::ranges::find_if(factor.runs, [&](const SumRun& run) {
    return std::ranges::find(run.loops, loop) != run.loops.end();
  });
  return found == factor.runs.end() ? nullptr : &*found;
}

/// The loop that goes along an axis of every factor, with the longest runs.
std::optional<std::size_t> common_loop(const LoopNest& nest, const std::vector<Factor>& factors) {
  std::optional<std::size_t> best;
  std::int64_t longest = 1;
  for (std::size_t loop = 0; loop < nest.dims.size(); ++loop) {
    std::int64_t shortest = nest.dims[loop].size > 1 ? iterations(nest) : 0;
    for (const Factor& factor : factors) {
      const SumRun* run = run_with(factor, loop);
      shortest = run ? std::min(shortest, run->length) : 0;
    }
    if (shortest < 2 || shortest < longest)
      continue;
    longest = shortest;
    best = loop;
  }
  return best;
}

std::optional<std::size_t> own_axis(const Factor& factor) {
  const SumRun* best = nullptr;
  for (const SumRun& run : factor.runs) {
    if (!best || run.length >= best->length)
      best = &run;
  }
  return best ? std::optional(best->axis) : factor.widest;
}

/// Two operands of one of the operator's products, and the result.
std::vector<SummedFactor> factors_of(const Graph& graph, const LoopNest& whole,
                                     const NestProduct& product,
                                     const std::function<bool(TensorId)>& counts) {
  LoopNest nest = product_nest(whole, product);
  read_through_views(graph, nest, 1);
  read_through_views(graph, nest, 2);
  std::vector<Factor> factors;
  for (const std::size_t k : {1U, 2U}) {
    if (nest.operands[k].opaque || !counts(nest.operands[k].tensor))
      continue;
    Factor factor = examine(nest, k);
    factor.what.operand = k == 1 ? *product.first : *product.second;
    if (factor.widest)
      factors.push_back(std::move(factor));
  }
  const auto loop = common_loop(nest, factors);
  std::vector<SummedFactor> result;
  for (Factor& factor : factors) {
    const std::size_t axis = loop ? run_with(factor, *loop)->axis : *own_axis(factor);
    const auto rank = static_cast<int>(graph.tensor(factor.what.stored).shape.size());
    factor.what.axis = static_cast<int>(axis) - rank;
    result.push_back(factor.what);
  }
  return result;
}

} // namespace

std::vector<SummedFactor> summed_factors(const Graph& graph, const Operator& op,
                                         const std::function<bool(TensorId)>& counts) {
  const LoopNest& nest = op.nest;
  if (nest.compute != ComputeKind::mac || nest.operands.size() < 3)
    return {};
  std::vector<NestProduct> products = nest.products;
  if (products.empty())
    products.push_back({0U, 1U, 2U});
  std::vector<SummedFactor> result;
  for (const NestProduct& product : products) {
    if (!product.is_whole())
      continue;
    const auto factors = factors_of(graph, nest, product, counts);
    result.insert(result.end(), factors.begin(), factors.end());
  }
  return result;
}

} // namespace monet
