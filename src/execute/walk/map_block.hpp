// Functions of numbers over a block of iterations.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

namespace monet {

/// A walk passes at most this many iterations at a time: their values stay in the nearest cache.
inline constexpr std::size_t kIterationBlock = 256;

/// Values of `count` iterations: a pointer for each input and output.
template <class Real>
struct IterationBlock {
  std::span<const Real* const> in;
  std::span<Real* const> out;
  std::size_t count = 0;
};

/// Number of arguments that F takes, at least the number of In.
template <class Real, class F, class... In>
consteval std::size_t arity_of() {
  if constexpr (std::is_invocable_v<const F&, In...>)
    return sizeof...(In);
  else
    return arity_of<Real, F, In..., Real>();
}

template <class Real, std::size_t>
using RealAt = Real;

/// Number of results of F: one, or the size of the array that it returns.
template <class Real, class F, std::size_t... kIn>
consteval std::size_t results_of(std::index_sequence<kIn...>) {
  using Result = std::invoke_result_t<const F&, RealAt<Real, kIn>...>;
  if constexpr (std::is_arithmetic_v<Result>)
    return 1;
  else
    return std::tuple_size_v<Result>;
}

/// The loop is vectorised where F is. The output overlaps no input.
template <class Real, class F, class... In>
void map_each(const F f, std::size_t count, Real* __restrict out, const In*... in) {
  for (std::size_t i = 0; i < count; ++i)
    out[i] = static_cast<Real>(f(in[i]...));
}

template <class Real, class F, std::size_t kOut, class... In>
void map_each(const F f, std::size_t count, const std::array<Real*, kOut> out, const In*... in) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::array<Real, kOut> made = f(in[i]...);
    for (std::size_t k = 0; k < kOut; ++k)
      out[k][i] = made[k];
  }
}

/// Writes f(a, b, ...) of the first inputs to the first output, or an array of results to the first
/// outputs.
template <class Real, class F>
void map_block(const F& f, const IterationBlock<Real>& block) {
  [&]<std::size_t... kIn>(std::index_sequence<kIn...> inputs) {
    constexpr std::size_t kOut = results_of<Real, F>(decltype(inputs)());
    if constexpr (kOut == 1) {
      map_each(f, block.count, block.out[0], block.in[kIn]...);
    } else {
      std::array<Real*, kOut> out;
      std::copy_n(block.out.begin(), kOut, out.begin());
      map_each(f, block.count, out, block.in[kIn]...);
    }
  }
  (std::make_index_sequence<arity_of<Real, F, Real>()>());
}

} // namespace monet
