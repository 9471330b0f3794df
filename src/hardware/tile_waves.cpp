// Multiplications that a unit-wave machine spends on a product, including partly filled tiles and
// waves. Cost models of GPU-like cores call it.
#include "monet/hardware/core.hpp"

#include <algorithm>
#include <cmath>

namespace monet {

namespace {

/// Work of one tile shape: sum terms over all waves of the units, times the tile's area.
double wave_area(const TileWaves& waves, const TileWaves::TileShape& tile,
                 const ProductSize& product) {
  constexpr double kMaxWaveSplits = 16;
  const double tiles = std::ceil(product.rows / tile.rows) *
                       std::ceil(product.columns / tile.columns) * product.batch;
  double best = std::ceil(tiles / waves.units) * (product.sums + waves.fill);
  for (double cuts = 2;
       cuts <= kMaxWaveSplits && tiles * cuts <= waves.units && cuts <= product.sums; cuts *= 2)
    best =
        std::min(best, std::ceil(tiles * cuts / waves.units) * (product.sums / cuts + waves.fill));
  return best * tile.rows * tile.columns / tile.share;
}

} // namespace

double worked_multiplications(const TileWaves& waves, const ProductSize& product) {
  if (waves.tile_count == 0)
    return product.rows * product.columns * product.sums * product.batch;
  double least = 0;
  for (std::size_t i = 0; i < waves.tile_count; ++i) {
    const double area = wave_area(waves, waves.tiles[i], product);
    least = i == 0 ? area : std::min(least, area);
  }
  return least * waves.units;
}

} // namespace monet
