// Finds the cost of every tile in a table of core costs, with our own core model as a fallback. The
// scheduler (schedule/coala.cpp) uses the costs.
#include "monet/reference/stream_costs.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

namespace monet::stream {

namespace {

using LayerCore = std::pair<std::uint32_t, std::int64_t>;

class Matcher {
public:
  Matcher(const CostTable& table, const Workload& workload, const Chip& chip)
      : table_(table), workload_(workload), chip_(chip) {
    for (std::uint32_t l = 0; l < workload.layers.size(); ++l) {
      by_id_.emplace(workload.layers[l].id, l);
      by_name_.emplace(workload.layers[l].name, l);
    }
    index_costs();
    index_tiles();
    for (const StreamRow& stream : table.streams) {
      const auto layer = by_id_.find(stream.layer);
      if (layer != by_id_.end())
        streams_[layer->second].push_back(&stream);
    }
  }

  Costs costs() {
    Costs result;
    std::map<std::tuple<std::uint32_t, std::int64_t, double, double, double>, std::uint32_t> known;
    for (std::uint32_t t = 0; t < workload_.tiles.size(); ++t) {
      const Tile& tile = workload_.tiles[t];
      TileCost cost = cost_of(t);
      const auto [place, added] = known.try_emplace(
          {tile.layer, tile.core.index(), cost.runtime, cost.onchip_pj, cost.offchip_pj},
          static_cast<std::uint32_t>(result.classes.size()));
      if (added) {
        set_streams(t, cost);
        set_offchip_energy(t, cost);
        result.classes.push_back(std::move(cost));
      }
      result.of_tile.push_back(place->second);
    }
    problems_.throw_if_any();
    result.notes = std::move(notes_);
    return result;
  }

private:
  void index_costs() {
    const auto found = [](const auto& known, const auto& key) {
      const auto at = known.find(key);
      return at == known.end() ? std::nullopt : std::optional(at->second);
    };
    for (const CostRow& row : table_.costs) {
      const auto layer = row.layer ? found(by_id_, *row.layer) : found(by_name_, row.node);
      if (!layer)
        continue;
      if (fits(row, *layer))
        costs_.emplace(LayerCore{*layer, row.core}, &row); // first match, as in the reference
      else
        other_tiles_.insert(*layer);
    }
  }

  /// Indexes recorded tiles. Layers whose number of tiles differs from this workload are ignored.
  void index_tiles() {
    std::map<int, std::size_t> count;
    for (const TileRow& tile : table_.tiles)
      ++count[tile.layer];
    for (const TileRow& tile : table_.tiles) {
      const auto layer = by_id_.find(tile.layer);
      if (layer == by_id_.end())
        continue;
      if (count[tile.layer] == workload_.layers[layer->second].tiles)
        tiles_.emplace(std::pair{tile.layer, tile.sub}, &tile);
      else
        other_tiles_.insert(layer->second);
    }
  }

  /// Whether the tile sizes in the row match the layer's, for all loops that the layer has.
  bool fits(const CostRow& row, std::uint32_t layer) const {
    const std::vector<Dim>& dims = workload_.layers[layer].dims;
    return std::ranges::all_of(row.dims, [&](const auto& dim) {
      const auto known = std::ranges::find(dims, dim.first, &Dim::name);
      return known == dims.end() || known->tile == dim.second;
    });
  }

  /// The cost row of a tile; null if the files have none.
  const CostRow* row_of(const Tile& tile) const {
    const auto found = costs_.find(LayerCore{tile.layer, tile.core.index()});
    return found == costs_.end() ? nullptr : found->second;
  }

  /// Runtime and energies of a tile, without streams.
  TileCost cost_of(std::uint32_t t) {
    const Tile& tile = workload_.tiles[t];
    const Layer& layer = workload_.layers[tile.layer];
    const CostRow* row = row_of(tile);
    const auto ran = tiles_.find(std::pair{layer.id, static_cast<std::int64_t>(tile.sub)});
    // A recorded tile is used unless the files show that it differs from this tile.
    const bool same_core = ran != tiles_.end() &&
                           ran->second->core == static_cast<std::int64_t>(tile.core.index()) &&
                           (row != nullptr || !other_tiles_.contains(tile.layer));
    TileCost cost;
    if (row != nullptr) {
      cost.runtime = row->runtime.value_or(0);
      cost.onchip_pj = row->onchip_pj.value_or(0);
      cost.offchip_pj = row->offchip_pj.value_or(0);
    }
    if (same_core) {
      cost.onchip_pj = ran->second->onchip_pj;
      cost.offchip_pj = ran->second->offchip_pj;
      cost.runtime = exact_runtime(row, *ran->second);
    }
    if (row == nullptr && !same_core)
      report_missing(tile, layer);
    return cost;
  }

  static double exact_runtime(const CostRow* row, const TileRow& ran) {
    if (row != nullptr) {
      for (const std::optional<double>& known : {row->runtime, row->other_runtime}) {
        if (known && std::floor(*known) == std::floor(ran.runtime))
          return *known;
      }
    }
    return ran.runtime;
  }

  void report_missing(const Tile& tile, const Layer& layer) {
    if (!reported_.insert({tile.layer, tile.core.index()}).second || problems_.size() >= 20)
      return;
    std::string sizes;
    for (const Dim& dim : layer.dims)
      sizes += fmt::format("{}{} {}", sizes.empty() ? "" : ", ", dim.name, dim.tile);
    problems_.add(
        {table_.costs.empty() ? std::string("core costs") : table_.costs.front().where.origin, 0, 0,
         fmt::format("layer {} '{}'", layer.id, layer.name)},
        fmt::format("no cost of its tiles ({}) on core {}{}", sizes, tile.core.index(),
                    other_tiles_.contains(tile.layer) ? ", but costs of other tiles" : ""),
        "--mode, --stacks and --mapping must be those of the files");
  }

  std::optional<std::int64_t> bandwidth(const CostRow* row, std::uint32_t layer, std::int64_t core,
                                        MemoryOperand operand) const {
    if (row != nullptr && row->offchip_bandwidth[static_cast<std::size_t>(operand)])
      return row->offchip_bandwidth[static_cast<std::size_t>(operand)];
    std::optional<std::int64_t> elsewhere;
    const auto found = streams_.find(layer);
    if (found == streams_.end())
      return std::nullopt;
    for (const StreamRow* stream : found->second) {
      if (stream->operand != operand)
        continue;
      if (stream->core == core)
        return stream->bandwidth;
      // The reference records one block for an operand shared by tiles on several cores.
      if (!elsewhere)
        elsewhere = stream->bandwidth;
    }
    return elsewhere;
  }

  void set_streams(std::uint32_t t, TileCost& cost) {
    const Tile& tile = workload_.tiles[t];
    const auto core = static_cast<std::int64_t>(tile.core.index());
    const CostRow* row = row_of(tile);
    const bool given = row != nullptr && row->streamed;
    cost.streamed = given ? *row->streamed : streamed_operands(workload_, t, chip_);
    for (const MemoryOperand operand : cost.streamed) {
      const auto known = bandwidth(row, tile.layer, core, operand);
      cost.offchip_bandwidth[static_cast<std::size_t>(operand)] = known.value_or(0);
      // Events without a block of this layer: the reference cancelled its streams.
      if (known || (table_.has_events && !given))
        continue;
      cost.offchip_bandwidth[static_cast<std::size_t>(operand)] =
          own().of(t).offchip_bandwidth[static_cast<std::size_t>(operand)];
      note(t, "bandwidths from MONET's core model",
           "the files lack the share of the off-chip link that streams use");
    }
  }

  /// Splits off-chip energy from on-chip energy, because cost_lut.json contains only their sum.
  void set_offchip_energy(std::uint32_t t, TileCost& cost) {
    const Tile& tile = workload_.tiles[t];
    const CostRow* row = row_of(tile);
    if (cost.streamed.empty() || cost.offchip_pj > 0 || row == nullptr || row->offchip_pj ||
        tiles_.contains({workload_.layers[tile.layer].id, tile.sub}))
      return;
    cost.offchip_pj = std::min(own().of(t).offchip_pj, cost.onchip_pj);
    cost.onchip_pj -= cost.offchip_pj;
    note(t, "off-chip energy from MONET's core model",
         "the files lack the off-chip memory's part of a tile's energy");
  }

  const Costs& own() {
    if (!own_)
      own_ = core_costs(workload_, chip_);
    return *own_;
  }

  void note(std::uint32_t t, const char* name, const char* what) {
    if (std::ranges::none_of(notes_, [name](const Note& known) { return known.name == name; }))
      notes_.push_back({name, workload_.layers[workload_.tiles[t].layer].name, what});
  }

  const CostTable& table_;
  const Workload& workload_;
  const Chip& chip_;
  std::map<int, std::uint32_t> by_id_;
  std::map<std::string, std::uint32_t, std::less<>> by_name_;
  std::map<LayerCore, const CostRow*> costs_;
  std::map<std::pair<int, std::int64_t>, const TileRow*> tiles_;
  std::map<std::uint32_t, std::vector<const StreamRow*>> streams_; ///< by layer
  std::set<std::uint32_t> other_tiles_; ///< layers that have different tiles in the files
  std::set<LayerCore> reported_;
  std::optional<Costs> own_;
  std::vector<Note> notes_;
  ProblemList problems_;
};

} // namespace

Costs core_costs(const CostTable& table, const Workload& workload, const Chip& chip) {
  return Matcher(table, workload, chip).costs();
}

} // namespace monet::stream
