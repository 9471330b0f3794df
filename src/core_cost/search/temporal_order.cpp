// Temporal loops of an unrolling and the orders that a user allows; mapping_search.cpp searches
// them.
#include "core_cost/search/temporal_order.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace monet::core_cost_detail {

namespace {

std::vector<std::int64_t> prime_factors(std::int64_t value) {
  std::vector<std::int64_t> factors;
  for (std::int64_t p = 2; p * p <= value; ++p) {
    for (; value % p == 0; value /= p)
      factors.push_back(p);
  }
  if (value > 1)
    factors.push_back(value);
  return factors;
}

/// Factors of one dim, those that may be merged and those that must stay.
struct DimFactors {
  std::uint32_t dim = 0;
  std::vector<std::int64_t> factors; ///< ascending
  std::vector<std::int64_t> kept;

  std::size_t count() const { return factors.size() + kept.size(); }
};

std::vector<DimFactors> factorise(const std::vector<std::int64_t>& iterations) {
  std::vector<DimFactors> dims;
  for (std::size_t d = 0; d < iterations.size(); ++d) {
    if (iterations[d] > 1)
      dims.push_back({static_cast<std::uint32_t>(d), prime_factors(iterations[d]), {}});
  }
  return dims;
}

/// Replaces the two smallest factors by their product.
void merge_smallest(std::vector<std::int64_t>& factors) {
  const std::int64_t product = factors[0] * factors[1];
  factors.erase(factors.begin(), factors.begin() + 2);
  factors.insert(std::ranges::lower_bound(factors, product), product);
}

std::vector<Loop> merged_loops(std::vector<DimFactors> dims, int lpf_limit) {
  std::size_t total = 0;
  for (const DimFactors& d : dims)
    total += d.count();
  const auto wanted = lpf_limit > 0
                          ? std::min(static_cast<std::size_t>(lpf_limit), kMaxTemporalLoops)
                          : kMaxTemporalLoops;
  for (const std::size_t limit = std::max(wanted, dims.size()); total > limit; --total) {
    DimFactors* largest = nullptr;
    for (DimFactors& d : dims) {
      if (d.factors.size() > 1 && (largest == nullptr || d.count() > largest->count()))
        largest = &d;
    }
    if (largest == nullptr)
      break; // all others are kept as the user wants them
    merge_smallest(largest->factors);
  }
  if (total > kMaxTemporalLoops) {
    throw InfeasibleError(
        fmt::format("{} temporal loops; at most {} are supported", total, kMaxTemporalLoops));
  }
  std::vector<Loop> loops;
  for (DimFactors& d : dims) {
    d.factors.insert(d.factors.end(), d.kept.begin(), d.kept.end());
    std::ranges::sort(d.factors);
    for (const std::int64_t factor : d.factors)
      loops.push_back({d.dim, static_cast<double>(factor)});
  }
  return loops;
}

TemporalSpace place_rules(const NestModel& model, const std::vector<OrderedLoop>& wanted,
                          bool from_inside) {
  TemporalSpace space;
  bool outside = false;
  for (const OrderedLoop& entry : wanted) {
    if (entry.dim == "*" && !from_inside) {
      outside = true;
      continue;
    }
    const std::size_t dim = model.dim_named(entry.dim);
    if (dim == model.dims.size())
      continue;
    const auto size = static_cast<double>(entry.size.value_or(0));
    (outside ? space.outer : space.inner).push_back({static_cast<std::uint32_t>(dim), size});
  }
  std::ranges::reverse(space.outer);
  return space;
}

/// The user has written the whole nest; loops of one iteration count as written.
bool is_complete(const TemporalSpace& space, std::vector<std::int64_t> left) {
  if (space.inner.empty() || !space.outer.empty() || space.inner.size() > kMaxTemporalLoops)
    return false;
  for (const PlaceRule& rule : space.inner) {
    const auto size = static_cast<std::int64_t>(rule.size);
    if (size < 1 || left[rule.dim] % size != 0)
      return false;
    left[rule.dim] /= size;
  }
  return std::ranges::all_of(left, [](std::int64_t n) { return n == 1; });
}

/// Takes the prime factors of a wanted loop together.
void keep_whole(const NestModel& model, const PlaceRule& rule, std::vector<DimFactors>& dims,
                std::vector<std::int64_t>& left) {
  const auto size = static_cast<std::int64_t>(rule.size);
  if (size < 1 || left[rule.dim] % size != 0) {
    throw InfeasibleError(
        fmt::format("the temporal order uses {} {}, but {} of its iterations remain to divide",
                    model.dims[rule.dim].name, size, left[rule.dim]));
  }
  left[rule.dim] /= size;
  const auto d = std::ranges::find(dims, rule.dim, &DimFactors::dim);
  if (d == dims.end())
    return;
  for (const std::int64_t p : prime_factors(size))
    d->factors.erase(std::ranges::find(d->factors, p));
  d->kept.push_back(size);
}

} // namespace

bool TemporalSpace::allows(const Loop& loop, std::size_t place) const {
  if (place < inner.size() && !inner[place].allows(loop))
    return false;
  const std::size_t from_outside = factors.size() - 1 - place;
  return from_outside >= outer.size() || outer[from_outside].allows(loop);
}

std::vector<Loop> temporal_factors(const std::vector<std::int64_t>& iterations, int lpf_limit) {
  return merged_loops(factorise(iterations), lpf_limit);
}

TemporalSpace temporal_space(const NestModel& model, const std::vector<std::int64_t>& iterations,
                             int lpf_limit, const std::vector<OrderedLoop>& wanted,
                             bool from_inside) {
  TemporalSpace space = place_rules(model, wanted, from_inside);
  if (is_complete(space, iterations)) {
    for (const PlaceRule& rule : space.inner)
      space.factors.push_back({rule.dim, rule.size});
    return space;
  }
  std::vector<DimFactors> dims = factorise(iterations);
  std::vector<std::int64_t> left = iterations;
  for (auto* rules : {&space.inner, &space.outer}) {
    std::erase_if(*rules, [](const PlaceRule& rule) { return rule.size == 1; });
    for (const PlaceRule& rule : *rules) {
      if (rule.size > 0)
        keep_whole(model, rule, dims, left);
    }
  }
  space.factors = merged_loops(std::move(dims), lpf_limit);
  return space;
}

} // namespace monet::core_cost_detail
