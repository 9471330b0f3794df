// The main loop of the reference scheduler: selects the next tile, fetches its operands and sets
// its start. schedule() calls it; transfers.cpp moves tensors.
#include "reference/stream/schedule/coala.hpp"

#include "monet/base/errors.hpp"
#include "monet/reference/stream_tiles.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace monet::stream {

namespace {

/// Numbers the names of all layers' axes, so that names can be compared as numbers.
std::vector<std::uint32_t> number_axes(const Workload& workload,
                                       std::vector<std::uint32_t>& first_axis) {
  std::map<std::string, std::uint32_t, std::less<>> numbers;
  std::vector<std::uint32_t> names;
  first_axis.reserve(workload.layers.size());
  for (const Layer& layer : workload.layers) {
    first_axis.push_back(static_cast<std::uint32_t>(names.size()));
    for (std::size_t axis = 0; axis < layer.axes(); ++axis) {
      names.push_back(
          numbers.try_emplace(layer.axis_name(axis), static_cast<std::uint32_t>(numbers.size()))
              .first->second);
    }
  }
  return names;
}

std::vector<LinkActivity> activities(const Chip& chip) {
  std::vector<LinkActivity> links;
  links.reserve(chip.links.size());
  for (const Link& link : chip.links)
    links.emplace_back(link.bandwidth_bits_per_cycle);
  return links;
}

CoreId offchip_of(const Chip& chip) {
  if (!chip.offchip)
    throw InfeasibleError("stream-coala needs a chip with an off-chip memory; '" + chip.name +
                          "' has none");
  return *chip.offchip;
}

} // namespace

Coala::Coala(const Workload& workload, const Chip& chip, const Costs& costs)
    : workload_(workload), chip_(chip), costs_(costs), fabric_(chip),
      priorities_(workload, fabric_), offchip_(offchip_of(chip)), links_(activities(chip)),
      storage_(fabric_.memories().size()), usage_(fabric_.memories().size()),
      axis_names_(number_axes(workload, first_axis_)), last_rank_(workload.layers.size(), 0),
      takes_part_(chip.cores.size(), false), idle_from_(chip.cores.size(), 0.0),
      waiting_for_(workload.tiles.size(), 0), scheduled_(workload.tiles.size(), false) {
  internal_check(costs.of_tile.size() == workload.tiles.size(), "tiles without a cost");
  for (std::uint32_t t = 0; t < workload.tiles.size(); ++t) {
    const Tile& tile = workload.tiles[t];
    last_rank_[tile.layer] = std::max(last_rank_[tile.layer], workload.rank[t]);
    takes_part_[tile.core.index()] = true;
    waiting_for_[t] = static_cast<std::uint32_t>(workload.edges_into(t).size());
    if (waiting_for_[t] == 0)
      ready_.emplace(workload.rank[t], t);
  }
  result_.runs.resize(workload.tiles.size());
  objects_.resize(workload.tensors.size());
  for (std::uint32_t t = 0; t < workload.tensors.size(); ++t)
    objects_[t] = {t, t, Storage::kNil, workload.tensors[t].bits.value};
  storage_.grow(objects_.size());
}

Result Coala::run() {
  for (std::uint32_t t = 0; t < workload_.tensors.size(); ++t) {
    if (workload_.tensors[t].initially_offchip)
      add_to_memory(t, memory(offchip_, own_operand(t)), 0, 0);
  }
  std::size_t count = 0;
  for (; !ready_.empty(); ++count) {
    const std::uint32_t tile = ready_.top().second;
    ready_.pop();
    schedule_tile(tile);
  }
  internal_check(count == workload_.tiles.size(), "tiles wait for each other");
  result_.latency = last_link_end_;
  for (const TileRun& run : result_.runs)
    result_.latency = std::max(result_.latency, run.end);
  for (std::size_t m = 0; m < usage_.size(); ++m) {
    const TopMemory& top = fabric_.memories()[m];
    result_.peaks.push_back({top.name, top.cores, top.capacity, {usage_[m].peak()}});
  }
  return std::move(result_);
}

/// Schedules one tile. The step numbers are those of the reference.
void Coala::schedule_tile(std::uint32_t index) {
  tile_ = index;
  const Tile& tile = workload_.tiles[index];
  const TileCost& cost = costs_.of(index);
  streamed_ = cost.streamed;
  list_needs(tile, index);
  cut_needs(index);
  reconsider_streams(tile);
  const double fraction = fraction_of(tile.layer);
  // 0: wait until the core is free and predecessors have ended
  synchronise_cores(index);
  double time = idle_from_[tile.core.index()];
  for (const Edge& edge : workload_.edges_into(index))
    time = std::max(time, result_.runs[edge.from].end);
  // 1, 2: clear the memories of streamed operands; fetch operands
  time = clear_memories(tile.core, time, fraction);
  time = fetch_needs(tile.core, time, fraction);
  // 3, 4: make space for the output; reserve bandwidth for streams
  const std::uint32_t output = tile.tensors[static_cast<std::size_t>(Operand::O)];
  const CoreId holder = streams(MemoryOperand::O) ? offchip_ : tile.core;
  time = make_space(output, holder, MemoryOperand::O, time);
  time = block(tile, time, cost.runtime);
  // 5: run the tile
  const double end = time + cost.runtime;
  add_to_memory(output, memory(holder, MemoryOperand::O), time, end);
  result_.runs[index] = {tile.core, time, end};
  idle_from_[tile.core.index()] = end;
  scheduled_[index] = true;
  result_.energy.onchip_pj += cost.onchip_pj;
  result_.energy.memory_pj[static_cast<std::size_t>(Cause::offchip)] += cost.offchip_pj;
  // 6, 7: release operands and write final outputs
  release(tile, index, end, fraction);
  for (const std::uint32_t reader : workload_.successors_of(index)) {
    if (--waiting_for_[reader] == 0)
      ready_.emplace(workload_.rank[reader], reader);
  }
}

/// Lists the operands of a tile that do not stream: constants, then outputs of predecessors by
/// (layer, sub id). The list is then stably sorted by source layer.
void Coala::list_needs(const Tile& tile, std::uint32_t index) {
  needs_.clear();
  for (const Operand operand : workload_.layers[tile.layer].constants) {
    const std::uint32_t tensor = tile.tensors[static_cast<std::size_t>(operand)];
    if (!streams(memory_of(operand)))
      needs_.push_back({tensor, tensor, memory_of(operand)});
  }
  for (const Edge& edge : workload_.edges_into(index)) {
    if (!edge.carries_data() || streams(memory_of(edge.operand)))
      continue;
    const std::uint32_t tensor =
        workload_.tiles[edge.from].tensors[static_cast<std::size_t>(Operand::O)];
    needs_.push_back({tensor, tensor, memory_of(edge.operand)});
  }
  std::ranges::stable_sort(needs_, [&](const OperandRequest& a, const OperandRequest& b) {
    return workload_.tensors[a.tensor].layer < workload_.tensors[b.tensor].layer;
  });
}

void Coala::cut_needs(std::uint32_t index) {
  const CoreId core = workload_.tiles[index].core;
  parts_.clear();
  for (OperandRequest& need : needs_) {
    if (!present(need.tensor, core))
      need.object = part_of(need.tensor, index);
  }
  needed_by_.resize(objects_.size(), kNone);
  for (const OperandRequest& need : needs_)
    needed_by_[need.object] = index;
}

/// The part of a tensor that a tile needs: the intersection with the tile's ranges of equally named
/// loops, and the size ratio. Empty if the tile needs the whole tensor.
std::optional<Coala::Cut> Coala::cut_of(const Tensor& whole, std::uint32_t tile) const {
  const Layer& layer = workload_.layers[workload_.tiles[tile].layer];
  const Layer& origin = workload_.layers[whole.layer];
  const std::vector<std::uint32_t>& axes = origin.use(whole.operand).axes;
  const std::span<const Interval> whole_ranges = workload_.ranges(whole.tile);
  const std::uint32_t own = first_axis_[workload_.tiles[tile].layer];
  const std::uint32_t other = first_axis_[whole.layer];
  Cut cut;
  bool differs = false;
  for (const Factor& factor : layer.intra) {
    for (std::size_t i = 0; i < axes.size(); ++i) {
      if (axis_names_[own + factor.dim] != axis_names_[other + axes[i]])
        continue;
      if (cut.ranges.empty()) {
        for (const std::uint32_t axis : axes)
          cut.ranges.push_back(whole_ranges[axis]);
      }
      const Interval wanted = workload_.ranges(tile)[factor.dim];
      const Interval all = whole_ranges[axes[i]];
      cut.ratio *=
          static_cast<double>(all.end - all.begin) / static_cast<double>(wanted.end - wanted.begin);
      differs = differs || all.end - all.begin != wanted.end - wanted.begin;
      cut.ranges[i] = wanted;
      break;
    }
  }
  return differs ? std::optional(std::move(cut)) : std::nullopt;
}

/// The object of the part of a tensor that a tile needs; the tensor itself if it needs all of it.
/// Like the whole, the part is off-chip; parts with equal ranges share their content in a memory.
std::uint32_t Coala::part_of(std::uint32_t tensor, std::uint32_t tile) {
  const Tensor& whole = workload_.tensors[tensor];
  const std::optional<Cut> cut = cut_of(whole, tile);
  if (!cut)
    return tensor;
  const std::uint32_t dram = memory(offchip_, memory_of(whole.operand));
  const Storage::MemoryContent* held = storage_.find(tensor, dram);
  if (held == nullptr) {
    note("parts of tensors that are not off-chip",
         workload_.name_of(whole) + " is needed in part, but is not in the off-chip memory; the "
                                    "reference stops here, and the whole is moved instead");
    return tensor;
  }
  const double since = held->available;
  const auto object = static_cast<std::uint32_t>(objects_.size());
  const std::uint32_t content =
      parts_.try_emplace({whole.layer, whole.operand, cut->ranges}, object).first->second;
  objects_.push_back(
      {tensor, content, Storage::kNil,
       static_cast<std::int64_t>(static_cast<double>(whole.bits.value) / cut->ratio)});
  storage_.grow(objects_.size());
  add_to_memory(object, dram, since, since);
  return object;
}

/// Cancels all streams if no constant streams, and the needed operands and the output fit. As in
/// the reference, an operand not listed because of its stream is then neither streamed nor fetched.
void Coala::reconsider_streams(const Tile& tile) {
  if (streamed_.empty() || needs_.empty())
    return;
  for (const Operand operand : workload_.layers[tile.layer].constants) {
    if (streams(memory_of(operand)))
      return;
  }
  std::array<std::int64_t, kMemoryOperands> bits{};
  for (const OperandRequest& need : needs_)
    bits[static_cast<std::size_t>(need.operand)] += objects_[need.object].bits;
  bits[static_cast<std::size_t>(MemoryOperand::O)] +=
      objects_[tile.tensors[static_cast<std::size_t>(Operand::O)]].bits;
  for (const std::uint32_t top : fabric_.tops(tile.core)) {
    std::int64_t all = 0;
    for (std::size_t o = 0; o < kMemoryOperands; ++o) {
      if (fabric_.top(tile.core, static_cast<MemoryOperand>(o)) == top)
        all += bits[o];
    }
    if (all > fabric_.memories()[top].capacity.value)
      return;
  }
  streamed_.clear();
}

/// Before the first tile of a layer, sets all cores to the latest time, if all tiles of preceding
/// layers have lower ranks than this tile.
void Coala::synchronise_cores(std::uint32_t index) {
  const Tile& tile = workload_.tiles[index];
  if (tile.sub != 0)
    return;
  for (const Edge& edge : workload_.edges_into(index)) {
    const std::uint32_t layer = workload_.tiles[edge.from].layer;
    if (layer != tile.layer && last_rank_[layer] >= workload_.rank[index])
      return;
  }
  const double latest = *std::ranges::max_element(idle_from_);
  for (std::size_t core = 0; core < idle_from_.size(); ++core) {
    if (takes_part_[core])
      idle_from_[core] = latest;
  }
}

double Coala::clear_memories(CoreId core, double time, double fraction) {
  for (const MemoryOperand operand : streamed_) {
    const std::uint32_t top = memory(core, operand);
    std::vector<std::uint32_t> stored;
    storage_.for_each_in(top, [&](const Storage::MemoryContent& holding) {
      if (holding.since <= time && !needed(holding.object))
        stored.push_back(holding.object);
    });
    for (const std::uint32_t object : stored)
      time = remove(object, core, operand, time, fraction, Cause::eviction);
  }
  return time;
}

double Coala::fetch_needs(CoreId core, double time, double fraction) {
  // The head start counts all operands, even those that are present already.
  double head_start = 0;
  for (const OperandRequest& need : needs_) {
    const TopMemory& dram = fabric_.memories()[memory(offchip_, need.operand)];
    head_start += std::ceil(static_cast<double>(objects_[need.object].bits) /
                            (static_cast<double>(dram.read_bits) * fraction));
  }
  const double earliest = idle_from_[core.index()] - head_start;
  for (std::size_t i = 0; i < needs_.size(); ++i) {
    const OperandRequest need = needs_[i];
    const double arrival =
        transfer({need.object, core, need.operand, fraction}, earliest, std::nullopt);
    time = std::max(time, arrival);
  }
  return time;
}

void Coala::release(const Tile& tile, std::uint32_t index, double end, double fraction) {
  for (const OperandRequest& need : needs_)
    priorities_.use(need.tensor, memory(tile.core, need.operand));
  for (const OperandRequest& need : needs_) {
    if (priorities_.total(need.tensor) == 0)
      drop_used_up(need.tensor, end);
  }
  for (const OperandRequest& need : needs_) {
    if (need.object == need.tensor)
      continue;
    remove_from_memory(objects_[need.object].content, memory(tile.core, need.operand), end);
    remove_from_memory(objects_[need.object].content, memory(offchip_, need.operand), end);
  }
  if (workload_.layers[tile.layer].sink && tile.final_output && !streams(MemoryOperand::O)) {
    remove(workload_.tiles[index].tensors[static_cast<std::size_t>(Operand::O)], tile.core,
           MemoryOperand::O, end, fraction, Cause::sink);
  }
}

/// Removes a tensor without remaining uses from all memories. An output leaves a memory at the end
/// of the last scheduled reader on the memory's cores; off-chip, of the last reader on any core.
void Coala::drop_used_up(std::uint32_t tensor, double end) {
  const Tensor& known = workload_.tensors[tensor];
  std::vector<std::uint32_t> holders;
  storage_.for_each_of(
      tensor, [&](const Storage::MemoryContent& holding) { holders.push_back(holding.memory); });
  if (holders.empty()) {
    note("tensors that are nowhere",
         workload_.name_of(known) + " is used up, but in no memory any more; the reference stops "
                                    "here");
  }
  for (const std::uint32_t holder : holders) {
    const std::vector<CoreId>& cores = fabric_.memories()[holder].cores;
    double time = end;
    if (known.operand == Operand::O) {
      const bool offchip = std::ranges::find(cores, offchip_) != cores.end();
      double last = -1;
      for (const std::uint32_t reader : workload_.successors_of(known.tile)) {
        const Tile& tile = workload_.tiles[reader];
        if (tile.layer == known.layer || !scheduled_[reader])
          continue;
        if (offchip || std::ranges::find(cores, tile.core) != cores.end())
          last = std::max(last, result_.runs[reader].end);
      }
      time = last >= 0 ? last : end;
    }
    remove_from_memory(tensor, memory(cores.front(), memory_of(known.operand)), time);
  }
}

bool Coala::streams(MemoryOperand operand) const {
  return std::ranges::find(streamed_, operand) != streamed_.end();
}

std::string Coala::place() const {
  const Tile& tile = workload_.tiles[tile_];
  const Layer& layer = workload_.layers[tile.layer];
  return fmt::format("tile ({}, {}) of '{}' on core {}", layer.id, tile.sub, layer.name,
                     tile.core.index());
}

void Coala::note(const char* name, const std::string& what) {
  if (std::ranges::find(result_.notes, name, &Note::name) == result_.notes.end())
    result_.notes.push_back({name, workload_.layers[workload_.tiles[tile_].layer].name, what});
}

double EnergyTerms::total_pj() const {
  return onchip_pj + std::accumulate(link_pj.begin(), link_pj.end(), 0.0) +
         std::accumulate(memory_pj.begin(), memory_pj.end(), 0.0);
}

Result schedule(const Workload& workload, const Chip& chip, const Costs& costs) {
  return Coala(workload, chip, costs).run();
}

} // namespace monet::stream
