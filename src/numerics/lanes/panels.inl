// Loops over products. Part of lanes.inl; included only there.
constexpr int kPanelRows = 4;
constexpr int kGeneralRows = 2; ///< for operations that choose at run time
constexpr int kPanelVectors = MONET_LANE_BYTES == 64 ? 2 : 1;

/// Block of some rows and one strip of columns, with its sums in registers. `count`: columns of the
/// strip, at most those of all its vectors.
template <class Real, class Ops, int kRows, int kVectors>
class PanelBlock {
public:
  PanelBlock(const Panel<Real>& panel, const Ops& ops, std::ptrdiff_t row, std::ptrdiff_t column,
             std::ptrdiff_t count)
      : panel_(panel), ops_(ops), row_(row), column_(column), count_(count),
        scalars_(panel.scalars + row * panel.scalar_row) {
    for (int r = 0; r < kRows; ++r) {
      for (int v = 0; v < kVectors; ++v) {
        c_[r][v] = load_some(out(r, v), left(v));
        if constexpr (Ops::kRandom) {
          if (ops.is_random()) {
            const std::ptrdiff_t at = (row + r) * panel.key_row + column + v * kWidth;
            keys_[r][v] = {load_keys<Real>(panel.low_keys + at, left(v)),
                           load_keys<Real>(panel.high_keys + at, left(v))};
          }
        }
      }
    }
  }

  void run(const Real* vectors, std::ptrdiff_t step) {
    if (panel_.chunk == 1 && panel_.scalar_scales == nullptr)
      add_products(vectors, step);
    else
      add_chunks(vectors, step);
    for (int r = 0; r < kRows; ++r) {
      for (int v = 0; v < kVectors; ++v)
        store_some(out(r, v), c_[r][v], left(v));
    }
  }

private:
  static constexpr int kWidth = Types<Real>::kWidth;

  Real* out(int r, int v) const {
    return panel_.out + (row_ + r) * panel_.out_row + column_ + v * kWidth;
  }
  std::ptrdiff_t left(int v) const { return count_ - v * kWidth; }
  Real scalar(int r, std::ptrdiff_t k) const {
    return scalars_[r * panel_.scalar_row + k * panel_.scalar_step];
  }

  void add_products(const Real* vectors, std::ptrdiff_t vector_step) {
    for (std::ptrdiff_t k = 0; k < panel_.steps; ++k) {
      const auto step = static_cast<std::uint32_t>(k) + panel_.first_step;
      Vec<Real> b[kVectors];
      for (int v = 0; v < kVectors; ++v)
        b[v] = load(vectors + k * vector_step + v * kWidth);
      for (int r = 0; r < kRows; ++r) {
        const Vec<Real> a = all<Real>(scalar(r, k));
        for (int v = 0; v < kVectors; ++v)
          add(r, v, ops_.multiply(a, b[v]), step);
      }
    }
  }

  void add_chunks(const Real* vectors, std::ptrdiff_t vector_step) {
    std::ptrdiff_t number = 0;
    for (std::ptrdiff_t k0 = 0; k0 < panel_.steps; k0 += panel_.chunk, ++number) {
      const std::ptrdiff_t end =
          k0 + panel_.chunk < panel_.steps ? k0 + panel_.chunk : panel_.steps;
      Vec<Real> s[kRows][kVectors] = {};
      for (std::ptrdiff_t k = k0; k < end; ++k) {
        Vec<Real> b[kVectors];
        for (int v = 0; v < kVectors; ++v)
          b[v] = load(vectors + k * vector_step + v * kWidth);
        for (int r = 0; r < kRows; ++r) {
          const Vec<Real> a = all<Real>(scalar(r, k));
          for (int v = 0; v < kVectors; ++v)
            s[r][v] = ops_.multiply_exactly(a, b[v], s[r][v]);
        }
      }
      const auto step = static_cast<std::uint32_t>(k0) + panel_.first_step;
      for (int r = 0; r < kRows; ++r) {
        for (int v = 0; v < kVectors; ++v)
          add(r, v, scaled(s[r][v], r, v, number), step);
      }
    }
  }

  Vec<Real> scaled(Vec<Real> sum, int r, int v, std::ptrdiff_t number) const {
    if (panel_.scalar_scales == nullptr)
      return sum;
    const Real* scales =
        panel_.vector_scales + number * panel_.vector_scale_step + column_ + v * kWidth;
    return sum * (load_some(scales, left(v)) *
                  panel_.scalar_scales[(row_ + r) * panel_.scale_row + number]);
  }

  void add(int r, int v, Vec<Real> p, std::uint32_t step) {
    c_[r][v] = ops_.add(c_[r][v], ops_.finish(p, keys_[r][v], step), keys_[r][v], step);
  }

  const Panel<Real>& panel_;
  const Ops& ops_;
  std::ptrdiff_t row_;
  std::ptrdiff_t column_;
  std::ptrdiff_t count_;
  const Real* scalars_;
  Vec<Real> c_[kRows][kVectors];
  Keys<Real> keys_[kRows][kVectors];
};

#if defined(__clang__)
#define MONET_COMPILED_ONCE [[gnu::noinline]]
#else
#define MONET_COMPILED_ONCE [[gnu::noinline, gnu::noclone]]
#endif
/// Computes all rows of a strip. Compiled once per number of vectors, not per caller; the copy of
/// `ops` stays in registers.
template <class Real, class Ops, int kVectors>
MONET_COMPILED_ONCE void panel_strip(const Panel<Real>& panel, const Ops& shared,
                                     std::ptrdiff_t column, std::ptrdiff_t count,
                                     const Real* vectors, std::ptrdiff_t vector_step) {
  constexpr int kRows = Ops::kRandom ? kGeneralRows : kPanelRows;
  const Ops ops = shared;
  std::ptrdiff_t row = 0;
  for (; row + kRows <= panel.rows; row += kRows)
    PanelBlock<Real, Ops, kRows, kVectors>(panel, ops, row, column, count)
        .run(vectors, vector_step);
  for (; row < panel.rows; ++row)
    PanelBlock<Real, Ops, 1, kVectors>(panel, ops, row, column, count).run(vectors, vector_step);
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
  for (; kVectors > 1 && column + kWidth <= panel.columns; column += kWidth)
    panel_strip<Real, Ops, 1>(panel, ops, column, kWidth, panel.vectors + column,
                              panel.vector_step);
  const std::ptrdiff_t left = panel.columns - column;
  if (left == 0)
    return;
  // Pads the last columns, a few chunks at a time.
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
    const auto product = [&](std::ptrdiff_t k) {
      const Real* a = pairs.left + k * pairs.left_step;
      const Real* b = pairs.right + k * pairs.right_step;
      const Vec<Real> x = pairs.left_varies ? load_some(a + column, left) : all<Real>(*a);
      const Vec<Real> y = pairs.right_varies ? load_some(b + column, left) : all<Real>(*b);
      return ops.multiply(x, y);
    };
    for (std::ptrdiff_t k0 = 0; k0 < pairs.steps; k0 += pairs.chunk) {
      const std::ptrdiff_t end = k0 + pairs.chunk < pairs.steps ? k0 + pairs.chunk : pairs.steps;
      Vec<Real> p = product(k0);
      for (std::ptrdiff_t k = k0 + 1; k < end; ++k)
        p += product(k);
      const auto step = static_cast<std::uint32_t>(k0) + pairs.first_step;
      c = ops.add(c, ops.finish(p, keys, step), keys, step);
    }
    store_some(pairs.out + column, c, left);
  }
}

/// Calls f(ops) with the fastest operations that implement `arithmetic`.
template <class Real, Product kProduct, Beyond kBeyond, bool kZeroWins, class F>
void with_sum(const Arithmetic<Real>& arithmetic, F f) {
  constexpr Beyond kOfProduct = kProduct == Product::round ? kBeyond : Beyond::nothing;
  if (!arithmetic.rounds_sum || (kBeyond == Beyond::nothing && arithmetic.on_grid))
    f(FastOps<Real, kProduct, Sum::native, kOfProduct, kZeroWins>(arithmetic));
  else if (arithmetic.exact_sum)
    f(FastOps<Real, kProduct, Sum::round_odd, kBeyond, kZeroWins>(arithmetic));
  else if (kBeyond == Beyond::clamps && arithmetic.on_grid)
    f(FastOps<Real, kProduct, Sum::clamp, Beyond::clamps, kZeroWins>(arithmetic));
  else
    f(FastOps<Real, kProduct, Sum::round, kBeyond, kZeroWins>(arithmetic));
}
template <class Real, Product kProduct, bool kZeroWins, class F>
void with_bounds(const Arithmetic<Real>& arithmetic, F f) {
  if constexpr (kProduct != Product::round && !kZeroWins) {
    if (arithmetic.sum_fits || !arithmetic.rounds_sum) {
      with_sum<Real, kProduct, Beyond::nothing, false>(arithmetic, f);
      return;
    }
  }
  const bool clamps = arithmetic.rounds_sum ? arithmetic.sum.clamps : arithmetic.product.clamps;
  if (clamps)
    with_sum<Real, kProduct, Beyond::clamps, kZeroWins>(arithmetic, f);
  else
    with_sum<Real, kProduct, Beyond::overflows, kZeroWins>(arithmetic, f);
}
template <class Real, class F>
void with_ops(const Arithmetic<Real>& arithmetic, F f) {
  constexpr bool kSingle = sizeof(Real) == sizeof(float);
  const bool rounds = arithmetic.rounds_product;
  const bool bounded = rounds && arithmetic.product_fits;
  const bool alike = !rounds || bounded || !arithmetic.rounds_sum ||
                     arithmetic.product.clamps == arithmetic.sum.clamps;
  const bool general = arithmetic.mode != Mode::even || arithmetic.flushes || arithmetic.converts ||
                       !alike || (arithmetic.zero_wins && !kSingle);
  if (general)
    f(GeneralOps<Real>(arithmetic));
  else if (kSingle && arithmetic.zero_wins && rounds)
    with_bounds<Real, Product::round, kSingle>(arithmetic, f);
  else if (kSingle && arithmetic.zero_wins)
    with_bounds<Real, Product::exact, kSingle>(arithmetic, f);
  else if (bounded)
    with_bounds<Real, Product::bounded, false>(arithmetic, f);
  else if (rounds)
    with_bounds<Real, Product::round, false>(arithmetic, f);
  else
    with_bounds<Real, Product::exact, false>(arithmetic, f);
}

template <class Real>
void panel_kernel(const Panel<Real>& panel, const Arithmetic<Real>& arithmetic) {
  with_ops(arithmetic, [&](const auto& ops) { run_panel(panel, ops); });
}
template <class Real>
void pairs_kernel(const Pairs<Real>& pairs, const Arithmetic<Real>& arithmetic) {
  with_ops(arithmetic, [&](const auto& ops) { run_pairs(pairs, ops); });
}
