// The CACTI table and its repair: fills holes and makes the figures monotone in size and word.
// memory_model.cpp builds its grids from it.
#include "hardware/sram_table.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace monet {

namespace {

struct Row {
  int ports, log2_bytes, log2_word_bits;
  double nodes[kSramNodes.size()][kSramFigures]; ///< all zero: unknown
};

constexpr Row kRows[] = {
#include "hardware/sram_table.inc"
};

constexpr double kHole = std::numeric_limits<double>::quiet_NaN();

double figure_of(const SramPoint& point, SramFigure figure) {
  constexpr std::array<double SramPoint::*, kSramFigures> kOf{
      &SramPoint::read_pj, &SramPoint::write_pj, &SramPoint::area_mm2, &SramPoint::access_ns};
  return point.*kOf.at(static_cast<std::size_t>(figure));
}

bool shallow(int size, int word) {
  return size + 3 - word < SramTable::kRows;
}

/// Interpolates between the nearest known cells on both sides along one axis.
std::optional<double> between(const LogGrid& grid, int size, int word, bool along_size) {
  const auto look = [&](int step) -> std::optional<std::pair<int, double>> {
    for (int distance = 1;; ++distance) {
      const int s = along_size ? size + step * distance : size;
      const int w = along_size ? word : word + step * distance;
      if (s < SramTable::kFirstSize || s > SramTable::kLastSize || w < SramTable::kFirstWord ||
          w > SramTable::kLastWord)
        return std::nullopt;
      if (const double value = grid.at(s, w); !std::isnan(value))
        return std::pair(distance, value);
    }
  };
  const auto below = look(-1);
  const auto above = look(1);
  if (!below || !above)
    return std::nullopt;
  const double share = static_cast<double>(below->first) / (below->first + above->first);
  return below->second + (above->second - below->second) * share;
}

/// Fills every hole between known cells of its row or column. Filled holes count as known in the
/// next round.
bool fill_round(LogGrid& grid) {
  std::vector<std::pair<std::pair<int, int>, double>> found;
  for (int s = SramTable::kFirstSize; s <= SramTable::kLastSize; ++s) {
    for (int w = SramTable::kFirstWord; w <= SramTable::kLastWord; ++w) {
      if (!std::isnan(grid.at(s, w)) || shallow(s, w))
        continue;
      const auto by_size = between(grid, s, w, true);
      const auto by_word = between(grid, s, w, false);
      if (by_size && by_word)
        found.push_back({{s, w}, (*by_size + *by_word) / 2});
      else if (by_size || by_word)
        found.push_back({{s, w}, by_size ? *by_size : *by_word});
    }
  }
  for (const auto& [cell, value] : found)
    grid.at(cell.first, cell.second) = value;
  return !found.empty();
}

void fill_shallow(LogGrid& grid) {
  for (int s = SramTable::kFirstSize; s <= SramTable::kLastSize; ++s) {
    for (int w = SramTable::kFirstWord; w <= SramTable::kLastWord; ++w) {
      if (shallow(s, w))
        grid.at(s, w) = grid.at(w - 3 + SramTable::kRows, w);
    }
  }
}

/// Adds `sign` times the reference to every known cell.
void add_reference(LogGrid& grid, const LogGrid& reference, double sign) {
  for (int s = SramTable::kFirstSize; s <= SramTable::kLastSize; ++s) {
    for (int w = SramTable::kFirstWord; w <= SramTable::kLastWord; ++w)
      grid.at(s, w) += sign * reference.at(s, w);
  }
}

} // namespace

std::span<const SramPoint> sram_points() {
  static const std::vector<SramPoint> points = [] {
    std::vector<SramPoint> known;
    for (const Row& row : kRows) {
      for (std::size_t n = 0; n < kSramNodes.size(); ++n) {
        const auto& [read, write, area, access] = row.nodes[n];
        if (access > 0)
          known.push_back({kSramNodes[n], row.ports, row.log2_bytes, row.log2_word_bits, read,
                           write, area, access});
      }
    }
    return known;
  }();
  return points;
}

LogGrid::LogGrid(int first_size, int sizes, int first_word, int words)
    : first_size_(first_size), sizes_(sizes), first_word_(first_word), words_(words),
      values_(static_cast<std::size_t>(sizes) * static_cast<std::size_t>(words), kHole) {}

double& LogGrid::at(int log2_bytes, int log2_word) {
  return values_[static_cast<std::size_t>((log2_bytes - first_size_) * words_ + log2_word -
                                          first_word_)];
}

double LogGrid::at(int log2_bytes, int log2_word) const {
  return values_[static_cast<std::size_t>((log2_bytes - first_size_) * words_ + log2_word -
                                          first_word_)];
}

double LogGrid::interpolate(double log2_bytes, double log2_word) const {
  const auto place = [](double value, int first, int count) {
    const double inside = std::clamp(value - first, 0.0, static_cast<double>(count - 1));
    const int low = std::min(static_cast<int>(inside), count - 2);
    return std::pair(first + low, inside - low);
  };
  const auto [s, up] = place(log2_bytes, first_size_, sizes_);
  const auto [w, right] = place(log2_word, first_word_, words_);
  const auto mix = [](double a, double b, double share) { return a + (b - a) * share; };
  return mix(mix(at(s, w), at(s, w + 1), right), mix(at(s + 1, w), at(s + 1, w + 1), right), up);
}

Repair make_monotone(LogGrid& grid) {
  LogGrid low = grid;  // the largest of the cells that are no larger in size and word
  LogGrid high = grid; // the smallest of those that are no smaller
  const int last_size = grid.first_size() + grid.sizes() - 1;
  const int last_word = grid.first_word() + grid.words() - 1;
  for (int s = grid.first_size(); s <= last_size; ++s) {
    for (int w = grid.first_word(); w <= last_word; ++w) {
      if (s > grid.first_size())
        low.at(s, w) = std::max(low.at(s, w), low.at(s - 1, w));
      if (w > grid.first_word())
        low.at(s, w) = std::max(low.at(s, w), low.at(s, w - 1));
    }
  }
  for (int s = last_size; s >= grid.first_size(); --s) {
    for (int w = last_word; w >= grid.first_word(); --w) {
      if (s < last_size)
        high.at(s, w) = std::min(high.at(s, w), high.at(s + 1, w));
      if (w < last_word)
        high.at(s, w) = std::min(high.at(s, w), high.at(s, w + 1));
    }
  }
  Repair repair;
  for (int s = grid.first_size(); s <= last_size; ++s) {
    for (int w = grid.first_word(); w <= last_word; ++w) {
      ++repair.cells;
      if (low.at(s, w) <= high.at(s, w))
        continue; // in order with all other cells
      const double middle = (low.at(s, w) + high.at(s, w)) / 2;
      repair.moved += middle != grid.at(s, w) ? 1 : 0;
      repair.largest = std::max(repair.largest, std::abs(std::expm1(middle - grid.at(s, w))));
      grid.at(s, w) = middle;
    }
  }
  return repair;
}

SramTable::SramTable(std::span<const SramPoint> points, int node_nm, int ports,
                     const SramTable* reference)
    : grids_(kSramFigures, LogGrid(kFirstSize, kLastSize - kFirstSize + 1, kFirstWord,
                                   kLastWord - kFirstWord + 1)) {
  for (std::size_t figure = 0; figure < kSramFigures; ++figure) {
    LogGrid& grid = grids_[figure];
    for (const SramPoint& point : points) {
      if (point.node_nm == node_nm && point.ports == ports)
        grid.at(point.log2_bytes, point.log2_word_bits) =
            std::log(figure_of(point, static_cast<SramFigure>(figure)));
    }
    if (reference != nullptr)
      add_reference(grid, reference->grids_[figure], -1);
    while (fill_round(grid)) {
    }
    if (reference != nullptr)
      add_reference(grid, reference->grids_[figure], 1);
    fill_shallow(grid);
  }
}

} // namespace monet
