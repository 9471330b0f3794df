// Computes the load that each operator's choice puts on cores and off-chip ports, independent of
// other operators' choices; AllocationBounds is built on it.
#include "optimise/allocation/loads.hpp"

#include "base/shared/checked.hpp"
#include "base/shared/parallel.hpp"
#include "schedule/shared/bounds.hpp"

#include <algorithm>
#include <atomic>
#include <optional>

namespace monet {

namespace {

/// Minimum bits that operators move through the off-chip memory's ports, by tensor.
class Ports {
public:
  Ports(const TrainingGraph& step, const Chip& chip)
      : graph_(step.graph), port_(offchip_port(chip)), written_(compulsory_traffic(graph_).written),
        first_reader_(graph_.tensors().size()) {
    for (std::size_t op = 0; op < graph_.operators().size(); ++op) {
      for (const Access& access : graph_.operators()[op].nest.operands) {
        auto& first = first_reader_[access.tensor.index()];
        if (access.mode == AccessMode::read && !first)
          first = static_cast<std::uint32_t>(op);
      }
    }
  }

  std::size_t resources() const { return port_.shared ? 1 : 2; }

  /// Adds an operator's port traffic to the load. `streamed`: per operand, its traffic if any tile
  /// streams it. A kept operand must cross the port at least once. A tensor without producer counts
  /// for its first reader, and for every reader that streams it.
  void add(std::size_t op, const std::vector<std::optional<OffchipTraffic>>& streamed,
           std::size_t cores, ChoiceLoad& load) const {
    const LoopNest& nest = graph_.operators()[op].nest;
    const std::vector<Interval> all = full_tile(nest);
    std::vector<std::pair<TensorId, std::int64_t>> kept;
    double in = 0;
    double out = 0;
    for (std::size_t i = 0; i < nest.operands.size(); ++i) {
      const Access& access = nest.operands[i];
      if (streamed[i]) {
        in += static_cast<double>(streamed[i]->read.value);
        out += static_cast<double>(streamed[i]->write.value);
        continue;
      }
      const bool read = access.mode == AccessMode::read;
      const Tensor& tensor = graph_.tensor(access.tensor);
      const bool needed = read ? !tensor.producer && first_reader_[access.tensor.index()] == op
                               : written_[access.tensor.index()] > 0;
      if (!needed || streams_too(nest, access.tensor, streamed))
        continue;
      const std::int64_t bits =
          checked_multiply(touched_elements(access, all, tensor.shape), bits_of(tensor.type));
      const auto same =
          std::ranges::find(kept, access.tensor, &std::pair<TensorId, std::int64_t>::first);
      const std::int64_t before = same == kept.end() ? 0 : same->second;
      if (same == kept.end())
        kept.emplace_back(access.tensor, bits);
      else
        same->second = std::max(bits, before);
      (read ? in : out) += static_cast<double>(std::max(bits, before) - before);
    }
    load.cycles[cores] = port_.min_cycles(in, port_.shared ? out : 0);
    if (!port_.shared)
      load.cycles[cores + 1] = port_.min_cycles(0.0, out);
    load.port_bits = in + out;
    load.port_energy =
        in * min_units(port_.read_pj_per_bit) + out * min_units(port_.write_pj_per_bit);
  }

private:
  /// Whether another operand of the operator streams the tensor.
  static bool streams_too(const LoopNest& nest, TensorId tensor,
                          const std::vector<std::optional<OffchipTraffic>>& streamed) {
    for (std::size_t i = 0; i < nest.operands.size(); ++i) {
      if (streamed[i] && nest.operands[i].tensor == tensor)
        return true;
    }
    return false;
  }

  /// Minimum Energy::units per bit, however transfers of whole bits are rounded.
  static double min_units(double pj_per_bit) {
    const double units = pj_per_bit * Energy::kUnitsPerPicojoule;
    return units < 1 ? 0 : units - 0.5;
  }

  const Graph& graph_;
  OffchipPort port_;
  std::vector<std::int64_t> written_; ///< per tensor, bits that must be written off-chip
  std::vector<std::optional<std::uint32_t>> first_reader_; ///< per tensor
};

class LoadMaker {
public:
  LoadMaker(AllocationEvaluator& evaluator, const Ports& ports, std::size_t cores)
      : evaluator_(evaluator), graph_(evaluator.step().graph), ports_(ports), cores_(cores) {}

  /// Computes the loads of choice `number` for every operator that has such a choice. Returns false
  /// if the control ended it.
  bool make(std::uint32_t number, const SearchControl& control,
            std::vector<std::vector<ChoiceLoad>>& loads) const {
    AllocationPlan plan;
    for (const auto& choices : evaluator_.choices())
      plan.push_back(std::min(number, static_cast<std::uint32_t>(choices.size() - 1)));
    const TileGraph tiles = evaluator_.tiles(plan);
    for (std::size_t op = 0; op < plan.size(); ++op) {
      if (plan[op] != number)
        continue;
      if (control.interrupted())
        return false;
      const auto costs = evaluator_.tile_costs().of(tiles, OpId(op));
      loads[op][number] = load(op, tiles, costs.get());
    }
    return true;
  }

private:
  ChoiceLoad load(std::size_t op, const TileGraph& tiles, const TileCosts* costs) const {
    ChoiceLoad result{.known = true, .feasible = costs != nullptr};
    if (!result.feasible)
      return result;
    const OperatorTiling& tiling = tiles.operators[op];
    result.cycles.assign(cores_ + ports_.resources(), 0);
    std::vector<std::optional<OffchipTraffic>> streamed(
        graph_.operators()[op].nest.operands.size());
    for (std::uint32_t t = 0; t < tiling.size(); ++t) {
      const TileCost& row = costs->rows[costs->row_of[t]];
      const std::int64_t latency = std::max<std::int64_t>(1, row.cost->latency.value);
      result.shortest_tile = t == 0 ? latency : std::min(result.shortest_tile, latency);
      result.cycles[tiles.tiles[tiling.first + t].core.index()] += static_cast<double>(latency);
      result.energy += Energy::from(row.cost->compute_energy).units +
                       Energy::from(row.cost->memory_energy).units;
      for (std::size_t i = 0; i < row.cost->offchip.size() && i < streamed.size(); ++i) {
        if (!row.problem->operands[i].offchip)
          continue;
        if (!streamed[i])
          streamed[i].emplace();
        streamed[i]->read += row.cost->offchip[i].read;
        streamed[i]->write += row.cost->offchip[i].write;
      }
    }
    ports_.add(op, streamed, cores_, result);
    find_predecessors(op, tiles, result);
    return result;
  }

  /// Finds producers from which every tile reads some elements, or all elements.
  void find_predecessors(std::size_t op, const TileGraph& tiles, ChoiceLoad& load) const {
    const OperatorTiling& tiling = tiles.operators[op];
    for (const Access& access : graph_.operators()[op].nest.operands) {
      const auto producer = graph_.tensor(access.tensor).producer;
      if (access.mode != AccessMode::read || !producer || producer->index() == op ||
          !written_whole(access.tensor))
        continue;
      const std::uint32_t from = producer->value;
      const OperatorTiling& maker = tiles.operators[from];
      bool some = true;
      bool all = true;
      for (std::uint32_t t = tiling.first; t < tiling.last && some; ++t) {
        const auto edges = tiles.edges_into(TileId(t));
        some = std::ranges::any_of(edges, [&](const TileEdge& edge) {
          return edge.from.value >= maker.first && edge.from.value < maker.last;
        });
        const Box box = region(access, tiles.ranges(TileId(t)), graph_.tensor(access.tensor).shape);
        all = all && volume(box) == volume_of(access.tensor);
      }
      if (some)
        load.after_some.push_back(from);
      if (some && all)
        load.after_all.push_back(from);
    }
  }

  /// Whether the producer writes every element of the tensor, so that every tile writes some.
  bool written_whole(TensorId id) const {
    const Operator& maker = graph_.op(*graph_.tensor(id).producer);
    return std::ranges::any_of(maker.nest.operands, [&](const auto& a) {
      return a.tensor == id && a.mode != AccessMode::read &&
             touched_elements(a, full_tile(maker.nest), graph_.tensor(id).shape) == volume_of(id);
    });
  }

  std::int64_t volume_of(TensorId tensor) const {
    return checked_product(graph_.tensor(tensor).shape);
  }

  AllocationEvaluator& evaluator_;
  const Graph& graph_;
  const Ports& ports_;
  std::size_t cores_;
};

std::vector<bool> waiting_updates(const TileGraph& tiles, const Graph& graph) {
  const std::size_t count = graph.operators().size();
  std::vector<bool> mixed(count + 1, false); // per stack: has an operator that is not an update
  for (std::size_t op = 0; op < count; ++op) {
    if (graph.operators()[op].phase != Phase::update)
      mixed[tiles.stack_of[op]] = true;
  }
  std::vector<bool> waits(count, false);
  for (std::size_t op = 0; op < count; ++op)
    waits[op] = graph.operators()[op].phase == Phase::update && !mixed[tiles.stack_of[op]];
  return waits;
}

} // namespace

double ChoiceLoad::busiest(std::size_t cores) const {
  return *std::max_element(cycles.begin(), cycles.begin() + static_cast<std::ptrdiff_t>(cores));
}

AllocationLoads allocation_loads(AllocationEvaluator& evaluator, const SearchControl& control) {
  const Graph& graph = evaluator.step().graph;
  const Ports ports(evaluator.step(), evaluator.chip());
  AllocationLoads loads;
  loads.cores = evaluator.chip().compute_cores();
  loads.resources = loads.cores + ports.resources();
  std::size_t rounds = 0;
  for (const auto& choices : evaluator.choices()) {
    loads.of.emplace_back(choices.size());
    rounds = std::max(rounds, choices.size());
  }
  loads.compulsory.cycles.assign(loads.resources, 0);
  for (std::size_t op = 0; op < graph.operators().size(); ++op) {
    ChoiceLoad of_op;
    of_op.cycles.assign(loads.resources, 0);
    ports.add(
        op, std::vector<std::optional<OffchipTraffic>>(graph.operators()[op].nest.operands.size()),
        loads.cores, of_op);
    for (std::size_t r = 0; r < loads.resources; ++r)
      loads.compulsory.cycles[r] += of_op.cycles[r];
    loads.compulsory.port_energy += of_op.port_energy;
    loads.compulsory.port_bits += of_op.port_bits;
  }
  const LoadMaker maker(evaluator, ports, loads.cores);
  std::atomic<std::int64_t> done{0};
  parallel_for(rounds, control.jobs, [&](std::size_t number) {
    control.finishes([&] {
      if (maker.make(static_cast<std::uint32_t>(number), control, loads.of))
        ++done;
    });
  });
  loads.complete = done == static_cast<std::int64_t>(rounds);
  control.tell({"allocation: core costs", done, static_cast<std::int64_t>(rounds)});
  loads.waits = waiting_updates(evaluator.tiles(evaluator.automatic()), graph);
  for (const Operator& op : graph.operators()) {
    auto& all_of = loads.reads_all_of.emplace_back();
    for (const Access& access : op.nest.operands) {
      const Tensor& tensor = graph.tensor(access.tensor);
      if (access.mode == AccessMode::read && tensor.producer &&
          touched_elements(access, full_tile(op.nest), tensor.shape) ==
              checked_product(tensor.shape))
        all_of.push_back(tensor.producer->value);
    }
  }
  return loads;
}

} // namespace monet
