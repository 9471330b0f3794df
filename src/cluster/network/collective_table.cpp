// Tables of measured collectives: reads them and interpolates times between their points. Used by
// collectives.cpp for tiers that have a table.
#include "cluster/network/points.hpp"

#include "monet/cluster/cluster.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>

namespace monet {

namespace {

constexpr std::array<std::string_view, kCollectives> kCollectiveNames{
    "all-reduce", "reduce-scatter", "all-gather", "all-to-all", "broadcast", "point-to-point"};

double time_on_curve(const CollectiveTable::Curve& curve, double bytes) {
  const auto& points = curve.points;
  const auto on_line = [bytes](const CollectiveTable::Point& a, const CollectiveTable::Point& b) {
    const double share = (bytes - a.bytes) / (b.bytes - a.bytes);
    return a.nanoseconds + share * (b.nanoseconds - a.nanoseconds);
  };
  const auto after = std::ranges::lower_bound(points, bytes, {}, &CollectiveTable::Point::bytes);
  if (after == points.end())
    return points.back().nanoseconds * (bytes / points.back().bytes);
  if (after->bytes == bytes)
    return after->nanoseconds;
  if (after != points.begin())
    return on_line(*(after - 1), *after);
  const double line = on_line(points[0], points[1]);
  const double latency =
      points[0].nanoseconds - points[0].bytes * (points[1].nanoseconds - points[0].nanoseconds) /
                                  (points[1].bytes - points[0].bytes);
  // The line would need a negative latency at 0 bytes, so the first point's rate is used.
  if (latency < 0)
    return points[0].nanoseconds * (bytes / points[0].bytes);
  return std::min(line, points[0].nanoseconds);
}

} // namespace

std::string_view name_of(Collective collective) {
  return kCollectiveNames[static_cast<std::size_t>(collective)];
}

std::optional<Collective> collective_of(std::string_view name) {
  const auto found = std::ranges::find(kCollectiveNames, name);
  if (found == kCollectiveNames.end())
    return std::nullopt;
  return static_cast<Collective>(found - kCollectiveNames.begin());
}

CollectiveTable::CollectiveTable(std::vector<Curve> curves) : curves_(std::move(curves)) {
  const auto key = [](const Curve& curve) { return std::tuple(curve.collective, curve.ranks); };
  std::ranges::sort(curves_, {}, key);
  internal_check(std::ranges::adjacent_find(curves_, {}, key) == curves_.end(),
                 "a curve of a table is given twice");
  for (const Curve& curve : curves_) {
    internal_check(curve.points.size() >= 2 && curve.ranks >= 2, "a curve has too few points");
    for (std::size_t i = 0; i < curve.points.size(); ++i) {
      const double before = i == 0 ? 0 : curve.points[i - 1].bytes;
      internal_check(curve.points[i].bytes > before && curve.points[i].nanoseconds > 0,
                     "a curve's points are out of order");
    }
  }
}

bool CollectiveTable::covers_itself(Collective collective, std::int64_t ranks) const {
  bool fewer = false;
  bool more = false;
  for (const Curve& curve : curves_) {
    fewer = fewer || (curve.collective == collective && curve.ranks <= ranks);
    more = more || (curve.collective == collective && curve.ranks >= ranks);
  }
  return fewer && more;
}

bool CollectiveTable::covers(Collective collective, std::int64_t ranks) const {
  const bool half =
      collective == Collective::reduce_scatter || collective == Collective::all_gather;
  return covers_itself(collective, ranks) || (half && covers_itself(Collective::all_reduce, ranks));
}

double CollectiveTable::interpolate(Collective collective, std::int64_t ranks, double bytes) const {
  const Curve* fewer = nullptr;
  const Curve* more = nullptr;
  for (const Curve& curve : curves_) {
    if (curve.collective != collective)
      continue;
    if (curve.ranks <= ranks)
      fewer = &curve;
    if (curve.ranks >= ranks && more == nullptr)
      more = &curve;
  }
  const double low = time_on_curve(*fewer, bytes);
  if (fewer == more)
    return low;
  const double from = std::log2(static_cast<double>(fewer->ranks));
  const double share = (std::log2(static_cast<double>(ranks)) - from) /
                       (std::log2(static_cast<double>(more->ranks)) - from);
  return low + share * (time_on_curve(*more, bytes) - low);
}

double CollectiveTable::nanoseconds(Collective collective, std::int64_t ranks, double bytes) const {
  if (covers_itself(collective, ranks))
    return interpolate(collective, ranks, bytes);
  internal_check(covers(collective, ranks), "a table without the collective is asked for it");
  return interpolate(Collective::all_reduce, ranks, bytes) / 2;
}

CollectiveTable read_collective_table(const YamlNode& node, const FileOpener& open,
                                      ProblemList& problems) {
  constexpr std::array<std::string_view, 4> kColumns{"collective", "ranks", "bytes", "ns"};
  const std::size_t before = problems.size();
  std::map<std::pair<Collective, std::int64_t>, std::map<double, std::pair<double, SourceLoc>>>
      found;
  for (const PointRow& row : read_points(node, kColumns, open, problems)) {
    const std::optional<Collective> collective = collective_of(row.cells[0]);
    if (!collective)
      problems.add(row.where, fmt::format("'{}' is not a collective", row.cells[0].substr(0, 30)),
                   "all-reduce, reduce-scatter, all-gather, all-to-all, broadcast, point-to-point");
    const auto ranks = counted_cell(row, 1, kColumns[1], problems);
    const auto bytes = counted_cell(row, 2, kColumns[2], problems);
    const auto time = positive_cell(row, 3, kColumns[3], problems);
    if (ranks == 1)
      problems.add(row.where, "a collective has at least 2 ranks");
    if (!collective || !ranks || !bytes || !time || *ranks < 2)
      continue;
    const auto [place, is_new] =
        found[{*collective, *ranks}].try_emplace(static_cast<double>(*bytes), *time, row.where);
    if (!is_new)
      problems.add(row.where,
                   fmt::format("{} of {} bytes between {} ranks is given twice (first at "
                               "line {})",
                               name_of(*collective), *bytes, *ranks, place->second.second.line));
  }
  std::vector<CollectiveTable::Curve> curves;
  for (const auto& [key, points] : found) {
    CollectiveTable::Curve curve{key.first, key.second, {}};
    for (const auto& [bytes, time] : points)
      curve.points.push_back({bytes, time.first});
    if (points.size() < 2)
      problems.add(points.begin()->second.second,
                   fmt::format("a hole: the only point of {} between {} ranks", name_of(key.first),
                               key.second),
                   "a curve has at least two");
    curves.push_back(std::move(curve));
  }
  return problems.size() == before ? CollectiveTable(std::move(curves)) : CollectiveTable();
}

} // namespace monet
