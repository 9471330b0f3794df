// Random numbers: those of the result's name and the step's seed.
#include "execute/kernels/kernel.hpp"
#include "execute/shared/generator.hpp"
#include "workload/shared/op_types.hpp"

#include <cmath>
#include <numbers>

namespace monet {

namespace {

template <class Real, class F>
void generate_result(KernelContext<Real>& context, F f) {
  const NumberGenerator generator(context.graph().tensor(*context.op().outputs[0]).name,
                                  context.seed());
  std::vector<Real>& result = context.output(0);
  for (std::size_t i = 0; i < result.size(); ++i)
    result[i] = static_cast<Real>(f(generator, i));
}

/// By the method of Box and Muller, of two numbers each.
constexpr auto kRandomNormal = []<class Real>(KernelContext<Real>& context) {
  const double mean = context.attributes().number("mean", 0.0);
  const double scale = context.attributes().number("scale", 1.0);
  generate_result(context, [=](const NumberGenerator& generator, std::size_t i) {
    const double radius = std::sqrt(-2 * std::log(1 - generator.fraction(2 * i)));
    return mean + scale * radius * std::cos(2 * std::numbers::pi * generator.fraction(2 * i + 1));
  });
};

constexpr auto kRandomUniform = []<class Real>(KernelContext<Real>& context) {
  const double low = context.attributes().number("low", 0.0);
  const double high = context.attributes().number("high", 1.0);
  generate_result(context, [=](const NumberGenerator& generator, std::size_t i) {
    return low + (high - low) * generator.fraction(i);
  });
};

/// 1 with the probability that the input holds. Frameworks draw floating ones, ONNX may ask for
/// truth values.
constexpr auto kBernoulli = []<class Real>(KernelContext<Real>& context) {
  const NumberGenerator generator(context.graph().tensor(*context.op().outputs[0]).name,
                                  context.seed());
  const bool real = is_floating(context.graph().tensor(*context.op().outputs[0]).type);
  const std::vector<Real>& probability = context.input(0);
  std::vector<Real>& reals = context.output(0);
  Integers& integers = context.output_integers(0);
  for (std::size_t i = 0; i < probability.size(); ++i) {
    const bool drawn = generator.fraction(i) < static_cast<double>(probability[i]);
    if (real)
      reals[i] = drawn ? Real{1} : Real{0};
    else
      integers[i] = drawn ? 1 : 0;
  }
};

} // namespace

KernelTable random_kernels() {
  static constexpr KernelEntry kEntries[]{
      kernel("", ops::RandomNormal, kRandomNormal),
      kernel("", ops::RandomNormalLike, kRandomNormal),
      kernel("", ops::RandomUniform, kRandomUniform),
      kernel("", ops::RandomUniformLike, kRandomUniform),
      kernel("", ops::Bernoulli, kBernoulli),
  };
  return kEntries;
}

} // namespace monet
