// Operators of com.microsoft that published training graphs hold.
#include "execute/kernels/kernel.hpp"
#include "workload/shared/op_types.hpp"

#include <algorithm>
#include <cmath>

namespace monet {

namespace {

/// (dloss, log-probabilities, labels) -> dscores = dloss * (exp(log-probability) - onehot), over
/// the number of labels where the loss is a mean. Classes are the axis that the labels lack.
constexpr auto kCrossEntropyLossGrad = []<class Real>(KernelContext<Real>& context) {
  const auto& shape = context.input_shape(1);
  const auto& label_shape = context.input_shape(2);
  const bool last = std::equal(label_shape.begin(), label_shape.end(), shape.begin());
  const std::size_t axis = last ? shape.size() - 1 : 1;
  std::size_t inner = 1;
  for (std::size_t i = axis + 1; i < shape.size(); ++i)
    inner *= static_cast<std::size_t>(shape[i]);
  const auto classes = static_cast<std::size_t>(shape[axis]);
  const std::vector<Real>& log_probability = context.input(1);
  const Integers& labels = context.integers(2);
  std::vector<Real>& result = context.output(0);
  const bool mean = context.attributes().text("reduction", "mean") == "mean";
  const Real scale = context.input(0)[0] / static_cast<Real>(mean ? labels.size() : 1);
  for (std::size_t i = 0; i < result.size(); ++i) {
    const std::size_t label = i / (classes * inner) * inner + i % inner;
    const bool hit = static_cast<std::int64_t>(i / inner % classes) == labels[label];
    result[i] = scale * (std::exp(log_probability[i]) - (hit ? 1 : 0));
  }
};

constexpr auto kReluGrad = []<class Real>(KernelContext<Real>& context) {
  std::ranges::transform(context.input(0), context.input(1), context.output(0).begin(),
                         [](Real dy, Real y) { return y > 0 ? dy : Real{0}; });
};

} // namespace

KernelTable microsoft_kernels() {
  static constexpr KernelEntry kEntries[]{
      kernel("com.microsoft", ops::SoftmaxCrossEntropyLossGrad, kCrossEntropyLossGrad),
      kernel("com.microsoft", ops::ReluGrad, kReluGrad),
  };
  return kEntries;
}

} // namespace monet
