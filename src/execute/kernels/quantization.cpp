// Rounding to a grid as PyTorch 1.13 does it: x times the inverse of the scale in single precision,
// to the nearest whole number, halves to even. A zero point that is left out is 0.
#include "execute/kernels/pointwise.hpp"
#include "workload/shared/op_types.hpp"

namespace monet {

namespace {

template <class Real>
struct Grid {
  Real least;
  Real most;

  explicit Grid(const Attributes& attributes)
      : least(static_cast<Real>(attributes.integer("quant_min", -128))),
        most(static_cast<Real>(attributes.integer("quant_max", 127))) {}

  /// The place of x on the grid, without its ends.
  static Real place(Real x, Real scale, Real zero) {
    const auto inverse = static_cast<Real>(1.0F / static_cast<float>(scale));
    return std::nearbyint(x * inverse) + zero;
  }
  bool holds(Real place) const { return place >= least && place <= most; }
};

constexpr auto kFakeQuantize = []<class Real>(KernelContext<Real>& context) {
  const Grid<Real> grid(context.attributes());
  context.map([=](Real x, Real scale, Real zero) {
    const Real place = Grid<Real>::place(x, scale, zero);
    return std::array{(std::clamp(place, grid.least, grid.most) - zero) * scale,
                      static_cast<Real>(grid.holds(place))};
  });
};

/// dY times round(x/s) - x/s inside the grid, times the end's distance from the zero point outside.
constexpr auto kGradScale = []<class Real>(KernelContext<Real>& context) {
  const Grid<Real> grid(context.attributes());
  context.map([=](Real dy, Real x, Real scale, Real zero) {
    const Real place = Grid<Real>::place(x, scale, zero);
    const Real end = std::clamp(place, grid.least, grid.most) - zero;
    return dy * (grid.holds(place) ? end - x / scale : end);
  });
};

/// Which integers a tensor of that type holds.
template <class Real>
std::pair<Real, Real> range_of(ElementType type) {
  const std::int64_t bits = bits_of(type);
  const bool is_unsigned = type == ElementType::uint8 || type == ElementType::uint16;
  const Real half = std::ldexp(Real{1}, static_cast<int>(bits - 1));
  return is_unsigned ? std::pair(Real{0}, 2 * half - 1) : std::pair(-half, half - 1);
}

constexpr auto kQuantize = []<class Real>(KernelContext<Real>& context) {
  const auto [least, most] =
      range_of<Real>(context.graph().tensor(*context.op().outputs.at(0)).type);
  context.map([least = least, most = most](Real x, Real scale, Real zero) {
    return std::clamp(Grid<Real>::place(x, scale, zero), least, most);
  });
};

} // namespace

KernelTable quantization_kernels() {
  static constexpr KernelEntry kEntries[]{
      kernel(kMonetDomain, ops::FakeQuantize, kFakeQuantize),
      kernel(kMonetDomain, ops::FakeQuantizeGradScale, kGradScale),
      kernel("", ops::QuantizeLinear, kQuantize),
      onnx(ops::DequantizeLinear,
           [](auto x, auto scale, auto zero) { return (x - zero) * scale; })};
  return kEntries;
}

} // namespace monet
