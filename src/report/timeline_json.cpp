// Writes the time-dependent parts of a step's JSON (timeline_json.hpp); step_json.cpp calls it.
#include "report/timeline_json.hpp"

#include "report/shared/json_list.hpp"
#include "report/shared/text.hpp"
#include "schedule/shared/bounds.hpp"

#include "monet/training_graph/liveness.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <span>
#include <string>

namespace monet {

namespace {

using Json = nlohmann::ordered_json;

/// Number of neighbours that are merged into one row so that at most `most` rows remain.
std::size_t rows_to_merge(std::size_t count, std::size_t most) {
  return std::max<std::size_t>(1, (count + most - 1) / most);
}

void sort_by_start(Json& rows, std::size_t column) {
  const auto before = [column](const Json& a, const Json& b) {
    return a[column].get<std::int64_t>() < b[column].get<std::int64_t>();
  };
  if (!std::is_sorted(rows.begin(), rows.end(), before)) // unsorted only after merging
    std::stable_sort(rows.begin(), rows.end(), before);
}

/// Rows of tile runs: core, layer, start, end. A row merges up to `merge` consecutive runs of a
/// core and has the layer of the first.
Json runs_json(const Timeline& timeline, std::size_t cores, std::size_t merge) {
  struct Row {
    const TileRun* first = nullptr;
    Cycles end;
    std::size_t count = 0;
  };
  Json rows = Json::array();
  std::vector<Row> open(cores);
  const auto close = [&](Row& row) {
    if (row.first != nullptr) {
      rows.push_back(Json::array(
          {row.first->core.value, row.first->op.value, row.first->start.value, row.end.value}));
    }
    row = {};
  };
  for (const TileRun& run : timeline.runs) {
    Row& row = open.at(run.core.index());
    if (row.count == merge)
      close(row);
    if (row.first == nullptr)
      row.first = &run;
    row.end = run.end;
    if (++row.count == merge)
      close(row);
  }
  for (Row& row : open)
    close(row);
  sort_by_start(rows, run_column::start);
  return rows;
}

/// Rows of transfers. A row merges up to `merge` consecutive transfers over one route: it has the
/// sum of their bits and the latest end, and otherwise the values of the first.
Json transfers_json(const Timeline& timeline, std::size_t merge) {
  struct Row {
    const Transfer* first = nullptr;
    Cycles end;
    Bits bits;
    std::size_t count = 0;
  };
  Json rows = Json::array();
  std::vector<Row> open(timeline.routes.size());
  const auto close = [&](Row& row) {
    if (row.first != nullptr) {
      const Route& route = timeline.route_of(*row.first);
      Json links = json_list(route.links, [](LinkId link) { return link.value; });
      rows.push_back(
          Json::array({static_cast<int>(row.first->kind), std::move(links), row.first->op.value,
                       row.first->start.value, row.end.value, row.bits.value, route.from.value,
                       route.to.front().value, row.first->tensor.value}));
      if (route.to.size() > 1) {
        rows.back().push_back(
            json_list(std::span(route.to).subspan(1), [](CoreId core) { return core.value; }));
      }
    }
    row = {};
  };
  for (const Transfer& t : timeline.transfers) {
    Row& row = open.at(timeline.cost_of(t).route);
    if (row.first == nullptr)
      row.first = &t;
    row.end = std::max(row.end, t.end);
    row.bits += timeline.bits_of(t);
    if (++row.count == merge)
      close(row);
  }
  for (Row& row : open)
    close(row);
  sort_by_start(rows, transfer_column::start);
  return rows;
}

/// Contents of the cores' memories over time: bytes by memory, and by tensor for the tensors with
/// most bit-cycles.
class MemoryTable {
public:
  MemoryTable(const Timeline& timeline, const Graph& graph, const Chip& chip,
              const TimelineLimits& limits)
      : graph_(graph), memories_(chip.cores.size()), held_(chip.cores.size(), 0),
        of_tensor_(graph.tensors().size(), 0) {
    choose_tensors(timeline, chip, limits.tensors);
    std::vector<MemoryEvent> events = memory_events(timeline);
    std::erase_if(events, [&](const MemoryEvent& e) { return e.memory == chip.offchip; });
    std::size_t moments = 0;
    for (std::size_t i = 0; i < events.size(); ++i)
      moments += i + 1 == events.size() || events[i + 1].time != events[i].time ? 1U : 0U;
    add_samples(events, rows_to_merge(moments, limits.samples));
  }

  Json json() const {
    Json memories = Json::array();
    for (std::size_t core = 0; core < memories_.size(); ++core) {
      if (std::any_of(memories_[core].begin(), memories_[core].end(),
                      [](std::int64_t b) { return b > 0; }))
        memories.push_back({{"core", core}, {"bytes", memories_[core]}});
    }
    Json tensors = Json::array();
    for (std::size_t k = 0; k < chosen_.size(); ++k)
      tensors.push_back({{"tensor", chosen_[k]}, {"bytes", columns_[k]}});
    return {{"cycles", cycles_},
            {"memories", std::move(memories)},
            {"tensors", std::move(tensors)},
            {"rest_bytes", rest_}};
  }

private:
  void choose_tensors(const Timeline& timeline, const Chip& chip, std::size_t most) {
    std::vector<double> weight(graph_.tensors().size(), 0);
    for (const ResidencyInterval& stay : timeline.stays) {
      const MemorySlot& place = timeline.place_of(stay);
      if (place.memory == chip.offchip)
        continue;
      const Cycles end = std::min(stay.end, timeline.makespan);
      weight[stay.tensor.index()] +=
          static_cast<double>(place.bits.value) * static_cast<double>((end - stay.start).value);
    }
    for (std::size_t i = 0; i < weight.size(); ++i) {
      if (weight[i] > 0)
        chosen_.push_back(i);
    }
    std::stable_sort(chosen_.begin(), chosen_.end(),
                     [&](std::size_t a, std::size_t b) { return weight[a] > weight[b]; });
    chosen_.resize(std::min(chosen_.size(), most));
    columns_.resize(chosen_.size());
  }

  /// Adds one sample per `merge` moments: the fullest of them, at the time of the first.
  void add_samples(const std::vector<MemoryEvent>& events, std::size_t merge) {
    std::int64_t fullest = -1;
    std::size_t moments = 0;
    Sample sample;
    for (std::size_t i = 0; i < events.size(); ++i) {
      const MemoryEvent& event = events[i];
      held_[event.memory.index()] += event.delta.value;
      of_tensor_[event.tensor.index()] += event.delta.value;
      total_ += event.delta.value;
      if (i + 1 < events.size() && events[i + 1].time == event.time)
        continue;
      if (moments == 0)
        sample.time = event.time.value;
      if (total_ > fullest) {
        fullest = total_;
        take(sample);
      }
      if (++moments == merge || i + 1 == events.size()) {
        add(sample);
        moments = 0;
        fullest = -1;
      }
    }
  }

  struct Sample {
    std::int64_t time = 0;
    std::int64_t total = 0;
    std::vector<std::int64_t> memories;
    std::vector<std::int64_t> tensors;
  };
  void take(Sample& sample) const {
    sample.total = total_;
    sample.memories = held_;
    sample.tensors.clear();
    for (const std::size_t tensor : chosen_)
      sample.tensors.push_back(of_tensor_[tensor]);
  }
  void add(const Sample& sample) {
    cycles_.push_back(sample.time);
    std::int64_t rest = sample.total;
    for (std::size_t core = 0; core < memories_.size(); ++core)
      memories_[core].push_back(bytes_of({sample.memories[core]}));
    for (std::size_t k = 0; k < columns_.size(); ++k) {
      columns_[k].push_back(bytes_of({sample.tensors[k]}));
      rest -= sample.tensors[k];
    }
    rest_.push_back(bytes_of({rest}));
  }

  const Graph& graph_;
  std::vector<std::vector<std::int64_t>> memories_; ///< per core and sample: bytes
  std::vector<std::int64_t> held_;                  ///< per core: bits now
  std::vector<std::int64_t> of_tensor_;             ///< per tensor: bits now
  std::vector<std::size_t> chosen_;                 ///< tensors, most bit-cycles first
  std::vector<std::vector<std::int64_t>> columns_;
  std::vector<std::int64_t> rest_;
  std::vector<std::int64_t> cycles_;
  std::int64_t total_ = 0;
};

bool offloads(const Timeline& timeline) {
  constexpr auto kHost = static_cast<std::size_t>(MemoryOwner::offloaded_activations);
  return std::ranges::any_of(timeline.live,
                             [](const MemorySample& sample) { return sample.live[kHost] > 0; });
}

} // namespace

Json live_json(const Timeline& timeline, std::size_t merge) {
  Json cycles = Json::array();
  std::array<Json, kMemoryOwners> bytes;
  bytes.fill(Json::array());
  for (std::size_t i = 0; i < timeline.live.size(); i += merge) {
    const std::size_t end = std::min(i + merge, timeline.live.size());
    const MemorySample* most = &timeline.live[i];
    for (std::size_t k = i; k < end; ++k) {
      if (total(timeline.live[k].live) > total(most->live))
        most = &timeline.live[k];
    }
    cycles.push_back(timeline.live[i].time.value);
    for (std::size_t owner = 0; owner < bytes.size(); ++owner)
      bytes[owner].push_back(most->live[owner]);
  }
  Json json = {{"cycles", std::move(cycles)}};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto owner = static_cast<MemoryOwner>(i);
    if (owner == MemoryOwner::offloaded_activations && !offloads(timeline))
      continue;
    json[std::string(name_of(owner)) + "_bytes"] = std::move(bytes[i]);
  }
  return json;
}

Json timeline_json(const StepResult& result, const Chip& chip, const TimelineLimits& limits) {
  const Timeline& timeline = *result.timeline;
  Json tensors = json_list(result.step->graph.tensors(),
                           [](const Tensor& tensor) { return valid_utf8(tensor.name); });
  const std::size_t runs = rows_to_merge(timeline.runs.size(), limits.rows);
  const std::size_t transfers = rows_to_merge(timeline.transfers.size(), limits.rows);
  const std::size_t live = rows_to_merge(timeline.live.size(), limits.rows);
  Json json = {{"tensors", std::move(tensors)},
               {"runs", runs_json(timeline, chip.cores.size(), runs)},
               {"transfers", transfers_json(timeline, transfers)},
               {"memory", live_json(timeline, live)},
               {"onchip", MemoryTable(timeline, result.step->graph, chip, limits).json()}};
  if (runs > 1)
    json["runs_per_row"] = runs;
  if (transfers > 1)
    json["transfers_per_row"] = transfers;
  return json;
}

namespace {

bool alike(const PathSegment& a, const PathSegment& b) {
  return a.limit == b.limit && a.transfer == b.transfer && a.op == b.op && a.counted == b.counted &&
         a.core == b.core && (!a.transfer || a.link == b.link);
}

/// Row of a segment: start, end, limit, layer, core, link, tensor, counted layer. Link and tensor
/// are null without a transfer; layer and core are null if they are unknown.
Json segment_json(const PathSegment& s) {
  const bool placed = s.limit != Limit::order || s.transfer;
  const bool moves = s.transfer && placed;
  Json row = Json::array({s.start.value, s.end.value, static_cast<int>(s.limit)});
  row.push_back(placed ? Json(s.op.value) : Json());
  row.push_back(placed ? Json(s.core.value) : Json());
  row.push_back(moves ? Json(s.link.value) : Json());
  row.push_back(moves ? Json(s.tensor.value) : Json());
  row.push_back(s.counted.value);
  return row;
}

} // namespace

Json critical_path_json(const CriticalPath& path, const TimelineLimits& limits) {
  Json json = cycles_json<Limit>(path.sums);
  std::vector<PathSegment> merged;
  for (const PathSegment& segment : path.segments) {
    if (!merged.empty() && alike(merged.back(), segment)) {
      merged.back().end = segment.end;
    } else {
      merged.push_back(segment);
    }
  }
  // If there are too many segments, `merge` neighbours become one row with the values of the
  // longest.
  const std::size_t merge = rows_to_merge(merged.size(), limits.segments);
  Json segments = Json::array();
  for (std::size_t i = 0; i < merged.size(); i += merge) {
    const auto begin = merged.begin() + static_cast<std::ptrdiff_t>(i);
    const auto end =
        merged.begin() + static_cast<std::ptrdiff_t>(std::min(i + merge, merged.size()));
    PathSegment row = *std::max_element(begin, end, [](const PathSegment& a, const PathSegment& b) {
      return a.end - a.start < b.end - b.start;
    });
    row.start = begin->start;
    row.end = std::prev(end)->end;
    segments.push_back(segment_json(row));
  }
  json["segments"] = std::move(segments);
  if (merge > 1)
    json["segments_per_row"] = merge;
  return json;
}

Json bounds_json(const StepResult& result, const Chip& chip) {
  Bounds bounds;
  if (result.tiles != nullptr && result.tiles->tiles.size() == result.timeline->runs.size())
    bounds = lower_bounds(*result.timeline, *result.tiles, *result.step, chip);
  return {{"latency_cycles", bounds.latency().value},
          {"critical_path_cycles", bounds.critical_path.value},
          {"busiest_core_cycles", bounds.busiest_core.value},
          {"core", bounds.core.value},
          {"busiest_links_cycles", bounds.busiest_links.value},
          {"links_of_core", bounds.links_of.value},
          {"offchip_port_cycles", bounds.offchip_port.value},
          {"offchip_read_bytes", bytes_of(bounds.offchip_read)},
          {"offchip_written_bytes", bytes_of(bounds.offchip_written)}};
}

} // namespace monet
