// Chooses spatial unrollings from the dataflow or to fill the array; mapping_search.cpp calls it.
#include "core_cost/search/spatial_choice.hpp"

#include "core_cost/model/imc_work.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace monet::core_cost_detail {

namespace {

constexpr std::size_t kBeam = 32; ///< minimum number of partial unrollings kept per array dim
constexpr std::size_t kMaxLoopsPerDim = 3;

/// Product of the factors of loops that change the operand's element, over the array dims that one
/// instance serves.
std::int64_t served_elements(const OperandModel& operand, const Node& node,
                             const ArrayUnrolling& unrolling) {
  std::int64_t product = 1;
  for (std::size_t d = 0; d < unrolling.size(); ++d) {
    if (!node.serves[d])
      continue;
    for (const Unrolled& u : unrolling[d]) {
      if (operand.relevance[u.dim] != Relevance::irrelevant)
        product *= u.factor;
    }
  }
  return product;
}

/// Shrinks the largest factors until the innermost memories hold the elements that one instance
/// serves at once.
void limit_to_capacity(const NestModel& model, const Hierarchy& hierarchy,
                       ArrayUnrolling& unrolling) {
  for (const Node& node : hierarchy.nodes) {
    if (!node.innermost)
      continue;
    for (const NodeUse& use : node.uses) {
      const OperandModel& operand = model.operands[use.operand];
      const double width = static_cast<double>(std::max(operand.bits, operand.partial_bits));
      while (static_cast<double>(served_elements(operand, node, unrolling)) * width >
             node.size_bits) {
        Unrolled* largest = nullptr;
        for (std::size_t d = 0; d < unrolling.size(); ++d) {
          for (Unrolled& u : unrolling[d]) {
            if (!node.serves[d] || operand.relevance[u.dim] == Relevance::irrelevant)
              continue;
            if (largest == nullptr || u.factor > largest->factor)
              largest = &u;
          }
        }
        if (largest == nullptr || largest->factor <= 1)
          break;
        --largest->factor;
      }
    }
  }
  for (auto& on_dim : unrolling) {
    std::erase_if(on_dim, [](const Unrolled& u) { return u.factor <= 1; });
  }
}

/// Unrolls loops over the array dimensions that one accumulator sums, which dataflows do not name.
/// The loop with the largest possible factor is placed first.
void add_sums(const Hierarchy& hierarchy, const UnrollCaps& caps, std::vector<std::int64_t>& left,
              ArrayUnrolling& unrolling) {
  for (std::size_t d = 0; d < hierarchy.array_dims; ++d) {
    std::int64_t room = hierarchy.sums[d] ? hierarchy.array_size[d] : 1;
    const auto most = [&](std::size_t i) { return std::min({caps[d][i], room, left[i]}); };
    while (room > 1) {
      std::size_t best = 0;
      for (std::size_t i = 1; i < left.size(); ++i)
        best = most(i) > most(best) ? i : best;
      const std::int64_t factor = left.empty() ? 1 : most(best);
      if (factor <= 1)
        break;
      unrolling[d].push_back({static_cast<std::uint32_t>(best), factor});
      room /= factor;
      left[best] = ceil_div(left[best], factor);
    }
  }
}

/// A set of loops for one array dim, and the loops that remain for the next ones.
struct Partial {
  ArrayUnrolling unrolling;
  std::vector<std::int64_t> left;
  double width = 1; ///< useful lanes
  std::size_t loops = 0;
};

bool better(const Partial& a, const Partial& b) {
  constexpr double kSame = 1e-9;
  if (a.width > b.width * (1 + kSame))
    return true;
  if (b.width > a.width * (1 + kSame))
    return false;
  return a.loops < b.loops;
}

/// Sets of loops for one array dim.
struct DimUnroller {
  std::size_t d = 0;                     ///< the array dim
  const std::vector<std::int64_t>& caps; ///< maximum factor per loop
  bool any_order = false;                ///< places later loops also before earlier ones
  std::vector<Partial> found = {};

  /// Extends `from` by one loop after another from `first` on, and keeps every intermediate set.
  /// Each loop gets the largest factor that fits into `room` lanes.
  void extend(const Partial& from, std::int64_t room, std::size_t first = 0) {
    found.push_back(from);
    const auto& placed = from.unrolling[d];
    if (placed.size() == kMaxLoopsPerDim)
      return;
    for (std::size_t dim = any_order ? 0 : first; dim < from.left.size(); ++dim) {
      if (std::ranges::find(placed, dim, &Unrolled::dim) != placed.end())
        continue;
      const std::int64_t factor = std::min({from.left[dim], room, caps[dim]});
      if (factor <= 1)
        continue;
      Partial next = from;
      const std::int64_t steps = ceil_div(from.left[dim], factor);
      next.width *= static_cast<double>(from.left[dim]) / static_cast<double>(steps);
      next.left[dim] = steps;
      next.unrolling[d].push_back({static_cast<std::uint32_t>(dim), factor});
      ++next.loops;
      extend(next, room / factor, dim + 1);
    }
  }
};

/// Keeps the best ones, each set of factors once.
std::vector<Partial> best_of(std::vector<Partial> all, std::size_t limit) {
  std::ranges::stable_sort(all, better);
  std::vector<Partial> kept;
  std::set<std::vector<std::vector<std::pair<std::uint32_t, std::int64_t>>>> seen;
  for (Partial& partial : all) {
    if (kept.size() == limit)
      break;
    std::vector<std::vector<std::pair<std::uint32_t, std::int64_t>>> factors;
    for (const auto& on_dim : partial.unrolling) {
      auto& sorted = factors.emplace_back();
      for (const Unrolled& u : on_dim)
        sorted.emplace_back(u.dim, u.factor);
      std::ranges::sort(sorted);
    }
    if (seen.insert(std::move(factors)).second)
      kept.push_back(std::move(partial));
  }
  return kept;
}

} // namespace

UnrollCaps unroll_caps(const NestModel& model, const Hierarchy& hierarchy) {
  UnrollCaps caps(hierarchy.array_dims, std::vector<std::int64_t>(model.dims.size()));
  for (std::size_t d = 0; d < hierarchy.array_dims; ++d) {
    for (std::size_t i = 0; i < model.dims.size(); ++i)
      caps[d][i] = hierarchy.sums[d] && !model.is_summed_at_once(i)
                       ? 1
                       : std::min(model.dims[i].size, hierarchy.array_size[d]);
  }
  for (const Node& node : hierarchy.nodes) {
    if (!node.innermost || node.memory == nullptr)
      continue;
    for (const NodeUse& use : node.uses) {
      const OperandModel& operand = model.operands[use.operand];
      const Level& level = hierarchy.levels[use.operand][use.level];
      const Direction direction = operand.output ? Direction::fl : Direction::tl;
      const std::int64_t bits = operand.partial_bits;
      const std::int64_t bandwidth = level.bandwidth_max[static_cast<std::size_t>(direction)];
      if (bandwidth == 0 || bits == 0)
        continue;
      for (std::size_t d = 0; d < hierarchy.array_dims; ++d) {
        if (!node.serves[d])
          continue;
        for (std::size_t i = 0; i < model.dims.size(); ++i) {
          if (operand.relevance[i] == Relevance::irrelevant)
            continue;
          caps[d][i] = std::min(caps[d][i], std::max<std::int64_t>(1, bandwidth / bits));
        }
      }
    }
  }
  return caps;
}

ArrayUnrolling from_dataflow(const NestModel& model, const Hierarchy& hierarchy,
                             const UnrollCaps& caps,
                             const std::vector<std::vector<Unrolling>>& dataflow) {
  ArrayUnrolling unrolling(hierarchy.array_dims);
  std::vector<std::int64_t> left;
  for (const LoopDim& dim : model.dims)
    left.push_back(dim.size);
  for (std::size_t d = 0; d < std::min(dataflow.size(), hierarchy.array_dims); ++d) {
    std::int64_t room = hierarchy.array_size[d];
    for (const Unrolling& u : dataflow[d]) {
      const std::size_t dim = model.dim_named(u.dim);
      if (dim == model.dims.size())
        continue;
      const std::int64_t factor = std::min({u.factor, caps[d][dim], room, left[dim]});
      if (factor <= 1)
        continue;
      unrolling[d].push_back({static_cast<std::uint32_t>(dim), factor});
      room /= factor;
      left[dim] = ceil_div(left[dim], factor);
    }
  }
  add_sums(hierarchy, caps, left, unrolling);
  limit_to_capacity(model, hierarchy, unrolling);
  limit_rows(model, hierarchy, unrolling);
  return unrolling;
}

UnrollCaps restricted(UnrollCaps caps, const NestModel& model,
                      const std::vector<std::vector<Unrolling>>& kept,
                      const std::vector<std::vector<std::string>>& hints) {
  for (std::size_t d = 0; d < caps.size(); ++d) {
    std::vector<std::int64_t> most(model.dims.size(), 1);
    const bool names_loops = d < kept.size() && !kept[d].empty();
    bool hinted = false;
    for (std::size_t i = 0; i < model.dims.size(); ++i) {
      const std::string& loop = model.dims[i].name;
      for (std::size_t k = 0; names_loops && k < kept[d].size(); ++k) {
        if (kept[d][k].dim == loop)
          most[i] = std::max(most[i], kept[d][k].factor);
      }
      if (!names_loops && d < hints.size() && std::ranges::find(hints[d], loop) != hints[d].end()) {
        most[i] = caps[d][i];
        hinted = true;
      }
    }
    for (std::size_t i = 0; (names_loops || hinted) && i < model.dims.size(); ++i)
      caps[d][i] = std::min(caps[d][i], most[i]);
  }
  return caps;
}

std::vector<ArrayUnrolling> fill_array(const NestModel& model, const Hierarchy& hierarchy,
                                       const UnrollCaps& caps, std::size_t wanted) {
  Partial start;
  start.unrolling.resize(hierarchy.array_dims);
  for (const LoopDim& dim : model.dims)
    start.left.push_back(dim.size);
  std::vector<Partial> beam{start};
  for (std::size_t d = 0; d < hierarchy.array_dims; ++d) {
    DimUnroller sets{d, caps[d], wanted > kBeam};
    for (const Partial& partial : beam)
      sets.extend(partial, hierarchy.array_size[d]);
    beam = best_of(std::move(sets.found), std::max(kBeam, wanted));
  }
  std::vector<ArrayUnrolling> result;
  for (Partial& partial : beam) {
    if (result.size() == wanted)
      break;
    limit_to_capacity(model, hierarchy, partial.unrolling);
    limit_rows(model, hierarchy, partial.unrolling);
    result.push_back(std::move(partial.unrolling));
  }
  std::ranges::stable_sort(result, [&](const ArrayUnrolling& a, const ArrayUnrolling& b) {
    return utilisation(model, hierarchy, a) > utilisation(model, hierarchy, b);
  });
  return result;
}

double utilisation(const NestModel& model, const Hierarchy& hierarchy,
                   const ArrayUnrolling& unrolling) {
  std::vector<std::int64_t> left;
  for (const LoopDim& dim : model.dims)
    left.push_back(dim.size);
  double lanes = 1;
  for (std::size_t d = 0; d < hierarchy.array_dims; ++d) {
    lanes *= static_cast<double>(hierarchy.array_size[d]);
    for (const Unrolled& u : unrolling[d])
      left[u.dim] = ceil_div(left[u.dim], u.factor);
  }
  double steps = 1;
  for (const std::int64_t n : left)
    steps *= static_cast<double>(n);
  return static_cast<double>(model.iterations) / (steps * std::max(1.0, lanes));
}

} // namespace monet::core_cost_detail
