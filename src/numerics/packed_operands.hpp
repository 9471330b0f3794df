// Operands of products of matrices, in the order in which the inner loops take them.
#pragma once

#include "numerics/shared/mac_engine.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace monet {

inline constexpr std::int64_t kStrip = 32; ///< columns of B that are packed together

/// A and B as the multiplier reads them, and the scales of chunks where there are any.
template <class Real>
struct PackedOperands {
  PackedOperands(const GemmShape& of, std::int64_t products) : shape(of), chunk(products) {
    a = std::make_unique_for_overwrite<Real[]>(static_cast<std::size_t>(of.m * of.k));
    b = std::make_unique_for_overwrite<Real[]>(static_cast<std::size_t>(of.k * of.n));
  }

  GemmShape shape;
  std::int64_t chunk;        ///< products that are added up exactly
  std::unique_ptr<Real[]> a; ///< m x k
  std::unique_ptr<Real[]> b; ///< strip by strip, each as k rows
  OperandFacts left;
  OperandFacts right;
  std::vector<double> a_scales; ///< m x chunks; empty: none
  std::vector<double> b_scales; ///< chunks x n

  std::int64_t width(std::int64_t column) const {
    return shape.n - column < kStrip ? shape.n - column : kStrip;
  }
  Real b_at(std::int64_t q, std::int64_t j) const {
    const std::int64_t column = j - j % kStrip;
    return b[static_cast<std::size_t>(column * shape.k + q * width(column) + j - column)];
  }
};

/// Numbers that are in single precision, or nothing where any is not.
std::optional<PackedOperands<float>> pack_singles(const GemmShape& shape, std::span<const double> a,
                                                  std::span<const double> b, const Mac& mac,
                                                  const GemmOptions& options);
PackedOperands<double> pack_doubles(const GemmShape& shape, std::span<const double> a,
                                    std::span<const double> b, const Mac& mac,
                                    const GemmOptions& options);

/// In the most usual blocks, along k: 32 numbers that share the power of two of the largest.
/// Nothing where a number is not in single precision; k is a multiple of 32.
std::optional<PackedOperands<float>>
pack_vector_blocks(const GemmShape& shape, std::span<const double> a, std::span<const double> b,
                   const NumberFormat& element, const GemmOptions& options);

} // namespace monet
