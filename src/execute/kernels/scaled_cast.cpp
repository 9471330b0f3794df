// Casts to fp8 with a scale, and where the scales come from: the formulas of NVIDIA's Transformer
// Engine (_default_sf_compute and _default_get_amax_and_update_history of its PyTorch part). A
// tensor in fp8 stands for its numbers over the scale: what is cast keeps its value, rounded only
// where types round.
#include "execute/kernels/walk.hpp"
#include "workload/shared/op_types.hpp"

#include <cmath>
#include <limits>

namespace monet {

namespace {

/// The larger magnitude; what is not a number stays none, as in PyTorch.
template <class Real>
Real larger(Real amax, Real x) {
  const Real magnitude = std::abs(x);
  return std::isnan(amax) || magnitude <= amax ? amax : magnitude;
}

template <class Real, class Row>
Real amax_of(const Row& row, Real amax = 0) {
  for (const Real x : row)
    amax = larger(amax, x);
  return amax;
}

/// Scale for a maximum; `before` if the maximum is not a positive finite number.
template <class Real>
Real scale_for(Real amax, Real before, const Attributes& attributes) {
  if (!(amax > 0) || !std::isfinite(amax))
    return before;
  const auto most = static_cast<Real>(attributes.number("largest", 448.0));
  const auto margin = static_cast<int>(attributes.integer("margin", 0));
  const Real scale = std::ldexp(most / amax, -margin);
  return std::isinf(scale) ? static_cast<Real>(std::numeric_limits<float>::max()) : scale;
}

/// x by way of the format of a result: saturating, as Transformer Engine casts.
template <class Real>
class ScaledRounder {
public:
  ScaledRounder(const KernelContext<Real>& context, std::size_t output) {
    if (context.formats() == nullptr)
      return;
    const TensorId id = *context.op().outputs[output];
    format_ = context.graph().tensor(id).type.format().element;
    rounding_ = context.formats()->results;
    rounding_.saturate = true;
    rounding_.seed = context.seed();
    stream_ = id.index();
  }

  Real operator()(Real x, Real scale, std::size_t place) const {
    if (!format_)
      return x * scale / scale;
    RoundingAid aid;
    if (rounding_.mode == RoundTo::stochastic)
      aid.random = rounding_bits(rounding_.seed, stream_, place);
    const double rounded = round_to(*format_, static_cast<double>(x * scale), rounding_, aid);
    return static_cast<Real>(rounded) / scale;
  }

private:
  std::optional<NumberFormat> format_;
  Rounding rounding_;
  std::uint64_t stream_ = 0;
};

constexpr auto kScaledCast = []<class Real>(KernelContext<Real>& context) {
  const Real scale = context.input(1)[0];
  std::vector<bool> inner(context.op().nest.dims.size(), true);
  if (context.has_output(1)) { // loops behind those of the maxima
    const std::size_t outer = context.output_shape(1).size();
    std::fill(inner.begin(), inner.begin() + static_cast<std::ptrdiff_t>(outer), false);
  }
  const ScaledRounder<Real> rounder(context, 0);
  std::size_t place = 0;
  context.for_each_group(inner, [&](auto& group) {
    const std::span<const Real> x = group.in(0);
    const std::span<Real> y = group.out(0);
    for (std::size_t i = 0; i < x.size(); ++i)
      y[i] = rounder(x[i], scale, place++);
    if (context.has_output(1))
      group.out(1)[0] = amax_of<Real>(x);
  });
};

/// A matrix by rows, as it is or transposed.
struct BlockMatrix {
  std::size_t rows = 1;
  std::size_t columns = 1;
  bool transposed = false;
  std::size_t at(std::size_t row, std::size_t column) const {
    return transposed ? column * rows + row : row * columns + column;
  }
};

/// Every block by its own maximum. x and y lie as the matrix does.
template <class Real>
void cast_blocks(const BlockMatrix& matrix, BlockFormat block, std::span<const Real> x,
                 std::span<Real> y, const Attributes& attributes,
                 const ScaledRounder<Real>& rounder) {
  const auto height = static_cast<std::size_t>(block.rows);
  const auto width = static_cast<std::size_t>(block.size);
  std::vector<std::size_t> members;
  for (std::size_t row = 0; row < matrix.rows; row += height) {
    for (std::size_t column = 0; column < matrix.columns; column += width) {
      members.clear();
      Real amax = 0;
      for (std::size_t r = row; r < std::min(row + height, matrix.rows); ++r) {
        for (std::size_t c = column; c < std::min(column + width, matrix.columns); ++c) {
          members.push_back(matrix.at(r, c));
          amax = larger(amax, x[members.back()]);
        }
      }
      const Real scale = scale_for(amax, Real{1}, attributes);
      for (const std::size_t i : members)
        y[i] = rounder(x[i], scale, i);
    }
  }
}

constexpr auto kBlockCast = []<class Real>(KernelContext<Real>& context) {
  const std::vector<bool> all(context.op().nest.dims.size(), true);
  const auto columns = static_cast<std::size_t>(context.op().nest.dims.back().size);
  context.for_each_group(all, [&](auto& group) {
    const std::span<const Real> x = group.in(0); // row-major by its shape
    if (x.empty())
      return;
    const std::size_t rows = x.size() / columns;
    for (std::size_t i = 0; i < 2; ++i) {
      if (!context.has_output(i))
        continue;
      const BlockFormat block = block_of(context.graph().tensor(*context.op().outputs[i]).type);
      const BlockMatrix matrix =
          i == 0 ? BlockMatrix{rows, columns} : BlockMatrix{columns, rows, true};
      cast_blocks<Real>(matrix, block, x, group.out(i), context.attributes(),
                        ScaledRounder<Real>(context, i));
    }
  });
};

/// The executor rounds what is written.
constexpr auto kQuantise = []<class Real>(KernelContext<Real>& context) {
  copy_through_nest(context);
};

constexpr auto kAmax = []<class Real>(KernelContext<Real>& context) {
  context.for_each_group([](auto& group) { group.out(0)[0] = amax_of<Real>(group.in(0)); });
};

constexpr auto kAmaxScale = []<class Real>(KernelContext<Real>& context) {
  context.for_each_group([&](auto& group) {
    group.out(0)[0] = scale_for(amax_of<Real>(group.in(0)), Real{1}, context.attributes());
  });
};

/// The first place of the history is for this step's maximum; then the places move on, so that the
/// last one holds it and the first is free again.
constexpr auto kAmaxUpdate = []<class Real>(KernelContext<Real>& context) {
  std::vector<Real> history = context.input(0);
  const Real before = context.input(1)[0];
  for (std::size_t i = 2; i < context.op().inputs.size(); ++i)
    history[0] = amax_of<Real>(context.input(i), history[0]);
  const bool recent = context.attributes().integer("most_recent", 0) != 0;
  const Real amax = recent ? history[0] : amax_of<Real>(history);
  std::rotate(history.begin(), history.begin() + 1, history.end());
  history[0] = 0;
  context.output(0) = std::move(history);
  context.output(1)[0] = scale_for(amax, before, context.attributes());
};

} // namespace

KernelTable scaled_cast_kernels() {
  static constexpr KernelEntry kEntries[]{kernel(kMonetDomain, ops::ScaledCast, kScaledCast),
                                          kernel(kMonetDomain, ops::Amax, kAmax),
                                          kernel(kMonetDomain, ops::BlockCast, kBlockCast),
                                          kernel(kMonetDomain, ops::Quantise, kQuantise),
                                          kernel(kMonetDomain, ops::Requantise, kQuantise),
                                          kernel(kMonetDomain, ops::AmaxScale, kAmaxScale),
                                          kernel(kMonetDomain, ops::AmaxUpdate, kAmaxUpdate)};
  return kEntries;
}

} // namespace monet
