// Generates and ranks unrollings as ZigZag 3.8.5 does; mapping_search.cpp calls it for ZigZag's
// choices.
#include "core_cost/zigzag/spatial_generator.hpp"

#include "base/shared/divisors.hpp"
#include "base/shared/text.hpp"
#include "core_cost/model/set_order.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace monet::core_cost_detail {

namespace {

constexpr std::size_t kMaxChoices = std::size_t{1} << 20;    ///< on one array dim
constexpr std::int64_t kMaxCombined = std::int64_t{1} << 22; ///< partial combinations looked at

/// Loops on one array dim.
using Choice = std::vector<Unrolled>;

/// Largest factors by array dim and loop. Unlike unroll_caps(), 0 when a port is narrower than an
/// element: then the loop is not generated there.
using Caps = std::vector<std::vector<std::int64_t>>;

std::int64_t port_bits(const Hierarchy& hierarchy, const NestModel& model, const NodeUse& use) {
  const Direction towards_array =
      model.operands[use.operand].output ? Direction::fl : Direction::tl;
  return hierarchy.levels[use.operand][use.level]
      .bandwidth_max[static_cast<std::size_t>(towards_array)];
}

Caps largest_factors(const NestModel& model, const Hierarchy& hierarchy) {
  Caps caps(hierarchy.array_dims);
  for (std::size_t d = 0; d < hierarchy.array_dims; ++d) {
    for (std::size_t i = 0; i < model.dims.size(); ++i)
      caps[d].push_back(hierarchy.sums[d] && !model.is_summed_at_once(i)
                            ? 1
                            : std::min(model.dims[i].size, hierarchy.array_size[d]));
  }
  for (const Node& node : hierarchy.nodes) {
    for (const NodeUse& use : node.uses) {
      const OperandModel& operand = model.operands[use.operand];
      const std::int64_t bandwidth = port_bits(hierarchy, model, use);
      if (!node.innermost || bandwidth == 0 || operand.partial_bits == 0)
        continue;
      for (std::size_t d = 0; d < hierarchy.array_dims; ++d) {
        for (std::size_t i = 0; node.serves[d] && i < model.dims.size(); ++i) {
          if (operand.relevance[i] != Relevance::irrelevant || model.dims[i].size == 1)
            caps[d][i] = std::min(caps[d][i], bandwidth / operand.partial_bits);
        }
      }
    }
  }
  return caps;
}

std::int64_t width(const Choice& choice) {
  return std::accumulate(choice.begin(), choice.end(), std::int64_t{1},
                         [](std::int64_t product, const Unrolled& u) {
                           return std::min(product, kMaxIterations) * u.factor;
                         });
}

/// Positions of `dims` in the order of a set of them.
std::vector<std::size_t> order_of_dims(const NestModel& model,
                                       const std::vector<std::uint32_t>& dims) {
  std::vector<std::string> names;
  for (const std::uint32_t dim : dims)
    names.push_back(model.dims[dim].name);
  return set_order(names, NameKind::layer_dim);
}

/// ZigZag's array dims are D1, D2 and so on.
std::vector<std::size_t> order_of_array_dims(const std::vector<std::size_t>& dims) {
  std::vector<std::string> names;
  for (const std::size_t d : dims)
    names.push_back(fmt::format("D{}", d + 1));
  std::vector<std::size_t> ordered;
  for (const std::size_t i : set_order(names, NameKind::array_dim))
    ordered.push_back(dims[i]);
  return ordered;
}

/// The user's loops on one array dim: those of the layer, with factors that are possible. When they
/// do not fit together, one after another is dropped in the order of the set.
Choice reduced(const NestModel& model, const std::vector<Unrolling>& named, std::int64_t lanes,
               const std::vector<std::int64_t>& caps) {
  Choice choice;
  for (const Unrolling& u : named) {
    const auto dim = static_cast<std::uint32_t>(model.dim_named(u.dim));
    if (dim == model.dims.size())
      continue;
    const std::int64_t factor = std::max<std::int64_t>(1, std::min(u.factor, caps[dim]));
    if (const auto again = std::ranges::find(choice, dim, &Unrolled::dim); again != choice.end())
      again->factor = factor;
    else
      choice.push_back({dim, factor});
  }
  while (width(choice) > lanes) {
    std::vector<std::uint32_t> dims;
    for (const Unrolled& u : choice)
      dims.push_back(u.dim);
    choice.erase(choice.begin() + static_cast<std::ptrdiff_t>(order_of_dims(model, dims)[0]));
  }
  return choice;
}

/// Where a layer dim is unrolled further than it goes, it is dropped from whole array dims.
void drop_excess(const NestModel& model, std::vector<Choice>& choices) {
  for (std::uint32_t dim = 0; dim < model.dims.size(); ++dim) {
    for (;;) {
      std::int64_t total = 1;
      std::vector<std::size_t> on;
      for (std::size_t d = 0; d < choices.size(); ++d) {
        for (const Unrolled& u : choices[d]) {
          if (u.dim != dim)
            continue;
          total = std::min(total, kMaxIterations) * u.factor;
          on.push_back(d);
        }
      }
      if (total <= model.dims[dim].size || on.empty())
        break;
      std::erase_if(choices[order_of_array_dims(on)[0]],
                    [&](const Unrolled& u) { return u.dim == dim; });
    }
  }
}

/// Takes 1 from the first of the largest factors until their product is small enough.
void shrink(std::vector<std::int64_t>& factors, double most) {
  const auto product = [&] {
    double p = 1;
    for (const std::int64_t f : factors)
      p *= static_cast<double>(f);
    return p;
  };
  while (!factors.empty() && product() > most) {
    std::int64_t& largest = *std::ranges::max_element(factors);
    if (largest <= 1)
      return;
    --largest;
  }
}

/// One innermost memory and one operand: the elements that one instance serves at once must fit.
/// Equal factors change together, by the last one's new value, even where less would do.
void limit_to_memory(const NestModel& model, const Node& node, const OperandModel& operand,
                     const std::vector<Choice*>& unrolled) {
  std::vector<std::size_t> served;
  for (std::size_t d = 0; d < unrolled.size(); ++d) {
    if (node.serves[d])
      served.push_back(d);
  }
  const auto each = [&](const auto& visit) { // loops that change the element
    for (const std::size_t d : served) {
      for (Unrolled& u : *unrolled[d]) {
        if (operand.relevance[u.dim] != Relevance::irrelevant || model.dims[u.dim].size == 1)
          visit(u);
      }
    }
  };
  double total = 1;
  each([&](const Unrolled& u) { total *= static_cast<double>(u.factor); });
  const double most = node.size_bits / static_cast<double>(operand.partial_bits);
  if (total <= most)
    return;
  served = order_of_array_dims(served);
  std::vector<std::uint32_t> dims;
  each([&](const Unrolled& u) {
    if (std::ranges::find(dims, u.dim) == dims.end())
      dims.push_back(u.dim);
  });
  std::vector<std::int64_t> before;
  for (const std::size_t i : order_of_dims(model, dims)) {
    each([&](const Unrolled& u) {
      if (u.dim == dims[i])
        before.push_back(u.factor);
    });
  }
  std::vector<std::int64_t> after = before;
  shrink(after, most);
  std::map<std::int64_t, std::int64_t> changed;
  for (std::size_t i = 0; i < before.size(); ++i)
    changed[before[i]] = after[i];
  each([&](Unrolled& u) { u.factor = changed.at(u.factor); });
}

void limit_to_capacity(const NestModel& model, const Hierarchy& hierarchy,
                       const std::vector<Choice*>& unrolled) {
  for (const Node& node : hierarchy.nodes) {
    for (const NodeUse& use : node.uses) {
      const OperandModel& operand = model.operands[use.operand];
      if (node.innermost && operand.partial_bits > 0)
        limit_to_memory(model, node, operand, unrolled);
    }
  }
}

[[noreturn]] void too_many() {
  throw InfeasibleError(
      "too many unrollings to rank; name the loops of more array dimensions, or add hints");
}

/// Loops that can be unrolled on an open array dim, with factors, in the order in which ZigZag
/// lists them.
class Choices {
public:
  Choices(const NestModel& model, const std::vector<std::int64_t>& caps, std::int64_t lanes,
          const std::vector<std::string>& hints, bool mixed)
      : lanes_(lanes) {
    find_loops(model, hints);
    for (const std::uint32_t dim : loops_) {
      factors_.push_back(divisors(caps[dim]));
      for (auto factor = factors_.back().rbegin(); factor != factors_.back().rend(); ++factor)
        list_.push_back({{dim, *factor}});
    }
    for (std::size_t count = 2; mixed && count <= loops_.size(); ++count)
      combine(0, count);
  }

  std::vector<Choice> take() { return std::move(list_); }

private:
  /// The hinted loops; all of them where no hint is a loop of this layer.
  void find_loops(const NestModel& model, const std::vector<std::string>& hints) {
    std::vector<std::string> names;
    for (const std::string& hint : hints) {
      if (std::ranges::find(names, hint) == names.end())
        names.push_back(hint);
    }
    const auto index = [&](const std::string& name) {
      return static_cast<std::uint32_t>(model.dim_named(name));
    };
    if (std::ranges::none_of(
            names, [&](const std::string& name) { return index(name) < model.dims.size(); }))
      names = names_of(model.dims);
    for (const std::size_t i : set_order(names, NameKind::layer_dim)) {
      if (index(names[i]) < model.dims.size())
        loops_.push_back(index(names[i]));
    }
  }

  /// All sets of `count` more loops from `first` on; `set_` holds the ones before.
  void combine(std::size_t first, std::size_t count) {
    if (count == 0) {
      multiply(0, 1);
      return;
    }
    if (lanes_ >> set_.size() == 0)
      return; // every loop takes 2 lanes at least
    for (std::size_t i = first; i + count <= loops_.size(); ++i) {
      if (factors_[i].size() < 2)
        continue;
      set_.push_back(i);
      combine(i + 1, count - 1);
      set_.pop_back();
    }
  }

  /// All factors above 1 of the loops of `set_`.
  void multiply(std::size_t at, std::int64_t product) {
    if (++looked_at_ > kMaxCombined || list_.size() > kMaxChoices)
      too_many();
    if (at == set_.size()) {
      list_.push_back(choice_);
      return;
    }
    const std::size_t loop = set_[at];
    for (std::size_t f = 1; f < factors_[loop].size(); ++f) {
      const std::int64_t factor = factors_[loop][f];
      if (product * factor > lanes_)
        break;
      choice_.push_back({loops_[loop], factor});
      multiply(at + 1, product * factor);
      choice_.pop_back();
    }
  }

  std::int64_t lanes_;
  std::vector<std::uint32_t> loops_;
  std::vector<std::vector<std::int64_t>> factors_; ///< by position in loops_
  std::vector<std::size_t> set_;
  Choice choice_;
  std::vector<Choice> list_;
  std::int64_t looked_at_ = 0;
};

/// Combines the choices on all array dims and keeps the best by ZigZag's indicator: the lanes in
/// use, and below one lane's weight the lanes over the largest unrolling of one layer dim. Of
/// equals the first combination stays ahead.
class Ranking {
public:
  struct Ranked {
    double indicator = 0;
    std::vector<std::size_t> picks;
  };

  Ranking(const NestModel& model, const std::vector<std::vector<Choice>>& choices,
          std::size_t wanted)
      : model_(model), choices_(choices), wanted_(wanted), totals_(model.dims.size(), 1),
        picks_(choices.size()), widest_after_(choices.size() + 1, 1) {
    for (std::size_t d = choices.size(); d-- > 0;) {
      std::int64_t widest = 1;
      for (const Choice& choice : choices[d])
        widest = std::max(widest, width(choice));
      widest_after_[d] = widest_after_[d + 1] * static_cast<double>(widest);
    }
    visit(0, 1);
  }

  const std::vector<Ranked>& best() const { return best_; }

private:
  double indicator(double lanes) const {
    const std::int64_t largest = *std::ranges::max_element(totals_);
    return lanes + (lanes / static_cast<double>(largest) - 1);
  }

  void visit(std::size_t d, double lanes) {
    if (++looked_at_ > kMaxCombined)
      too_many();
    const bool full = !best_.empty() && best_.size() == wanted_;
    if (full && indicator(lanes * widest_after_[d]) <= best_.back().indicator)
      return;
    if (d == choices_.size()) {
      const double merit = indicator(lanes);
      const auto place =
          std::ranges::find_if(best_, [&](const Ranked& r) { return r.indicator < merit; });
      best_.insert(place, {merit, picks_});
      if (best_.size() > wanted_)
        best_.pop_back();
      return;
    }
    for (std::size_t i = 0; i < choices_[d].size(); ++i) {
      const Choice& choice = choices_[d][i];
      bool fits = true;
      for (const Unrolled& u : choice) {
        totals_[u.dim] *= u.factor;
        fits = fits && totals_[u.dim] <= model_.dims[u.dim].size;
      }
      picks_[d] = i;
      if (fits)
        visit(d + 1, lanes * static_cast<double>(width(choice)));
      for (const Unrolled& u : choice)
        totals_[u.dim] /= u.factor;
    }
  }

  const NestModel& model_;
  const std::vector<std::vector<Choice>>& choices_;
  std::size_t wanted_;
  std::vector<std::int64_t> totals_; ///< unrolled so far, by layer dim
  std::vector<std::size_t> picks_;
  std::vector<double> widest_after_;
  std::vector<Ranked> best_;
  std::int64_t looked_at_ = 0;
};

/// Loops that are named without being unrolled count where names decide about rows.
ArrayUnrolling unrolling_of(const std::vector<Choice*>& unrolled, const Hierarchy& hierarchy) {
  ArrayUnrolling result;
  for (const Choice* choice : unrolled) {
    result.push_back(*choice);
    std::erase_if(result.back(), [&](const Unrolled& u) {
      return u.factor < 1 || (u.factor == 1 && hierarchy.imc == nullptr);
    });
  }
  return result;
}

} // namespace

std::vector<ArrayUnrolling> zigzag_unrollings(const NestModel& model, const Hierarchy& hierarchy,
                                              const std::vector<std::vector<Unrolling>>& named,
                                              const CoreCostOptions& options) {
  const Caps caps = largest_factors(model, hierarchy);
  std::vector<Choice> given(hierarchy.array_dims);
  std::vector<bool> open(hierarchy.array_dims, true);
  for (std::size_t d = 0; d < std::min(named.size(), hierarchy.array_dims); ++d) {
    open[d] = named[d].empty();
    given[d] = reduced(model, named[d], hierarchy.array_size[d], caps[d]);
  }
  drop_excess(model, given);
  std::vector<std::vector<Choice>> choices(hierarchy.array_dims);
  bool any_open = false;
  for (std::size_t d = 0; d < hierarchy.array_dims; ++d) {
    any_open = any_open || open[d];
    const auto hints =
        d < options.spatial_hints.size() ? options.spatial_hints[d] : std::vector<std::string>{};
    choices[d] =
        open[d] ? Choices(model, caps[d], hierarchy.array_size[d], hints, options.mixed_unrollings)
                      .take()
                : std::vector<Choice>{given[d]};
  }
  const auto wanted =
      static_cast<std::size_t>(any_open ? std::max(1, options.generated_unrollings) : 1);
  const Ranking ranking(model, choices, wanted);
  if (ranking.best().empty())
    throw InfeasibleError("no unrolling is possible on the array dimensions left open");
  // Candidates share what they have on an open array dim, so that limiting one to the memories
  // changes the others, as it does in ZigZag.
  std::vector<std::vector<Choice*>> unrolled;
  std::vector<std::vector<Choice>> own(ranking.best().size(), given);
  for (std::size_t c = 0; c < ranking.best().size(); ++c) {
    unrolled.emplace_back();
    for (std::size_t d = 0; d < hierarchy.array_dims; ++d)
      unrolled[c].push_back(open[d] ? &choices[d][ranking.best()[c].picks[d]] : &own[c][d]);
    limit_to_capacity(model, hierarchy, unrolled[c]);
  }
  std::vector<ArrayUnrolling> result;
  for (const auto& candidate : unrolled)
    result.push_back(unrolling_of(candidate, hierarchy));
  return result;
}

} // namespace monet::core_cost_detail
