// Selection by size, reversed sequences, and random numbers. Random results are those of the
// result's name and the step's seed.
#include "execute/walk.hpp"

#include "monet/execute/generator.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <numeric>

namespace monet {

namespace {

/// A tensor as [outer, axis, inner].
struct Lines {
  std::size_t outer = 1;
  std::size_t length = 1;
  std::size_t inner = 1;

  Lines(const std::vector<std::int64_t>& shape, std::size_t axis) {
    for (std::size_t i = 0; i < shape.size(); ++i) {
      std::size_t& part = i < axis ? outer : i == axis ? length : inner;
      part *= static_cast<std::size_t>(shape[i]);
    }
  }
  std::size_t at(std::size_t o, std::size_t i, std::size_t p) const {
    return (o * length + i) * inner + p;
  }
};

/// (X, k) -> values and indices of the k largest (or smallest) along an axis. Equal values come in
/// the order of their indices.
struct TopK {
  template <class Real>
  static void run(KernelContext<Real>& context) {
    const auto& shape = context.input_shape(0);
    const std::size_t axis = front_axis(context.attributes().integer("axis", -1), shape.size());
    const Lines from(shape, axis);
    const Lines to(context.output_shape(0), axis);
    const bool largest = context.attributes().integer("largest", 1) != 0;
    const bool real = context.is_real_input(0);
    const auto before = [&](std::size_t a, std::size_t b) {
      if (real)
        return largest ? context.input(0)[a] > context.input(0)[b]
                       : context.input(0)[a] < context.input(0)[b];
      return largest ? context.integers(0)[a] > context.integers(0)[b]
                     : context.integers(0)[a] < context.integers(0)[b];
    };
    std::vector<std::size_t> order(from.length);
    for (std::size_t o = 0; o < from.outer; ++o) {
      for (std::size_t p = 0; p < from.inner; ++p) {
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
          return before(from.at(o, a, p), from.at(o, b, p));
        });
        for (std::size_t i = 0; i < to.length; ++i) {
          move_element(context, 0, from.at(o, order[i], p), 0, to.at(o, i, p));
          if (context.has_output(1))
            context.output_integers(1)[to.at(o, i, p)] = static_cast<std::int64_t>(order[i]);
        }
      }
    }
  }
};

/// (X, lengths) -> X with the first lengths[b] entries along the time axis in reverse.
struct ReverseSequence {
  template <class Real>
  static void run(KernelContext<Real>& context) {
    const auto& shape = context.input_shape(0);
    const std::size_t batch =
        front_axis(context.attributes().integer("batch_axis", 1), shape.size());
    const std::size_t time = front_axis(context.attributes().integer("time_axis", 0), shape.size());
    const Lines by_time(shape, time);
    const Lines by_batch(shape, batch);
    for (std::size_t o = 0; o < by_time.outer; ++o) {
      for (std::size_t t = 0; t < by_time.length; ++t) {
        for (std::size_t p = 0; p < by_time.inner; ++p) {
          const std::size_t to = by_time.at(o, t, p);
          const auto length =
              static_cast<std::size_t>(context.integers(1)[to / by_batch.inner % by_batch.length]);
          const std::size_t source = t < length && length <= by_time.length ? length - 1 - t : t;
          move_element(context, 0, by_time.at(o, source, p), 0, to);
        }
      }
    }
  }
};

template <class Real, class F>
void generate_result(KernelContext<Real>& context, F f) {
  const NumberGenerator generator(context.graph().tensor(*context.op().outputs[0]).name,
                                  context.seed());
  std::vector<Real>& result = context.output(0);
  for (std::size_t i = 0; i < result.size(); ++i)
    result[i] = static_cast<Real>(f(generator, i));
}

/// By the method of Box and Muller, of two numbers each.
struct RandomNormal {
  template <class Real>
  static void run(KernelContext<Real>& context) {
    const double mean = context.attributes().number("mean", 0.0);
    const double scale = context.attributes().number("scale", 1.0);
    generate_result(context, [=](const NumberGenerator& generator, std::size_t i) {
      const double radius = std::sqrt(-2 * std::log(1 - generator.fraction(2 * i)));
      return mean + scale * radius * std::cos(2 * std::numbers::pi * generator.fraction(2 * i + 1));
    });
  }
};

struct RandomUniform {
  template <class Real>
  static void run(KernelContext<Real>& context) {
    const double low = context.attributes().number("low", 0.0);
    const double high = context.attributes().number("high", 1.0);
    generate_result(context, [=](const NumberGenerator& generator, std::size_t i) {
      return low + (high - low) * generator.fraction(i);
    });
  }
};

/// 1 with the probability that the input holds. Frameworks draw floating ones, ONNX may ask for
/// truth values.
struct Bernoulli {
  template <class Real>
  static void run(KernelContext<Real>& context) {
    const NumberGenerator generator(context.graph().tensor(*context.op().outputs[0]).name,
                                    context.seed());
    const bool real = is_floating(context.graph().tensor(*context.op().outputs[0]).type);
    for (std::size_t i = 0; i < context.input(0).size(); ++i) {
      const bool drawn = generator.fraction(i) < static_cast<double>(context.input(0)[i]);
      if (real) {
        context.output(0)[i] = drawn ? Real(1) : Real(0);
      } else {
        context.output_integers(0)[i] = drawn ? 1 : 0;
      }
    }
  }
};

constexpr std::array kKernels{
    kernel<TopK>("", "TopK"),
    kernel<ReverseSequence>("", "ReverseSequence"),
    kernel<RandomNormal>("", "RandomNormal"),
    kernel<RandomNormal>("", "RandomNormalLike"),
    kernel<RandomUniform>("", "RandomUniform"),
    kernel<RandomUniform>("", "RandomUniformLike"),
    kernel<Bernoulli>("", "Bernoulli"),
};

} // namespace

std::span<const KernelEntry> selection_kernels() {
  return kKernels;
}

} // namespace monet
