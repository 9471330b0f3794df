// Emulated multiply-accumulates and roundings per second. Each answer is compared with the same
// computed number by number before anything is timed.
#include "base/shared/rng.hpp"

#include "monet/numerics/mac.hpp"

#include <benchmark/benchmark.h>

#include <cmath>
#include <functional>
#include <string>

namespace monet {
namespace {

constexpr std::int64_t kSide = 512;
constexpr std::uint64_t kChecked = 24; ///< outputs that are compared

std::vector<double> numbers(const NumberFormat& format, std::uint64_t seed, std::int64_t count) {
  std::vector<double> result;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::uint64_t>(i);
    const double x = (random_unit(seed, at) - 0.5) * std::exp2(random_unit(seed + 100, at) * 6 - 3);
    result.push_back(round_to(format, x));
  }
  return result;
}

struct Unit {
  std::string name;
  Mac mac;
  NumberFormat operands;
};

Unit unit(std::string name, const char* operands, const char* product, const char* sum) {
  Unit result;
  result.name = std::move(name);
  result.operands = *parse_number_format(operands);
  result.mac.sum = parse_number_format(sum);
  if (product == nullptr)
    result.mac.multiplier = Multiplier::exact;
  else
    result.mac.product = *parse_number_format(product);
  return result;
}

std::vector<Unit> units() {
  std::vector<Unit> all{unit("e5m2 rounded, e5m10", "e5m2", "e5m2", "e5m10"),
                        unit("exact, e6m5", "e5m2", nullptr, "e6m5"),
                        unit("fma e5m10", "e5m2", nullptr, "e5m10"),
                        unit("q8.13", "e5m2", "q8.13", "q8.13"),
                        unit("cfg5, e6m5", "e5m2", "e5m2", "e6m5"),
                        unit("stochastic, e6m5", "e5m2", nullptr, "e6m5"),
                        unit("bf16, fp32", "bf16", nullptr, "fp32"),
                        unit("bf16, bf16", "bf16", "bf16", "bf16")};
  all[4].mac.multiplier = Multiplier::cfg5;
  all[5].mac.rounding.mode = RoundTo::stochastic;
  return all;
}

double by_hand(const Unit& made, const std::vector<double>& a, const std::vector<double>& b,
               std::int64_t i, std::int64_t j) {
  double c = 0;
  for (std::int64_t k = 0; k < kSide; ++k) {
    const auto output = static_cast<std::uint64_t>(i * kSide + j);
    const auto step = static_cast<std::uint64_t>(k);
    c = mac_sum(made.mac, c,
                mac_product(made.mac, a[static_cast<std::size_t>(i * kSide + k)],
                            b[static_cast<std::size_t>(k * kSide + j)], output, step),
                output, step);
  }
  return c;
}

void time_gemm(benchmark::State& state, const std::function<std::vector<double>()>& run,
               const std::function<double(std::int64_t, std::int64_t)>& expected) {
  const std::vector<double> c = run();
  for (std::uint64_t q = 0; q < kChecked; ++q) {
    const auto at = static_cast<std::int64_t>(random_bits(5, q) % (kSide * kSide));
    if (c[static_cast<std::size_t>(at)] != expected(at / kSide, at % kSide)) {
      state.SkipWithError("the product is wrong");
      return;
    }
  }
  for (auto _ : state)
    benchmark::DoNotOptimize(run());
  state.counters["MAC/s"] = benchmark::Counter(static_cast<double>(kSide * kSide * kSide),
                                               benchmark::Counter::kIsIterationInvariantRate);
}

void bench_unit(benchmark::State& state, const Unit& made, const GemmOptions& options) {
  const auto a = numbers(made.operands, 1, kSide * kSide);
  const auto b = numbers(made.operands, 2, kSide * kSide);
  time_gemm(
      state,
      [&] {
        return emulate_gemm({kSide, kSide, kSide}, a, b, made.mac, options);
      },
      [&](std::int64_t i, std::int64_t j) { return by_hand(made, a, b, i, j); });
}

/// Operands that are blocks already, so that rounding them again changes nothing.
void bench_blocks(benchmark::State& state, const char* name, const GemmOptions& options) {
  const TensorFormat format = *parse_tensor_format(name);
  TensorFormat down = format;
  std::swap(down.blocks->row_axis, down.blocks->column_axis);
  const std::vector<std::int64_t> shape{kSide, kSide};
  const auto a = quantise(shape, numbers(kSinglePrecision, 1, kSide * kSide), format).values;
  const auto b = quantise(shape, numbers(kSinglePrecision, 2, kSide * kSide), down).values;
  Mac mac;
  mac.sum = kSinglePrecision;
  time_gemm(
      state,
      [&] {
        return emulate_block_gemm({kSide, kSide, kSide}, a, b, format, mac, options);
      },
      [&](std::int64_t i, std::int64_t j) {
        float c = 0;
        for (std::int64_t k0 = 0; k0 < kSide; k0 += 32) {
          double sum = 0; // exact: far fewer than 53 bits
          for (std::int64_t k = k0; k < k0 + 32; ++k)
            sum += a[static_cast<std::size_t>(i * kSide + k)] *
                   b[static_cast<std::size_t>(k * kSide + j)];
          c = static_cast<float>(static_cast<double>(c) + sum);
        }
        return static_cast<double>(c);
      });
}

void bench_rounding(benchmark::State& state, const char* name, std::int64_t rows,
                    std::int64_t columns) {
  TensorFormat format = *parse_tensor_format(name);
  if (format.blocks) {
    format.blocks->rows = rows;
    format.blocks->columns = columns;
  }
  constexpr std::int64_t kElements = 1 << 16; // in the cache of a core
  const std::vector<std::int64_t> shape{256, kElements / 256};
  const std::vector<double> plain = numbers(kSinglePrecision, 3, kElements);
  const std::vector<float> singles(plain.begin(), plain.end());
  std::vector<float> rounded = singles;
  round_tensor(shape, rounded, format);
  const QuantisedTensor expected =
      quantise(shape, std::vector<double>(singles.begin(), singles.end()), format);
  for (std::size_t i = 0; i < rounded.size(); ++i) {
    if (rounded[i] != static_cast<float>(expected.values[i])) {
      state.SkipWithError("a number is wrong");
      return;
    }
  }
  for (auto _ : state) { // again and again: it changes nothing any more, and takes as long
    round_tensor(shape, rounded, format);
    benchmark::DoNotOptimize(rounded.data());
    benchmark::ClobberMemory();
  }
  state.counters["elements/s"] = benchmark::Counter(static_cast<double>(kElements),
                                                    benchmark::Counter::kIsIterationInvariantRate);
}

void add_gemms(Instructions instructions, const std::string& suffix, int jobs) {
  const GemmOptions options{jobs, instructions};
  const auto add = [&](const std::string& name, auto function, auto what) {
    auto* bench = benchmark::RegisterBenchmark(
        (name + suffix).c_str(), [=](benchmark::State& state) { function(state, what, options); });
    bench->Unit(benchmark::kMillisecond);
    if (jobs > 1)
      bench->UseRealTime();
  };
  for (const Unit& made : units())
    add("gemm " + made.name, &bench_unit, made);
  for (const char* name : {"mxint8", "mxfp6_e2m3", "mxfp4_e2m1", "mxfp6_e3m2", "mxfp8_e4m3"})
    add(std::string("gemm ") + name + ", fp32", &bench_blocks, name);
}

} // namespace
} // namespace monet

int main(int argc, char** argv) {
  using monet::Instructions;
  monet::add_gemms(Instructions::best, "", 1);
  monet::add_gemms(Instructions::best, ", two threads", 2);
  for (const auto instructions : {Instructions::avx2, Instructions::portable}) {
    if (monet::is_available(instructions))
      monet::add_gemms(instructions, instructions == Instructions::avx2 ? ", avx2" : ", portable",
                       1);
  }
  for (const char* name : {"mxfp8_e4m3", "mxfp8_e5m2", "mxint8", "mxfp4_e2m1"}) {
    for (const auto& [rows, columns] : {std::pair{1, 32}, {8, 8}, {1, 16}}) {
      benchmark::RegisterBenchmark(
          ("round " + std::string(name) + " " + std::to_string(rows) + "x" +
           std::to_string(columns))
              .c_str(),
          [=](benchmark::State& state) { monet::bench_rounding(state, name, rows, columns); });
    }
  }
  for (const char* name : {"bf16", "fp16", "e5m2", "q8.13"})
    benchmark::RegisterBenchmark(
        ("round " + std::string(name)).c_str(),
        [=](benchmark::State& state) { monet::bench_rounding(state, name, 1, 1); });
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
