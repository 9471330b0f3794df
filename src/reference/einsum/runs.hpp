// Runs: Einsums between two places where no loop is shared. What crosses such a place is in DRAM
// or whole in the buffer, so runs depend on each other by bits alone, and equal runs are solved
// once.
#pragma once

#include "reference/einsum/table.hpp"

#include <cstdint>
#include <limits>
#include <vector>

namespace monet::einsum {

enum class StorageLevel : std::uint8_t {
  dram,
  buffer, ///< whole
  loops   ///< in the buffer below loops that go on past the end of the run
};

/// Mappings of the Einsums from begin to end - 1 that neighbours cannot tell apart. Long runs are
/// cut in pieces: an open end is one where loops may go on. Pieces cost and hold no more than what
/// they are a part of, so they give bounds; a mapping is made of runs without open ends.
struct Run {
  struct Crossing {
    std::uint32_t tensor = 0;
    StorageLevel place = StorageLevel::dram;
    friend auto operator<=>(const Crossing&, const Crossing&) = default;
  };
  struct Point {
    std::int64_t peak = 0; ///< bits, tensors that are used within included, others not
    std::int64_t dram = 0;
  };
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  bool open_begin = false;
  bool open_end = false;
  /// Tensors that are used in it and cross its begin or end, by tensor. With an open begin those
  /// that are next used far behind it, or nowhere, are left out: they may be anywhere.
  std::vector<Crossing> crossing;
  std::vector<Point> points; ///< peaks rising, DRAM bits falling
};

/// What prices (einsum_prices.hpp) say of a path through runs: a run, or the part of one up to
/// some Einsum, is of no use if before + DRAM bits + price of its peak + agreement + after is more
/// than `most`.
struct RunBounds {
  std::vector<double> capacity; ///< by Einsum: of one bit
  /// By use of a stored tensor, whole in the buffer; then below loops.
  std::vector<double> agreement;
  std::vector<double> before; ///< by place: of the runs that lead there, at least
  std::vector<double> after;  ///< of those that lead on, at least
  double constant = 0;        ///< of what stores tensors and of all of the buffer
  double most = std::numeric_limits<double>::infinity();

  /// Places: where no loop is shared, and where loops go on which began in a part of the cascade.
  static constexpr std::uint32_t kParts = 12;
  std::uint32_t part_length = 1;
  std::uint32_t part(std::uint32_t begin) const { return begin / part_length; }
  static std::size_t closed(std::size_t at) { return at * (kParts + 1); }
  static std::size_t open(std::size_t at, std::uint32_t part) {
    return at * (kParts + 1) + 1 + part;
  }

  /// By tensor: its bits where it is stored, and the index of the price of its first use.
  std::vector<std::int64_t> bits;
  std::vector<std::uint32_t> first_use;
};

struct RunLimits {
  std::int64_t buffer_bits = kMax;
  const RunBounds* bounds = nullptr; ///< with them equal runs differ, but for open begins
  bool unordered = false;            ///< the reference's rule (EinsumOptions)
  std::uint32_t longest = 4;         ///< Einsums of a run before it is cut
  std::size_t nodes = 300;           ///< futures after an Einsum before a run is cut
  std::int64_t pairs = 100'000;      ///< of futures and groups from one begin
  std::int64_t joins = 3'000'000;    ///< of rows from one begin
  std::size_t rows = 60'000;         ///< after one Einsum
};

struct RunTable {
  std::vector<Run> runs; ///< by begin, those without open begin first
  bool complete = true;  ///< none has an open end
};

/// The cascade with all that the searches know of it.
struct Cascade {
  const EinsumCascade& cascade;
  const TensorUses& following;
  const RowTable& table;
};

/// All runs, cut where the limits say; a part of them when interrupted.
RunTable make_runs(const Cascade& cascade, const RunLimits& limits, const SearchControl& control);

/// The mappings of the Einsums of a run without open ends at one of its points.
std::vector<EinsumMapping> map_run(const Cascade& cascade, const RunLimits& limits, const Run& run,
                                   const Run::Point& point, const SearchControl& control);

} // namespace monet::einsum
