// Attention and its gradient, a row of scores at a time.
#include "execute/kernels/walk.hpp"

#include <cmath>
#include <string_view>

namespace monet {

namespace {

/// Part of a loop in attention; loops that views have split keep their part.
enum class Part { batch, row, column, inner, product };

Part part_of(std::string_view name) {
  name = own_loop(name);
  if (name == "D")
    return Part::row;
  if (name == "C")
    return Part::column;
  if (name == "K")
    return Part::inner;
  return name == "P" ? Part::product : Part::batch;
}

std::int64_t extent(const LoopNest& nest, Part part) {
  std::int64_t product = 1;
  for (const LoopDim& dim : nest.dims)
    product *= part_of(dim.name) == part ? dim.size : 1;
  return product;
}

/// An input over the batch and two more parts, row-major; empty when it is left out.
template <class Real>
std::vector<Real> dense(const KernelContext<Real>& context, std::size_t input, Part outer,
                        Part inner) {
  if (!context.has_input(input))
    return {};
  const LoopNest& nest = context.op().nest;
  const OperandMap map = context.map_of(*context.operand_index().inputs[input]);
  std::vector<bool> taken;
  for (const LoopDim& dim : nest.dims) {
    const Part part = part_of(dim.name);
    taken.push_back(part == Part::batch || part == outer || part == inner);
  }
  std::vector<Real> values;
  for_each_point(
      context.op().nest,
      [&](const auto& point) {
        const auto at = static_cast<std::size_t>(map.at(point).value());
        values.push_back(context.is_real_input(input)
                             ? context.input(input)[at]
                             : static_cast<Real>(context.integers(input)[at]));
      },
      &taken);
  return values;
}

/// The operands in rows, and the scores they give.
template <class Real>
struct AttentionRows {
  std::size_t batches, rows, columns, width;
  std::vector<Real> q, k, v, mask, condition;
  Real scale, fill;
  Real fill_where;
  bool fill_last;

  AttentionRows(const KernelContext<Real>& context, std::size_t first, std::size_t first_mask)
      : q(dense(context, first, Part::row, Part::inner)),
        k(dense(context, first + 1, Part::column, Part::inner)),
        v(dense(context, first + 2, Part::column, Part::inner)),
        mask(dense(context, first_mask, Part::row, Part::column)),
        condition(dense(context, first_mask + 1, Part::row, Part::column)) {
    const LoopNest& nest = context.op().nest;
    const Attributes& attributes = context.attributes();
    batches = static_cast<std::size_t>(extent(nest, Part::batch));
    rows = static_cast<std::size_t>(extent(nest, Part::row));
    columns = static_cast<std::size_t>(extent(nest, Part::column));
    width = static_cast<std::size_t>(extent(nest, Part::inner));
    scale = static_cast<Real>(attributes.number("scale", 1.0));
    fill = static_cast<Real>(attributes.number("fill", 0.0));
    fill_where = static_cast<Real>(attributes.integer("fill_where", 0));
    fill_last = attributes.integer("fill_last", 0) != 0;
  }

  bool filled(std::size_t score) const {
    return !condition.empty() && (condition[score] != 0) == (fill_where != 0);
  }
  static Real dot(const Real* a, const Real* b, std::size_t size) {
    Real sum = 0;
    for (std::size_t i = 0; i < size; ++i)
      sum += a[i] * b[i];
    return sum;
  }
  const Real* key(std::size_t batch, std::size_t column) const {
    return &k[(batch * columns + column) * width];
  }
  const Real* value(std::size_t batch, std::size_t column) const {
    return &v[(batch * columns + column) * width];
  }
  /// Row `row` counts through the batches.
  void scores(std::size_t row, std::vector<Real>& result) const {
    result.resize(columns);
    for (std::size_t c = 0; c < columns; ++c) {
      const std::size_t at = row * columns + c;
      Real score = scale * dot(&q[row * width], key(row / rows, c), width);
      if (filled(at))
        score = fill;
      if (!mask.empty() && !(fill_last && filled(at)))
        score += mask[at];
      result[c] = score;
    }
  }
};

constexpr auto kAttention = []<class Real>(KernelContext<Real>& context) {
  const AttentionRows<Real> a(context, 0, 3);
  auto& out = context.output(0);
  std::vector<Real> score;
  for (std::size_t row = 0; row < a.batches * a.rows; ++row) {
    check_stop();
    a.scores(row, score);
    const Real shift = *std::max_element(score.begin(), score.end());
    Real sum = 0;
    for (Real& s : score) {
      s = std::exp(s - shift);
      sum += s;
    }
    for (std::size_t c = 0; c < a.columns; ++c) {
      const Real* value = a.value(row / a.rows, c);
      for (std::size_t i = 0; i < a.width; ++i)
        out[row * a.width + i] += score[c] / sum * value[i];
    }
    if (context.has_output(1))
      context.output(1)[row] = shift + std::log(sum);
  }
};

template <class Real>
void add_row(KernelContext<Real>& context, std::size_t output, std::size_t row, Real factor,
             const Real* values, std::size_t width) {
  if (!context.has_output(output))
    return;
  Real* target = &context.output(output)[row * width];
  for (std::size_t i = 0; i < width; ++i)
    target[i] += factor * values[i];
}

/// dS = P * (dO V^T - sum(dO * O)); dQ = scale dS K, dK = scale dS^T Q, dV = P^T dO.
constexpr auto kAttentionGrad = []<class Real>(KernelContext<Real>& context) {
  const AttentionRows<Real> a(context, 1, 6);
  const std::vector<Real> dy = dense(context, 0, Part::row, Part::inner);
  const std::vector<Real> y = dense(context, 4, Part::row, Part::inner);
  const std::vector<Real> logarithm = dense(context, 5, Part::row, Part::row);
  std::vector<Real> score;
  for (std::size_t row = 0; row < a.batches * a.rows; ++row) {
    check_stop();
    a.scores(row, score);
    const Real* dy_row = &dy[row * a.width];
    const Real mean = a.dot(dy_row, &y[row * a.width], a.width);
    for (std::size_t c = 0; c < a.columns; ++c) {
      const Real p = std::exp(score[c] - logarithm[row]);
      const std::size_t column = row / a.rows * a.columns + c;
      add_row(context, 2, column, p, dy_row, a.width);
      if (a.filled(row * a.columns + c))
        continue;
      const Real ds = a.scale * p * (a.dot(dy_row, a.value(row / a.rows, c), a.width) - mean);
      add_row(context, 0, row, ds, a.key(row / a.rows, c), a.width);
      add_row(context, 1, column, ds, &a.q[row * a.width], a.width);
    }
  }
};

} // namespace

std::vector<KernelEntry> attention_kernels() {
  return {
      kernel(kMonetDomain, "Attention", kAttention),
      kernel(kMonetDomain, "AttentionGrad", kAttentionGrad),
  };
}

} // namespace monet
