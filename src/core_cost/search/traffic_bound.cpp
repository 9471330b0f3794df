// Lower bounds on the energy and latency of temporal orders; order_beginning.cpp prunes with them.
#include "core_cost/search/traffic_bound.hpp"

#include <algorithm>
#include <cmath>

namespace monet::core_cost_detail {

namespace {

constexpr double kBelow = 1 - 1e-12; ///< keeps rounding on the safe side
constexpr std::size_t kMaxPorts = 64;

/// Elements of an operand that all temporal loops and the unrolled ones up to list `lists` touch.
double all_elements(const NestModel& model, const SpatialModel& spatial, const SpatialForm& form,
                    std::size_t operand, std::size_t lists, bool temporal) {
  Footprint footprint(model.operands[operand]);
  for (std::size_t l = 0; l <= lists; ++l) {
    for (const Loop& loop : form.operands[operand].lists[l])
      footprint.multiply(loop);
  }
  for (std::size_t d = 0; temporal && d < spatial.temporal.size(); ++d) {
    footprint.multiply({static_cast<std::uint32_t>(d), static_cast<double>(spatial.temporal[d])});
  }
  return footprint.elements();
}

/// Part of its share in the operand that a slice holds at least: slices of a fractional unrolling
/// are rounded to whole elements (1.5 to 1 at worst), counts on shared axes are truncated.
double rounded_down(const OperandModel& operand, const SpatialModel& spatial) {
  if (spatial.same)
    return 1;
  double part = 2.0 / 3;
  for (const auto& on_dim : spatial.exact.loops) {
    for (const Loop& loop : on_dim) {
      if (operand.relevance[loop.dim] == Relevance::partial)
        part *= std::floor(loop.size) / loop.size;
    }
  }
  return part;
}

} // namespace

TrafficBound::TrafficBound(const NestModel& model, const Hierarchy& hierarchy,
                           const SpatialModel& spatial)
    : model_(model), hierarchy_(hierarchy), spatial_(spatial),
      wave_(static_cast<double>(hierarchy.wave_cycles)) {
  for (const std::int64_t size : spatial.temporal)
    total_ *= static_cast<double>(size);
  for (std::size_t i = 0; i < model.operands.size(); ++i) {
    const OperandModel& o = model.operands[i];
    double untouched = 1; // product of the loops that do not touch the operand
    for (std::size_t d = 0; d < spatial.temporal.size(); ++d) {
      if (o.relevance[d] == Relevance::irrelevant)
        untouched *= static_cast<double>(spatial.temporal[d]);
    }
    double summed_outside = 1;
    for (const LoopList& list : spatial.exact.operands[i].lists) {
      for (const Loop& loop : list) {
        if (&list != &spatial.exact.operands[i].lists[0] &&
            o.relevance[loop.dim] == Relevance::irrelevant)
          summed_outside *= std::floor(loop.size);
      }
    }
    const double rounding = kBelow * rounded_down(o, spatial);
    for (std::size_t index = 0; index < hierarchy.levels[i].size(); ++index) {
      Boundary& b = least_[i][index];
      const std::size_t lists = index == 0 ? 0 : index - 1;
      b.elements = all_elements(model, spatial, spatial.exact, i, lists, index > 0) * rounding;
      b.latency_elements =
          all_elements(model, spatial, spatial.truncated, i, lists, index > 0) * rounding;
      b.period = index > 0 ? total_ : o.output ? 1 : untouched;
      if (index == 0) { // nothing is inside
        b.elements = o.addend ? 0 : 1;
        b.latency_elements = b.elements;
        if (o.output && sums_are_certain(i)) {
          b.sums = untouched * std::max(1.0, summed_outside);
          b.rounds = untouched;
        }
      }
    }
  }
  loading_ = min_loading();
}

template <class Use>
void TrafficBound::transfers(std::size_t operand, std::size_t index, const Boundary& boundary,
                             bool latency, const Use& use) const {
  const OperandModel& o = model_.operands[operand];
  const SpatialForm& form = latency ? spatial_.truncated : spatial_.exact;
  const double elements = latency ? boundary.latency_elements : boundary.elements;
  const double below = elements * static_cast<double>(form.operands[operand].boost[index]);
  const double count = total_ / boundary.period;
  const auto both = [&](Direction low, Direction high, double bits, double times) {
    if (!hierarchy_.is_offchip(operand, index))
      use(index, low, below, bits, times);
    if (index > 0)
      use(index - 1, high, elements, bits, times);
  };
  if (!o.output) {
    both(Direction::tl, Direction::fh, static_cast<double>(o.bits), count);
    return;
  }
  const bool sums = boundary.sums > 1;
  const auto bits = static_cast<double>(sums ? o.partial_bits : std::min(o.bits, o.partial_bits));
  both(Direction::fl, Direction::th, bits, count);
  if (!sums)
    return;
  const bool free = model_.choices.first_partial_sums_free;
  const double back = free ? std::max(0.0, count * (1 - 1 / boundary.rounds) - 1) : count;
  both(Direction::tl, Direction::fh, bits, back);
}

double TrafficBound::energy_across(std::size_t operand, std::size_t index,
                                   const Boundary& boundary) const {
  double energy = 0;
  transfers(
      operand, index, boundary, false,
      [&](std::size_t level, Direction direction, double elements, double bits, double count) {
        const Level& at = hierarchy_.levels[operand][level];
        const Node& node = hierarchy_.nodes[at.node];
        const auto least = static_cast<double>(at.bandwidth_min[index_of(direction)]);
        if (least == 0)
          return;
        const auto widest = static_cast<double>(at.bandwidth_max[index_of(direction)]);
        const double words = std::ceil(elements * bits / least) * (least / widest) * count *
                             spatial_.exact.operands[operand].units[level + 1];
        const bool write = direction == Direction::fh || direction == Direction::fl;
        const double counted =
            hierarchy_.part_words_cost ? words * kBelow : std::floor(words * kBelow);
        energy += counted * (write ? node.write_pj : node.read_pj);
      });
  return energy;
}

double TrafficBound::min_stall(const Boundaries& boundaries) const {
  std::array<double, kMaxPorts> busy{};
  std::array<double, kMaxPorts> late{};
  const std::size_t ports = std::min(hierarchy_.ports.size(), kMaxPorts);
  for (std::size_t i = 0; i < model_.operands.size(); ++i) {
    for (std::size_t index = 0; index < hierarchy_.levels[i].size(); ++index) {
      const Boundary& b = boundaries[i][index];
      transfers(
          i, index, b, true,
          [&](std::size_t level, Direction direction, double elements, double bits, double count) {
            const std::int32_t port = hierarchy_.levels[i][level].port[index_of(direction)];
            if (port < 0 || static_cast<std::size_t>(port) >= ports || count <= 1)
              return;
            const auto at = static_cast<std::size_t>(port);
            if (hierarchy_.ports[at].in_unit)
              return;
            const auto width = static_cast<double>(hierarchy_.ports[at].bandwidth_max);
            const double real = std::ceil(elements * bits / width);
            busy[at] += real * (count - 1);
            late[at] += std::max(0.0, (real - b.period * wave_) * (count - 1));
          });
    }
  }
  double worst = 0;
  double sum = 0;
  for (std::size_t p = 0; p < ports; ++p) {
    const double stall = std::max({0.0, late[p], busy[p] - total_ * wave_});
    worst = std::max(worst, stall);
    sum += stall;
  }
  return model_.choices.port_stalls_add ? sum : worst;
}

/// ZigZag's prefetching can push what several loads on one port take below zero, each by what the
/// others take at most.
double TrafficBound::min_loading() const {
  if (model_.choices.loads_keep_minimum)
    return 0;
  double below = 0;
  for (const Port& port : hierarchy_.ports) {
    double all = 0;
    std::size_t loads = 0;
    for (const PortActivity& a : port.activities) {
      const OperandModel& o = model_.operands[a.operand];
      if (o.output && (a.direction == Direction::tl || a.direction == Direction::fh))
        continue;
      const bool low = a.direction == Direction::tl || a.direction == Direction::fl;
      const std::size_t index = low ? a.level : a.level + 1;
      if (index >= hierarchy_.levels[a.operand].size())
        continue;
      const Boundary& b = least_[a.operand][index];
      const double boost =
          low ? static_cast<double>(spatial_.truncated.operands[a.operand].boost[index]) : 1;
      const auto bits = static_cast<double>(std::max(o.bits, o.partial_bits));
      const double elements = index == 0 ? total_ * boost : b.latency_elements * boost;
      all += std::ceil(elements * bits / static_cast<double>(port.bandwidth_max));
      ++loads;
    }
    if (loads > 1)
      below += all * static_cast<double>(loads);
  }
  return -below;
}

bool TrafficBound::sums_are_certain(std::size_t operand) const {
  return model_.operands[operand].axes == 0 || (spatial_.same && model_.choices.gaps_not_fetched);
}

double TrafficBound::min_cycles(const Boundaries& boundaries) const {
  const double busy = std::max(total_ * wave_ + min_stall(boundaries), spatial_.issued);
  return (busy + hierarchy_.program.before + loading_) * kBelow;
}

double TrafficBound::min_energy(const Boundaries& boundaries) const {
  double energy = 0;
  for (std::size_t i = 0; i < model_.operands.size(); ++i) {
    for (std::size_t index = 0; index < hierarchy_.levels[i].size(); ++index)
      energy += energy_across(i, index, boundaries[i][index]);
  }
  energy += spatial_.compute_pj;
  return energy * kBelow;
}

} // namespace monet::core_cost_detail
