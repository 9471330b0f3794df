// Networks as lists of matrix products, the input of `monet backward`. They are read from GEMM
// tables (YAML) or derived from the operators of a network.
#pragma once

#include "monet/base/errors.hpp"
#include "monet/core_cost/backward.hpp"
#include "monet/core_cost/layers.hpp"
#include "monet/workload/graph.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

/// One row of a table: the forward product Y(m,n) = X(m,k) W(k,n) of one sample.
struct GemmLayer {
  std::string name;
  std::int64_t m = 1;
  std::int64_t k = 1;
  std::int64_t n = 1;
  std::int64_t input = 0;   ///< distinct elements of X in a sample; 0 = m * k
  std::int64_t repeats = 1; ///< equal layers, or groups of a convolution
  bool first = false;       ///< X is the network's input, which needs no gradient
  SourceLoc where;
};

/// A GEMM table, as read from a file.
struct GemmTable {
  std::string name;
  std::vector<GemmLayer> layers;
};

/// Reads a GEMM table:
///
///   name: tiny                  # default: the file's name
///   layers:
///     - {name: conv1, m: 196, k: 27, n: 32, input: 588, repeats: 1, first: true}
///
/// `m`, `k` and `n` are required; `input` is at most m * k. Throws one InputError with every
/// problem found: dimensions outside 1 .. 2^40, a layer with more than 2^45 MACs including repeats,
/// unknown keys, duplicate names, no layers.
GemmTable read_gemm_table(const std::string& path);
/// Parses the text of a GEMM table; `origin` names it in messages. Errors as read_gemm_table().
GemmTable parse_gemm_table(std::string_view text, const std::string& origin);

/// A product without a pair of gradients, and the reason.
struct SkippedProduct {
  std::string name;
  std::string op_type;
  std::string why;
};

/// The backward pass of a network, layer by layer in the order of its forward pass.
struct GemmNetwork {
  std::string name;
  std::vector<GemmPair> pairs;
  std::vector<SkippedProduct> skipped;
};

/// Gradient products of every layer for `batch` samples: m and the elements of the input are
/// multiplied by the batch. Throws InputError at the layer if they exceed 2^40 or the MACs exceed
/// 2^45.
GemmNetwork gemm_pairs(const GemmTable& table, std::int64_t batch = 1);

/// Gradient products of a network's products of two factors (Conv, ConvTranspose, MatMul, Gemm,
/// Einsum), with the batch in the shapes. Call fold_views() first, so that factors keep their
/// memory layout.
///
/// Loops shared by both factors and the result are repeats (groups, heads). Of the others, those of
/// the left factor and the result form M, those of both factors K, those of the right factor and
/// the result N; a convolution uses im2col. W is the factor that depends on weights only, otherwise
/// the right one, so attention's scores are pairs, too. A product that depends on no result of
/// weights has no dX.
///
/// Skipped are products without a gradient or with dX only, and multiply-accumulates of another
/// form. Throws InputError at the operator for the limits above.
GemmNetwork gemm_pairs(const Graph& network);

/// Whether no dimension exceeds kMaxGemmDimension and the multiplications do not exceed
/// kMaxGemmMacs. All arguments must be at least 1.
inline bool gemm_is_within_limits(std::int64_t m, std::int64_t k, std::int64_t n,
                                  std::int64_t repeats) {
  if (m > kMaxGemmDimension || k > kMaxGemmDimension || n > kMaxGemmDimension)
    return false;
  std::int64_t macs = m;
  for (const std::int64_t factor : {k, n, repeats}) {
    if (macs > kMaxGemmMacs / factor)
      return false;
    macs *= factor;
  }
  return true;
}

} // namespace monet
