// Kernels that convert and analyse operands before multiplication. Part of lanes.inl; included only
// there.
bool narrow_kernel(const double* in, float* out, std::ptrdiff_t count) {
  std::int64_t others = 0;
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    const auto single = static_cast<float>(in[i]);
    out[i] = single;
    others |= static_cast<double>(single) == in[i] || in[i] != in[i] ? 0 : 1;
  }
  return others == 0;
}

inline std::uint32_t any_bits(Sig<float> bits) {
  std::uint32_t all = 0;
  for (int i = 0; i < Types<float>::kWidth; ++i)
    all |= static_cast<std::uint32_t>(bits[i]);
  return all;
}

/// Exponent of the lowest set bit of a magnitude above 0, relative to 2^-150.
inline Sig<float> lowest_bit(Sig<float> magnitude) {
  constexpr int kMantissa = Lane<float>::kMantissa;
  const Sig<float> field = magnitude >> kMantissa;
  const Sig<float> normal = field > 0;
  const Sig<float> hidden = normal & (1 << kMantissa);
  const Sig<float> bits = (magnitude & ((1 << kMantissa) - 1)) | hidden;
  const Sig<float> power = (Sig<float>)__builtin_convertvector(bits & -bits, Vec<float>);
  return (normal ? field : 1 + Sig<float>{}) + (power >> kMantissa) - Lane<float>::kBias;
}

void facts_kernel(const float* in, std::ptrdiff_t count, FactBits& facts) {
  constexpr std::int32_t kInfinity = Lane<float>::kExponentMask;
  const Sig<float> infinity = kInfinity + Sig<float>{};
  Sig<float> largest{}, mantissas{}, specials{};
  Sig<float> negated = -infinity; // negated bits of the smallest magnitude
  Sig<float> lowest = infinity;
  for (std::ptrdiff_t i = 0; i < count; i += Types<float>::kWidth) {
    const Sig<float> bits = (Sig<float>)magnitude<float>(load_some(in + i, count - i));
    const Sig<float> special = bits >= infinity;
    const Sig<float> finite = bits & ~special;
    specials |= special;
    mantissas |= finite;
    largest = finite > largest ? finite : largest;
    const Sig<float> other = bits == 0 ? -infinity : -bits;
    negated = other > negated ? other : negated;
    const Sig<float> last = lowest_bit(finite);
    lowest = ((finite > 0) & (last < lowest)) ? last : lowest;
  }
  // Infinity minus the smallest magnitude is the maximum of the differences, since magnitudes have
  // no sign.
  facts.largest = largest_of(largest);
  facts.smallest = Lane<float>::kExponentMask - largest_of(infinity + negated);
  facts.mantissas = any_bits(mantissas);
  facts.specials = any_bits(specials);
  facts.lowest = -static_cast<std::int32_t>(largest_of(-lowest));
}

void read_kernel(float* numbers, std::ptrdiff_t count, const SubnormalRule& reading) {
  const Vec<float> infinity = (Vec<float>)(Uns<float>{} + Lane<float>::kExponentMask);
  const Vec<float> least = all(reading.least);
  const Vec<float> base = all(reading.as_normal ? reading.base : 0);
  const Vec<float> part = all(reading.as_normal ? 0.5F : reading.as_zero ? 0.0F : 1.0F);
  for (std::ptrdiff_t i = 0; i < count; i += Types<float>::kWidth) {
    const Vec<float> x = load_some(numbers + i, count - i);
    Vec<float> m = magnitude<float>(x);
    m = m == m ? m : infinity;
    const Sig<float> subnormal = (m < least) & (m > Vec<float>{});
    m = subnormal ? base + m * part : m;
    store_some(numbers + i, with_sign<float>(m, x), count - i);
  }
}
