// The original study's fusion rules, solved as an integer program over legal groups;
// optimise_fusion() compares its plan.
#include "optimise/fusion/original.hpp"

#include "optimise/milp/milp_model.hpp"
#include "workload/shared/op_types.hpp"

#include <algorithm>
#include <set>

namespace monet {

namespace {

constexpr std::size_t kMaxMembers = 6;
constexpr std::size_t kMaxCandidates = 6000;
constexpr std::int64_t kMaxNodes = 100;

using Group = std::vector<OpId>; // ascending

/// Properties of one operator that the rules use.
struct Traits {
  bool convolution = false;
  bool transposed = false;
  bool product = false;
  std::int64_t tiling = 1;      ///< size of the loop that is sliced
  std::int64_t weight_bits = 0; ///< parameters and buffers that it reads
  std::int64_t room = 0;        ///< weight capacity of its smallest core
};

Traits traits_of(const Graph& graph, const Operator& op, const Chip& chip,
                 const std::vector<CoreId>& cores) {
  Traits traits;
  if (op.nest.compute == ComputeKind::mac) {
    const bool conv = op.op_type.contains("Conv");
    traits.transposed =
        conv && (op.op_type.contains("Transpose") || op.gradient_of == GradientOf::input);
    traits.convolution = conv && !traits.transposed;
    traits.product = !conv;
  }
  for (std::size_t d = 0; d < op.nest.dims.size(); ++d) {
    if (op.nest.dims[d].size > 1 && !is_reduction(op.nest, d) && may_slice(op.nest, d)) {
      traits.tiling = op.nest.dims[d].size;
      break;
    }
  }
  for (const auto& input : op.inputs) {
    if (!input)
      continue;
    const TensorKind kind = graph.tensor(*input).kind;
    if (kind == TensorKind::parameter || kind == TensorKind::constant)
      traits.weight_bits += size_of(graph.tensor(*input)).value;
  }
  traits.room = std::numeric_limits<std::int64_t>::max();
  for (const CoreId core : cores) {
    if (const Memory* top = chip.cores[core.index()].top(MemoryOperand::I2); top != nullptr)
      traits.room =
          std::min(traits.room, top->size.value * instances(chip.cores[core.index()], *top));
  }
  return traits;
}

class Candidates {
public:
  Candidates(const FusionOrder& order, std::vector<Traits> traits)
      : order_(order), traits_(std::move(traits)) {}

  /// Finds groups of two or more operators by rising size, so a limit omits the largest.
  std::vector<Group> find() {
    std::vector<Group> layer;
    for (std::size_t i = 0; i < order_.size(); ++i)
      layer.push_back({OpId(i)});
    std::vector<Group> found;
    for (std::size_t size = 2; size <= kMaxMembers && !layer.empty(); ++size) {
      std::set<Group> larger;
      for (const Group& group : layer)
        grow(group, larger);
      layer.assign(larger.begin(), larger.end());
      for (const Group& group : layer) {
        if (single_.note(single_output(group)) && convex_.note(order_.convex(group)))
          found.push_back(group);
      }
      if (found.size() > kMaxCandidates || layer.size() > kMaxCandidates)
        break;
    }
    if (found.size() > kMaxCandidates)
      found.resize(kMaxCandidates);
    return found;
  }

  std::vector<KeepRate> rates() const { return {types_, divisible_, memory_, single_, convex_}; }

private:
  void grow(const Group& group, std::set<Group>& larger) {
    for (const OpId member : group) {
      for (const auto& neighbours : {order_.before(member), order_.after(member)}) {
        for (const OpId next : neighbours) {
          if (std::ranges::binary_search(group, next))
            continue;
          Group more = group;
          more.insert(std::ranges::upper_bound(more, next), next);
          if (!larger.contains(more) && allowed(more))
            larger.insert(std::move(more));
        }
      }
    }
  }

  bool allowed(const Group& group) {
    int convolutions = 0;
    int transposed = 0;
    int products = 0;
    std::int64_t weights = 0;
    std::int64_t room = std::numeric_limits<std::int64_t>::max();
    bool divisible = true;
    for (const OpId member : group) {
      const Traits& own = traits_[member.index()];
      convolutions += own.convolution ? 1 : 0;
      transposed += own.transposed ? 1 : 0;
      products += own.product ? 1 : 0;
      weights += own.weight_bits;
      room = std::min(room, own.room);
      for (const OpId other : group) {
        const std::int64_t a = std::max(own.tiling, traits_[other.index()].tiling);
        const std::int64_t b = std::min(own.tiling, traits_[other.index()].tiling);
        divisible = divisible && a % b == 0;
      }
    }
    return types_.note(convolutions <= 3 && transposed <= 3 && products <= 1 &&
                       (products == 0 || convolutions + transposed <= 1)) &&
           divisible_.note(divisible) && memory_.note(weights <= room);
  }

  bool single_output(const Group& group) const {
    int leaving = 0;
    for (const OpId member : group) {
      const auto after = order_.after(member);
      const bool leaves = after.empty() || std::ranges::any_of(after, [&](OpId next) {
                            return !std::ranges::binary_search(group, next);
                          });
      leaving += leaves ? 1 : 0;
    }
    return leaving <= 1;
  }

  const FusionOrder& order_;
  std::vector<Traits> traits_;
  KeepRate types_{"types of operators (original)"};
  KeepRate divisible_{"sizes that divide each other (original)"};
  KeepRate memory_{"weights fit a core (original)"};
  KeepRate single_{"one output (original)"};
  KeepRate convex_{"convex (original)"};
};

/// Bits that members read from each other, counted once per reader.
double inner_bits(const Graph& graph, const Group& group) {
  double bits = 0;
  for (const OpId member : group) {
    for (const auto& output : graph.op(member).outputs) {
      if (!output)
        continue;
      const Tensor& tensor = graph.tensor(*output);
      for (const OpId reader : tensor.consumers) {
        if (std::ranges::binary_search(group, reader))
          bits += static_cast<double>(size_of(tensor).value);
      }
    }
  }
  return bits;
}

/// Indices of the groups whose variables are 1.
std::vector<std::size_t> chosen_of(std::span<const double> values) {
  std::vector<std::size_t> chosen;
  for (std::size_t g = 0; g < values.size(); ++g) {
    if (values[g] > 0.5)
      chosen.push_back(g);
  }
  return chosen;
}

/// Row that excludes chosen groups which wait for each other in a circle; none without a circle.
std::vector<LinearRow> circle_rows(const FusionOrder& order, const std::vector<Group>& groups,
                                   std::span<const double> values) {
  const std::vector<std::size_t> chosen = chosen_of(values);
  std::vector<Group> members;
  for (const std::size_t g : chosen)
    members.push_back(groups[g]);
  const std::vector<std::size_t> stuck = order.circle(members);
  if (stuck.empty())
    return {};
  LinearRow row;
  for (const std::size_t g : stuck)
    row.terms.push_back({static_cast<std::uint32_t>(chosen[g]), 1.0});
  row.upper = static_cast<double>(stuck.size()) - 1;
  return {std::move(row)};
}

} // namespace

OriginalPlan original_fusion(const Graph& graph, const Chip& chip,
                             const std::vector<std::vector<CoreId>>& cores,
                             const FusionOrder& order, bool fewest, const SearchControl& control) {
  std::vector<Traits> traits;
  for (std::size_t i = 0; i < order.size(); ++i)
    traits.push_back(traits_of(graph, graph.operators()[i], chip, cores[i]));
  Candidates candidates(order, std::move(traits));
  const std::vector<Group> groups = candidates.find();
  OriginalPlan result;
  result.kept = candidates.rates();
  if (groups.empty()) {
    result.optimal = true;
    return result;
  }

  MilpModel model;
  std::vector<std::vector<LinearTerm>> covers(order.size());
  for (const Group& group : groups) {
    // A single operator is one group; a larger group saves all but one, or its inner bits.
    const double saved = fewest ? static_cast<double>(group.size()) - 1 : inner_bits(graph, group);
    const std::uint32_t x = model.add_binary(-saved);
    for (const OpId member : group)
      covers[member.index()].push_back({x, 1.0});
  }
  for (const auto& cover : covers) {
    if (!cover.empty())
      model.add_row(cover, -kUnbounded, 1.0);
  }
  model.set_start(std::vector<double>(groups.size(), 0.0));
  const auto broken = [&](std::span<const double> values) {
    return circle_rows(order, groups, values);
  };
  MilpOptions options;
  options.nodes = kMaxNodes;
  const MilpResult solved = model.solve_lazily(control, options, broken, 50);
  result.optimal = solved.status == MilpStatus::optimal;
  for (const std::size_t g : chosen_of(solved.values)) {
    result.plan.stacks.push_back(groups[g]);
    result.plan.slices.emplace_back();
  }
  if (!order.acyclic(result.plan.stacks))
    result.plan = {};
  return result;
}

} // namespace monet
