// What lives when, against a simulation that looks at every tensor at every operator.
#include "base/shared/rng.hpp"
#include "training_graph/tiny_network.hpp"

#include "monet/training_graph/liveness.hpp"
#include "monet/workload/onnx_reader.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace monet {
namespace {

/// A random network of products, sums, activations and views over 4x4 and 2x8 tensors.
Graph random_network(std::uint64_t seed) {
  TinyNetwork n;
  std::vector<TensorId> made{n.input("x", {4, 4}), n.parameter("w", {4, 4})};
  const std::size_t operators = 4 + random_bits(seed, 0) % 12;
  for (std::size_t i = 0; i < operators; ++i) {
    const auto pick = [&](std::uint64_t salt) {
      return made[random_bits(seed, 100 * i + salt) % made.size()];
    };
    const TensorId a = pick(1);
    switch (random_bits(seed, 100 * i + 3) % 7) {
    case 0:
      made.push_back(n.op("Relu", {a}, {4, 4}));
      break;
    case 1:
      made.push_back(n.op("Add", {a, pick(2)}, {4, 4}));
      break;
    case 2:
      made.push_back(n.op("Mul", {a, pick(2)}, {4, 4}));
      break;
    case 3:
      made.push_back(n.op("MatMul", {a, pick(2)}, {4, 4}));
      break;
    case 4:
      made.push_back(n.op("Transpose", {a}, {4, 4}, with("perm", std::vector<std::int64_t>{1, 0})));
      break;
    case 5:
      made.push_back(n.op("Softmax", {a}, {4, 4}));
      break;
    default:
      made.push_back(n.op("MatMul", {a, n.parameter(fmt::format("w{}", i), {4, 4})}, {4, 4}));
    }
  }
  TensorId last = n.op("MatMul", {made.back(), made[1]}, {4, 4});
  n.output(n.op("Add", {last, made[made.size() / 2]}, {4, 4}));
  return n.graph;
}

bool stays(TensorKind kind) {
  return kind == TensorKind::parameter || kind == TensorKind::buffer ||
         kind == TensorKind::constant || kind == TensorKind::optimizer_state;
}

TensorId memory(const Graph& graph, TensorId id) {
  while (true) {
    const Tensor& tensor = graph.tensor(id);
    if (tensor.alias_of) {
      id = *tensor.alias_of;
    } else if (tensor.producer &&
               find_row(graph.op(*tensor.producer).domain, graph.op(*tensor.producer).op_type)
                   ->view) {
      id = *graph.op(*tensor.producer).inputs[0];
    } else {
      return id;
    }
  }
}

/// Bytes by owner while operator `now` runs: memory that was there or is made, and is still wanted.
LiveBytes simulate(const TrainingGraph& step, std::size_t now) {
  const Graph& graph = step.graph;
  std::set<TensorId> there;
  std::set<TensorId> wanted;
  for (std::size_t i = 0; i < graph.operators().size(); ++i) {
    const Operator& op = graph.op(OpId(i));
    for (const auto& id : op.outputs) {
      if (id && i <= now)
        there.insert(memory(graph, *id));
      if (id && i >= now)
        wanted.insert(memory(graph, *id));
    }
    for (const auto& id : op.inputs) {
      if (!id)
        continue;
      if (!graph.tensor(memory(graph, *id)).producer)
        there.insert(memory(graph, *id));
      if (i >= now || stays(graph.tensor(memory(graph, *id)).kind))
        wanted.insert(memory(graph, *id));
    }
  }
  for (const TensorId id : graph.outputs)
    wanted.insert(memory(graph, id));
  LiveBytes bytes{};
  for (const TensorId id : there) {
    if (wanted.count(id) > 0)
      bytes[static_cast<std::size_t>(step.owner.at(id.index()))] +=
          bytes_of(size_of(graph.tensor(id)));
  }
  return bytes;
}

TrainingGraph random_step(std::uint64_t seed) {
  TrainingOptions options;
  options.loss = Mse{};
  const TrainingGraph step = make_training_graph(random_network(seed), options);
  return seed % 2 == 0 ? fold_views(step) : step;
}

TEST(Liveness, EqualsSimulationOfRandomSteps) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const TrainingGraph step = random_step(seed);
    const Liveness liveness = find_liveness(step);
    ASSERT_EQ(liveness.live.size(), step.graph.operators().size());
    std::int64_t peak = 0;
    for (std::size_t i = 0; i < liveness.live.size(); ++i) {
      const LiveBytes simulated = simulate(step, i);
      EXPECT_EQ(liveness.live[i], simulated) << "seed " << seed << " operator " << i;
      peak = std::max(peak, total(simulated));
    }
    EXPECT_EQ(total(liveness.live[liveness.peak]), peak) << "seed " << seed;
  }
}

/// What the buffers say is alive.
std::int64_t bytes_of_buffers(const Liveness& liveness, std::size_t op) {
  std::int64_t bytes = 0;
  for (const LiveBuffer& buffer : liveness.buffers) {
    if (buffer.start <= static_cast<std::int64_t>(op) && static_cast<std::int64_t>(op) < buffer.end)
      bytes += buffer.bytes;
  }
  return bytes;
}

TEST(Liveness, OperandsThatDieAreWrittenOver) {
  int reused = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const TrainingGraph step = random_step(seed);
    const Liveness apart = find_liveness(step);
    const Liveness shared = find_liveness(step, {true});
    for (std::size_t i = 0; i < shared.live.size(); ++i) {
      EXPECT_LE(total(shared.live[i]), total(apart.live[i])) << "seed " << seed;
      EXPECT_EQ(total(shared.live[i]), bytes_of_buffers(shared, i)) << "seed " << seed;
    }
    // In one buffer nobody reads what has been overwritten: lives follow each other.
    std::map<std::size_t, std::int64_t> end;
    for (std::size_t k = 0; k < apart.buffers.size(); ++k) {
      const LiveBuffer& buffer = apart.buffers[k];
      const auto in = shared.buffer_of[buffer.tensor.index()];
      ASSERT_TRUE(in.has_value());
      EXPECT_EQ(shared.buffers[*in].bytes, buffer.bytes);
      if (shared.buffers[*in].tensor == buffer.tensor)
        continue;
      ++reused;
      const Operator& op = step.graph.op(*step.graph.tensor(buffer.tensor).producer);
      EXPECT_TRUE(op.op_type != "MatMul" && op.op_type != "Softmax" && op.op_type != "Transpose")
          << op.op_type.name();
      const bool reads = std::any_of(op.inputs.begin(), op.inputs.end(), [&](const auto& input) {
        return input && shared.buffer_of[input->index()] == in;
      });
      EXPECT_TRUE(reads) << "seed " << seed;
    }
  }
  EXPECT_GT(reused, 100);
}

TEST(Liveness, EveryBufferHasAnAddressOfItsOwn) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const Liveness liveness = find_liveness(random_step(seed), {seed % 3 == 0});
    const AddressPlan plan = plan_addresses(liveness);
    EXPECT_GE(plan.arena_bytes, plan.bound_bytes);
    EXPECT_EQ(plan.arena_bytes, plan.bound_bytes) << "seed " << seed;
    for (std::size_t a = 0; a < liveness.buffers.size(); ++a) {
      const LiveBuffer& x = liveness.buffers[a];
      EXPECT_EQ(plan.offsets[a] < 0, x.permanent);
      for (std::size_t b = 0; b < a && !x.permanent; ++b) {
        const LiveBuffer& y = liveness.buffers[b];
        if (y.permanent || x.end <= y.start || y.end <= x.start)
          continue;
        EXPECT_TRUE(plan.offsets[a] + x.bytes <= plan.offsets[b] ||
                    plan.offsets[b] + y.bytes <= plan.offsets[a])
            << "seed " << seed;
      }
    }
  }
}

class Network : public testing::TestWithParam<std::tuple<const char*, StorePolicy>> {};

TEST_P(Network, ArenaHoldsNoMoreThanLives) {
  const auto [name, policy] = GetParam();
  OnnxReadOptions read;
  read.batch = 2;
  TrainingOptions options;
  options.storage.policy = policy;
  const std::string path = std::string(MONET_SOURCE_DIR "/data/workload/") + name + ".onnx";
  const TrainingGraph step = fold_views(make_training_graph(read_onnx(path, read), options));
  for (const bool reuse : {false, true}) {
    const AddressPlan plan = plan_addresses(find_liveness(step, {reuse}));
    EXPECT_LE(static_cast<double>(plan.arena_bytes), 1.01 * static_cast<double>(plan.bound_bytes));
    if (std::string_view(name) != "vit_tiny") {
      EXPECT_TRUE(plan.proven);
      EXPECT_EQ(plan.arena_bytes, plan.bound_bytes);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(
    Networks, Network,
    testing::Combine(testing::Values("resnet18_cifar", "resnet18", "mobilenet_v2", "vgg16",
                                     "vit_tiny", "gpt2_nano", "gpt2"),
                     testing::Values(StorePolicy::minimal, StorePolicy::pytorch_eager)));

} // namespace
} // namespace monet
