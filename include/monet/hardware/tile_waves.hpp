// Tiling of matrix products over a device of equal units, such as the multiprocessors of a GPU.
// Each unit computes one tile of the result at a time, and the last wave of tiles takes as long as
// the others ("wave quantisation", NVIDIA, Matrix Multiplication Background User's Guide).
#pragma once

#include <array>
#include <cstddef>

namespace monet {

/// Units of a device and the shapes of the tiles that they compute.
struct TileWaves {
  struct TileShape {
    double rows = 0;
    double columns = 0;
    double share = 1; ///< maximum share of the peak for a tile of this shape
  };
  static constexpr std::size_t kMaxTileShapes = 12;
  double units = 1;
  std::array<TileShape, kMaxTileShapes> tiles{};
  std::size_t tile_count = 0; ///< 0: no tiles, no waves
  double fill = 0;            ///< start and end of a tile, as a number of reduction steps
};

/// Size of a product: `batch` products of rows x sums by sums x columns, each at least 1.
struct ProductSize {
  double rows = 1;
  double columns = 1;
  double sums = 1;
  double batch = 1;
};

/// Number of multiplications that the units perform for a product, including idle ones, with the
/// best tile shape. If one wave is not full, the reduction is also split. Without tiles, the
/// multiplications of the product itself.
double worked_multiplications(const TileWaves& waves, const ProductSize& product);

} // namespace monet
