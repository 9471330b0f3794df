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

/// A collective operation in a group of ranks. Its bytes are those of its larger side per rank.
/// All-reduce and broadcast: the whole buffer. Reduce-scatter: the input of each rank. All-gather:
/// the output of each rank. All-to-all: the input of each rank, including its share for itself.
/// Point to point: the message.
enum class Collective : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  all_to_all,
  broadcast,
  point_to_point,
};
inline constexpr std::size_t kCollectives = 6;
/// Name of a collective: "all-reduce" and so on.
std::string_view name_of(Collective collective);
std::optional<Collective> collective_of(std::string_view name);

/// Measured times by collective, ranks and bytes; exact at the measured points.
/// Bytes: times are linear between two points of a curve. Beyond the last point they grow in
/// proportion to bytes, at that point's rate. Before the first point they follow the line through
/// the first two points if that line falls towards 0 bytes; otherwise they equal the first point's
/// time.
/// Ranks: times are linear in the logarithm of the ranks between two curves; the table covers
/// nothing outside of its curves. A reduce-scatter or all-gather without curves takes half of an
/// all-reduce of the same bytes, as in a ring.
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
    std::vector<Point> points; ///< sorted by bytes, without duplicates
  };

  CollectiveTable() = default;
  /// Builds a table from curves of at least two points each. Throws InternalError for fewer points
  /// and for points out of order.
  explicit CollectiveTable(std::vector<Curve> curves);

  bool empty() const { return curves_.empty(); }
  const std::vector<Curve>& curves() const { return curves_; }
  bool covers(Collective collective, std::int64_t ranks) const;
  /// Time in nanoseconds; throws InternalError if the table does not cover the arguments. Does not
  /// allocate.
  double nanoseconds(Collective collective, std::int64_t ranks, double bytes) const;

private:
  bool covers_itself(Collective collective, std::int64_t ranks) const;
  double interpolate(Collective collective, std::int64_t ranks, double bytes) const;

  std::vector<Curve> curves_; ///< sorted by collective, then ranks
};

/// Reads a table given as rows [collective, ranks, bytes, ns], or as the name of a CSV file with
/// these columns. Gaps, duplicate rows and curves of one point are added to `problems` with their
/// positions.
CollectiveTable read_collective_table(const YamlNode& node, const FileOpener& open,
                                      ProblemList& problems);

} // namespace monet
