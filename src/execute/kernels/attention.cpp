// Attention and its gradient, a row of scores at a time.
#include "execute/kernels/walk.hpp"
#include "workload/shared/operators.hpp"

#include <cmath>
#include <string_view>

namespace monet {

namespace {

/// Part of a loop in attention; loops that views have split keep their part.
enum class Part { batch, row, column, inner };

Part part_of(std::string_view name) {
  name = own_loop(name);
  if (name == "D")
    return Part::row;
  if (name == "C")
    return Part::column;
  return name == "K" ? Part::inner : Part::batch;
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
  const OperandMap map = context.map_of_input(input);
  std::vector<bool> taken;
  for (const LoopDim& dim : nest.dims) {
    const Part part = part_of(dim.name);
    taken.push_back(part == Part::batch || part == outer || part == inner);
  }
  const bool real = context.is_real_input(input);
  const auto& reals = context.input(input);
  const auto& integers = context.integers(input);
  std::vector<Real> values;
  for_each_point(
      context.op().nest,
      [&](const auto& point) {
        const auto at = map.index(point);
        values.push_back(real ? reals[at] : static_cast<Real>(integers[at]));
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
  using Row = std::span<const Real>;

  static Real dot(Row a, Row b) {
    b = b.first(a.size());
    Real sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
      sum += a[i] * b[i];
    return sum;
  }
  /// Row `row` of all that are as wide.
  Row row_of(Row all, std::size_t row) const { return all.subspan(row * width, width); }
  Row key(std::size_t batch, std::size_t column) const {
    return row_of(k, batch * columns + column);
  }
  Row value(std::size_t batch, std::size_t column) const {
    return row_of(v, batch * columns + column);
  }
  /// Row `row` counts through the batches.
  void scores(std::size_t row, std::vector<Real>& result) const {
    result.resize(columns);
    for (std::size_t c = 0; c < columns; ++c) {
      const std::size_t at = row * columns + c;
      Real score = scale * dot(row_of(q, row), key(row / rows, c));
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
  const std::span<Real> out = context.output(0);
  std::vector<Real> score;
  for (std::size_t row = 0; row < a.batches * a.rows; ++row) {
    check_stop();
    a.scores(row, score);
    const Real shift = *std::ranges::max_element(score);
    Real sum = 0;
    for (Real& s : score) {
      s = std::exp(s - shift);
      sum += s;
    }
    for (std::size_t c = 0; c < a.columns; ++c) {
      const std::span<const Real> value = a.value(row / a.rows, c);
      const auto target = out.subspan(row * a.width, value.size());
      const Real share = score[c] / sum;
      for (std::size_t i = 0; i < value.size(); ++i)
        target[i] += share * value[i];
    }
    if (context.has_output(1))
      context.output(1)[row] = shift + std::log(sum);
  }
};

/// The batch of a gradient of keys or values of each batch of queries: heads of a group share them.
/// Views of the operands may repeat what is read, but not what is written.
std::vector<std::size_t> batches_of(const LoopNest& nest, std::string_view role) {
  const auto written = std::ranges::find(nest.operands, role, &Access::role);
  if (written == nest.operands.end())
    return {};
  const Access& keys = *written;
  std::vector<std::size_t> found{0};
  std::size_t count = 1;
  for (std::size_t loop = nest.dims.size(); loop-- > 0;) {
    if (part_of(nest.dims[loop].name) != Part::batch)
      continue;
    const bool own =
        std::ranges::any_of(keys.axes, [&](const AxisExpr& axis) { return has_loop(axis, loop); });
    const auto size = static_cast<std::size_t>(nest.dims[loop].size);
    const std::size_t inner = found.size();
    for (std::size_t i = 1; i < size; ++i) {
      for (std::size_t k = 0; k < inner; ++k)
        found.push_back(found[k] + (own ? i * count : 0));
    }
    count *= own ? size : 1;
  }
  return found;
}

template <class Real>
void add_row(KernelContext<Real>& context, std::size_t output, std::size_t row, Real factor,
             std::span<const Real> values) {
  if (!context.has_output(output))
    return;
  const auto target =
      std::span<Real>(context.output(output)).subspan(row * values.size(), values.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    target[i] += factor * values[i];
}

/// dS = P * (dO V^T - sum(dO * O)); dQ = scale dS K, dK = scale dS^T Q, dV = P^T dO.
constexpr auto kAttentionGrad = []<class Real>(KernelContext<Real>& context) {
  const AttentionRows<Real> a(context, 1, 6);
  const std::vector<Real> dy = dense(context, 0, Part::row, Part::inner);
  const std::vector<Real> y = dense(context, 4, Part::row, Part::inner);
  const std::vector<Real> logarithm = dense(context, 5, Part::row, Part::row);
  const std::vector<std::size_t> of_keys = batches_of(context.op().nest, "dK");
  const std::vector<std::size_t> of_values = batches_of(context.op().nest, "dV");
  std::vector<Real> score;
  for (std::size_t row = 0; row < a.batches * a.rows; ++row) {
    check_stop();
    a.scores(row, score);
    const std::span<const Real> dy_row = a.row_of(dy, row);
    const Real mean = a.dot(dy_row, a.row_of(y, row));
    for (std::size_t c = 0; c < a.columns; ++c) {
      const Real p = std::exp(score[c] - logarithm[row]);
      if (!of_values.empty())
        add_row(context, 2, of_values[row / a.rows] * a.columns + c, p, dy_row);
      if (a.filled(row * a.columns + c))
        continue;
      const Real ds = a.scale * p * (a.dot(dy_row, a.value(row / a.rows, c)) - mean);
      add_row(context, 0, row, ds, a.key(row / a.rows, c));
      if (!of_keys.empty())
        add_row(context, 1, of_keys[row / a.rows] * a.columns + c, ds, a.row_of(a.q, row));
    }
  }
};

} // namespace

KernelTable attention_kernels() {
  static constexpr KernelEntry kEntries[]{
      kernel(kMonetDomain, ops::Attention, kAttention),
      kernel(kMonetDomain, ops::AttentionGrad, kAttentionGrad),
  };
  return kEntries;
}

} // namespace monet
