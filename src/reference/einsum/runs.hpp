// Runs: the Einsums between two places where no loop is shared. Tensors that cross such a place are
// in DRAM or whole in the buffer. Therefore runs affect each other only by the bits in the buffer,
// and equal runs are solved once.
#pragma once

#include "reference/einsum/table.hpp"

#include <cstdint>
#include <limits>
#include <vector>

namespace monet::einsum {

enum class StorageLevel : std::uint8_t {
  dram,
  buffer, ///< whole
  loops   ///< in the buffer, below loops that continue past the end of the run
};

/// Mappings of the Einsums from begin to end - 1 that are equal for their neighbours. Long runs are
/// cut into pieces with open ends, where loops may continue. A piece needs no more traffic and
/// memory than the runs that contain it, so pieces yield bounds. Mappings consist of runs without
/// open ends.
struct Run {
  struct Crossing {
    std::uint32_t tensor = 0;
    StorageLevel place = StorageLevel::dram;
    friend auto operator<=>(const Crossing&, const Crossing&) = default;
  };
  struct Point {
    std::int64_t peak = 0; ///< bits, including only tensors used in the run
    std::int64_t dram = 0;
  };
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  bool open_begin = false;
  bool open_end = false;
  /// Tensors that are used in the run and cross its begin or end, sorted by tensor. With an open
  /// begin, tensors that are next used far behind it or never are left out: their place is free.
  std::vector<Crossing> crossing;
  std::vector<Point> points; ///< ascending peaks, descending DRAM bits
};

/// Bounds of paths through runs, from prices (prices.hpp). A run, or its part up to some Einsum, is
/// useless if before + DRAM bits + price of its peak + agreement + after exceeds `most`.
struct RunBounds {
  std::vector<double> capacity; ///< by Einsum: price of one bit
  /// Prices by use of a stored tensor: whole in the buffer; second half: below loops.
  std::vector<double> agreement;
  std::vector<double> before; ///< by place: minimum price of the runs up to it
  std::vector<double> after;  ///< by place: minimum price of the runs from it on
  double constant = 0;        ///< price of the tensors' places and of the capacity
  double most = std::numeric_limits<double>::infinity();

  /// Places are closed (no loop is shared) or open. An open place is indexed by the part of the
  /// cascade in which its loops began.
  static constexpr std::uint32_t kParts = 12;
  std::uint32_t part_length = 1;
  std::uint32_t part(std::uint32_t begin) const { return begin / part_length; }
  static std::size_t closed(std::size_t at) { return at * (kParts + 1); }
  static std::size_t open(std::size_t at, std::uint32_t part) {
    return at * (kParts + 1) + 1 + part;
  }

  /// Per tensor: bits when stored, and index of the agreement price of its first use.
  std::vector<std::int64_t> bits;
  std::vector<std::uint32_t> first_use;
};

struct RunLimits {
  std::int64_t buffer_bits = kMax;
  const RunBounds* bounds = nullptr; ///< may be null; prevents reuse of runs with closed begins
  bool unordered = false;            ///< the reference's rule (EinsumOptions)
  std::uint32_t longest = 4;         ///< maximum Einsums per run; longer runs are cut
  std::size_t nodes = 300;           ///< maximum states after an Einsum; beyond, runs are cut
  std::int64_t pairs = 100'000;      ///< maximum pairs of states and groups per begin
  std::int64_t joins = 3'000'000;    ///< maximum joins of rows per begin
  std::size_t rows = 60'000;         ///< maximum rows after one Einsum
};

struct RunTable {
  std::vector<Run> runs; ///< sorted by begin, closed begins first
  bool complete = true;  ///< no run has an open end
};

/// A cascade with its tensor uses and row table.
struct Cascade {
  const EinsumCascade& cascade;
  const TensorUses& following;
  const RowTable& table;
};

/// Enumerates all runs; runs beyond the limits are cut into pieces. Incomplete if interrupted.
RunTable make_runs(const Cascade& cascade, const RunLimits& limits, const SearchControl& control);

/// Mappings of a run's Einsums for one of its points. The run must have no open ends.
std::vector<EinsumMapping> map_run(const Cascade& cascade, const RunLimits& limits, const Run& run,
                                   const Run::Point& point, const SearchControl& control);

} // namespace monet::einsum
