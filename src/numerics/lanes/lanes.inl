// The inner loops, for vectors of MONET_LANE_BYTES. Included by one file for each set of vector
// instructions, each with compiler options of its own: so no header here may define functions that
// other files share, and everything is in an anonymous namespace.
#include "numerics/shared/panel.hpp"

namespace monet::lanes {
namespace {

template <class Real>
struct Lane;

template <>
struct Lane<float> {
  using Bits = std::uint32_t;
  using Signed = std::int32_t;
  static constexpr int kMantissa = 23;
  static constexpr Bits kExponentMask = 0x7F800000U;
  static constexpr Bits kSignMask = 0x80000000U;
  static constexpr Bits kHalf = 0x00400000U;
  static constexpr int kBias = 127;
};
template <>
struct Lane<double> {
  using Bits = std::uint64_t;
  using Signed = std::int64_t;
  static constexpr int kMantissa = 52;
  static constexpr Bits kExponentMask = 0x7FF0000000000000ULL;
  static constexpr Bits kSignMask = 0x8000000000000000ULL;
  static constexpr Bits kHalf = 0x0008000000000000ULL;
  static constexpr int kBias = 1023;
};

template <class Real>
struct Types {
  static constexpr int kWidth = MONET_LANE_BYTES / static_cast<int>(sizeof(Real));
  typedef Real V __attribute__((vector_size(MONET_LANE_BYTES)));
  typedef typename Lane<Real>::Bits U __attribute__((vector_size(MONET_LANE_BYTES)));
  typedef typename Lane<Real>::Signed I __attribute__((vector_size(MONET_LANE_BYTES)));
  /// 32 bits for every number.
  typedef std::uint32_t H __attribute__((vector_size(kWidth * 4)));
  typedef std::int32_t HI __attribute__((vector_size(kWidth * 4)));
};
template <class Real>
using Vec = typename Types<Real>::V;
template <class Real>
using Uns = typename Types<Real>::U;
template <class Real>
using Sig = typename Types<Real>::I;
template <class Real>
using Half = typename Types<Real>::H;

template <class Real>
inline Vec<Real> all(Real x) {
  return x - Vec<Real>{};
}
template <class Real>
inline Vec<Real> load(const Real* from) {
  Vec<Real> v;
  __builtin_memcpy(&v, from, sizeof(v));
  return v;
}
template <class Real>
inline void store(Real* to, Vec<Real> v) {
  __builtin_memcpy(to, &v, sizeof(v));
}
/// The first `count` numbers, the others 0.
template <class Real>
[[gnu::noinline]] Vec<Real> load_part(const Real* from, std::ptrdiff_t count) {
  Real numbers[Types<Real>::kWidth] = {};
  for (std::ptrdiff_t i = 0; i < count; ++i)
    numbers[i] = from[i];
  return load(numbers);
}
template <class Real>
[[gnu::noinline]] void store_part(Real* to, const Vec<Real>& v, std::ptrdiff_t count) {
  Real numbers[Types<Real>::kWidth];
  store(numbers, v);
  for (std::ptrdiff_t i = 0; i < count; ++i)
    to[i] = numbers[i];
}
template <class Real>
inline Vec<Real> load_some(const Real* from, std::ptrdiff_t count) {
  return count >= Types<Real>::kWidth ? load(from) : load_part(from, count);
}
template <class Real>
inline void store_some(Real* to, Vec<Real> v, std::ptrdiff_t count) {
  if (count >= Types<Real>::kWidth)
    store(to, v);
  else
    store_part<Real>(to, v, count);
}
template <class Real>
[[gnu::noinline]] Half<Real> load_keys(const std::uint32_t* from, std::ptrdiff_t count) {
  std::uint32_t keys[Types<Real>::kWidth] = {};
  for (std::ptrdiff_t i = 0; i < count && i < Types<Real>::kWidth; ++i)
    keys[i] = from[i];
  Half<Real> h;
  __builtin_memcpy(&h, keys, sizeof(h));
  return h;
}

/// A grid as vectors.
template <class Real>
struct LaneGrid {
  Uns<Real> least{}; ///< exponent bits
  typename Lane<Real>::Bits shift = 0;
  typename Lane<Real>::Bits ulp_shift = 0;
  bool ulp_up = false;
  Vec<Real> largest{}, lowest{}, overflow{}, smallest_normal{};

  LaneGrid() = default;
  explicit LaneGrid(const Grid<Real>& grid) {
    using L = Lane<Real>;
    using Bits = typename L::Bits;
    least = static_cast<Bits>(grid.least_exponent + L::kBias) << L::kMantissa | Uns<Real>{};
    shift = static_cast<Bits>(L::kMantissa - grid.mantissa_bits) << L::kMantissa;
    ulp_up = grid.mantissa_bits < 0;
    const int distance = ulp_up ? -grid.mantissa_bits : grid.mantissa_bits;
    ulp_shift = static_cast<Bits>(distance) << L::kMantissa;
    largest = all(grid.largest);
    lowest = all(grid.lowest);
    overflow = all(grid.overflow);
    smallest_normal = all(grid.smallest_normal);
  }
};

template <class Real>
inline Vec<Real> magnitude(Vec<Real> x) {
  return (Vec<Real>)((Uns<Real>)x & ~Lane<Real>::kSignMask);
}
/// With the sign of x; m has none.
template <class Real>
inline Vec<Real> with_sign(Vec<Real> m, Vec<Real> x) {
  return (Vec<Real>)((Uns<Real>)m | ((Uns<Real>)x & Lane<Real>::kSignMask));
}
template <class Real>
inline Uns<Real> exponents(Vec<Real> x, const LaneGrid<Real>& grid) {
  const Uns<Real> e = (Uns<Real>)x & Lane<Real>::kExponentMask;
  return e > grid.least ? e : grid.least;
}
/// 1.5 times the power of two whose own neighbours are as far apart as the grid's at x: adding it
/// rounds to even.
template <class Real>
inline Vec<Real> rounder(Uns<Real> exponent, const LaneGrid<Real>& grid) {
  return (Vec<Real>)((exponent + grid.shift) | Lane<Real>::kHalf);
}
/// NaN stays NaN.
template <class Real>
inline Vec<Real> clamped(Vec<Real> x, const LaneGrid<Real>& grid) {
  x = x > grid.largest ? grid.largest : x;
  return x < grid.lowest ? grid.lowest : x;
}

template <class Real, bool kClamp>
inline Vec<Real> round_even(Vec<Real> x, const LaneGrid<Real>& grid) {
  if constexpr (kClamp)
    x = clamped<Real>(x, grid);
  const Vec<Real> k = rounder<Real>(exponents<Real>(x, grid), grid);
  const Vec<Real> q = (x + k) - k;
  if constexpr (kClamp)
    return q;
  return magnitude<Real>(q) > grid.largest ? with_sign<Real>(grid.overflow, x) : q;
}

/// The sum as Real has it, with its last bit odd where it is not exact: between the same neighbours
/// of any grid with two bits less, and halfway between them only if the sum is.
template <class Real>
inline Vec<Real> odd_sum(Vec<Real> a, Vec<Real> b) {
  const Vec<Real> s = a + b;
  const Vec<Real> of_b = s - a;
  const Vec<Real> rest = (a - (s - of_b)) + (b - of_b);
  const Sig<Real> inexact = (rest < Vec<Real>{}) | (rest > Vec<Real>{});
  const Sig<Real> bits = (Sig<Real>)s;
  const Sig<Real> opposite = (((Sig<Real>)rest ^ bits) < Sig<Real>{}) & inexact; // -1 where true
  return (Vec<Real>)((bits + opposite) | (inexact & 1));
}

/// Two rounds of a 32-bit mixer: see rounding_bits().
template <class Real>
inline Half<Real> mixed(Half<Real> x) {
  x = (x ^ (x >> 16)) * 0x7FEB352DU;
  x = (x ^ (x >> 15)) * 0x846CA68BU;
  return x ^ (x >> 16);
}

template <class Real>
struct Keys {
  Half<Real> low{}, high{};
  Half<Real> at(std::uint32_t place) const {
    return mixed<Real>(mixed<Real>(low ^ place) + high);
  }
};

/// To even, products rounded or exact; sums native, only clamped, rounded, or rounded from odd ones.
enum class Sum { native, clamp, round, round_odd };
template <class Real, bool kRoundsProduct, Sum kSum, bool kClamp>
struct FastOps {
  static constexpr bool kRandom = false;
  LaneGrid<Real> product, sum;

  explicit FastOps(const Arithmetic<Real>& arithmetic)
      : product(arithmetic.product), sum(arithmetic.sum) {}
  Vec<Real> finish(Vec<Real> p, const Keys<Real>&, std::uint32_t) const {
    if constexpr (kRoundsProduct)
      return round_even<Real, kClamp>(p, product);
    return p;
  }
  Vec<Real> add(Vec<Real> c, Vec<Real> p, const Keys<Real>&, std::uint32_t) const {
    if constexpr (kSum == Sum::native)
      return c + p;
    else if constexpr (kSum == Sum::clamp)
      return clamped<Real>(c + p, sum);
    else if constexpr (kSum == Sum::round)
      return round_even<Real, kClamp>(c + p, sum);
    else
      return round_even<Real, kClamp>(odd_sum<Real>(c, p), sum);
  }
};

/// Everything, decided as it goes.
template <class Real>
struct GeneralOps {
  static constexpr bool kRandom = true;
  Arithmetic<Real> arithmetic;
  LaneGrid<Real> product, convert, sum;
  Vec<Real> random_limit{}, random_step{};

  explicit GeneralOps(const Arithmetic<Real>& given)
      : arithmetic(given), product(given.product), convert(given.convert), sum(given.sum) {
    const auto limit = static_cast<Real>(std::uint32_t{1} << given.random_bits);
    random_limit = all<Real>(limit);
    random_step = all<Real>(1 / limit);
  }

  bool is_random() const { return arithmetic.mode == Mode::stochastic; }

  Vec<Real> up(Mode mode, Vec<Real> rest, Vec<Real> ulp, const Keys<Real>& keys,
               std::uint32_t place) const {
    const Vec<Real> zero{};
    if (mode == Mode::zero)
      return zero;
    if (mode == Mode::away)
      return rest >= ulp * all<Real>(Real(0.5)) ? ulp : zero;
    const Half<Real> random =
        keys.at(place) & ((std::uint32_t{1} << arithmetic.random_bits) - 1);
    const Vec<Real> drawn = __builtin_convertvector((typename Types<Real>::HI)random, Vec<Real>);
    return rest >= (random_limit - drawn) * (ulp * random_step) ? ulp : zero;
  }

  Vec<Real> round(Mode mode, Vec<Real> x, const LaneGrid<Real>& grid, const Grid<Real>& plain,
                  const Keys<Real>& keys, std::uint32_t place) const {
    const Vec<Real> m = magnitude<Real>(x);
    // Beyond twice the largest number nothing changes any more but for infinity itself.
    const Vec<Real> most = grid.largest * all<Real>(Real(2));
    const Vec<Real> cut = m > most ? most : m;
    const Uns<Real> e = exponents<Real>(cut, grid);
    const Vec<Real> k = rounder<Real>(e, grid);
    Vec<Real> q = (cut + k) - k;
    if (mode != Mode::even) {
      const Vec<Real> ulp =
          (Vec<Real>)(grid.ulp_up ? e + grid.ulp_shift : e - grid.ulp_shift);
      const Vec<Real> lower = q > cut ? q - ulp : q;
      q = lower + up(mode, cut - lower, ulp, keys, place);
    }
    if (plain.clamps) {
      const Vec<Real> negative = with_sign<Real>(q, x);
      return clamped<Real>(flushed(negative, grid), grid);
    }
    Vec<Real> beyond = grid.overflow;
    if (mode == Mode::zero && plain.infinity_stays) {
      const Vec<Real> infinity = (Vec<Real>)(Uns<Real>{} + Lane<Real>::kExponentMask);
      beyond = m < infinity ? grid.largest : grid.overflow;
    }
    q = q > grid.largest ? beyond : q;
    return flushed(with_sign<Real>(q, x), grid);
  }

  Vec<Real> flushed(Vec<Real> q, const LaneGrid<Real>& grid) const {
    if (!arithmetic.flushes)
      return q;
    return magnitude<Real>(q) < grid.smallest_normal ? Vec<Real>{} : q;
  }

  Vec<Real> finish(Vec<Real> p, const Keys<Real>& keys, std::uint32_t step) const {
    if (arithmetic.rounds_product)
      p = round(arithmetic.product_mode, p, product, arithmetic.product, keys, 3 * step);
    if (arithmetic.converts)
      p = round(arithmetic.mode, p, convert, arithmetic.convert, keys, 3 * step + 1);
    return p;
  }
  Vec<Real> add(Vec<Real> c, Vec<Real> p, const Keys<Real>& keys, std::uint32_t step) const {
    const Vec<Real> s = arithmetic.exact_sum ? odd_sum<Real>(c, p) : c + p;
    return arithmetic.rounds_sum ? round(arithmetic.mode, s, sum, arithmetic.sum, keys, 3 * step + 2) : s;
  }
};

constexpr int kPanelRows = 4;
constexpr int kGeneralRows = 2; ///< with all that may have to be decided
constexpr int kPanelVectors = MONET_LANE_BYTES == 64 ? 2 : 1;

/// Some rows of one strip of columns. `count`: columns of the strip, at most all of its vectors.
template <class Real, class Ops, int kRows, int kVectors>
void panel_block(const Panel<Real>& panel, const Ops& ops, std::ptrdiff_t row, std::ptrdiff_t column,
                 std::ptrdiff_t count, const Real* vectors, std::ptrdiff_t vector_step) {
  constexpr int kWidth = Types<Real>::kWidth;
  Vec<Real> c[kRows][kVectors];
  Keys<Real> keys[kRows][kVectors];
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      const std::ptrdiff_t left = count - v * kWidth;
      c[r][v] = load_some(panel.out + (row + r) * panel.out_row + column + v * kWidth, left);
      if constexpr (Ops::kRandom) {
        if (ops.is_random()) {
          const std::ptrdiff_t at = (row + r) * panel.key_row + column + v * kWidth;
          keys[r][v] = {load_keys<Real>(panel.low_keys + at, left),
                        load_keys<Real>(panel.high_keys + at, left)};
        }
      }
    }
  }
  const Real* scalars = panel.scalars + row * panel.scalar_row;
  if (panel.chunk == 1 && panel.scalar_scales == nullptr) {
    for (std::ptrdiff_t k = 0; k < panel.steps; ++k) {
      const auto step = static_cast<std::uint32_t>(k) + panel.first_step;
      Vec<Real> b[kVectors];
      for (int v = 0; v < kVectors; ++v)
        b[v] = load(vectors + k * vector_step + v * kWidth);
      for (int r = 0; r < kRows; ++r) {
        const Real a = scalars[r * panel.scalar_row + k * panel.scalar_step];
        for (int v = 0; v < kVectors; ++v)
          c[r][v] = ops.add(c[r][v], ops.finish(a * b[v], keys[r][v], step), keys[r][v], step);
      }
    }
  } else {
    std::ptrdiff_t chunk_number = 0;
    for (std::ptrdiff_t k0 = 0; k0 < panel.steps; k0 += panel.chunk, ++chunk_number) {
      const std::ptrdiff_t end = k0 + panel.chunk < panel.steps ? k0 + panel.chunk : panel.steps;
      Vec<Real> s[kRows][kVectors] = {};
      for (std::ptrdiff_t k = k0; k < end; ++k) {
        Vec<Real> b[kVectors];
        for (int v = 0; v < kVectors; ++v)
          b[v] = load(vectors + k * vector_step + v * kWidth);
        for (int r = 0; r < kRows; ++r) {
          const Real a = scalars[r * panel.scalar_row + k * panel.scalar_step];
          for (int v = 0; v < kVectors; ++v)
            s[r][v] += a * b[v];
        }
      }
      const auto step = static_cast<std::uint32_t>(k0) + panel.first_step;
      for (int r = 0; r < kRows; ++r) {
        for (int v = 0; v < kVectors; ++v) {
          if (panel.scalar_scales != nullptr) {
            const Vec<Real> scale =
                load_some(panel.vector_scales + chunk_number * panel.vector_scale_step + column +
                              v * kWidth,
                          count - v * kWidth);
            s[r][v] *= scale * panel.scalar_scales[(row + r) * panel.scale_row + chunk_number];
          }
          c[r][v] = ops.add(c[r][v], ops.finish(s[r][v], keys[r][v], step), keys[r][v], step);
        }
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v)
      store_some(panel.out + (row + r) * panel.out_row + column + v * kWidth, c[r][v],
                 count - v * kWidth);
  }
}

/// All rows of one strip.
template <class Real, class Ops, int kVectors>
void panel_strip(const Panel<Real>& panel, const Ops& ops, std::ptrdiff_t column,
                 std::ptrdiff_t count, const Real* vectors, std::ptrdiff_t vector_step) {
  constexpr int kRows = Ops::kRandom ? kGeneralRows : kPanelRows;
  std::ptrdiff_t row = 0;
  for (; row + kRows <= panel.rows; row += kRows)
    panel_block<Real, Ops, kRows, kVectors>(panel, ops, row, column, count, vectors,
                                                 vector_step);
  for (; row < panel.rows; ++row)
    panel_block<Real, Ops, 1, kVectors>(panel, ops, row, column, count, vectors, vector_step);
}

template <class Real, class Ops>
void run_panel(const Panel<Real>& panel, const Ops& ops) {
  constexpr int kWidth = Types<Real>::kWidth;
  constexpr int kVectors = Ops::kRandom ? 1 : kPanelVectors;
  constexpr std::ptrdiff_t kStrip = std::ptrdiff_t{kVectors} * kWidth;
  std::ptrdiff_t column = 0;
  for (; column + kStrip <= panel.columns; column += kStrip)
    panel_strip<Real, Ops, kVectors>(panel, ops, column, kStrip, panel.vectors + column,
                                          panel.vector_step);
  for (; column + kWidth <= panel.columns; column += kWidth)
    panel_strip<Real, Ops, 1>(panel, ops, column, kWidth, panel.vectors + column,
                              panel.vector_step);
  const std::ptrdiff_t left = panel.columns - column;
  if (left == 0)
    return;
  // The last columns, filled up, some chunks at a time.
  Real filled[kLongestChunk * kWidth];
  const std::ptrdiff_t most = kLongestChunk / panel.chunk * panel.chunk;
  for (std::ptrdiff_t k0 = 0; k0 < panel.steps; k0 += most) {
    Panel<Real> part = panel;
    part.steps = panel.steps - k0 < most ? panel.steps - k0 : most;
    for (std::ptrdiff_t k = 0; k < part.steps; ++k)
      store(filled + k * kWidth,
            load_some(panel.vectors + (k0 + k) * panel.vector_step + column, left));
    part.scalars = panel.scalars + k0 * panel.scalar_step;
    part.first_step = panel.first_step + static_cast<std::uint32_t>(k0);
    if (panel.scalar_scales != nullptr) {
      part.scalar_scales = panel.scalar_scales + k0 / panel.chunk;
      part.vector_scales = panel.vector_scales + k0 / panel.chunk * panel.vector_scale_step;
    }
    panel_strip<Real, Ops, 1>(part, ops, column, left, filled, kWidth);
  }
}

template <class Real, class Ops>
void run_pairs(const Pairs<Real>& pairs, const Ops& ops) {
  constexpr int kWidth = Types<Real>::kWidth;
  for (std::ptrdiff_t column = 0; column < pairs.columns; column += kWidth) {
    const std::ptrdiff_t left = pairs.columns - column;
    Vec<Real> c = load_some(pairs.out + column, left);
    Keys<Real> keys;
    if constexpr (Ops::kRandom) {
      if (ops.is_random())
        keys = {load_keys<Real>(pairs.low_keys + column, left),
                load_keys<Real>(pairs.high_keys + column, left)};
    }
    for (std::ptrdiff_t k = 0; k < pairs.steps; ++k) {
      const auto step = static_cast<std::uint32_t>(k) + pairs.first_step;
      const Real* a = pairs.left + k * pairs.left_step;
      const Real* b = pairs.right + k * pairs.right_step;
      const Vec<Real> x = pairs.left_varies ? load_some(a + column, left) : all<Real>(*a);
      const Vec<Real> y = pairs.right_varies ? load_some(b + column, left) : all<Real>(*b);
      c = ops.add(c, ops.finish(x * y, keys, step), keys, step);
    }
    store_some(pairs.out + column, c, left);
  }
}

/// f(ops) with the fastest operations that do what `arithmetic` says.
template <class Real, bool kRoundsProduct, bool kClamp, class F>
void with_sum(const Arithmetic<Real>& arithmetic, F f) {
  if (!arithmetic.rounds_sum)
    f(FastOps<Real, kRoundsProduct, Sum::native, kClamp>(arithmetic));
  else if (arithmetic.exact_sum)
    f(FastOps<Real, kRoundsProduct, Sum::round_odd, kClamp>(arithmetic));
  else if (kClamp && arithmetic.on_grid)
    f(FastOps<Real, kRoundsProduct, Sum::clamp, true>(arithmetic));
  else
    f(FastOps<Real, kRoundsProduct, Sum::round, kClamp>(arithmetic));
}
template <class Real, class F>
void with_ops(const Arithmetic<Real>& arithmetic, F f) {
  const bool clamps = arithmetic.rounds_sum ? arithmetic.sum.clamps : arithmetic.product.clamps;
  const bool alike = !arithmetic.rounds_product || arithmetic.product.clamps == clamps;
  if (arithmetic.mode != Mode::even || arithmetic.flushes || arithmetic.converts || !alike) {
    f(GeneralOps<Real>(arithmetic));
  } else if (arithmetic.rounds_product) {
    if (clamps)
      with_sum<Real, true, true>(arithmetic, f);
    else
      with_sum<Real, true, false>(arithmetic, f);
  } else if (clamps) {
    with_sum<Real, false, true>(arithmetic, f);
  } else {
    with_sum<Real, false, false>(arithmetic, f);
  }
}

template <class Real>
void panel_kernel(const Panel<Real>& panel, const Arithmetic<Real>& arithmetic) {
  with_ops(arithmetic, [&](const auto& ops) { run_panel(panel, ops); });
}
template <class Real>
void pairs_kernel(const Pairs<Real>& pairs, const Arithmetic<Real>& arithmetic) {
  with_ops(arithmetic, [&](const auto& ops) { run_pairs(pairs, ops); });
}

/// The largest of the numbers of a vector of so many bytes.
template <int kBytes>
inline std::int32_t largest_of(const std::int32_t* numbers) {
  if constexpr (kBytes == 4) {
    return numbers[0];
  } else {
    typedef std::int32_t Part __attribute__((vector_size(kBytes / 2)));
    Part a, b;
    __builtin_memcpy(&a, numbers, sizeof(a));
    __builtin_memcpy(&b, numbers + kBytes / 8, sizeof(b));
    a = a > b ? a : b;
    std::int32_t rest[kBytes / 8];
    __builtin_memcpy(rest, &a, sizeof(a));
    return largest_of<kBytes / 2>(rest);
  }
}
inline std::uint32_t largest_of(Sig<float> bits) {
  std::int32_t numbers[Types<float>::kWidth];
  __builtin_memcpy(numbers, &bits, sizeof(bits));
  return static_cast<std::uint32_t>(largest_of<MONET_LANE_BYTES>(numbers));
}

void largest_kernel(const float* in, std::ptrdiff_t row, std::ptrdiff_t rows,
                    std::ptrdiff_t columns, std::uint32_t* out) {
  for (std::ptrdiff_t i = 0; i < columns; i += Types<float>::kWidth) {
    Sig<float> most{};
    for (std::ptrdiff_t r = 0; r < rows; ++r) {
      const Sig<float> bits = (Sig<float>)magnitude<float>(load_some(in + r * row + i, columns - i));
      most = bits > most ? bits : most;
    }
    for (std::ptrdiff_t k = 0; k < Types<float>::kWidth && i + k < columns; ++k)
      out[i + k] = static_cast<std::uint32_t>(most[k]);
  }
}

inline Vec<float> scaled_rounded(Vec<float> x, Vec<float> inverse, Vec<float> scale,
                                 const LaneGrid<float>& grid) {
  const Vec<float> q = round_even<float, true>(x * inverse, grid);
  return with_sign<float>(magnitude<float>(q * scale), x);
}

void scaled_round_kernel(const float* in, float* out, std::ptrdiff_t count, const float* inverse,
                         const float* scale, const Grid<float>& plain) {
  const LaneGrid<float> grid(plain);
  for (std::ptrdiff_t i = 0; i < count; i += Types<float>::kWidth) {
    const std::ptrdiff_t left = count - i;
    store_some(out + i,
               scaled_rounded(load_some(in + i, left), load_some(inverse + i, left),
                              load_some(scale + i, left), grid),
               left);
  }
}

template <bool kClamp>
void round_all(const float* in, float* out, std::ptrdiff_t count, const LaneGrid<float>& grid) {
  LaneGrid<float> wide = grid; // twice as large, nothing changes any more but rounds safely
  wide.largest = grid.largest * 2;
  wide.lowest = -wide.largest;
  for (std::ptrdiff_t i = 0; i < count; i += Types<float>::kWidth) {
    const Vec<float> x = load_some(in + i, count - i);
    const Vec<float> near = kClamp ? x : clamped<float>(x, wide);
    const Vec<float> q = magnitude<float>(round_even<float, kClamp>(near, grid));
    store_some(out + i, with_sign<float>(q, x), count - i);
  }
}
void round_kernel(const float* in, float* out, std::ptrdiff_t count, const Grid<float>& grid) {
  if (grid.clamps)
    round_all<true>(in, out, count, LaneGrid<float>(grid));
  else
    round_all<false>(in, out, count, LaneGrid<float>(grid));
}

void round_mantissa_kernel(const float* in, float* out, std::ptrdiff_t count, int mantissa_bits) {
  const int cut = Lane<float>::kMantissa - mantissa_bits;
  const std::uint32_t half = (std::uint32_t{1} << (cut - 1)) - 1;
  const std::uint32_t mask = ~((std::uint32_t{1} << cut) - 1);
  for (std::ptrdiff_t i = 0; i < count; i += Types<float>::kWidth) {
    const Vec<float> x = load_some(in + i, count - i);
    const Uns<float> bits = (Uns<float>)x;
    const Uns<float> q = (bits + half + ((bits >> cut) & 1)) & mask;
    store_some(out + i, x == x ? (Vec<float>)q : x, count - i);
  }
}

/// 2^exponent for exponents from -127 to 127.
inline float power(std::int32_t exponent) {
  const std::uint32_t bits = exponent == -127 ? 0x00400000U
                                              : static_cast<std::uint32_t>(exponent + 127) << 23;
  float value;
  __builtin_memcpy(&value, &bits, sizeof(value));
  return value;
}

void blocks_kernel(const BlockRun& run) {
  constexpr int kWidth = Types<float>::kWidth;
  constexpr int kVectors = 32 / kWidth;
  const LaneGrid<float> grid(run.grid);
  for (std::ptrdiff_t block = 0; block < run.blocks; ++block) {
    const float* in = run.in + block * 32;
    Vec<float> x[kVectors];
    Sig<float> most{};
    for (int v = 0; v < kVectors; ++v) {
      x[v] = load(in + v * kWidth);
      const Sig<float> bits = (Sig<float>)magnitude<float>(x[v]);
      most = bits > most ? bits : most;
    }
    const std::uint32_t amax = largest_of(most);
    const auto field = static_cast<std::int32_t>(amax >> 23);
    std::int32_t code = field - run.largest_exponent;
    code = code < 0 ? 0 : code;
    if (amax == 0)
      code = run.zero_code;
    const float scale = field == 255 ? __builtin_nanf("") : power(code - 127);
    if (run.scales != nullptr)
      run.scales[block] = scale;
    const Vec<float> down = all(run.elements && field != 255 ? 1.0F : scale);
    const Vec<float> up = all(power(127 - code));
    for (int v = 0; v < kVectors; ++v)
      store(run.out + block * 32 + v * kWidth, scaled_rounded(x[v], up, down, grid));
  }
}

constexpr Kernels kKernels{MONET_LANES_NAME,      &panel_kernel<float>,  &panel_kernel<double>,
                           &pairs_kernel<float>,  &pairs_kernel<double>, &blocks_kernel,
                           &largest_kernel,       &scaled_round_kernel, &round_kernel, &round_mantissa_kernel};

} // namespace

const Kernels& MONET_LANES_FUNCTION() {
  return kKernels;
}

} // namespace monet::lanes
