// Loop nests against definitions written out by hand.
#include "workload/models.hpp"

#include "monet/base/errors.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

namespace monet {
namespace MONET_TEST_FILE {

using test::add_op;
using test::add_tensor;
using test::position;
using test::Shape;

std::string text(const LoopNest& nest, std::size_t operand) {
  std::string line;
  for (const AxisExpr& axis : nest.operands[operand].axes) {
    line += (line.empty() ? "" : ", ") + to_string(axis, nest.dims);
  }
  return line;
}

/// Message of the InputError that `make` throws, "" when it throws none.
template <class Make>
std::string error_of(Make&& make) {
  try {
    make();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Conv, StridedPaddedMap) {
  Graph graph;
  const auto x = add_tensor(graph, "x", {4, 32, 32, 32});
  const auto w = add_tensor(graph, "w", {64, 32, 3, 3}, TensorKind::parameter);
  const auto y = add_tensor(graph, "y", {4, 64, 16, 16});
  Attributes attributes;
  attributes.set("strides", Shape{2, 2});
  attributes.set("pads", Shape{1, 1, 1, 1});
  const LoopNest& nest = graph.op(add_op(graph, "Conv", {x, w}, {y}, attributes)).nest;
  EXPECT_EQ(text(nest, 0), "B, K, OY, OX");
  EXPECT_EQ(text(nest, 1), "B, C, 2*OY + FY - 1, 2*OX + FX - 1");
  EXPECT_EQ(text(nest, 2), "K, C, FY, FX");
  EXPECT_EQ(macs(nest), 4LL * 64 * 16 * 16 * 32 * 3 * 3);
}

// Every product of a convolution, once by the definition of ONNX, once by the nest.
RC_GTEST_PROP(Conv, MapIsTheDefinition, ()) {
  const auto size = [](std::int64_t from, std::int64_t to) {
    return *rc::gen::inRange(from, to + 1);
  };
  const std::int64_t groups = size(1, 3), k = size(1, 2), c = size(1, 2), kernel = size(1, 3),
                     stride = size(1, 3), dilation = size(1, 2), before = size(0, 2),
                     after = size(0, 2), length = size(1, 7);
  const std::int64_t room = length + before + after - ((kernel - 1) * dilation + 1);
  RC_PRE(room >= 0);
  const std::int64_t out = room / stride + 1;
  Graph graph;
  const auto x = add_tensor(graph, "x", {2, groups * c, length});
  const auto w = add_tensor(graph, "w", {groups * k, c, kernel}, TensorKind::parameter);
  const auto y = add_tensor(graph, "y", {2, groups * k, out});
  Attributes attributes;
  attributes.set("group", groups);
  attributes.set("strides", Shape{stride});
  attributes.set("dilations", Shape{dilation});
  attributes.set("pads", Shape{before, after});
  const LoopNest nest = graph.op(add_op(graph, "Conv", {x, w}, {y}, attributes)).nest;

  using Product = std::array<std::int64_t, 3>; // positions in y, x, w; -1 = padding
  std::multiset<Product> expected;
  for (std::int64_t b = 0; b < 2; ++b) {
    for (std::int64_t channel = 0; channel < groups * k; ++channel) {
      for (std::int64_t o = 0; o < out; ++o) {
        for (std::int64_t ci = 0; ci < c; ++ci) {
          for (std::int64_t f = 0; f < kernel; ++f) {
            const std::int64_t i = o * stride + f * dilation - before;
            const std::int64_t in_channel = channel / k * c + ci;
            expected.insert({(b * groups * k + channel) * out + o,
                             i < 0 || i >= length ? -1 : (b * groups * c + in_channel) * length + i,
                             (channel * c + ci) * kernel + f});
          }
        }
      }
    }
  }
  std::multiset<Product> found;
  test::for_each_iteration(nest, [&](const std::vector<std::int64_t>& index) {
    const auto at = [&](std::size_t operand) {
      const Access& access = nest.operands[operand];
      return position(access, graph.tensor(access.tensor).shape, index).value_or(-1);
    };
    found.insert({at(0), at(1), at(2)});
  });
  RC_ASSERT(found == expected);
}

// SAME_UPPER, 5 inputs, kernel 3, stride 2: 3 outputs cover (3-1)*2+3 = 7 positions, 2 more than
// there are; one in front.
TEST(Conv, AutoPadSplitsThePadding) {
  Graph graph;
  const auto x = add_tensor(graph, "x", {1, 1, 5});
  const auto w = add_tensor(graph, "w", {1, 1, 3});
  const auto y = add_tensor(graph, "y", {1, 1, 3});
  Attributes attributes;
  attributes.set("strides", Shape{2});
  attributes.set("auto_pad", std::string("SAME_UPPER"));
  const LoopNest& nest = graph.op(add_op(graph, "Conv", {x, w}, {y}, attributes)).nest;
  EXPECT_EQ(text(nest, 1), "B, C, 2*OX + FX - 1");
}

TEST(Conv, ContradictionsAreLocated) {
  Graph graph;
  graph.origin = "net.onnx";
  const auto x = add_tensor(graph, "x", {1, 3, 8, 8});
  const auto w = add_tensor(graph, "w", {8, 3, 3, 3});
  const auto y = add_tensor(graph, "y", {1, 8, 8, 8});
  EXPECT_EQ(
      error_of([&] {
        add_op(graph, "Conv", {x, w}, {y});
      }),
      "net.onnx [node 'Conv_0' (Conv)]: spatial axis 0 results in 6 outputs, but the output has 8");
  const auto z = add_tensor(graph, "z", {1, 8, 6, 6});
  Attributes attributes;
  attributes.set("group", std::int64_t{2});
  EXPECT_EQ(
      error_of([&] {
        add_op(graph, "Conv", {x, w}, {z}, attributes);
      }),
      "net.onnx [node 'Conv_1' (Conv), attribute 'group']: 3 input channels and 8 output channels "
      "do not fit weights of 8x3 in 2 groups");
}

// Stride 2, kernel 3, padding 1, one extra row: 4 -> (4-1)*2 + 3 - 2 + 1 = 8. Each of 4 inputs
// meets each of 3 taps.
TEST(ConvTranspose, ScattersFromTheInput) {
  Graph graph;
  const auto x = add_tensor(graph, "x", {1, 2, 4});
  const auto w = add_tensor(graph, "w", {2, 5, 3});
  const auto y = add_tensor(graph, "y", {1, 5, 8});
  Attributes attributes;
  attributes.set("strides", Shape{2});
  attributes.set("pads", Shape{1, 1});
  attributes.set("output_padding", Shape{1});
  const LoopNest& nest = graph.op(add_op(graph, "ConvTranspose", {x, w}, {y}, attributes)).nest;
  EXPECT_EQ(nest.operands[0].mode, AccessMode::accumulate);
  EXPECT_EQ(text(nest, 0), "B, K, 2*IX + FX - 1");
  EXPECT_EQ(text(nest, 1), "B, C, IX");
  EXPECT_EQ(text(nest, 2), "C, K, FX");
  EXPECT_EQ(macs(nest), 5 * 2 * 4 * 3);
}

TEST(MatMul, BroadcastsBatchAxes) {
  Graph graph;
  const auto a = add_tensor(graph, "a", {2, 1, 3, 4});
  const auto b = add_tensor(graph, "b", {5, 4, 6});
  const auto y = add_tensor(graph, "y", {2, 5, 3, 6});
  const LoopNest& nest = graph.op(add_op(graph, "MatMul", {a, b}, {y})).nest;
  EXPECT_EQ(text(nest, 0), "B, H, D, K");
  EXPECT_EQ(text(nest, 1), "B, 0, D, C");
  EXPECT_EQ(text(nest, 2), "H, C, K");
  EXPECT_EQ(macs(nest), 2 * 5 * 3 * 4 * 6);
}

TEST(MatMul, VectorsLackAnAxis) {
  Graph graph;
  const auto a = add_tensor(graph, "a", {4});
  const auto b = add_tensor(graph, "b", {4, 6});
  const auto v = add_tensor(graph, "v", {4});
  const auto y = add_tensor(graph, "y", {6});
  const auto z = add_tensor(graph, "z", {});
  const LoopNest left = graph.op(add_op(graph, "MatMul", {a, b}, {y})).nest;
  EXPECT_EQ(text(left, 0), "K");
  EXPECT_EQ(text(left, 2), "C, K");
  const LoopNest dot = graph.op(add_op(graph, "MatMul", {a, v}, {z})).nest;
  EXPECT_EQ(macs(dot), 4);
  EXPECT_TRUE(is_reduction(dot, 0));
}

// transBatchA: the matrix's first axis stands before the batch, [M, B, C]; transA then reads [C, B,
// M].
TEST(FusedMatMul, FlagsMoveAxes) {
  Graph graph;
  const auto a = add_tensor(graph, "a", {4, 7, 3});
  const auto b = add_tensor(graph, "b", {7, 5, 4});
  const auto y = add_tensor(graph, "y", {7, 3, 5});
  Attributes attributes;
  attributes.set("transA", std::int64_t{1});
  attributes.set("transBatchA", std::int64_t{1});
  attributes.set("transB", std::int64_t{1});
  const LoopNest& nest =
      graph.op(add_op(graph, "FusedMatMul", {a, b}, {y}, attributes, "com.microsoft")).nest;
  EXPECT_EQ(text(nest, 0), "B, D, K");
  EXPECT_EQ(text(nest, 1), "C, B, D");
  EXPECT_EQ(text(nest, 2), "B, K, C");
}

TEST(Gemm, BiasIsAnOperand) {
  Graph graph;
  const auto a = add_tensor(graph, "a", {8, 4});
  const auto b = add_tensor(graph, "b", {10, 4});
  const auto c = add_tensor(graph, "c", {10});
  const auto y = add_tensor(graph, "y", {8, 10});
  Attributes attributes;
  attributes.set("transB", std::int64_t{1});
  const LoopNest& nest = graph.op(add_op(graph, "Gemm", {a, b, c}, {y}, attributes)).nest;
  EXPECT_EQ(text(nest, 2), "K, C");
  EXPECT_EQ(nest.operands[3].role, "bias");
  EXPECT_EQ(text(nest, 3), "K");
  EXPECT_EQ(macs(nest), 8 * 4 * 10);
}

TEST(Elementwise, BroadcastsAndCounts) {
  Graph graph;
  const auto a = add_tensor(graph, "a", {2, 3, 4});
  const auto b = add_tensor(graph, "b", {3, 1});
  const auto c = add_tensor(graph, "c", {});
  const auto y = add_tensor(graph, "y", {2, 3, 4});
  const LoopNest& nest = graph.op(add_op(graph, "Sum", {a, b, c}, {y})).nest;
  EXPECT_EQ(text(nest, 1), "B, T, C");
  EXPECT_EQ(text(nest, 2), "T, 0");
  EXPECT_EQ(text(nest, 3), "");
  EXPECT_EQ(nest.work.add, 2); // three operands, two additions
  EXPECT_EQ(iterations(nest), 24);
  EXPECT_EQ(macs(nest), 0);
}

TEST(Elementwise, ShapesThatDoNotBroadcast) {
  Graph graph;
  const auto a = add_tensor(graph, "a", {2, 3});
  const auto b = add_tensor(graph, "b", {2});
  const auto y = add_tensor(graph, "y", {2, 3});
  EXPECT_NE(error_of([&] {
              add_op(graph, "Add", {a, b}, {y});
            }).find("node 'Add_0' (Add)]: a size of 2 does not broadcast to 3"),
            std::string::npos);
}

TEST(Pooling, WindowsMayLeaveTheInput) {
  Graph graph;
  const auto x = add_tensor(graph, "x", {1, 2, 8, 8});
  const auto y = add_tensor(graph, "y", {1, 2, 4, 4});
  Attributes attributes;
  attributes.set("kernel_shape", Shape{3, 3});
  attributes.set("strides", Shape{2, 2});
  attributes.set("pads", Shape{1, 1, 1, 1});
  const LoopNest& nest = graph.op(add_op(graph, "MaxPool", {x}, {y}, attributes)).nest;
  EXPECT_EQ(text(nest, 1), "B, C, 2*OY + FY - 1, 2*OX + FX - 1");
  EXPECT_EQ(iterations(nest), 2 * 4 * 4 * 3 * 3);
  EXPECT_EQ(nest.work.compare, 1);
}

TEST(Gather, IndicesInProgressionAreAffine) {
  Graph graph;
  const auto table = add_tensor(graph, "table", {10, 4}, TensorKind::parameter);
  const auto steps = test::add_integers(graph, "steps", {1, 3, 5});
  const auto odd = test::add_integers(graph, "odd", {1, 3, 4});
  const auto y = add_tensor(graph, "y", {3, 4});
  const auto z = add_tensor(graph, "z", {3, 4});
  const LoopNest even = graph.op(add_op(graph, "Gather", {table, steps}, {y})).nest;
  EXPECT_EQ(text(even, 1), "2*N + 1, C");
  const LoopNest rows = graph.op(add_op(graph, "Gather", {table, odd}, {z})).nest;
  EXPECT_TRUE(rows.operands[1].axes[0].data_dependent);
  EXPECT_EQ(rows.operands[2].role, "indices");
}

// [2, 3] and [2, 5] along axis 1: columns 0..2 come from the first, 3..7 from the second.
TEST(GridSample, LooksUpThePixelsAroundAPlace) {
  Graph graph;
  const auto x = add_tensor(graph, "x", {2, 3, 5, 6});
  const auto grid = add_tensor(graph, "grid", {2, 4, 7, 2});
  const auto y = add_tensor(graph, "y", {2, 3, 4, 7});
  const LoopNest& nest = graph.op(add_op(graph, "GridSample", {x, grid}, {y})).nest;
  EXPECT_EQ(text(nest, 0), "N, C, H, W");
  EXPECT_EQ(text(nest, 1), "N, C, ?, ?");
  EXPECT_EQ(nest.operands[1].passes, 4);
  EXPECT_EQ(text(nest, 2), "N, H, W, 0");
  EXPECT_EQ(text(nest, 3), "N, H, W, 1");
  EXPECT_EQ(iterations(nest) * nest.work.multiply, 2 * 3 * 4 * 7 * 4);
  const auto z = add_tensor(graph, "z", {2, 3, 4, 7});
  const LoopNest nearest =
      graph.op(add_op(graph, "GridSample", {x, grid}, {z}, {{"mode", std::string("nearest")}}))
          .nest;
  EXPECT_EQ(nearest.compute, ComputeKind::copy);
}

TEST(GridSample, ContradictionsAreLocated) {
  const auto error = [](const Shape& grid, const Shape& y, const Attributes& attributes,
                        ElementType type = ElementType::fp32) {
    return error_of([&] {
      Graph graph;
      const auto x = add_tensor(graph, "x", {2, 3, 5, 6});
      const auto places = add_tensor(graph, "grid", grid);
      graph.tensor(places).type = type;
      add_op(graph, "GridSample", {x, places}, {add_tensor(graph, "y", y)}, attributes);
    });
  };
  using testing::HasSubstr;
  EXPECT_THAT(error({2, 4, 7, 3}, {2, 3, 4, 7}, {}), HasSubstr("3 coordinates"));
  EXPECT_THAT(error({1, 4, 7, 2}, {2, 3, 4, 7}, {}), HasSubstr("1 images"));
  EXPECT_THAT(error({2, 4, 7, 2}, {2, 3, 7, 4}, {}), HasSubstr("grid's places"));
  EXPECT_THAT(error({2, 4, 2}, {2, 3, 4}, {}), HasSubstr("four axes"));
  EXPECT_THAT(error({2, 4, 7, 2}, {2, 3, 4, 7}, {{"mode", std::string("lanczos")}}),
              HasSubstr("attribute 'mode'"));
  EXPECT_THAT(error({2, 4, 7, 2}, {2, 3, 4, 7}, {}, ElementType::int64), HasSubstr("is int64"));
}

TEST(RoiAlign, SamplesAreTwoByTwoWhereRegionsDecide) {
  const auto nest_for = [](std::int64_t ratio) {
    Graph graph;
    const auto x = add_tensor(graph, "x", {2, 3, 20, 30});
    const auto regions = add_tensor(graph, "regions", {5, 4});
    const auto images = add_tensor(graph, "images", {5});
    graph.tensor(images).type = ElementType::int64;
    const auto y = add_tensor(graph, "y", {5, 3, 7, 8});
    return graph
        .op(add_op(graph, "RoiAlign", {x, regions, images}, {y},
                   {{"output_height", std::int64_t{7}},
                    {"output_width", std::int64_t{8}},
                    {"sampling_ratio", ratio}}))
        .nest;
  };
  const LoopNest nest = nest_for(3);
  EXPECT_EQ(text(nest, 0), "R, C, OY, OX");
  EXPECT_EQ(text(nest, 1), "?, C, ?, ?");
  EXPECT_EQ(text(nest, 5), "R, 3");
  EXPECT_EQ(text(nest, 6), "R");
  EXPECT_EQ(nest.operands[1].passes, 4 * 9);
  EXPECT_EQ(iterations(nest) * nest.work.multiply, 5 * 3 * 7 * 8 * 4 * 9);
  EXPECT_EQ(nest_for(0), nest_for(2));
  EXPECT_NE(error_of([&] { nest_for(-1); }), "");
  EXPECT_NE(error_of([&] { nest_for(std::int64_t{1} << 40); }), "");
}

TEST(MaxUnpool, GoesWhereIndicesSay) {
  const auto nest_for = [](const Shape& indices, const Shape& y) {
    Graph graph;
    const auto x = add_tensor(graph, "x", {2, 3, 4, 5});
    const auto places = add_tensor(graph, "indices", indices);
    graph.tensor(places).type = ElementType::int64;
    return graph.op(add_op(graph, "MaxUnpool", {x, places}, {add_tensor(graph, "y", y)})).nest;
  };
  const LoopNest nest = nest_for({2, 3, 4, 5}, {2, 3, 9, 10});
  EXPECT_EQ(text(nest, 0), "B, C, ?, ?");
  EXPECT_EQ(nest.operands[0].mode, AccessMode::accumulate);
  EXPECT_EQ(text(nest, 1), "B, C, OY, OX");
  EXPECT_NE(error_of([&] { nest_for({2, 3, 4, 4}, {2, 3, 9, 10}); }), "");
  EXPECT_NE(error_of([&] { nest_for({2, 3, 4, 5}, {2, 4, 9, 10}); }), "");
}

TEST(LpPool, NormsAreAtLeastOne) {
  Graph graph;
  const auto x = add_tensor(graph, "x", {2, 3, 4});
  const auto y = add_tensor(graph, "y", {2, 3, 1});
  EXPECT_NE(error_of([&] {
              add_op(graph, "GlobalLpPool", {x}, {y}, {{"p", std::int64_t{0}}});
            }),
            "");
}

TEST(Concat, PartsAreReadWhereTheyLie) {
  Graph graph;
  const auto a = add_tensor(graph, "a", {2, 3});
  const auto b = add_tensor(graph, "b", {2, 5});
  const auto y = add_tensor(graph, "y", {2, 8});
  Attributes attributes;
  attributes.set("axis", std::int64_t{-1});
  const LoopNest& nest = graph.op(add_op(graph, "Concat", {a, b}, {y}, attributes)).nest;
  const std::vector<Interval> columns_2_to_4{{0, 2}, {2, 5}};
  EXPECT_EQ(region(nest.operands[1], columns_2_to_4, Shape{2, 3}), (Box{{0, 2}, {2, 3}}));
  EXPECT_EQ(region(nest.operands[2], columns_2_to_4, Shape{2, 5}), (Box{{0, 2}, {0, 2}}));
}

TEST(Reduction, KeepsOrDropsAxes) {
  Graph graph;
  const auto x = add_tensor(graph, "x", {2, 3, 4});
  const auto kept = add_tensor(graph, "kept", {2, 1, 4});
  const auto dropped = add_tensor(graph, "dropped", {2, 4});
  Attributes attributes;
  attributes.set("axes", Shape{1});
  const LoopNest keep = graph.op(add_op(graph, "ReduceMax", {x}, {kept}, attributes)).nest;
  EXPECT_EQ(text(keep, 0), "B, 0, C");
  attributes.set("keepdims", std::int64_t{0});
  const LoopNest drop = graph.op(add_op(graph, "ReduceMax", {x}, {dropped}, attributes)).nest;
  EXPECT_EQ(text(drop, 0), "B, C");
  EXPECT_TRUE(is_reduction(drop, 1));
}

TEST(Registry, RulesAreUniqueAndFound) {
  for (const OperatorRow& rule : all_rows()) {
    EXPECT_EQ(find_row(rule.domain, rule.op_type), &rule);
    EXPECT_EQ(rule.view, rule.nest == nullptr);
    EXPECT_NE(rule.operands.find('>'), std::string_view::npos) << rule.op_type.name();
  }
  EXPECT_EQ(find_row("", "Convolution"), nullptr);
  EXPECT_EQ(find_row("com.example", "Conv"), nullptr);
}

} // namespace MONET_TEST_FILE
} // namespace monet
