// Transformers made from their sizes: parameters as published, nests, problems with places.
#include "workload/shared/operators.hpp"
#include "workload/shared/views.hpp"

#include "monet/base/yaml.hpp"
#include "monet/workload/onnx_reader.hpp"
#include "monet/workload/onnx_writer.hpp"
#include "monet/workload/transformer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace monet {
namespace MONET_TEST_FILE {

using Shape = TransformerShape;

/// Every part of the builder at least once.
std::vector<Shape> kinds_of_transformers() {
  const Shape small{
      .layers = 2, .hidden = 16, .heads = 4, .sequence = 8, .vocabulary = 30, .batch = 3};
  std::vector<Shape> shapes(6, small);
  shapes[1].dropout = 0.1;
  shapes[1].causal = false;
  shapes[1].vocabulary_multiple = 8;
  shapes[2].kv_heads = 2;
  shapes[2].head_size = 6;
  shapes[2].norm = Shape::Norm::rms;
  shapes[2].activation = Shape::Activation::swiglu;
  shapes[2].positions = Shape::Positions::none;
  shapes[2].biases = shapes[2].tied = false;
  shapes[3].activation = Shape::Activation::relu;
  shapes[3].ffn = 24;
  shapes[3].kv_heads = 1;
  shapes[4].experts = 4;
  shapes[4].expert_every = 2;
  shapes[5] = shapes[2];
  shapes[5].experts = 3;
  shapes[5].topk = 1;
  return shapes;
}

std::int64_t all_macs(const Graph& graph) {
  std::int64_t sum = 0;
  for (const Operator& op : graph.operators())
    sum += macs(op.nest);
  return sum;
}

std::map<std::string, int> counts(const Graph& graph) {
  std::map<std::string, int> of;
  for (const Operator& op : graph.operators())
    ++of[op.domain + ":" + op.op_type.str()];
  return of;
}

TEST(Transformer, HasThePublishedNumbersOfParameters) {
  const Shape gpt2{.layers = 12, .hidden = 768, .heads = 12, .sequence = 1024, .vocabulary = 50257};
  EXPECT_EQ(parameter_count(make_transformer(gpt2)), 124'439'808);
  const Shape gpt3{
      .layers = 96, .hidden = 12288, .heads = 96, .sequence = 2048, .vocabulary = 50257};
  EXPECT_EQ(parameter_count(make_transformer(gpt3)), 174'604'259'328);
  // Jiang et al. 2023: 7.24 billion; 2024: 46.7 billion with 8 experts.
  Shape mistral{.layers = 32,
                .hidden = 4096,
                .heads = 32,
                .kv_heads = 8,
                .ffn = 14336,
                .sequence = 128,
                .vocabulary = 32000,
                .norm = Shape::Norm::rms,
                .activation = Shape::Activation::swiglu,
                .positions = Shape::Positions::none,
                .biases = false,
                .tied = false};
  EXPECT_EQ(parameter_count(make_transformer(mistral)), 7'241'732'096);
  mistral.experts = 8;
  EXPECT_EQ(parameter_count(make_transformer(mistral)), 46'702'792'704);
}

/// V h + s h + L (12 h^2 + 13 h) + 2 h, the table's rows rounded up.
TEST(Transformer, FollowsTheClosedFormOfItsParameters) {
  const std::int64_t h = 48;
  const Shape shape{.layers = 5,
                    .hidden = h,
                    .heads = 3,
                    .sequence = 7,
                    .vocabulary = 101,
                    .vocabulary_multiple = 64};
  EXPECT_EQ(shape.padded_vocabulary(), 128);
  EXPECT_EQ(parameter_count(make_transformer(shape)),
            128 * h + 7 * h + 5 * (12 * h * h + 13 * h) + 2 * h);
}

/// A token's: 12 h^2 with the weights of a layer, 2 s h for scores and values, V h for logits.
TEST(Transformer, FollowsTheClosedFormOfItsProducts) {
  const Shape shape{
      .layers = 3, .hidden = 32, .heads = 4, .sequence = 10, .vocabulary = 50, .batch = 2};
  EXPECT_EQ(all_macs(make_transformer(shape)), 20 * (3 * (12 * 32 * 32 + 2 * 10 * 32) + 50 * 32));
}

TEST(Transformer, ColumnsOfAttentionLieByGroups) {
  const Shape shape{
      .layers = 1, .hidden = 24, .heads = 6, .kv_heads = 2, .sequence = 4, .vocabulary = 9};
  const Graph graph = make_transformer(shape);
  const TensorId weight = graph.find_tensor("h.0.attn.qkv.weight").value();
  EXPECT_EQ(graph.tensor(weight).shape, (std::vector<std::int64_t>{24, 2 * (3 + 2) * 4}));
  const Graph folded = fold_views(graph);
  const auto scores = std::ranges::find_if(
      folded.operators(), [](const Operator& op) { return op.name == "h.0.attn.scores"; });
  ASSERT_NE(scores, folded.operators().end());
  const Access& queries = scores->nest.operands[1];
  const Access& keys = scores->nest.operands[2];
  EXPECT_EQ(folded.tensor(queries.tensor).name, "h.0.attn.qkv.sum");
  EXPECT_EQ(to_string(queries.axes[2], scores->nest.dims), "20*B1 + 4*H + C");
  EXPECT_EQ(to_string(keys.axes[2], scores->nest.dims), "20*B1 + C + 12");
}

TEST(Transformer, IsSoundFoldedAndAsAFile) {
  for (const Shape& shape : kinds_of_transformers()) {
    const Graph graph = make_transformer(shape);
    verify(graph);
    const Graph folded = fold_views(graph);
    verify(folded);
    EXPECT_EQ(counts(folded).count("ai.monet:Copy"), 0U) << "views are free";
    EXPECT_EQ(all_macs(folded), all_macs(graph));
    const Graph again = read_onnx_bytes(write_onnx(graph), "again.onnx");
    EXPECT_EQ(counts(again), counts(graph));
    EXPECT_EQ(all_macs(again), all_macs(graph));
    EXPECT_EQ(parameter_count(again), parameter_count(graph));
    ASSERT_EQ(graph.outputs.size(), 1U);
    EXPECT_EQ(graph.tensor(graph.outputs[0]).name, "logits");
    EXPECT_EQ(graph.tensor(graph.outputs[0]).shape,
              (std::vector<std::int64_t>{shape.batch, shape.sequence, shape.padded_vocabulary()}));
  }
}

/// What an axis of the mesh divides has a loop of its own: experts in weight, data and result.
TEST(Transformer, ExpertsAndSamplesAreLoopsOfTheirProducts) {
  const Graph graph = fold_views(make_transformer(kinds_of_transformers()[4]));
  int products = 0;
  for (const Operator& op : graph.operators()) {
    if (op.op_type != "Einsum")
      continue;
    EXPECT_TRUE(op.name.starts_with("h.1.moe")) << "every second layer";
    for (const Access& access : op.nest.operands) {
      for (const AxisExpr& axis : access.axes)
        EXPECT_EQ(axis.terms.size(), 1U) << op.name;
    }
    if (graph.tensor(op.nest.operands[2].tensor).kind != TensorKind::parameter)
      continue;
    ++products;
    for (const Access& access : op.nest.operands)
      EXPECT_TRUE(has_loop(access.axes[0], 0)) << op.name;
    EXPECT_EQ(op.nest.dims[0].size, 4);
  }
  EXPECT_EQ(products, 2);
}

TEST(Transformer, CapacityIsTheShareOfTokensRoundedUp) {
  Shape shape{.sequence = 10, .experts = 4, .topk = 2, .capacity_factor = 1.0};
  EXPECT_EQ(shape.capacity(), 5);
  shape.capacity_factor = 1.1;
  EXPECT_EQ(shape.capacity(), 6);
  shape.experts = 2;
  EXPECT_EQ(shape.capacity(), 10);
  shape.sequence = 20;
  EXPECT_EQ(shape.capacity(), 20);
  shape.experts = 4;
  EXPECT_EQ(shape.capacity(), 11) << "1.1 * 10 is more than 11 in double precision";
  shape.capacity_factor = 100.0;
  EXPECT_EQ(shape.capacity(), 20);
  shape.experts.reset();
  EXPECT_EQ(shape.capacity(), 0);
}

TEST(Transformer, LargeMasksHaveNoNumbers) {
  const auto mask = [](std::int64_t sequence) {
    const Graph graph = make_transformer({.sequence = sequence});
    return graph.tensor(graph.find_tensor("mask").value());
  };
  ASSERT_TRUE(mask(3).values.has_value());
  EXPECT_EQ(std::get<std::vector<std::int64_t>>(*mask(3).values),
            (std::vector<std::int64_t>{0, 1, 1, 0, 0, 1, 0, 0, 0}));
  EXPECT_FALSE(mask(2048).values.has_value());
}

std::string problem_of(const Shape& shape) {
  try {
    make_transformer(shape);
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

TEST(Transformer, SaysWhatDoesNotDivide) {
  const Shape fits{.layers = 1, .hidden = 12, .heads = 4, .sequence = 2, .vocabulary = 3};
  EXPECT_EQ(problem_of(fits), "");
  const auto with = [&](auto change) {
    Shape shape = fits;
    change(shape);
    return problem_of(shape);
  };
  EXPECT_EQ(with([](Shape& s) { s.heads = 5; }),
            "transformer [heads]: 12 of 'hidden' are not divisible by 5 heads: 2 are left; set "
            "'head_size' if heads have another size");
  EXPECT_EQ(with([](Shape& s) { s.heads = 5, s.head_size = 3; }), "");
  EXPECT_EQ(with([](Shape& s) { s.kv_heads = 3; }),
            "transformer [kv_heads]: 4 heads are not divisible by 3 'kv_heads': 1 are left");
  EXPECT_EQ(with([](Shape& s) { s.layers = 0; }),
            "transformer [layers]: 'layers' is 0, outside [1, 2000]");
  EXPECT_EQ(with([](Shape& s) { s.dropout = 1.0; }),
            "transformer [dropout]: 'dropout' is 1, outside [0, 1)");
  EXPECT_EQ(with([](Shape& s) { s.experts = 4, s.topk = 5; }),
            "transformer [topk]: 'topk' is 5, outside [1, 4]");
  EXPECT_NE(with([](Shape& s) { s.experts = 4, s.capacity_factor = 0; }), "");
  EXPECT_NE(with([](Shape& s) {
              s.batch = s.sequence = std::int64_t{1} << 30;
            }).find("has more than 4398046511104 elements"),
            std::string::npos);
}

Shape read_shape(std::string_view text) {
  ProblemList problems;
  const Shape shape = read_transformer_shape(parse_yaml(text, "e.yaml"), problems);
  problems.throw_if_any();
  return shape;
}

std::string problems_of(std::string_view text) {
  try {
    read_shape(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

TEST(TransformerReader, ReadsEveryKey) {
  EXPECT_EQ(
      read_shape("{layers: 96, hidden: 12288, heads: 96, sequence: 2048, vocabulary: 51200}"),
      (Shape{.layers = 96, .hidden = 12288, .heads = 96, .sequence = 2048, .vocabulary = 51200}));
  EXPECT_EQ(read_shape("{layers: 2, hidden: 16, heads: 4, kv_heads: 2, head_size: 8, ffn: 20, "
                       "sequence: 8, vocabulary: 30, vocabulary_multiple: 4, batch: 3, norm: rms, "
                       "activation: swiglu, positions: none, biases: false, tied: false, "
                       "dropout: 0.25, causal: false, experts: 4, topk: 1, capacity_factor: 2, "
                       "expert_every: 2}"),
            (Shape{.layers = 2,
                   .hidden = 16,
                   .heads = 4,
                   .kv_heads = 2,
                   .head_size = 8,
                   .ffn = 20,
                   .sequence = 8,
                   .vocabulary = 30,
                   .batch = 3,
                   .norm = Shape::Norm::rms,
                   .activation = Shape::Activation::swiglu,
                   .positions = Shape::Positions::none,
                   .biases = false,
                   .tied = false,
                   .dropout = 0.25,
                   .causal = false,
                   .vocabulary_multiple = 4,
                   .experts = 4,
                   .topk = 1,
                   .capacity_factor = 2.0,
                   .expert_every = 2}));
}

TEST(TransformerReader, ProblemsHavePlaces) {
  EXPECT_EQ(problems_of("layers: 2\nhidden: 10\nheads: 4\nsequence: 8\nvocabulary: 30\n"),
            "e.yaml:3:8: 10 of 'hidden' are not divisible by 4 heads: 2 are left; set 'head_size' "
            "if heads have another size");
  const std::string rest = "hidden: 8\nheads: 4\nsequence: 8\nvocabulary: 30\n";
  EXPECT_EQ(problems_of("layers: 2\n" + rest + "topk: 2\n"),
            "e.yaml:6:7: 'topk' is a setting of 'experts'");
  EXPECT_EQ(problems_of("layers: 2\n" + rest + "kv_heads: 3\n"),
            "e.yaml:6:11: 4 heads are not divisible by 3 'kv_heads': 1 are left");
  EXPECT_NE(problems_of("layers: 2\n" + rest + "head_sise: 2\n").find("e.yaml:6:1: "),
            std::string::npos);
  EXPECT_NE(problems_of("layers: 2\n" + rest + "head_sise: 2\n").find("'head_size'"),
            std::string::npos);
  EXPECT_NE(problems_of("layers: 2\n" + rest + "activation: gelo\n").find("did you mean 'gelu'?"),
            std::string::npos);
  EXPECT_NE(problems_of("layers: 2\n" + rest + "positions: rope\n").find("one of: learned, none"),
            std::string::npos);
  EXPECT_NE(problems_of(rest).find("'layers'"), std::string::npos);
}

} // namespace MONET_TEST_FILE
} // namespace monet
