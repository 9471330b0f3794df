// Operations on products and sums. Part of lanes.inl; included only there.
/// Two rounds of a 32-bit mixer; see rounding_bits().
template <class Real>
inline Half<Real> mixed(Half<Real> x) {
  x = (x ^ (x >> 16)) * 0x7FEB352DU;
  x = (x ^ (x >> 15)) * 0x846CA68BU;
  return x ^ (x >> 16);
}

template <class Real>
struct Keys {
  Half<Real> low{}, high{};
  Half<Real> at(std::uint32_t place) const { return mixed<Real>(mixed<Real>(low ^ place) + high); }
};

template <class Real>
inline Vec<Real> zero_for_nan(Vec<Real> p) {
  return p == p ? p : Vec<Real>{};
}

/// Rounding is to even. Products are exact, rounded without overflow (bounded), or rounded. Sums
/// are native, only clamped, rounded, or rounded from sums kept odd.
enum class Product { exact, bounded, round };
enum class Sum { native, clamp, round, round_odd };
template <class Real, Product kProduct, Sum kSum, Beyond kBeyond, bool kZeroWins>
struct FastOps {
  static constexpr bool kRandom = false;
  LaneGrid<Real> product, sum;

  explicit FastOps(const Arithmetic<Real>& arithmetic)
      : product(arithmetic.product), sum(arithmetic.sum) {}
  Vec<Real> multiply(Vec<Real> a, Vec<Real> b) const {
    return kZeroWins ? zero_for_nan<Real>(a * b) : a * b;
  }
  Vec<Real> multiply_exactly(Vec<Real> a, Vec<Real> b, Vec<Real> c) const {
    return kZeroWins ? c + multiply(a, b) : multiply_add<Real>(a, b, c);
  }
  Vec<Real> finish(Vec<Real> p, const Keys<Real>&, std::uint32_t) const {
    if constexpr (kProduct == Product::bounded)
      return round_even<Real, Beyond::nothing>(p, product);
    else if constexpr (kProduct == Product::round)
      return round_even<Real, kBeyond>(p, product);
    else
      return p;
  }
  Vec<Real> add(Vec<Real> c, Vec<Real> p, const Keys<Real>&, std::uint32_t) const {
    if constexpr (kSum == Sum::native)
      return c + p;
    else if constexpr (kSum == Sum::clamp)
      return clamped<Real>(c + p, sum);
    else if constexpr (kSum == Sum::round)
      return round_even<Real, kBeyond>(c + p, sum);
    else
      return round_even<Real, kBeyond>(odd_sum<Real>(c, p), sum);
  }
};

/// General operations: every choice is made at run time.
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

  static std::uint32_t place(std::uint32_t step, Draw draw) {
    return kDraws * step + static_cast<std::uint32_t>(draw);
  }

  bool is_random() const { return arithmetic.mode == Mode::stochastic; }

  Vec<Real> up(Mode mode, Vec<Real> rest, Vec<Real> ulp, const Keys<Real>& keys,
               std::uint32_t place) const {
    const Vec<Real> zero{};
    if (mode == Mode::zero)
      return zero;
    if (mode == Mode::away)
      return rest >= ulp * all<Real>(Real(0.5)) ? ulp : zero;
    const Half<Real> random = keys.at(place) & ((std::uint32_t{1} << arithmetic.random_bits) - 1);
    const Vec<Real> drawn = __builtin_convertvector((typename Types<Real>::HI)random, Vec<Real>);
    return rest >= (random_limit - drawn) * (ulp * random_step) ? ulp : zero;
  }

  Vec<Real> round(Mode mode, Vec<Real> x, const LaneGrid<Real>& grid, const Grid<Real>& plain,
                  const Keys<Real>& keys, std::uint32_t place) const {
    const Vec<Real> m = magnitude<Real>(x);
    // Magnitudes beyond twice the largest number round alike, except infinity.
    const Vec<Real> most = grid.largest * all<Real>(Real(2));
    const Vec<Real> cut = m > most ? most : m;
    const Uns<Real> e = exponents<Real>(cut, grid);
    const Vec<Real> k = rounder<Real>(e, grid);
    Vec<Real> q = (cut + k) - k;
    if (mode != Mode::even) {
      const Vec<Real> ulp = (Vec<Real>)(grid.ulp_up ? e + grid.ulp_shift : e - grid.ulp_shift);
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

  Vec<Real> multiply(Vec<Real> a, Vec<Real> b) const {
    return arithmetic.zero_wins ? zero_for_nan<Real>(a * b) : a * b;
  }
  Vec<Real> multiply_exactly(Vec<Real> a, Vec<Real> b, Vec<Real> c) const {
    return c + multiply(a, b);
  }
  Vec<Real> finish(Vec<Real> p, const Keys<Real>& keys, std::uint32_t step) const {
    if (arithmetic.rounds_product)
      p = round(arithmetic.product_mode, p, product, arithmetic.product, keys,
                place(step, Draw::product));
    if (arithmetic.converts)
      p = round(arithmetic.mode, p, convert, arithmetic.convert, keys, place(step, Draw::convert));
    return p;
  }
  Vec<Real> add(Vec<Real> c, Vec<Real> p, const Keys<Real>& keys, std::uint32_t step) const {
    const Vec<Real> s = arithmetic.exact_sum ? odd_sum<Real>(c, p) : c + p;
    return arithmetic.rounds_sum
               ? round(arithmetic.mode, s, sum, arithmetic.sum, keys, place(step, Draw::sum))
               : s;
  }
};
