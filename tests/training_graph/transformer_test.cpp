// What a step of a transformer made from its sizes stores, layer by layer.
#include "training_graph/tiny_network.hpp"

#include "monet/training_graph/training.hpp"
#include "monet/workload/transformer.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace monet {
namespace {

using Bytes = std::map<std::string, std::int64_t>;

TrainingOptions half_precision() {
  TrainingOptions options;
  options.loss = CrossEntropy{};
  options.precision.weights = ElementType::fp16;
  options.precision.activations = ElementType::fp16;
  options.precision.master_weights = ElementType::fp32;
  return options;
}

/// By name, those of layer `layer` without its prefix.
Bytes stored_of_layer(const TrainingGraph& step, int layer) {
  const std::string prefix = fmt::format("h.{}.", layer);
  Bytes bytes;
  for (const TensorId id : step.stored_activations) {
    const Tensor& tensor = step.graph.tensor(id);
    if (tensor.name.starts_with(prefix))
      bytes[tensor.name.substr(prefix.size())] = bytes_of(size_of(tensor));
  }
  return bytes;
}

std::int64_t sum(const Bytes& bytes) {
  std::int64_t total = 0;
  for (const auto& [name, count] : bytes)
    total += count;
  return total;
}

/// Korthikanti et al. 2022, equation 2: sbh (34 + 5 a s / h) bytes, of which a byte for every
/// element of a dropout's mask, sbh (2 + a s / h). Ours are bits, and there are the statistics of
/// two normalisations.
TEST(TransformerStored, IsThePublishedFormulaTensorByTensor) {
  const std::int64_t s = 32;
  const std::int64_t b = 3;
  const std::int64_t h = 64;
  const std::int64_t a = 4;
  TransformerShape shape{.layers = 2,
                         .hidden = h,
                         .heads = a,
                         .sequence = s,
                         .vocabulary = 50,
                         .batch = b,
                         .dropout = 0.1};
  const TrainingGraph step = make_training_graph(make_transformer(shape), half_precision());
  const std::int64_t sbh = s * b * h;
  const std::int64_t scores = a * s * s * b;
  const Bytes expected{{"ln_1", 2 * sbh}, // what queries, keys and values are made of
                       {"attn.qkv.sum", 6 * sbh},
                       {"attn.probabilities", 2 * scores},
                       {"attn.probabilities.dropout", 2 * scores},
                       {"attn.context", 2 * sbh},  // input of the projection
                       {"attn.residual", 2 * sbh}, // of the second normalisation
                       {"ln_2", 2 * sbh},
                       {"mlp.fc.sum", 8 * sbh}, // input of the GELU
                       {"mlp.act", 8 * sbh},
                       {"mlp.residual", 2 * sbh}, // of the next layer's first normalisation
                       {"attn.probabilities.dropout.mask", scores / 8},
                       {"attn.dropout.mask", sbh / 8},
                       {"mlp.dropout.mask", sbh / 8},
                       {"ln_1.mean", 4 * s * b},
                       {"ln_1.inv_std", 4 * s * b},
                       {"ln_2.mean", 4 * s * b},
                       {"ln_2.inv_std", 4 * s * b}};
  for (const TrainingGraph& each : {step, fold_views(step)}) {
    EXPECT_EQ(stored_of_layer(each, 0), expected);
    EXPECT_EQ(stored_of_layer(each, 1), expected);
  }
  const std::int64_t masks = 2 * sbh + scores;
  EXPECT_EQ(sum(expected) - 16 * s * b + masks - masks / 8, 34 * sbh + 5 * scores);
  TrainingOptions eager = half_precision(); // keeps masks as bytes
  eager.storage.policy = StorePolicy::pytorch_eager;
  const Bytes kept = stored_of_layer(make_training_graph(make_transformer(shape), eager), 1);
  EXPECT_EQ(sum(kept), 34 * sbh + 5 * scores + 16 * s * b);
  shape.layers = 1;
  const TrainingGraph one = make_training_graph(make_transformer(shape), half_precision());
  EXPECT_EQ(step.stored_bytes - one.stored_bytes, sum(expected));
}

/// With shared keys, h / a of each of fewer heads; a gated layer has four wide tensors.
TEST(TransformerStored, OfSharedKeysAndGatedLayers) {
  const std::int64_t tokens = 32 * 2;
  const TransformerShape shape{.layers = 1,
                               .hidden = 64,
                               .heads = 8,
                               .kv_heads = 2,
                               .ffn = 160,
                               .sequence = 32,
                               .vocabulary = 50,
                               .batch = 2,
                               .norm = TransformerShape::Norm::rms,
                               .activation = TransformerShape::Activation::swiglu,
                               .positions = TransformerShape::Positions::none,
                               .biases = false,
                               .tied = false};
  const TrainingGraph step = make_training_graph(make_transformer(shape), half_precision());
  const Bytes expected{{"ln_1", 2 * 64 * tokens},
                       {"attn.qkv", 2 * (8 + 2 * 2) * 8 * tokens},
                       {"attn.probabilities", 2 * 8 * 32 * tokens},
                       {"attn.context", 2 * 64 * tokens},
                       {"attn.residual", 2 * 64 * tokens},
                       {"ln_2", 2 * 64 * tokens},
                       {"mlp.gate", 2 * 160 * tokens},
                       {"mlp.act", 2 * 160 * tokens},
                       {"mlp.up", 2 * 160 * tokens},
                       {"mlp.gated", 2 * 160 * tokens},
                       {"mlp.residual", 2 * 64 * tokens},
                       {"ln_1.inv_rms", 4 * tokens},
                       {"ln_2.inv_rms", 4 * tokens}};
  EXPECT_EQ(stored_of_layer(step, 0), expected);
  EXPECT_EQ(stored_of_layer(fold_views(step), 0), expected);
}

TEST(TransformerStored, OfExperts) {
  const std::int64_t s = 32;
  const std::int64_t b = 2;
  const std::int64_t h = 64;
  const TransformerShape shape{.layers = 1,
                               .hidden = h,
                               .heads = 4,
                               .sequence = s,
                               .vocabulary = 50,
                               .batch = b,
                               .experts = 8,
                               .topk = 2};
  const std::int64_t capacity = 10; // 1.25 * 2 * 32 / 8
  ASSERT_EQ(shape.capacity(), capacity);
  const TrainingGraph step = make_training_graph(make_transformer(shape), half_precision());
  const std::int64_t places = b * 8 * capacity;
  Bytes stored = stored_of_layer(fold_views(step), 0);
  std::erase_if(stored, [](const auto& row) { return !row.first.starts_with("moe."); });
  EXPECT_EQ(stored, (Bytes{{"moe.probabilities", 2 * b * s * 8},
                           {"moe.dispatch", 2 * s * places},
                           {"moe.combine", 2 * s * places},
                           {"moe.dispatched", 2 * h * places},
                           {"moe.fc.sum", 8 * h * places},
                           {"moe.act", 8 * h * places},
                           {"moe.proj.sum", 2 * h * places},
                           {"moe.residual", 2 * s * b * h}}));
}

TEST(TransformerStored, AttentionIsFusedForAnyGroupsOfHeads) {
  for (const std::int64_t kv_heads : {1, 2, 4}) {
    const TransformerShape shape{.layers = 3,
                                 .hidden = 16,
                                 .heads = 4,
                                 .kv_heads = kv_heads,
                                 .sequence = 8,
                                 .vocabulary = 50,
                                 .batch = 2};
    TrainingOptions options;
    options.attention = AttentionForm::fused;
    const TrainingGraph step = make_training_graph(make_transformer(shape), options);
    verify(fold_views(step));
    EXPECT_EQ(count_ops(step.graph, "AttentionGrad", Phase::backward), 3);
    EXPECT_EQ(count_ops(step.graph, "Softmax", Phase::forward), 0);
  }
}

/// Its gradient comes back as one tensor, of which the parts are written without copies.
TEST(TransformerStored, NoViewBecomesACopy) {
  for (const std::int64_t kv_heads : {1, 2, 4}) {
    const TransformerShape shape{.layers = 2,
                                 .hidden = 16,
                                 .heads = 4,
                                 .kv_heads = kv_heads,
                                 .sequence = 8,
                                 .vocabulary = 50,
                                 .batch = 2,
                                 .experts = 2,
                                 .expert_every = 2};
    const TrainingGraph step = fold_views(make_training_graph(make_transformer(shape), {}));
    for (const Phase phase : {Phase::forward, Phase::loss, Phase::backward})
      EXPECT_EQ(count_ops(step.graph, "Copy", phase), 0);
  }
}

} // namespace
} // namespace monet
