// Kernels that round arrays. Part of lanes.inl; included only there.
/// Largest number of a vector of kBytes bytes.
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
      const Sig<float> bits =
          (Sig<float>)magnitude<float>(load_some(in + r * row + i, columns - i));
      most = bits > most ? bits : most;
    }
    for (std::ptrdiff_t k = 0; k < Types<float>::kWidth && i + k < columns; ++k)
      out[i + k] = static_cast<std::uint32_t>(most[k]);
  }
}

inline Vec<float> scaled_rounded(Vec<float> x, Vec<float> inverse, Vec<float> scale,
                                 const LaneGrid<float>& grid) {
  const Vec<float> q = round_even<float, Beyond::clamps>(x * inverse, grid);
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

template <Beyond kBeyond>
void round_all(const float* in, float* out, std::ptrdiff_t count, const LaneGrid<float>& grid) {
  LaneGrid<float> wide = grid; // clamping to a doubled range is safe and changes no result
  wide.largest = grid.largest * 2;
  wide.lowest = -wide.largest;
  for (std::ptrdiff_t i = 0; i < count; i += Types<float>::kWidth) {
    const Vec<float> x = load_some(in + i, count - i);
    const Vec<float> near = kBeyond == Beyond::clamps ? x : clamped<float>(x, wide);
    const Vec<float> q = magnitude<float>(round_even<float, kBeyond>(near, grid));
    store_some(out + i, with_sign<float>(q, x), count - i);
  }
}
void round_kernel(const float* in, float* out, std::ptrdiff_t count, const Grid<float>& grid) {
  if (grid.clamps)
    round_all<Beyond::clamps>(in, out, count, LaneGrid<float>(grid));
  else
    round_all<Beyond::overflows>(in, out, count, LaneGrid<float>(grid));
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
  const std::uint32_t bits =
      exponent == -127 ? 0x00400000U : static_cast<std::uint32_t>(exponent + 127) << 23;
  float value;
  __builtin_memcpy(&value, &bits, sizeof(value));
  return value;
}

void long_blocks(const BlockRun& run, const LaneGrid<float>& grid) {
  constexpr int kWidth = Types<float>::kWidth;
  constexpr int kMaxVectors = 32 / kWidth;
  const int vectors = static_cast<int>(run.length) / kWidth;
  for (std::ptrdiff_t block = 0; block < run.blocks; ++block) {
    const float* in = run.in + block * run.length;
    Vec<float> x[kMaxVectors];
    Sig<float> most{};
    for (int v = 0; v < vectors; ++v) {
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
    for (int v = 0; v < vectors; ++v)
      store(run.out + block * run.length + v * kWidth, scaled_rounded(x[v], up, down, grid));
  }
}

/// 2^exponent for exponents from -127 to 127.
inline Vec<float> powers(Sig<float> exponent) {
  const Sig<float> bits = (exponent + 127) << 23;
  return (Vec<float>)(exponent == -127 ? 0x00400000 + Sig<float>{} : bits);
}

/// Elements of x at the given positions, x[place].
inline Sig<float> taken(Sig<float> x, Sig<float> place) {
#if defined(__clang__)
  Sig<float> result;
  for (int i = 0; i < Types<float>::kWidth; ++i)
    result[i] = x[place[i]];
  return result;
#else
  return __builtin_shuffle(x, place);
#endif
}

/// Rounds several blocks per vector.
void short_blocks(const BlockRun& run, const LaneGrid<float>& grid) {
  constexpr int kWidth = Types<float>::kWidth;
  const std::ptrdiff_t count = run.blocks * run.length;
  const auto length = static_cast<std::int32_t>(run.length);
  Sig<float> place;
  for (int i = 0; i < kWidth; ++i)
    place[i] = i;
  const Vec<float> nan = all(__builtin_nanf(""));
  for (std::ptrdiff_t i = 0; i < count; i += kWidth) {
    const Vec<float> x = load_some(run.in + i, count - i);
    Sig<float> most = (Sig<float>)magnitude<float>(x);
    for (std::int32_t distance = 1; distance < length; distance *= 2) {
      const Sig<float> other = taken(most, place ^ distance);
      most = other > most ? other : most;
    }
    const Sig<float> field = most >> 23;
    Sig<float> code = field - run.largest_exponent;
    code = code < 0 ? Sig<float>{} : code;
    code = most == 0 ? static_cast<std::int32_t>(run.zero_code) + Sig<float>{} : code;
    const Vec<float> scale = field == 255 ? nan : powers(code - 127);
    store_some(run.out + i, scaled_rounded(x, powers(127 - code), scale, grid), count - i);
  }
}

void blocks_kernel(const BlockRun& run) {
  const LaneGrid<float> grid(run.grid);
  if (run.length >= Types<float>::kWidth)
    long_blocks(run, grid);
  else
    short_blocks(run, grid);
}
