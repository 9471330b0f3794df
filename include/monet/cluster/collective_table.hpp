// Collectives between devices, and tables of measured ones.
#pragma once

#include "monet/base/yaml.hpp"
#include "monet/hardware/read_hardware.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace monet {

/// What a group of ranks does together. The bytes of a collective are those of its larger side per
/// rank: all-reduce and broadcast, the whole buffer; reduce-scatter, what each rank gives;
/// all-gather, what each rank ends up with; all-to-all, what each rank gives, its own share
/// counted; point to point, the message.
enum class Collective : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  all_to_all,
  broadcast,
  point_to_point,
};
inline constexpr std::size_t kCollectives = 6;
/// "all-reduce" and so on.
std::string_view name_of(Collective collective);
std::optional<Collective> collective_of(std::string_view name);

/// Measured times by collective, ranks and bytes. Between two points of a curve time is linear in
/// bytes; beyond the last it grows as bytes do, at the last point's rate; before the first it
/// follows the line through the first two points where that falls towards 0 bytes, and is the first
/// point's time where not. Between two numbers of ranks it is linear in the logarithm of the ranks;
/// outside of them there is nothing. Where reduce-scatter or all-gather have no curves they take
/// half of an all-reduce of the same bytes, as in a ring. Equal to its points at the points.
class CollectiveTable {
public:
  struct Point {
    double bytes = 0;
    double nanoseconds = 0;
    friend bool operator==(const Point&, const Point&) = default;
  };
  struct Curve {
    Collective collective = Collective::all_reduce;
    std::int64_t ranks = 0;
    std::vector<Point> points; ///< by bytes, each once
  };

  CollectiveTable() = default;
  /// At least two points a curve; InternalError for less and for points out of order.
  explicit CollectiveTable(std::vector<Curve> curves);

  bool empty() const { return curves_.empty(); }
  const std::vector<Curve>& curves() const { return curves_; }
  bool covers(Collective collective, std::int64_t ranks) const;
  /// Nanoseconds; InternalError where nothing covers it. Allocates nothing.
  double nanoseconds(Collective collective, std::int64_t ranks, double bytes) const;

private:
  bool covers_itself(Collective collective, std::int64_t ranks) const;
  double interpolate(Collective collective, std::int64_t ranks, double bytes) const;

  std::vector<Curve> curves_; ///< by collective, then ranks
};

/// A file's name, or rows [collective, ranks, bytes, ns]; the file is CSV with these columns.
/// Holes, rows given twice and curves of one point are problems with their places.
CollectiveTable read_collective_table(const YamlNode& node, const FileOpener& open,
                                      ProblemList& problems);

} // namespace monet
