// Lower bound on the busiest link that divides a chip; allocation bounds use it.
#include "optimise/bounds/shared_links.hpp"

#include "base/shared/checked.hpp"
#include "schedule/shared/bounds.hpp"

#include <algorithm>
#include <numeric>

namespace monet {

namespace {

/// Parts of a chip without one link: per core, the first core of its part.
class Parts {
public:
  Parts(const Chip& chip, std::size_t missing) : part_(chip.cores.size()) {
    std::iota(part_.begin(), part_.end(), std::size_t{0});
    for (const auto& group : chip.shared_memory)
      join(group);
    for (std::size_t l = 0; l < chip.links.size(); ++l) {
      if (l != missing)
        join(chip.links[l].cores);
    }
  }

  std::size_t of(CoreId core) const { return part_[core.index()]; }

  /// Parts that contain these cores, ascending and without duplicates.
  std::vector<std::size_t> of(const std::vector<CoreId>& cores) const {
    std::vector<std::size_t> parts;
    for (const CoreId core : cores)
      parts.push_back(of(core));
    std::ranges::sort(parts);
    parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
    return parts;
  }

private:
  void join(const std::vector<CoreId>& cores) {
    for (std::size_t i = 1; i < cores.size(); ++i) {
      const std::size_t from = of(cores[i]);
      const std::size_t to = of(cores[0]);
      std::replace(part_.begin(), part_.end(), std::max(from, to), std::min(from, to));
    }
  }

  std::vector<std::size_t> part_;
};

bool are_disjoint(const std::vector<std::size_t>& a, const std::vector<std::size_t>& b) {
  return std::ranges::none_of(
      a, [&](std::size_t part) { return std::ranges::binary_search(b, part); });
}

/// Bits of a tensor that one operator surely reads.
struct SureRead {
  std::size_t op = 0;
  TensorId tensor;
  double bits = 0;
};

/// Sure reads of tensors that have no producer or whose elements are all written.
std::vector<SureRead> needs_of(const Graph& graph) {
  const auto touched = [&](const Operator& op, const Access& access) {
    return touched_elements(access, full_tile(op.nest), graph.tensor(access.tensor).shape);
  };
  std::vector<bool> whole;
  for (const Tensor& tensor : graph.tensors())
    whole.push_back(!tensor.producer);
  std::vector<SureRead> needs;
  for (std::size_t op = 0; op < graph.operators().size(); ++op) {
    const Operator& of = graph.operators()[op];
    for (const Access& access : of.nest.operands) {
      const Tensor& tensor = graph.tensor(access.tensor);
      const std::int64_t elements = touched(of, access);
      if (access.mode != AccessMode::read)
        whole[access.tensor.index()] = elements == checked_product(tensor.shape);
      else if (whole[access.tensor.index()])
        needs.push_back(
            {op, access.tensor,
             static_cast<double>(elements) * static_cast<double>(bits_of(tensor.type))});
    }
  }
  return needs;
}

} // namespace

double busiest_link_cycles(const TrainingGraph& step, const Chip& chip,
                           const std::vector<std::vector<CoreId>>& cores) {
  const Graph& graph = step.graph;
  if (!chip.offchip)
    return 0;
  const CompulsoryTraffic compulsory = compulsory_traffic(graph);
  const std::vector<SureRead> needs = needs_of(graph);
  double busiest = 0;
  std::vector<double> crossing;
  std::vector<std::vector<std::size_t>> of_op(cores.size());
  for (std::size_t l = 0; l < chip.links.size(); ++l) {
    const Parts parts(chip, l);
    const std::vector<std::size_t> offchip{parts.of(*chip.offchip)};
    for (std::size_t op = 0; op < cores.size(); ++op)
      of_op[op] = parts.of(cores[op]);
    const auto maker = [&](TensorId id) -> const std::vector<std::size_t>& {
      const auto producer = graph.tensor(id).producer;
      return producer ? of_op[producer->index()] : offchip;
    };
    crossing.assign(graph.tensors().size(), 0);
    for (std::size_t t = 0; t < crossing.size(); ++t) {
      if (are_disjoint(maker(TensorId(t)), offchip))
        crossing[t] = static_cast<double>(compulsory.written[t]);
    }
    for (const SureRead& need : needs) {
      double& bits = crossing[need.tensor.index()];
      if (need.bits > bits && are_disjoint(maker(need.tensor), of_op[need.op]))
        bits = need.bits;
    }
    const double sum = std::accumulate(crossing.begin(), crossing.end(), 0.0);
    busiest = std::max(busiest, sum / static_cast<double>(chip.links[l].bandwidth_bits_per_cycle));
  }
  return busiest;
}

} // namespace monet
