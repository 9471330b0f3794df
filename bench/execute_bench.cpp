// Multiply-accumulates per second of the executor's products, in double and single precision; each
// answer is compared with one output element computed by hand. And a whole training step, which
// should take less than 1.5 times its products.
#include "base/shared/rng.hpp"
#include "execute/walk/operand.hpp"
#include "execute/walk/product.hpp"
#include "workload/shared/operators.hpp"

#include "monet/execute/execute.hpp"
#include "monet/workload/onnx_reader.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

namespace monet {
namespace {

using Shape = std::vector<std::int64_t>;

struct Case {
  const char* op_type;
  const char* domain;
  std::array<Shape, 3> shapes; ///< output, first and second input
};

// The third stage of resnet18_cifar (4 images): 256 channels, 8x8, kernel 3x3.
const Case kConv{"Conv", "", {{{4, 256, 8, 8}, {4, 256, 8, 8}, {256, 256, 3, 3}}}};
const Case kGradInput{
    "ConvGradInput", "ai.monet", {{{4, 256, 8, 8}, {4, 256, 8, 8}, {256, 256, 3, 3}}}};
const Case kGradWeight{
    "ConvGradWeight", "ai.monet", {{{256, 256, 3, 3}, {4, 256, 8, 8}, {4, 256, 8, 8}}}};
// The first block of a ResNet-8 for images of 16x16, 32 of them.
const Case kSmallConv{"Conv", "", {{{32, 16, 16, 16}, {32, 16, 16, 16}, {16, 16, 3, 3}}}};
const Case kSmallGradInput{
    "ConvGradInput", "ai.monet", {{{32, 16, 16, 16}, {32, 16, 16, 16}, {16, 16, 3, 3}}}};
const Case kSmallGradWeight{
    "ConvGradWeight", "ai.monet", {{{16, 16, 3, 3}, {32, 16, 16, 16}, {32, 16, 16, 16}}}};
const Case kMatMul{"MatMul", "", {{{512, 512}, {512, 512}, {512, 512}}}};

/// The operator and its operands' numbers.
template <class Real>
struct Product {
  Graph graph;
  OpId id{0};
  std::array<std::vector<Real>, 3> numbers;
};

/// `format`: what the operands are rounded to.
template <class Real>
Product<Real> product_of(const Case& made, const NumberFormat& format) {
  Product<Real> product;
  Graph& graph = product.graph;
  auto& numbers = product.numbers;
  Operator op;
  op.name = "op";
  op.op_type = made.op_type;
  op.domain = made.domain;
  if (made.shapes[2].size() == 4 || made.shapes[0].size() == 4) {
    op.attributes.set("kernel_shape", Shape{3, 3});
    op.attributes.set("pads", Shape{1, 1, 1, 1});
  }
  std::array<TensorId, 3> ids;
  for (std::size_t k = 0; k < 3; ++k) {
    Tensor tensor;
    tensor.name = std::string(1, static_cast<char>('a' + k));
    tensor.shape = made.shapes[k];
    numbers[k].resize(static_cast<std::size_t>(element_count(tensor)));
    for (std::size_t i = 0; k > 0 && i < numbers[k].size(); ++i)
      numbers[k][i] = static_cast<Real>(round_to(format, random_unit(k, i) - 0.5));
    ids[k] = graph.add_tensor(std::move(tensor));
  }
  op.inputs = {ids[1], ids[2]};
  op.outputs = {ids[0]};
  product.id = graph.add_operator(std::move(op));
  build_nest(graph, product.id);
  return product;
}

template <class Real>
void run(benchmark::State& state, const Case& made) {
  Product<Real> product = product_of<Real>(made, kDoublePrecision);
  const Graph& graph = product.graph;
  auto& numbers = product.numbers;
  const LoopNest& nest = graph.op(product.id).nest;

  multiply_accumulate<Real>(graph, nest, numbers[0], numbers[1], numbers[2]);
  std::array<OperandMap, 3> maps;
  Shape sizes;
  for (const LoopDim& dim : nest.dims)
    sizes.push_back(dim.size);
  for (std::size_t k = 0; k < 3; ++k) {
    const auto& shape = graph.tensor(nest.operands[k].tensor).shape;
    maps[k] = map_operand(nest, nest.operands[k], shape, strides_of(shape));
  }
  double expected = 0.0;
  const std::int64_t wanted = 37;
  Shape point(sizes.size(), 0);
  do {
    if (maps[0].at(point) != wanted)
      continue;
    const auto a = maps[1].at(point);
    const auto b = maps[2].at(point);
    if (a && b)
      expected += static_cast<double>(numbers[1][static_cast<std::size_t>(*a)]) *
                  static_cast<double>(numbers[2][static_cast<std::size_t>(*b)]);
  } while (next_point(point, sizes));
  if (std::abs(expected - static_cast<double>(numbers[0][wanted])) > 1e-3) {
    state.SkipWithError("wrong answer");
    return;
  }
  for (auto step : state) {
    multiply_accumulate<Real>(graph, nest, numbers[0], numbers[1], numbers[2]);
    benchmark::DoNotOptimize(numbers[0].data());
  }
  state.counters["macs"] = benchmark::Counter(static_cast<double>(iterations(nest)),
                                              benchmark::Counter::kIsIterationInvariantRate);
}

/// By an emulated unit: E5M2 operands, exact products, sums in E6M5; first compared with exact sums
/// in a unit that is wide enough for them.
void in_unit(benchmark::State& state, const Case& made) {
  const NumberFormat e5m2 = *parse_number_format("e5m2");
  Product<float> product = product_of<float>(made, e5m2);
  const LoopNest& nest = product.graph.op(product.id).nest;
  auto& numbers = product.numbers;
  Mac unit;
  unit.multiplier = Multiplier::exact;
  unit.sum = kSinglePrecision;
  std::vector<float> plain = numbers[0];
  multiply_accumulate<float>(product.graph, nest, plain, numbers[1], numbers[2]);
  std::vector<float> emulated = numbers[0];
  emulate_product(product.graph, nest, emulated, numbers[1], numbers[2], unit);
  if (plain != emulated) {
    state.SkipWithError("wrong answer");
    return;
  }
  unit.sum = parse_number_format("e6m5");
  for (auto step : state) {
    std::fill(emulated.begin(), emulated.end(), 0.0F);
    emulate_product(product.graph, nest, emulated, numbers[1], numbers[2], unit);
    benchmark::DoNotOptimize(emulated.data());
  }
  state.counters["macs"] = benchmark::Counter(static_cast<double>(iterations(nest)),
                                              benchmark::Counter::kIsIterationInvariantRate);
}

void in_double(benchmark::State& state, const Case& made) {
  run<double>(state, made);
}
void in_single(benchmark::State& state, const Case& made) {
  run<float>(state, made);
}

BENCHMARK_CAPTURE(in_double, conv, kConv)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(in_double, conv_grad_input, kGradInput)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(in_double, conv_grad_weight, kGradWeight)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(in_double, matmul, kMatMul)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(in_unit, conv, kConv)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(in_unit, conv_grad_input, kGradInput)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(in_unit, conv_grad_weight, kGradWeight)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(in_unit, small_conv, kSmallConv)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(in_unit, small_grad_input, kSmallGradInput)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(in_unit, small_grad_weight, kSmallGradWeight)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(in_unit, matmul, kMatMul)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(in_single, small_conv, kSmallConv)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(in_single, small_grad_weight, kSmallGradWeight)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(in_single, conv, kConv)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(in_single, matmul, kMatMul)->Unit(benchmark::kMillisecond);

/// ResNet-8 at 32 images, SGD with momentum; the argument is the number of threads.
void step_in_single(benchmark::State& state) {
  OnnxReadOptions reading;
  reading.batch = 32;
  TrainingOptions options;
  options.loss = CrossEntropy{};
  options.update.optimizer = Sgd{.learning_rate = 0.01, .momentum = 0.9};
  const TrainingGraph step = make_training_graph(
      read_onnx(MONET_SOURCE_DIR "/data/workload/resnet8_16.onnx", reading), options);
  ExecuteOptions executing{.arithmetic = Arithmetic::fp32, .keep_all = false};
  executing.jobs = static_cast<int>(state.range(0));
  Execution execution(step.graph, executing);
  fill(execution, step, 1);
  execution.run();
  const double before = execution.get(*step.loss).at(0);
  using Clock = std::chrono::steady_clock;
  Clock::duration all{}, products{};
  for (auto round : state) {
    execution.advance();
    const auto begin = Clock::now();
    auto last = begin;
    execution.run([&](OpId op) {
      const auto now = Clock::now();
      products +=
          step.graph.op(op).nest.compute == ComputeKind::mac ? now - last : Clock::duration{};
      last = now;
    });
    all += last - begin;
  }
  if (!(execution.get(*step.loss).at(0) < before)) // of one batch, again and again
    state.SkipWithError("nothing is learnt");
  state.counters["step_by_products"] =
      static_cast<double>(all.count()) / static_cast<double>(products.count());
}
BENCHMARK(step_in_single)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime();

} // namespace
} // namespace monet

BENCHMARK_MAIN();
