// Arguments of the inner loops of emulated multiply-accumulates. The loops are compiled once per
// set of vector instructions, so the arguments are plain numbers and pointers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace monet::lanes {

/// Longest chunk of a panel.
inline constexpr std::ptrdiff_t kLongestChunk = 256;

enum class Mode : std::int32_t { even, away, zero, stochastic };

/// Purpose of random bits. The k-th product of an output uses the bits at positions kDraws k +
/// draw.
enum class Draw : std::uint32_t { product, convert, sum };
inline constexpr std::uint32_t kDraws = 3;

/// Numbers of a format as a subset of Real, which has more bits and a wider range. A fixed-point
/// format is one binade with all its numbers.
template <class Real>
struct Grid {
  std::int32_t mantissa_bits = 0;
  std::int32_t min_exponent = 0; ///< minimum neighbour distance: 2^(this - mantissa_bits)
  Real largest = 0;
  Real lowest = 0;            ///< most negative number
  Real overflow = 0;          ///< result beyond the largest number: infinity or NaN
  Real smallest_normal = 0;   ///< smaller magnitudes become 0; 0: none do
  bool clamps = false;        ///< numbers beyond the largest become the largest
  bool infinity_stays = true; ///< in mode zero, only infinity overflows
};

/// Rounding of products and sums.
template <class Real>
struct Arithmetic {
  Grid<Real> product; ///< used if `rounds_product`
  Grid<Real> convert; ///< used if `converts`: second rounding of a rounded product
  Grid<Real> sum;     ///< used if `rounds_sum`
  bool rounds_product = false;
  bool converts = false;
  bool rounds_sum = false;
  bool exact_sum = false;    ///< sums inexact in Real get an odd last bit: no double rounding
  bool on_grid = false;      ///< addends lie on the sum's grid: clamping suffices
  bool product_fits = false; ///< no product exceeds the largest of `product`
  bool sum_fits = false;     ///< no sum exceeds the largest of `sum`
  bool flushes = false;
  bool zero_wins = false; ///< infinity times 0 is 0
  Mode mode = Mode::even;
  Mode product_mode = Mode::even;
  std::int32_t random_bits = 0;
};

/// Adds to out[row][column] the sum over `steps` of scalar[row][step] * vector[step][column]. The
/// exact sums of `chunk` products, times their two scales, are added one by one.
template <class Real>
struct Panel {
  Real* out = nullptr;
  const Real* scalars = nullptr;
  const Real* vectors = nullptr;
  std::ptrdiff_t out_row = 0;
  std::ptrdiff_t scalar_row = 0;
  std::ptrdiff_t scalar_step = 0;
  std::ptrdiff_t vector_step = 0;
  std::ptrdiff_t rows = 0;
  std::ptrdiff_t steps = 0;
  std::ptrdiff_t columns = 0;
  std::ptrdiff_t chunk = 1;
  const Real* scalar_scales = nullptr; ///< null if all are 1
  const Real* vector_scales = nullptr;
  std::ptrdiff_t scale_row = 0; ///< row stride of scalar_scales, whose chunks are contiguous
  std::ptrdiff_t vector_scale_step = 0;
  const std::uint32_t* low_keys = nullptr; ///< key of every output, for random bits
  const std::uint32_t* high_keys = nullptr;
  std::ptrdiff_t key_row = 0;
  std::uint32_t first_step = 0; ///< number of products already added to the outputs
};

/// Element-wise variant of Panel: out[column] += left[step][column] * right[step][column], where
/// either operand may be one number for all columns.
template <class Real>
struct Pairs {
  Real* out = nullptr;
  const Real* left = nullptr;
  const Real* right = nullptr;
  std::ptrdiff_t left_step = 0;
  std::ptrdiff_t right_step = 0;
  bool left_varies = true;
  bool right_varies = true;
  std::ptrdiff_t steps = 0;
  std::ptrdiff_t columns = 0;
  std::ptrdiff_t chunk = 1;
  const std::uint32_t* low_keys = nullptr;
  const std::uint32_t* high_keys = nullptr;
  std::uint32_t first_step = 0;
};

/// Rounds blocks of neighbours that share a power of two, chosen by the exponent of the largest
/// magnitude. Writes values, or elements without their scales, and the scales.
struct BlockRun {
  const float* in = nullptr;
  float* out = nullptr;
  float* scales = nullptr; ///< null if not requested
  std::ptrdiff_t blocks = 0;
  std::ptrdiff_t length = 32; ///< block length: 1, 2, 4, 8, 16 or 32
  bool elements = false;
  Grid<float> grid; ///< must clamp
  std::int32_t largest_exponent = 0;
  std::uint8_t zero_code = 0; ///< scale code of a block of zeros
};

/// Facts about numbers, as bits of their magnitudes.
struct FactBits {
  std::uint32_t largest = 0;            ///< largest finite magnitude
  std::uint32_t smallest = 0x7F800000U; ///< smallest magnitude above 0
  std::uint32_t mantissas = 0;          ///< bitwise OR of the finite magnitudes
  std::int32_t lowest = 0;              ///< all numbers are multiples of 2^(this - 150)
  std::uint32_t specials = 0;           ///< nonzero if any number is not finite
};

/// Reading of a format by multipliers without NaN: NaN is read as infinity.
struct SubnormalRule {
  float least = 0; ///< smaller magnitudes are subnormal
  float base = 0;
  bool as_normal = false; ///< subnormals are read as `base` plus half of them
  bool as_zero = false;
};

/// Kernels compiled for one instruction set.
struct Kernels {
  const char* name;
  void (*panel_single)(const Panel<float>&, const Arithmetic<float>&);
  void (*panel_double)(const Panel<double>&, const Arithmetic<double>&);
  void (*pairs_single)(const Pairs<float>&, const Arithmetic<float>&);
  void (*pairs_double)(const Pairs<double>&, const Arithmetic<double>&);
  void (*blocks)(const BlockRun&);
  /// out[column] = bits of the largest magnitude in the rows, ordered: numbers, infinity, NaN.
  void (*largest)(const float* in, std::ptrdiff_t row, std::ptrdiff_t rows, std::ptrdiff_t columns,
                  std::uint32_t* out);
  /// out = round(in * inverse) * scale for each number, to even; keeps the sign of zeros.
  void (*scaled_round)(const float* in, float* out, std::ptrdiff_t count, const float* inverse,
                       const float* scale, const Grid<float>& grid);
  /// Rounds to even; keeps the sign of zeros.
  void (*round)(const float* in, float* out, std::ptrdiff_t count, const Grid<float>& grid);
  /// Rounds to even, to `mantissa_bits` with the exponents and infinity of single precision.
  void (*round_mantissa)(const float* in, float* out, std::ptrdiff_t count, int mantissa_bits);
  /// Converts to single precision; returns false if any number is not exact in it.
  bool (*narrow)(const double* in, float* out, std::ptrdiff_t count);
  void (*facts)(const float* in, std::ptrdiff_t count, FactBits& bits);
  void (*read)(float* numbers, std::ptrdiff_t count, const SubnormalRule& reading);
};

const Kernels& portable_kernels();
#if defined(__x86_64__)
const Kernels& avx2_kernels();
const Kernels& avx512_kernels();
#endif

} // namespace monet::lanes
