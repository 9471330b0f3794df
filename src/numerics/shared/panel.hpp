// What the inner loops of emulated multiply-accumulates are given. They are compiled once for each
// set of vector instructions: plain numbers and pointers only.
#pragma once

#include <cstddef>
#include <cstdint>

namespace monet::lanes {

/// Longest chunk of a panel.
inline constexpr std::ptrdiff_t kLongestChunk = 256;

enum class Mode : std::int32_t { even, away, zero, stochastic };

/// Random bits of the k-th product of an output are those of the places kDraws k + draw.
enum class Draw : std::uint32_t { product, convert, sum };
inline constexpr std::uint32_t kDraws = 3;

/// Numbers of a format among those of Real, which has more bits and a wider range. Fixed formats,
/// too: as one binade with all of their numbers.
template <class Real>
struct Grid {
  std::int32_t mantissa_bits = 0;
  std::int32_t min_exponent = 0; ///< neighbours are never closer than 2^(this - mantissa_bits)
  Real largest = 0;
  Real lowest = 0;            ///< the most negative
  Real overflow = 0;          ///< what stands for magnitudes beyond the largest: infinity or NaN
  Real smallest_normal = 0;   ///< smaller magnitudes become 0; 0: none does
  bool clamps = false;        ///< what is too large becomes the largest
  bool infinity_stays = true; ///< in mode zero only infinity itself overflows
};

/// How products and sums are rounded.
template <class Real>
struct Arithmetic {
  Grid<Real> product; ///< where `rounds_product`
  Grid<Real> convert; ///< where `converts`: what a rounded product is rounded to once more
  Grid<Real> sum;     ///< where `rounds_sum`
  bool rounds_product = false;
  bool converts = false;
  bool rounds_sum = false;
  bool exact_sum = false;    ///< sums of two numbers of Real that Real cannot hold are kept odd, so
                             ///< that rounding sees on which side they are
  bool on_grid = false;      ///< what is added lies on the sum's grid: no rounding, only clamping
  bool product_fits = false; ///< none lies beyond the largest number of `product`
  bool sum_fits = false;     ///< nor does any sum beyond that of `sum`
  bool flushes = false;
  bool zero_wins = false; ///< infinity times 0 is 0
  Mode mode = Mode::even;
  Mode product_mode = Mode::even;
  std::int32_t random_bits = 0;
};

/// out[row][column] goes on with the sum over `steps` of scalar[row][step] * vector[step][column].
/// In chunks: the exact sums of `chunk` products are added, times their two scales.
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
  const Real* scalar_scales = nullptr; ///< null: all 1
  const Real* vector_scales = nullptr;
  std::ptrdiff_t scale_row = 0; ///< of scalar_scales; its chunks are neighbours
  std::ptrdiff_t vector_scale_step = 0;
  const std::uint32_t* low_keys = nullptr; ///< of every output, for random bits
  const std::uint32_t* high_keys = nullptr;
  std::ptrdiff_t key_row = 0;
  std::uint32_t first_step = 0; ///< how many products the outputs have had
};

/// The same of two vectors: out[column] += left[step][column] * right[step][column], where either
/// may be one number for all columns.
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

/// Blocks of neighbours that share a power of two, chosen by the exponent of the largest
/// magnitude: values, or elements without their scales, and the scales.
struct BlockRun {
  const float* in = nullptr;
  float* out = nullptr;
  float* scales = nullptr; ///< null: not asked for
  std::ptrdiff_t blocks = 0;
  std::ptrdiff_t length = 32; ///< of a block: 1, 2, 4, 8, 16 or 32
  bool elements = false;
  Grid<float> grid; ///< that clamps
  std::int32_t largest_exponent = 0;
  std::uint8_t zero_code = 0; ///< of a block of zeros
};

/// Of numbers, as bits of magnitudes.
struct FactBits {
  std::uint32_t largest = 0;            ///< that is finite
  std::uint32_t smallest = 0x7F800000U; ///< above 0
  std::uint32_t mantissas = 0;          ///< of finite ones, any of them
  std::int32_t lowest = 0;              ///< all are multiples of 2^(this - 150)
  std::uint32_t specials = 0;           ///< not 0 where any is not finite
};

/// How multipliers without NaN read numbers of their format: NaN is infinity.
struct SubnormalRule {
  float least = 0; ///< smaller magnitudes are subnormal:
  float base = 0;
  bool as_normal = false; ///< this and half of them
  bool as_zero = false;
};

/// Compiled code for one set of instructions.
struct Kernels {
  const char* name;
  void (*panel_single)(const Panel<float>&, const Arithmetic<float>&);
  void (*panel_double)(const Panel<double>&, const Arithmetic<double>&);
  void (*pairs_single)(const Pairs<float>&, const Arithmetic<float>&);
  void (*pairs_double)(const Pairs<double>&, const Arithmetic<double>&);
  void (*blocks)(const BlockRun&);
  /// out[column] = the bits of the largest magnitude in the rows: NaN above infinity above numbers.
  void (*largest)(const float* in, std::ptrdiff_t row, std::ptrdiff_t rows, std::ptrdiff_t columns,
                  std::uint32_t* out);
  /// out = round(in * inverse) * scale number by number, to even, with the sign of zeros.
  void (*scaled_round)(const float* in, float* out, std::ptrdiff_t count, const float* inverse,
                       const float* scale, const Grid<float>& grid);
  /// To even, with the sign of zeros.
  void (*round)(const float* in, float* out, std::ptrdiff_t count, const Grid<float>& grid);
  /// To so many bits of mantissa and all exponents of single precision, to even, with its infinity.
  void (*round_mantissa)(const float* in, float* out, std::ptrdiff_t count, int mantissa_bits);
  /// The same numbers in single precision; false where any is not.
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
