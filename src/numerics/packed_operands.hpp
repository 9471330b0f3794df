// Operands of matrix products, packed in the order in which the inner loops read them.
#pragma once

#include "numerics/shared/mac_engine.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace monet {

inline constexpr std::int64_t kStrip = 32; ///< columns of B in a packed strip

/// A and B as the multiplier reads them, with optional scales of chunks.
template <class Real>
struct PackedOperands {
  PackedOperands(const GemmShape& of, std::int64_t products) : shape(of), chunk(products) {
    a = std::make_unique_for_overwrite<Real[]>(static_cast<std::size_t>(of.m * of.k));
    b = std::make_unique_for_overwrite<Real[]>(static_cast<std::size_t>(of.k * of.n));
  }

  GemmShape shape;
  std::int64_t chunk;        ///< products that are summed exactly
  std::unique_ptr<Real[]> a; ///< m x k
  std::unique_ptr<Real[]> b; ///< strips in order, each with k rows
  OperandFacts left;
  OperandFacts right;
  std::vector<double> a_scales; ///< m x chunks; empty if unscaled
  std::vector<double> b_scales; ///< chunks x n

  std::int64_t width(std::int64_t column) const {
    return shape.n - column < kStrip ? shape.n - column : kStrip;
  }
  Real b_at(std::int64_t q, std::int64_t j) const {
    const std::int64_t column = j - j % kStrip;
    return b[static_cast<std::size_t>(column * shape.k + q * width(column) + j - column)];
  }
};

/// Packs numbers that are exact in single precision; nullopt if any is not.
std::optional<PackedOperands<float>> pack_singles(const GemmShape& shape, std::span<const double> a,
                                                  std::span<const double> b, const Mac& mac,
                                                  const GemmOptions& options);
PackedOperands<double> pack_doubles(const GemmShape& shape, std::span<const double> a,
                                    std::span<const double> b, const Mac& mac,
                                    const GemmOptions& options);

/// Packs operands in the most usual blocks, along k: 32 numbers that share the power of two of the
/// largest. Returns nullopt if a number is not exact in single precision; k must be a multiple of
/// 32.
std::optional<PackedOperands<float>>
pack_vector_blocks(const GemmShape& shape, std::span<const double> a, std::span<const double> b,
                   const NumberFormat& element, const GemmOptions& options);

} // namespace monet
