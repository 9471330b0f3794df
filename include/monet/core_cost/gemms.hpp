// Networks as lists of products: what a layer's backward pass is made of, for `monet backward`.
// They come from GEMM tables (YAML), or from the operators of a network.
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

/// One line of a table: the forward product Y(m,n) = X(m,k) W(k,n) of one sample.
struct GemmLayer {
  std::string name;
  std::int64_t m = 1;
  std::int64_t k = 1;
  std::int64_t n = 1;
  std::int64_t input = 0;   ///< different elements of X that a sample has; 0 = m * k
  std::int64_t repeats = 1; ///< equal layers, or groups of a convolution
  bool first = false;       ///< X is the network's input, whose gradient nobody needs
  SourceLoc where;
};

struct GemmTable {
  std::string name;
  std::vector<GemmLayer> layers;
};

/// A GEMM table:
///
///   name: tiny                  # default: the file's name
///   layers:
///     - {name: conv1, m: 196, k: 27, n: 32, input: 588, repeats: 1, first: true}
///
/// `m`, `k` and `n` must be there, `input` is at most m * k. One InputError with every problem
/// found: dimensions outside 1 .. 2^40, a layer of more than 2^45 MACs with its repeats, unknown
/// keys, names that are there twice, no layers.
GemmTable read_gemm_table(const std::string& path);
/// The same from text; `origin` names it in messages.
GemmTable parse_gemm_table(std::string_view text, const std::string& origin);

/// What has no pair of gradients, and why.
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

/// Every layer for `batch` samples: m and the elements of the input times the batch. InputError at
/// the layer where that is beyond 2^40 or 2^45 MACs.
GemmNetwork gemm_pairs(const GemmTable& table, std::int64_t batch = 1);

/// The products of two factors (Conv, ConvTranspose, MatMul, Gemm, Einsum) of a network, its batch
/// in the shapes; best after fold_views(), which lets factors be read as they lie. Loops that both
/// factors and the result have are repeated (groups, heads); the others of the left factor and the
/// result are M, of both factors K, of the right factor and the result N: a convolution by im2col.
/// W is the factor that depends on weights alone, else the right one: attention's scores are pairs,
/// too. Without dX: what reads no result of weights. Skipped: products of which nothing or only dX
/// has a gradient, and multiply-accumulates of another form. InputError at the operator as above.
GemmNetwork gemm_pairs(const Graph& network);

/// No dimension beyond kMaxGemmDimension, and no more multiplications than kMaxGemmMacs. All are
/// at least 1.
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
