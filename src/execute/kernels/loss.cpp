// Losses, their gradients, and dropout. Means are taken over the iterations of the nest, so that
// operands may be views.
#include "execute/kernels/pointwise.hpp"
#include "execute/kernels/walk.hpp"
#include "execute/shared/generator.hpp"
#include "workload/shared/operators.hpp"

#include <fmt/core.h>

#include <cmath>

namespace monet {

namespace {

/// Treatment of labels by cross-entropy.
struct LabelRule {
  const Operator* op;
  double smoothing;
  std::optional<std::int64_t> ignored;

  explicit LabelRule(const Operator& of)
      : op(&of), smoothing(of.attributes.number("label_smoothing", 0.0)) {
    if (of.attributes.has("ignore_index"))
      ignored = of.attributes.integer("ignore_index", 0);
  }

  bool counts(std::int64_t label) const { return label != ignored; }
  /// The label as an index; InputError when there is no such class.
  std::size_t index(const Graph& graph, std::int64_t label, std::size_t classes) const {
    if (label < 0 || label >= static_cast<std::int64_t>(classes)) {
      throw InputError(location_of(graph, *op),
                       fmt::format("label {} is not one of {} classes", label, classes));
    }
    return static_cast<std::size_t>(label);
  }
};

/// The loops that run over classes: those the labels do not depend on.
std::vector<bool> class_loops(const OperatorContext& context) {
  const OperandMap labels = context.map_of_input(1);
  std::vector<bool> inner;
  for (const std::int64_t stride : labels.strides)
    inner.push_back(stride == 0);
  return inner;
}

/// Labels that count among all that the nest visits.
double count_labels(const OperatorContext& context, const std::vector<bool>& inner,
                    const LabelRule& rule) {
  std::int64_t counted = 0;
  const OperandMap map = context.map_of_input(1);
  std::vector<bool> outer = inner;
  outer.flip();
  for_each_point(
      context.op().nest,
      [&](const auto& point) {
        const std::int64_t element = map.at(point).value();
        counted += rule.counts(context.integers(1)[static_cast<std::size_t>(element)]) ? 1 : 0;
      },
      &outer);
  return static_cast<double>(counted);
}

/// (log-probabilities, labels, class weights) -> (loss, labels that count). The nest visits labels;
/// the class axis of the probabilities is indexed by them.
constexpr auto kNegativeLogLikelihood = []<class Real>(KernelContext<Real>& context) {
  const Operator& op = context.op();
  const LabelRule rule(op);
  Access picked = op.nest.operands.at(context.operand_index().inputs.at(0).value());
  const auto& shape = context.graph().tensor(picked.tensor).shape;
  const auto axis = static_cast<std::size_t>(
      std::ranges::find_if(picked.axes,
                           [](const AxisExpr& expression) { return expression.data_dependent; }) -
      picked.axes.begin());
  picked.axes.at(axis).data_dependent = false;
  const auto strides = strides_of(shape);
  const OperandMap scores = map_operand(op.nest, picked, shape, strides);
  const OperandMap labels = context.map_of_input(1);
  const std::string reduction = context.attributes().text("reduction", "mean");
  const bool reduced = reduction != "none";
  const OperandMap result = context.map_of_output(0);
  Real loss = 0;
  Real weights = 0;
  for_each_point(context.op().nest, [&](const auto& point) {
    const auto at = labels.index(point);
    const std::int64_t label = context.integers(1)[at];
    Real& own = context.output(0)[result.index(point)];
    if (!reduced)
      own = 0;
    if (!rule.counts(label))
      return;
    const std::size_t index =
        rule.index(context.graph(), label, static_cast<std::size_t>(shape[axis]));
    const Real weight = context.has_input(2) ? context.input(2)[index] : Real{1};
    const std::int64_t element = scores.at(point).value() + label * strides[axis];
    const Real part = weight * context.input(0)[static_cast<std::size_t>(element)];
    if (!reduced)
      own = -part;
    loss -= part;
    weights += weight;
  });
  if (reduced)
    context.output(0)[0] = reduction == "sum" ? loss : loss / weights;
  if (context.has_output(1))
    context.output(1)[0] = weights;
};

/// Divisor of a mean over labels: input `kept` if present, else counted. 1 if the reduction is no
/// mean.
double divisor_of(const OperatorContext& context, const std::vector<bool>& inner,
                  const LabelRule& rule, std::size_t kept) {
  if (context.attributes().text("reduction", "mean") != "mean")
    return 1.0;
  return context.has_input(kept) ? context.input_number(kept, 0)
                                 : count_labels(context, inner, rule);
}

/// (dY, labels, class weights, divisor of the mean) -> d log-probabilities: minus the label's
/// weight at the label, zero elsewhere.
constexpr auto kNegativeLogLikelihoodGrad = []<class Real>(KernelContext<Real>& context) {
  const LabelRule rule(context.op());
  const std::vector<bool> inner = class_loops(context);
  const double counted = divisor_of(context, inner, rule, 3);
  context.for_each_group(inner, [&](auto& group) {
    const std::int64_t label = group.integers(1)[0];
    if (!rule.counts(label))
      return;
    const std::size_t index = rule.index(context.graph(), label, group.size());
    const Real weight = context.has_input(2) ? group.in(2)[index] : Real{1};
    group.out(0)[index] = -weight * group.in(0)[index] / static_cast<Real>(counted);
  });
};

/// (log-probabilities, labels, class weights w) -> (loss, weights of labels that count):
/// (1 - e) * w * nll of the label + e / C * the sum of all classes'.
constexpr auto kLabelSmoothing = []<class Real>(KernelContext<Real>& context) {
  const LabelRule rule(context.op());
  const std::vector<bool> inner = class_loops(context);
  const bool weighted = context.has_input(2);
  Real loss = 0;
  Real counted = 0;
  context.for_each_group(inner, [&](auto& group) {
    const std::int64_t label = group.integers(1)[0];
    if (!rule.counts(label))
      return;
    const std::span<const Real> scores = group.in(0);
    const auto weights = weighted ? group.in(2) : std::span<const Real>{};
    const auto weight = [&](std::size_t i) { return weighted ? weights[i] : Real{1}; };
    Real sum = 0;
    for (std::size_t i = 0; i < scores.size(); ++i)
      sum += weight(i) * scores[i];
    const std::size_t index = rule.index(context.graph(), label, scores.size());
    const auto e = static_cast<Real>(rule.smoothing);
    loss -= (1 - e) * weight(index) * scores[index] + e * sum / static_cast<Real>(scores.size());
    counted += weight(index);
  });
  const bool mean = context.attributes().text("reduction", "mean") == "mean";
  context.output(0)[0] = mean ? loss / counted : loss;
  if (context.has_output(1))
    context.output(1)[0] = counted;
};

/// (log-probabilities, labels, weights of labels that count, class weights w) -> d logits:
/// (p * sum of what is wanted - wanted) / n with wanted = e / C * w, and (1 - e) * w more at the
/// label; zero in rows that do not count.
constexpr auto kCrossEntropyGrad = []<class Real>(KernelContext<Real>& context) {
  const LabelRule rule(context.op());
  const std::vector<bool> inner = class_loops(context);
  const auto scale = static_cast<Real>(1 / divisor_of(context, inner, rule, 2));
  const bool weighted = context.has_input(3);
  context.for_each_group(inner, [&](auto& group) {
    const std::int64_t label = group.integers(1)[0];
    if (!rule.counts(label))
      return;
    const std::span<const Real> scores = group.in(0);
    const std::size_t index = rule.index(context.graph(), label, scores.size());
    const auto dx = group.out(0).first(scores.size());
    const auto e = static_cast<Real>(rule.smoothing);
    const Real spread = e / static_cast<Real>(scores.size());
    const auto weights = weighted ? group.in(3) : std::span<const Real>{};
    const auto wanted = [&](std::size_t i) {
      const Real share = spread + (i == index ? 1 - e : Real{0});
      return weighted ? share * weights[i] : share;
    };
    Real sum = weighted ? Real{0} : Real{1};
    for (std::size_t i = 0; i < scores.size() && weighted; ++i)
      sum += wanted(i);
    for (std::size_t i = 0; i < scores.size(); ++i)
      dx[i] = (std::exp(scores[i]) * sum - wanted(i)) * scale;
  });
};

/// The sum over all iterations of f(prediction, target, parameter), divided by attribute `divisor`,
/// or by their number. The parameter is input 2, or an attribute.
template <class F>
constexpr KernelEntry reduced(OpType op_type, F) {
  return kernel(kMonetDomain, op_type, []<class Real>(KernelContext<Real>& context) {
    const Attributes& attributes = context.attributes();
    const auto divisor = static_cast<Real>(
        attributes.integer("divisor", static_cast<std::int64_t>(iterations(context.op().nest))));
    const auto parameter = attributes.has("log_target")
                               ? static_cast<Real>(attributes.integer("log_target", 0))
                               : static_cast<Real>(attributes.number("threshold", 1.0));
    const bool weighted = context.has_input(2);
    const bool alone = context.op().inputs.size() < 2;
    context.map([=](Real x, Real target, Real weight) {
      const Real other = alone ? x : target;
      const auto loss = static_cast<Real>(F{}(x, other, weighted ? weight : parameter));
      return std::array{loss / divisor, sign(x - other)}; // and that of the absolute difference
    });
  });
}

template <class Real>
Real bounded_log(Real x) {
  return std::max(std::log(x), Real{-100});
}

/// t * (log t - x), or exp(t) * (t - x) where the target is a logarithm.
template <class Real>
Real divergence(Real x, Real t, Real log_target) {
  if (log_target != 0)
    return std::exp(t) * (t - x);
  return (t > 0 ? t * std::log(t) : Real{0}) - t * x;
}

/// (X, ratio, training_mode) -> (Y, mask). Element i of the result is kept when the i-th number of
/// its name and the step's seed, uniform in [0, 1), is at least the ratio.
constexpr auto kDropout = []<class Real>(KernelContext<Real>& context) {
  const bool training = context.scalar(2, 0.0) != 0;
  const double ratio =
      training ? context.scalar(1, context.attributes().number("ratio", 0.5)) : 0.0;
  const std::string& own = context.graph().tensor(*context.op().outputs[0]).name;
  const NumberGenerator generator(context.attributes().text("drawn_as", own), context.seed());
  const auto scale = static_cast<Real>(ratio < 1 ? 1 / (1 - ratio) : 0.0);
  const std::vector<bool> all(context.op().nest.dims.size(), true);
  context.for_each_group(all, [&](auto& group) {
    const std::span<const Real> x = group.in(0);
    const auto y = group.out(0).first(x.size());
    const auto mask = context.has_output(1) ? group.out_integers(1) : std::span<std::int64_t>{};
    for (std::size_t i = 0; i < x.size(); ++i) {
      const bool keep = ratio == 0.0 || generator.fraction(i) >= ratio;
      y[i] = keep ? x[i] * scale : Real{0};
      if (!mask.empty())
        mask[i] = keep ? 1 : 0;
    }
  });
};

constexpr auto kDropoutGrad = []<class Real>(KernelContext<Real>& context) {
  const double ratio = context.attributes().number("ratio", 0.5);
  const auto scale = static_cast<Real>(ratio < 1 ? 1 / (1 - ratio) : 0.0);
  context.map([=](Real dy, Real mask) { return mask != 0 ? dy * scale : Real{0}; });
};

} // namespace

KernelTable loss_kernels() {
  static constexpr KernelEntry kEntries[]{
      kernel("", ops::NegativeLogLikelihoodLoss, kNegativeLogLikelihood),
      kernel(kMonetDomain, ops::NegativeLogLikelihoodLossGrad, kNegativeLogLikelihoodGrad),
      kernel(kMonetDomain, ops::LabelSmoothingLoss, kLabelSmoothing),
      kernel(kMonetDomain, ops::SoftmaxCrossEntropyGrad, kCrossEntropyGrad),
      kernel("", ops::Dropout, kDropout),
      kernel(kMonetDomain, ops::DropoutGrad, kDropoutGrad),
      // --- element by element ---
      reduced(ops::MseLoss, [](auto x, auto t, auto) { return (x - t) * (x - t); }),
      reduced(ops::MseLossGrad, [](auto x, auto t, auto) { return 2 * (x - t); }),
      // (1 - t)*x + (1 + (w - 1)*t) * log(1 + exp(-x))
      reduced(
          ops::BceWithLogitsLoss,
          [](auto x, auto t, auto w) { return (1 - t) * x + (1 + (w - 1) * t) * softplus(-x); }),
      reduced(ops::BceWithLogitsLossGrad,
              [](auto x, auto t, auto w) { return (1 - t) - (1 + (w - 1) * t) * sigmoid(-x); }),
      reduced(ops::L1Loss, [](auto x, auto t, auto) { return std::abs(x - t); }),
      reduced(ops::L1LossGrad, [](auto kept, auto, auto) { return kept; }),
      reduced(ops::SmoothL1Loss,
              [](auto x, auto t, auto beta) {
                const auto d = std::abs(x - t);
                return d < beta ? d * d / 2 / beta : d - beta / 2;
              }),
      reduced(ops::SmoothL1LossGrad,
              [](auto x, auto t, auto beta) {
                const auto d = x - t;
                return std::abs(d) < beta ? d / beta : sign(d);
              }),
      reduced(ops::HuberLoss,
              [](auto x, auto t, auto delta) {
                const auto d = std::abs(x - t);
                return d <= delta ? d * d / 2 : delta * (d - delta / 2);
              }),
      reduced(ops::HuberLossGrad,
              [](auto x, auto t, auto delta) { return std::clamp(x - t, -delta, delta); }),
      reduced(ops::BceLoss,
              [](auto x, auto t, auto) {
                return -(t * bounded_log(x) + (1 - t) * bounded_log(1 - x));
              }),
      reduced(ops::BceLossGrad,
              [](auto x, auto t, auto) {
                const auto slope = (1 - x) * x;
                return (x - t) / std::max(slope, static_cast<decltype(slope)>(1e-12));
              }),
      reduced(ops::KlDivLoss, [](auto x, auto t, auto logs) { return divergence(x, t, logs); }),
      reduced(ops::KlDivLossGrad,
              [](auto t, auto, auto logs) { return logs != 0 ? -std::exp(t) : -t; }),
  };
  return kEntries;
}

} // namespace monet
