// Vectors, grids of numbers, and rounding to a grid. Part of lanes.inl; included only there.
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
  /// 32-bit integers, one per number of the vector.
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
/// Loads the first `count` numbers; the others are 0.
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

/// a * b + c, for numbers whose product and sum are both exact.
template <class Real>
inline Vec<Real> multiply_add(Vec<Real> a, Vec<Real> b, Vec<Real> c) {
#if MONET_LANE_BYTES == 64
  if constexpr (sizeof(Real) == sizeof(float))
    return (Vec<Real>)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
  else
    return (Vec<Real>)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#else
  return a * b + c;
#endif
}

/// A grid, with its constants as vectors.
template <class Real>
struct LaneGrid {
  Uns<Real> least{};                   ///< smallest exponent bits
  typename Lane<Real>::Bits shift = 0; ///< distance from a number's exponent to its rounder's
  typename Lane<Real>::Bits ulp_shift = 0;
  bool ulp_up = false;
  Vec<Real> largest{}, lowest{}, overflow{}, smallest_normal{};

  LaneGrid() = default;
  explicit LaneGrid(const Grid<Real>& grid) {
    using L = Lane<Real>;
    using Bits = typename L::Bits;
    least = static_cast<Bits>(grid.min_exponent + L::kBias) << L::kMantissa | Uns<Real>{};
    shift = (static_cast<Bits>(L::kMantissa - grid.mantissa_bits) << L::kMantissa) + L::kHalf;
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
/// m with the sign of x; m must have no sign.
template <class Real>
inline Vec<Real> with_sign(Vec<Real> m, Vec<Real> x) {
  return (Vec<Real>)((Uns<Real>)m | ((Uns<Real>)x & Lane<Real>::kSignMask));
}
template <class Real>
inline Uns<Real> exponents(Vec<Real> x, const LaneGrid<Real>& grid) {
  const Uns<Real> e = (Uns<Real>)x & Lane<Real>::kExponentMask;
  return e > grid.least ? e : grid.least;
}
/// 1.5 times the power of two whose neighbours have the distance of the grid's numbers at x. Adding
/// it rounds to even.
template <class Real>
inline Vec<Real> rounder(Uns<Real> exponent, const LaneGrid<Real>& grid) {
  return (Vec<Real>)(exponent + grid.shift);
}
/// Clamps to the grid's range; NaN stays NaN.
template <class Real>
inline Vec<Real> clamped(Vec<Real> x, const LaneGrid<Real>& grid) {
  x = x > grid.largest ? grid.largest : x;
  return x < grid.lowest ? grid.lowest : x;
}

/// Numbers beyond the largest: they do not occur, they overflow, or they are clamped.
enum class Beyond { nothing, overflows, clamps };
template <class Real, Beyond kBeyond>
inline Vec<Real> round_even(Vec<Real> x, const LaneGrid<Real>& grid) {
  if constexpr (kBeyond == Beyond::clamps)
    x = clamped<Real>(x, grid);
  const Vec<Real> k = rounder<Real>(exponents<Real>(x, grid), grid);
  const Vec<Real> q = (x + k) - k;
  if constexpr (kBeyond != Beyond::overflows)
    return q;
  return magnitude<Real>(q) > grid.largest ? with_sign<Real>(grid.overflow, x) : q;
}

/// The sum in Real, with its last bit odd if inexact. It stays between the same neighbours of any
/// grid with at least two bits less, and is halfway between them only if the exact sum is.
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
