// Connectionist temporal classification, as PyTorch 1.13 computes it: in logarithms, all sequences
// of full length.
#include "execute/kernels/kernel.hpp"
#include "execute/kernels/walk.hpp"
#include "workload/shared/operators.hpp"

#include <fmt/core.h>

#include <array>
#include <cmath>
#include <limits>

namespace monet {

namespace {

/// Operand with one axis that is no loop: its first element at a point of the loops, and the stride
/// of that axis.
struct Lines {
  OperandMap map;
  std::int64_t step = 0;

  Lines(const OperatorContext& context, std::size_t input) {
    const LoopNest& nest = context.op().nest;
    Access access = nest.operands.at(context.operand_index().inputs.at(input).value());
    const auto& shape = context.graph().tensor(access.tensor).shape;
    const auto strides = strides_of(shape);
    for (std::size_t a = 0; a < access.axes.size(); ++a) {
      if (access.axes[a].data_dependent)
        step = strides[a];
      access.axes[a].data_dependent = false;
    }
    map = map_operand(nest, access, shape, strides);
  }

  std::size_t at(const std::array<std::int64_t, 3>& point, std::int64_t i) const {
    return static_cast<std::size_t>(map.at(point).value() + i * step);
  }
};

template <class Real>
constexpr Real kNever = -std::numeric_limits<Real>::infinity();

template <class Real>
Real log_sum(std::initializer_list<Real> values) {
  const Real most = std::max(values);
  if (most == kNever<Real>)
    return most;
  Real sum = 0;
  for (const Real value : values)
    sum += std::exp(value - most);
  return most + std::log(sum);
}

/// One sample: its states' classes, and what follows from them.
template <class Real>
class LabelStates {
public:
  LabelStates(const OperatorContext& context, std::int64_t batch)
      : blank_(context.attributes().integer("blank", 0)) {
    const auto& scores = context.graph().tensor(*context.op().inputs.at(1)).shape;
    const Lines labels(context, 1);
    for (std::int64_t s = 0; s < scores.at(1); ++s) {
      classes_.push_back(blank_);
      classes_.push_back(context.integers(1)[labels.at({batch, 0, 0}, s)]);
    }
    classes_.push_back(blank_);
  }

  std::size_t states() const { return classes_.size(); }
  std::int64_t state_class(std::size_t l) const { return classes_[l]; }
  /// InputError for a label that is no class.
  void check(const Graph& graph, const Operator& op, std::int64_t count) const {
    for (const std::int64_t label : classes_) {
      if (label < 0 || label >= count)
        throw InputError(location_of(graph, op),
                         fmt::format("label {} is not one of {} classes", label, count));
    }
  }

  /// Sum over the states that reach a state, from before it (direction -1) or after it (+1):
  /// itself, its neighbour, and the next but one if its label differs (as in PyTorch, even for
  /// blank labels).
  Real reached(const std::vector<Real>& from, std::size_t l, int direction) const {
    const auto value = [&](std::ptrdiff_t at) {
      const bool inside = at >= 0 && at < static_cast<std::ptrdiff_t>(states());
      return inside ? from[static_cast<std::size_t>(at)] : kNever<Real>;
    };
    const auto own = static_cast<std::ptrdiff_t>(l);
    const std::ptrdiff_t beyond = own + 2 * direction;
    const bool skips = beyond >= 0 && beyond < static_cast<std::ptrdiff_t>(states()) &&
                       classes_[static_cast<std::size_t>(beyond)] != classes_[l];
    return log_sum<Real>(
        {value(own), value(own + direction), skips ? value(beyond) : kNever<Real>});
  }

private:
  std::int64_t blank_;
  Integers classes_;
};

/// Divisor of a sample's likelihood in the loss.
std::int64_t share_of(const OperatorContext& context, std::int64_t batch, std::int64_t labels) {
  if (context.attributes().text("reduction", "mean") != "mean")
    return 1;
  return batch * std::max<std::int64_t>(labels, 1);
}

constexpr auto kCtc = []<class Real>(KernelContext<Real>& context) {
  const Operator& op = context.op();
  const std::int64_t batch = op.nest.dims[0].size;
  const std::int64_t times = op.nest.dims[1].size;
  const auto labels = (op.nest.dims[2].size - 1) / 2;
  const Lines scores(context, 0);
  const bool drops = context.attributes().integer("zero_infinity", 0) != 0;
  Real loss = 0;
  for (std::int64_t b = 0; b < batch; ++b) {
    const LabelStates<Real> sample(context, b);
    sample.check(context.graph(), op, context.graph().tensor(*op.inputs[0]).shape.back());
    std::vector<Real> before(sample.states(), kNever<Real>);
    for (std::int64_t t = 0; t < times; ++t) {
      check_stop();
      std::vector<Real> now(sample.states());
      for (std::size_t l = 0; l < now.size(); ++l) {
        const Real score = context.input(0)[scores.at({b, t, 0}, sample.state_class(l))];
        now[l] = (t > 0 ? sample.reached(before, l, -1) : l < 2 ? Real{0} : kNever<Real>)+score;
        if (context.has_output(2)) {
          const std::array<std::int64_t, 3> point{b, t, static_cast<std::int64_t>(l)};
          context.output(2)[context.map_of_output(2).index(point)] = now[l];
        }
      }
      before = std::move(now);
    }
    const std::size_t last = before.size() - 1;
    const Real nll = -log_sum<Real>({before[last], last > 0 ? before[last - 1] : kNever<Real>});
    const std::array<std::int64_t, 3> point{b, 0, 0};
    if (context.has_output(1))
      context.output(1)[context.map_of_output(1).index(point)] = nll;
    if (!drops || std::isfinite(nll))
      loss += nll / static_cast<Real>(share_of(context, batch, labels));
  }
  context.output(0)[0] = loss;
};

/// d log-probability = exp(x) - exp(log(sum over the class's states of alpha * beta) + nll - x) as
/// PyTorch writes it: that of the logits, which a log-softmax before it leaves as it is.
constexpr auto kCtcGrad = []<class Real>(KernelContext<Real>& context) {
  const Operator& op = context.op();
  const std::int64_t batch = op.nest.dims[0].size;
  const std::int64_t times = op.nest.dims[1].size;
  const std::int64_t classes = op.nest.dims[2].size;
  const OperandMap scores = context.map_of_input(0);
  const OperandMap result = context.map_of_output(0);
  const OperandMap likelihood = context.map_of_input(2);
  const Lines alphas(context, 3);
  const bool drops = context.attributes().integer("zero_infinity", 0) != 0;
  for (std::int64_t b = 0; b < batch; ++b) {
    const LabelStates<Real> sample(context, b);
    const auto score = [&](std::int64_t t, std::int64_t c) {
      const std::array<std::int64_t, 3> point{b, t, c};
      return context.input(0)[scores.index(point)];
    };
    const std::array<std::int64_t, 3> first{b, 0, 0};
    const Real nll = context.input(2)[likelihood.index(first)];
    const auto labels = static_cast<std::int64_t>(sample.states() / 2);
    const Real scale = drops && !std::isfinite(nll)
                           ? Real{0}
                           : 1 / static_cast<Real>(share_of(context, batch, labels));
    std::vector<Real> behind(sample.states(), kNever<Real>);
    for (std::int64_t t = times; t-- > 0;) {
      check_stop();
      std::vector<Real> now(sample.states());
      std::vector<Real> of_class(static_cast<std::size_t>(classes), kNever<Real>);
      for (std::size_t l = 0; l < now.size(); ++l) {
        const bool ends = l + 2 >= now.size();
        const Real beta = t + 1 < times ? sample.reached(behind, l, 1)
                          : ends        ? Real{0}
                                        : kNever<Real>;
        now[l] = beta + score(t, sample.state_class(l));
        Real& sum = of_class[static_cast<std::size_t>(sample.state_class(l))];
        const Real alpha = context.input(3)[alphas.at({b, t, 0}, static_cast<std::int64_t>(l))];
        sum = log_sum<Real>({sum, alpha + now[l]});
      }
      for (std::int64_t c = 0; c < classes; ++c) {
        const Real x = score(t, c);
        const Real wanted = std::exp(of_class[static_cast<std::size_t>(c)] + nll - x);
        const std::array<std::int64_t, 3> point{b, t, c};
        context.output(0)[result.index(point)] =
            scale == 0 ? Real{0} : (std::exp(x) - wanted) * scale;
      }
      behind = std::move(now);
    }
  }
};

} // namespace

KernelTable ctc_kernels() {
  static constexpr KernelEntry kEntries[]{kernel(kMonetDomain, ops::CtcLoss, kCtc),
                                          kernel(kMonetDomain, ops::CtcLossGrad, kCtcGrad)};
  return kEntries;
}

} // namespace monet
