// Checks the transfers of a timeline: routes, latencies, bandwidth and rows of the off-chip memory.
// verify() in invariants.cpp calls it.
#include "schedule/check/parts.hpp"
#include "workload/shared/operators.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace monet {

namespace {

/// Cycles of a transfer whose bits are spread evenly over `rows` rows. Each bank opens its next row
/// as soon as its previous one has passed; rows pass the port one after the other.
std::int64_t simulated(const DramRows& dram, std::int64_t rows, std::int64_t streaming) {
  // In units of 1/rows cycles: the time to pass a row is then whole.
  std::vector<std::int64_t> open(static_cast<std::size_t>(std::min(dram.banks, rows)),
                                 dram.t_row * rows);
  std::int64_t port = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t& bank = open[static_cast<std::size_t>(row) % open.size()];
    port = std::max(port, bank) + streaming;
    bank = port + dram.t_row * rows;
  }
  return ceil_div(port, rows);
}

/// Number of rows that a box touches, counted run by run in the order of addresses.
std::int64_t touched_rows(const Box& box, std::span<const std::int64_t> shape,
                          std::int64_t element_bits, std::int64_t row_bits) {
  if (volume(box) == 0)
    return 0;
  std::vector<std::int64_t> at; // start of the run: all axes but the last
  for (std::size_t a = 0; a + 1 < box.size(); ++a)
    at.push_back(box[a].begin);
  const Interval run = box.empty() ? Interval{0, 1} : box.back();
  std::int64_t rows = 0;
  std::int64_t last = -1;
  for (;;) {
    std::int64_t line = 0;
    for (std::size_t a = 0; a < at.size(); ++a)
      line = line * shape[a] + at[a];
    const std::int64_t begin = line * (box.empty() ? 1 : shape.back());
    const std::int64_t first = (begin + run.begin) * element_bits / row_bits;
    const std::int64_t end = ((begin + run.end) * element_bits - 1) / row_bits;
    rows += end - std::max(first, last + 1) + 1;
    last = end;
    std::size_t axis = at.size();
    while (axis > 0 && ++at[axis - 1] == box[axis - 1].end) {
      --axis;
      at[axis] = box[axis].begin;
    }
    if (axis == 0)
      return rows;
  }
}

class TransferChecker {
public:
  TransferChecker(const Timeline& timeline, const TileGraph& tiles, const Graph& graph,
                  const Chip& chip)
      : timeline_(timeline), tiles_(tiles), graph_(graph), chip_(chip), port_(offchip_port(chip)) {}

  void check() {
    check_routes();
    check_latencies();
    check_order_and_speed();
    check_sharing();
    check_host();
    check_rows();
    if (port_.rows)
      check_boxes();
  }

private:
  bool on(const Link& link, CoreId core) const {
    return std::ranges::find(link.cores, core) != link.cores.end();
  }

  /// True if the link carries data from one core to the other.
  bool carries(const Link& link, CoreId from, CoreId to) const {
    if (from == to || !on(link, from) || !on(link, to))
      return false;
    switch (link.reach) {
    case LinkReach::any_pair:
      return true;
    case LinkReach::forward:
      return from == link.cores.front();
    case LinkReach::offchip_both:
      return from == chip_.offchip || to == chip_.offchip;
    case LinkReach::offchip_read:
      return from == chip_.offchip;
    case LinkReach::offchip_write:
      return to == chip_.offchip;
    }
    return false;
  }

  bool passes_on(CoreId core) const {
    return core != chip_.offchip && (chip_.routers.empty() || chip_.routers[core.index()]);
  }

  void check_routes() const {
    for (const Route& route : timeline_.routes) {
      std::vector<bool> reached(chip_.cores.size(), false);
      std::vector<CoreId> waiting{route.from};
      while (!waiting.empty()) {
        const CoreId here = waiting.back();
        waiting.pop_back();
        if (reached[here.index()])
          continue;
        reached[here.index()] = true;
        if (here != route.from && !passes_on(here))
          continue;
        for (const LinkId id : route.links) {
          for (const CoreId to : chip_.links.at(id.index()).cores) {
            if (carries(chip_.links[id.index()], here, to))
              waiting.push_back(to);
          }
        }
      }
      bool leads = !route.to.empty() && !route.links.empty();
      for (const CoreId to : route.to)
        leads = leads && to != route.from && reached.at(to.index());
      internal_check(leads, fmt::format("links from core {} do not lead to their receivers",
                                        route.from.index()));
    }
  }

  /// Minimum latency over the route's links, found without using their order.
  std::int64_t min_latency(const Route& route, CoreId to) const {
    constexpr std::int64_t kFar = INT64_MAX / 2;
    std::vector<std::int64_t> least(chip_.cores.size(), kFar);
    least[route.from.index()] = 0;
    for (std::size_t round = 0; round < route.links.size(); ++round) {
      for (const LinkId id : route.links) {
        const Link& link = chip_.links[id.index()];
        for (const CoreId a : link.cores) {
          for (const CoreId b : link.cores) {
            if (carries(link, a, b) && (a == route.from || passes_on(a)))
              least[b.index()] = std::min(least[b.index()], least[a.index()] + link.latency_cycles);
          }
        }
      }
    }
    return least[to.index()];
  }

  /// Checks latencies. The latency to a single receiver is that of all links together. With several
  /// receivers, each latency is at least that of the fastest way and at most that of all links.
  void check_latencies() const {
    for (const Route& route : timeline_.routes) {
      std::int64_t sum = 0;
      for (const LinkId id : route.links)
        sum += chip_.links[id.index()].latency_cycles;
      internal_check(route.latency.empty() || route.latency.size() == route.to.size(),
                     "a route has not a latency per receiver");
      for (std::size_t i = 0; i < route.to.size(); ++i) {
        const std::int64_t latency = route.latency_to(i);
        const std::int64_t least =
            route.to.size() == 1 || sum == 0 ? sum : min_latency(route, route.to[i]);
        if (latency < least || latency > sum)
          throw InternalError(fmt::format("data reach core {} from core {} after {} cycles of "
                                          "latency, not after {} to {}",
                                          route.to[i].index(), route.from.index(), latency, least,
                                          sum));
      }
    }
  }

  std::string name_of(const Transfer& t) const {
    return fmt::format("transfer of '{}'", graph_.tensor(t.tensor).name);
  }

  bool writes(const Route& route) const {
    return std::ranges::find(route.to, chip_.offchip) != route.to.end();
  }

  void check_order_and_speed() {
    for (const Route& route : timeline_.routes) {
      std::int64_t width = route.from == chip_.offchip ? port_.read_bits_per_cycle : INT64_MAX;
      if (writes(route))
        width = std::min(width, port_.write_bits_per_cycle);
      for (const LinkId link : route.links)
        width = std::min(width, chip_.links[link.index()].bandwidth_bits_per_cycle);
      width_.push_back(width);
    }
    const Transfer* previous = nullptr;
    for (const Transfer& t : timeline_.transfers) {
      internal_check(!previous || previous->start <= t.start, "transfers are not in order");
      previous = &t;
      const std::int64_t bits = timeline_.bits_of(t).value;
      if (t.start.value < 0 || t.end <= t.start || bits <= 0)
        throw InternalError(name_of(t) + " is empty");
      const std::int64_t width = width_.at(timeline_.cost_of(t).route);
      if ((t.end - t.start).value < ceil_div(bits, width))
        throw InternalError(name_of(t) + " is faster than its links");
    }
  }

  /// Checks that simultaneous transfers stay within the bandwidth of links and ports. A transfer
  /// occupies them with the lowest integral speed at which its bits pass within its duration.
  void check_sharing() const {
    struct Change {
      std::int64_t time;
      std::int64_t speed; ///< negative = ends
    };
    std::vector<std::vector<Change>> changes(chip_.links.size() + 2);
    const std::size_t read_port = chip_.links.size();
    const std::size_t write_port = read_port + (port_.shared ? 0 : 1);
    for (const Transfer& t : timeline_.transfers) {
      const std::int64_t speed = ceil_div(timeline_.bits_of(t).value, (t.end - t.start).value);
      const auto take = [&](std::size_t resource) {
        changes[resource].push_back({t.start.value, speed});
        changes[resource].push_back({t.end.value, -speed});
      };
      const Route& route = timeline_.route_of(t);
      for (const LinkId link : route.links)
        take(link.index());
      if (route.from == chip_.offchip)
        take(read_port);
      if (writes(route))
        take(write_port);
    }
    for (std::size_t resource = 0; resource < changes.size(); ++resource) {
      std::int64_t bandwidth = port_.write_bits_per_cycle;
      if (resource < chip_.links.size())
        bandwidth = chip_.links[resource].bandwidth_bits_per_cycle;
      else if (resource == read_port)
        bandwidth = port_.read_bits_per_cycle;
      std::ranges::sort(changes[resource], [](const Change& a, const Change& b) {
        return a.time != b.time ? a.time < b.time : a.speed < b.speed;
      });
      std::int64_t taken = 0;
      for (const Change& change : changes[resource]) {
        taken += change.speed;
        if (taken > bandwidth)
          throw InternalError(fmt::format("link {} carries {} bits in cycle {}, more than its {}",
                                          resource, taken, change.time, bandwidth));
      }
    }
  }

  /// Checks that tensors in the host cross the off-chip port in both directions, moved by their own
  /// operators.
  void check_host() const {
    std::map<std::pair<OpId, TensorId>, std::int64_t> bits;
    for (const Transfer& t : timeline_.transfers) {
      if (!lies_in_host(graph_, t.tensor))
        continue;
      const bool out = timeline_.route_of(t).to.front() == chip_.offchip;
      internal_check(t.kind == TransferKind::stream && out == is_offload(graph_.op(t.op)),
                     "what lies in the host is moved by others");
      bits[{t.op, t.tensor}] += timeline_.bits_of(t).value;
    }
    for (std::size_t i = 0; i < graph_.operators().size(); ++i) {
      const Operator& op = graph_.operators()[i];
      if (!is_offload(op) && !is_fetch(op))
        continue;
      const TensorId id = is_offload(op) ? *op.outputs[0] : *op.inputs[0];
      const Tensor& tensor = graph_.tensor(id);
      internal_check(bits[{OpId(i), id}] >= element_count(tensor) * core_bits_of(tensor.type),
                     fmt::format("'{}' moves less than its tensor", op.name));
    }
  }

  void check_rows() const {
    std::vector<std::int64_t> least(timeline_.transfer_costs.size(), 0); // minimum cycles
    for (std::size_t i = 0; i < least.size(); ++i) {
      const TransferCost& cost = timeline_.transfer_costs[i];
      const Route& route = timeline_.routes.at(cost.route);
      if (!port_.rows || (route.from != chip_.offchip && !writes(route))) {
        internal_check(cost.rows == 0, "a transfer opens rows that there are not");
        continue;
      }
      internal_check(cost.rows >= ceil_div(cost.bits.value, port_.rows->row_bits),
                     "a transfer opens fewer rows than its bits fill");
      least[i] = simulated(*port_.rows, cost.rows, ceil_div(cost.bits.value, width_[cost.route]));
    }
    for (const Transfer& t : timeline_.transfers) {
      if ((t.end - t.start).value < least[t.cost])
        throw InternalError(fmt::format("transfer of '{}' is faster than the rows that it opens",
                                        graph_.tensor(t.tensor).name));
    }
  }

  /// Boxes that an operator's tiles read of a tensor without producer, if all have equally many
  /// bits.
  struct Boxes {
    std::int64_t bits = 0; ///< of each box; 0: they differ
    std::int64_t min_rows = INT64_MAX;
    std::int64_t max_rows = 0;
  };

  Boxes boxes_of(OpId op, TensorId id) const {
    const Tensor& tensor = graph_.tensor(id);
    const auto [first, last] = tiles_.tiles_of(op);
    Boxes boxes;
    const Access* seen = nullptr;
    for (const Access& access : graph_.op(op).nest.operands) {
      if (access.tensor != id || access.mode != AccessMode::read)
        continue;
      if (seen != nullptr)
        return {};
      seen = &access;
      for (std::uint32_t t = first; t < last; ++t) {
        const Box box = region(access, tiles_.ranges(TileId(t)), tensor.shape);
        const std::int64_t bits = storage_of(tensor.type, volume(box)).value;
        if (bits == 0 || (boxes.bits != 0 && bits != boxes.bits))
          return {};
        boxes.bits = bits;
        const std::int64_t rows =
            touched_rows(box, tensor.shape, bits_of(tensor.type), port_.rows->row_bits);
        boxes.min_rows = std::min(boxes.min_rows, rows);
        boxes.max_rows = std::max(boxes.max_rows, rows);
      }
    }
    return boxes;
  }

  /// Checks the rows of fetches. A fetch moves a tile's box or a part of it. A fetch with the size
  /// of every tile's box moves a whole box and opens the rows that the box touches.
  void check_boxes() const {
    std::map<std::pair<OpId, TensorId>, Boxes> known;
    for (const Transfer& t : timeline_.transfers) {
      if (t.kind != TransferKind::fetch || timeline_.route_of(t).from != chip_.offchip ||
          graph_.tensor(t.tensor).producer || block_of(graph_.tensor(t.tensor).type).size > 1)
        continue;
      const auto [found, added] = known.try_emplace({t.op, t.tensor});
      if (added)
        found->second = boxes_of(t.op, t.tensor);
      const Boxes& boxes = found->second;
      const TransferCost& cost = timeline_.cost_of(t);
      if (boxes.bits == cost.bits.value &&
          (cost.rows < boxes.min_rows || cost.rows > boxes.max_rows))
        throw InternalError(fmt::format("a transfer of '{}' opens {} rows, not {} to {}",
                                        graph_.tensor(t.tensor).name, cost.rows, boxes.min_rows,
                                        boxes.max_rows));
    }
  }

  const Timeline& timeline_;
  const TileGraph& tiles_;
  const Graph& graph_;
  const Chip& chip_;
  OffchipPort port_;
  std::vector<std::int64_t> width_; ///< per route: bits per cycle of its narrowest link or port
};

} // namespace

void verify_transfers(const Timeline& timeline, const TileGraph& tiles, const Graph& graph,
                      const Chip& chip) {
  TransferChecker(timeline, tiles, graph, chip).check();
}

} // namespace monet
