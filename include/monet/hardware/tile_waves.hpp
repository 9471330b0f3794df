// Products on a device of equal units, such as the multiprocessors of a GPU: the result is cut into
// tiles, each unit computes one at a time, and the last wave of tiles takes as long as the others
// ("wave quantisation", NVIDIA, Matrix Multiplication Background User's Guide).
#pragma once

#include <array>
#include <cstddef>

namespace monet {

struct TileWaves {
  struct TileShape {
    double rows = 0;
    double columns = 0;
    double share = 1; ///< of the peak that a tile of this shape reaches at best
  };
  static constexpr std::size_t kMaxTileShapes = 12;
  double units = 1;
  std::array<TileShape, kMaxTileShapes> tiles{};
  std::size_t tile_count = 0; ///< 0: not cut, no waves
  double fill = 0;            ///< terms of a sum whose time a tile takes to begin and to end
};

/// `batch` products of rows x sums by sums x columns, each at least 1.
struct ProductSize {
  double rows = 1;
  double columns = 1;
  double sums = 1;
  double batch = 1;
};

/// Multiplications of the product as the units do them, idle ones included, with the best of the
/// tiles; where tiles do not fill the units once, sums are cut, too. Without tiles those of the
/// product itself.
double worked_multiplications(const TileWaves& waves, const ProductSize& product);

} // namespace monet
