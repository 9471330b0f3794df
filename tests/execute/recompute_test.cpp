// Plans of recomputation as operators of the graph: same numbers, bit for bit, and the peak that
// the plan promises.
#include "base/shared/rng.hpp"
#include "execute/step_results.hpp"
#include "training_graph/tiny_network.hpp"

#include "monet/base/errors.hpp"
#include "monet/training_graph/liveness.hpp"
#include "monet/training_graph/training.hpp"
#include "monet/workload/onnx_writer.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace monet {
namespace {

/// Convolutions with batch normalisations, a residual, pooling, a reshape and a product.
Graph residual_network() {
  TinyNetwork n;
  const auto pads = with("pads", std::vector<std::int64_t>{1, 1, 1, 1});
  const std::vector<std::int64_t> full{2, 4, 6, 6};
  const auto normal = [&](TensorId x, const std::string& name) {
    Attributes attributes = with("training_mode", std::int64_t{0});
    return n.op("BatchNormalization",
                {x, n.parameter(name + ".scale", {4}), n.parameter(name + ".bias", {4}),
                 n.buffer(name + ".mean", {4}), n.buffer(name + ".var", {4})},
                full, attributes);
  };
  TensorId x =
      n.op("Conv", {n.input("x", {2, 3, 6, 6}), n.parameter("w1", {4, 3, 3, 3})}, full, pads);
  x = n.op("Relu", {normal(x, "bn1")}, full);
  TensorId y = n.op("Conv", {x, n.parameter("w2", {4, 4, 3, 3})}, full, pads);
  y = n.op("Relu", {n.op("Add", {normal(y, "bn2"), x}, full)}, full);
  Attributes pool = with("kernel_shape", std::vector<std::int64_t>{2, 2});
  pool.set("strides", std::vector<std::int64_t>{2, 2});
  y = n.op("MaxPool", {y}, {2, 4, 3, 3}, pool);
  y = n.op("Gelu", {n.op("Reshape", {y, n.integers("shape", {2, 36})}, {2, 36})}, {2, 36});
  n.output(n.op("MatMul", {y, n.parameter("w3", {36, 5})}, {2, 5}));
  return n.graph;
}

std::vector<OpId> once(const Graph& graph) {
  std::vector<OpId> runs;
  for (std::size_t i = 0; i < graph.operators().size(); ++i)
    runs.emplace_back(i);
  return runs;
}

struct Random {
  std::uint64_t seed;
  std::uint64_t drawn = 0;
  std::size_t below(std::size_t count) { return random_bits(seed, drawn++) % count; }
};

/// Runs of random operators again at random places.
std::vector<OpId> random_runs(const Graph& graph, int again, Random& random) {
  std::vector<OpId> runs = once(graph);
  for (int k = 0; k < again; ++k) {
    const std::size_t at = 1 + random.below(runs.size());
    const OpId id = runs[random.below(at)];
    if (recompute_obstacle(graph, graph.op(id)).empty())
      runs.insert(runs.begin() + static_cast<std::ptrdiff_t>(at), id);
  }
  return runs;
}

using test::results;

TEST(Recompute, DropoutDrawsTheSameNumbersAgain) {
  TinyNetwork n;
  const TensorId a = n.op("MatMul", {n.input("x", {4, 8}), n.parameter("w", {8, 16})}, {4, 16});
  const TensorId d = n.op("Dropout", {n.op("Gelu", {a}, {4, 16}), n.number("ratio", 0.5)}, {4, 16});
  n.output(n.op("MatMul", {d, n.parameter("v", {16, 4})}, {4, 4}));
  TrainingOptions options;
  options.loss = Mse{};
  options.storage.policy = StorePolicy::pytorch_eager;
  const auto expected = results(make_training_graph(n.graph, options));
  options.storage.recompute = {"Dropout_2*", "Gelu_1"};
  const TrainingGraph again = make_training_graph(n.graph, options);
  const auto is_again = [](const Operator& op) {
    return op.op_type == "Dropout" && op.phase == Phase::recompute;
  };
  EXPECT_TRUE(std::ranges::any_of(again.graph.operators(), is_again));
  EXPECT_EQ(results(again), expected);
}

TEST(InsertRecompute, AnyRunsGiveTheSameNumbers) {
  Random random{5};
  for (const StorePolicy store : {StorePolicy::minimal, StorePolicy::pytorch_eager}) {
    TrainingOptions options;
    options.storage.policy = store;
    options.micro_batches = store == StorePolicy::minimal ? 2 : 1;
    const TrainingGraph step = make_training_graph(residual_network(), options);
    const TrainingGraph folded = fold_views(step);
    const auto expected = results(step);
    for (int k = 0; k < 40; ++k) {
      const std::vector<OpId> runs = random_runs(step.graph, 1 + k, random);
      const TrainingGraph made = with_recomputation(step, runs);
      verify(made);
      EXPECT_EQ(results(made), expected);
      EXPECT_EQ(results(fold_views(made)), expected);
      const std::vector<OpId> folded_runs = random_runs(folded.graph, 1 + k, random);
      const TrainingGraph both[]{with_recomputation(folded, folded_runs),
                                 with_recomputation(step, folded, folded_runs)};
      for (const TrainingGraph& other : both) {
        verify(other);
        EXPECT_EQ(results(other), expected);
      }
      const TrainingGraph again = fold_views(both[1]);
      EXPECT_EQ(find_liveness(again).live, find_liveness(both[0]).live);
      EXPECT_EQ(again.stored_bytes, both[0].stored_bytes);
    }
  }
}

/// Folding copies what a local response normalisation reads, and again for its gradient.
TEST(InsertRecompute, CopiesThatFoldingRunsAgainRunOften) {
  TinyNetwork n;
  const TensorId scaled = n.op("Mul", {n.input("x", {6}), n.parameter("w", {6})}, {6});
  const TensorId x = n.op("Relu", {scaled}, {6});
  const TensorId image = n.op("Reshape", {x, n.integers("shape", {1, 3, 2, 1})}, {1, 3, 2, 1});
  n.output(n.op("LRN", {image}, {1, 3, 2, 1}, with("size", std::int64_t{3})));
  TrainingOptions options;
  options.loss = Mse{};
  const TrainingGraph step = make_training_graph(n.graph, options);
  const TrainingGraph folded = fold_views(step);
  ASSERT_EQ(count_ops(folded.graph, "Copy", Phase::recompute), 1);
  ASSERT_EQ(count_ops(step.graph, "Reshape", Phase::recompute), 0);
  const auto expected = results(step);
  Random random{5};
  for (int k = 0; k < 40; ++k) {
    const std::vector<OpId> runs = random_runs(folded.graph, k, random);
    const TrainingGraph both[]{with_recomputation(folded, runs),
                               with_recomputation(step, folded, runs)};
    for (const TrainingGraph& made : both) {
      verify(made);
      EXPECT_EQ(results(made), expected);
    }
  }
  const TrainingGraph same = with_recomputation(step, folded, once(folded.graph));
  EXPECT_EQ(find_liveness(fold_views(same)).live, find_liveness(folded).live);
}

/// A cast to the type that its operand has is a view, and has a nest all the same.
TEST(InsertRecompute, CastsToTheSameTypeReadWhatIsMadeAgain) {
  TinyNetwork n;
  constexpr std::int64_t kFloat = 1; // ONNX's numbers of types
  constexpr std::int64_t kBfloat16 = 16;
  const TensorId x = n.op("Mul", {n.input("x", {6}), n.parameter("w", {6})}, {6});
  const TensorId narrow = n.op("Cast", {x}, {6}, with("to", kBfloat16), ElementType::bf16);
  const TensorId wide = n.op("Cast", {narrow}, {6}, with("to", kFloat));
  const TensorId same = n.op("Cast", {wide}, {6}, with("to", kFloat));
  n.output(n.op("Mul", {same, n.op("Exp", {same}, {6})}, {6}));
  TrainingOptions options;
  options.loss = Mse{};
  const TrainingGraph again = make_training_graph(n.graph, options);
  verify(again);
  EXPECT_EQ(count_ops(again.graph, "Cast", Phase::recompute), 2);
  options.storage.policy = StorePolicy::pytorch_eager;
  const TrainingGraph kept = make_training_graph(n.graph, options);
  EXPECT_EQ(count_ops(kept.graph, "Cast", Phase::recompute), 0);
  EXPECT_EQ(results(again), results(kept));
}

TEST(InsertRecompute, ABatchNormalisationLeavesItsRunningStatistics) {
  const TrainingGraph step = make_training_graph(residual_network(), {});
  std::vector<OpId> runs = once(step.graph);
  const auto norm = std::find_if(runs.begin(), runs.end(), [&](OpId id) {
    return step.graph.op(id).op_type == "BatchNormalization";
  });
  runs.insert(runs.end() - 12, *norm);
  runs.insert(runs.end() - 10, *norm);
  const TrainingGraph made = with_recomputation(step, runs);
  EXPECT_EQ(count_ops(made.graph, "BatchNormalization", Phase::recompute), 2);
  const Operator* again = find_op(made.graph, "BatchNormalization", Phase::recompute);
  EXPECT_EQ(again->inputs.size(), 3U);
  EXPECT_EQ(again->outputs.size(), 5U);
  EXPECT_FALSE(again->outputs[1] || again->outputs[2]);
  EXPECT_EQ(again->name, step.graph.op(*norm).name + ".recomputed");
  EXPECT_EQ(results(made), results(step));
  EXPECT_FALSE(write_onnx(made.graph).empty());
}

TEST(InsertRecompute, StoredActivationsFollow) {
  const TrainingGraph step = make_training_graph(residual_network(), {});
  EXPECT_EQ(with_recomputation(step, once(step.graph)).stored_activations, step.stored_activations);
  std::vector<OpId> runs = once(step.graph);
  // Everything that can be is made again before the backward part: only what stays is stored.
  const auto backward = std::find_if(runs.begin(), runs.end(), [&](OpId id) {
    return step.graph.op(id).phase == Phase::backward;
  });
  std::vector<OpId> again;
  for (auto run = runs.begin(); run != backward; ++run) {
    if (recompute_obstacle(step.graph, step.graph.op(*run)).empty())
      again.push_back(*run);
  }
  runs.insert(backward, again.begin(), again.end());
  const TrainingGraph made = with_recomputation(step, runs);
  for (const TensorId id : made.stored_activations)
    EXPECT_FALSE(made.graph.tensor(id).producer) << made.graph.tensor(id).name;
  EXPECT_EQ(made.stored_bytes, 2 * 3 * 6 * 6 * 4 + 2 * 8); // image and labels
}

TEST(InsertRecompute, RandomOperatorsAreRefusedAtTheirNode) {
  TinyNetwork n;
  const TensorId a = n.op("MatMul", {n.input("x", {4, 4}), n.parameter("w", {4, 4})}, {4, 4});
  const TensorId d = n.op("Dropout", {a}, {4, 4}, with("ratio", 0.5));
  n.output(n.op("MatMul", {d, n.parameter("v", {4, 4})}, {4, 4}));
  const TrainingGraph step = make_training_graph(n.graph, {});
  std::vector<OpId> runs = once(step.graph);
  runs.insert(runs.begin() + 3, OpId(1));
  try {
    with_recomputation(step, runs);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("node 'Dropout_1'"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("random"), std::string::npos);
  }
  runs = once(step.graph);
  runs.pop_back();
  EXPECT_THROW(with_recomputation(step, runs), InternalError);
}

} // namespace
} // namespace monet
