// The SRAM figures of one node and kind of port on a complete grid, from a table with holes.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace monet {

inline constexpr std::array<int, 5> kSramNodes{90, 65, 45, 32, 22};

/// One run of CACTI.
struct SramPoint {
  int node_nm = 0;
  int ports = 1; ///< 1: one read-write port; 2: one to read and one to write
  int log2_bytes = 0;
  int log2_word_bits = 0;
  double read_pj = 0; ///< per access of one word
  double write_pj = 0;
  double area_mm2 = 0;
  double access_ns = 0;
};

/// The whole table, by node, ports, size and word.
std::span<const SramPoint> sram_points();

/// Figures of a memory, in the order of SramPoint.
enum class SramFigure { read_pj, write_pj, area_mm2, access_ns };
inline constexpr std::size_t kSramFigures = 4;

/// Natural logarithms of one figure over size (rows) and word (columns), both in powers of two.
class LogGrid {
public:
  LogGrid(int first_size, int sizes, int first_word, int words);

  int first_size() const { return first_size_; }
  int first_word() const { return first_word_; }
  int sizes() const { return sizes_; }
  int words() const { return words_; }
  double& at(int log2_bytes, int log2_word);
  double at(int log2_bytes, int log2_word) const;
  /// Bilinear interpolation in both logarithms; arguments outside the grid are clamped to its edge.
  double interpolate(double log2_bytes, double log2_word) const;

private:
  int first_size_, sizes_, first_word_, words_;
  std::vector<double> values_;
};

/// Result of a repair: cells moved, and the largest relative change of a cell.
struct Repair {
  int cells = 0;
  int moved = 0;
  double largest = 0;
};

/// Makes the grid non-decreasing in size and word. Cells in order keep their value. Other cells
/// move to the middle (of the logarithms) between the largest value that should lie below and the
/// smallest that should lie above. That monotone grid has the smallest largest change.
Repair make_monotone(LogGrid& grid);

/// Grids of the four figures, 1 KiB to 32 MiB and 8 to 4096 bits, before repair.
class SramTable {
public:
  static constexpr int kFirstSize = 10; ///< 1 KiB
  static constexpr int kLastSize = 25;  ///< 32 MiB
  static constexpr int kFirstWord = 3;
  static constexpr int kLastWord = 12;
  static constexpr int kRows = 5; ///< an array has 2^5 words or more

  /// Fills the holes. Arrays of fewer than 32 words, which CACTI refuses, cost the same as 32
  /// words. Other holes get the mean of the log-linear interpolations along size and along word.
  /// These interpolate the figures, or their ratio to `reference`, a complete node, if it is set.
  SramTable(std::span<const SramPoint> points, int node_nm, int ports,
            const SramTable* reference = nullptr);

  const LogGrid& grid(SramFigure figure) const { return grids_[static_cast<std::size_t>(figure)]; }

private:
  std::vector<LogGrid> grids_;
};

} // namespace monet
