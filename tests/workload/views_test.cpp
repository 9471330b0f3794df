// Folded access maps against the elements that chains of views show, enumerated.
#include "workload/models.hpp"
#include "workload/shared/views.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>

namespace monet {
namespace {

using test::add_op;
using test::add_tensor;
using test::Shape;

/// Element numbers of the base that a tensor shows, row-major.
using Contents = std::vector<std::int64_t>;

std::int64_t count_of(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

/// contents'[index] = contents[source(index)] for all indices of `to`; written without strides on
/// purpose.
template <class Source>
Contents gather(const Contents& contents, const Shape& from, const Shape& to, Source&& source) {
  Contents result;
  for (std::int64_t flat = 0; flat < count_of(to); ++flat) {
    Shape index(to.size());
    std::int64_t rest = flat;
    for (std::size_t i = to.size(); i-- > 0;) {
      index[i] = rest % to[i];
      rest /= to[i];
    }
    const Shape at = source(index);
    std::int64_t position = 0;
    for (std::size_t i = 0; i < from.size(); ++i)
      position = position * from[i] + at[i];
    result.push_back(contents[static_cast<std::size_t>(position)]);
  }
  return result;
}

/// A graph growing by random views, with what each tensor shows.
struct Chain {
  Graph graph;
  TensorId last;
  std::map<std::string, Contents> contents;

  const Shape& shape() const { return graph.tensor(last).shape; }
  const Contents& shown() const { return contents.at(graph.tensor(last).name); }

  void append(const std::string& op_type, std::vector<TensorId> arguments, Shape shape,
              Contents now, Attributes attributes = {}) {
    const std::string name = "t" + std::to_string(graph.tensors().size());
    const TensorId made = add_tensor(graph, name, std::move(shape));
    arguments.insert(arguments.begin(), last);
    add_op(graph, op_type, arguments, {made}, std::move(attributes));
    contents[name] = std::move(now);
    last = made;
  }
};

std::int64_t pick(std::int64_t from, std::int64_t to) {
  return *rc::gen::inRange(from, to + 1);
}

void append_transpose(Chain& chain) {
  Shape perm(chain.shape().size());
  std::iota(perm.begin(), perm.end(), 0);
  for (std::size_t i = perm.size(); i > 1; --i) {
    std::swap(perm[i - 1],
              perm[static_cast<std::size_t>(pick(0, static_cast<std::int64_t>(i) - 1))]);
  }
  Shape to;
  for (const auto axis : perm)
    to.push_back(chain.shape()[static_cast<std::size_t>(axis)]);
  Attributes attributes;
  attributes.set("perm", perm);
  const Contents now = gather(chain.shown(), chain.shape(), to, [&](const Shape& index) {
    Shape at(index.size());
    for (std::size_t i = 0; i < perm.size(); ++i)
      at[static_cast<std::size_t>(perm[i])] = index[i];
    return at;
  });
  chain.append("Transpose", {}, to, now, attributes);
}

void append_reshape(Chain& chain) {
  Shape to;
  std::int64_t rest = count_of(chain.shape());
  while (rest > 1 && to.size() < 4) {
    std::vector<std::int64_t> divisors;
    for (std::int64_t d = 1; d <= rest; ++d) {
      if (rest % d == 0)
        divisors.push_back(d);
    }
    to.push_back(divisors[static_cast<std::size_t>(
        pick(0, static_cast<std::int64_t>(divisors.size()) - 1))]);
    rest /= to.back();
  }
  if (rest > 1 || to.empty())
    to.push_back(rest);
  chain.append("Reshape", {}, to, Contents(chain.shown()));
}

/// [n] -> [n, 1].
void append_column(Chain& chain) {
  chain.append("Reshape", {}, {count_of(chain.shape()), 1}, Contents(chain.shown()));
}

void append_slice(Chain& chain) {
  const Shape from = chain.shape();
  if (from.empty())
    return;
  const auto axis = static_cast<std::size_t>(pick(0, static_cast<std::int64_t>(from.size()) - 1));
  const std::int64_t step = pick(0, 1) == 0 ? pick(1, 2) : -pick(1, 2);
  const std::int64_t start = pick(0, from[axis] - 1);
  const std::int64_t room = step > 0 ? from[axis] - 1 - start : start;
  const std::int64_t size = room / (step > 0 ? step : -step) + 1;
  Shape to = from;
  to[axis] = size;
  const std::int64_t far = 1000;
  const auto n = std::to_string(chain.graph.tensors().size());
  std::vector<TensorId> arguments{
      test::add_integers(chain.graph, "starts" + n, {start}),
      test::add_integers(chain.graph, "ends" + n, {step > 0 ? far : -far}),
      test::add_integers(chain.graph, "axes" + n, {static_cast<std::int64_t>(axis)}),
      test::add_integers(chain.graph, "steps" + n, {step})};
  const Contents now = gather(chain.shown(), from, to, [&](Shape index) {
    index[axis] = start + step * index[axis];
    return index;
  });
  chain.append("Slice", arguments, to, now);
}

void append_expand(Chain& chain) {
  const Shape from = chain.shape();
  Shape to = from;
  for (std::int64_t& size : to) {
    if (size == 1 && pick(0, 1) == 1)
      size = pick(1, 3);
  }
  if (to.size() < 4 && pick(0, 2) == 0)
    to.insert(to.begin(), pick(1, 2));
  const std::size_t skipped = to.size() - from.size();
  const Contents now = gather(chain.shown(), from, to, [&](const Shape& index) {
    Shape at;
    for (std::size_t i = 0; i < from.size(); ++i)
      at.push_back(from[i] == 1 ? 0 : index[skipped + i]);
    return at;
  });
  chain.append("Expand", {}, to, now);
}

Chain random_chain() {
  Chain chain;
  Shape base;
  for (std::int64_t i = pick(1, 4); i > 0; --i)
    base.push_back(pick(1, 6));
  chain.last = add_tensor(chain.graph, "base", base, TensorKind::input);
  Contents all(static_cast<std::size_t>(count_of(base)));
  std::iota(all.begin(), all.end(), 0);
  chain.contents["base"] = all;
  for (std::int64_t i = pick(1, 4); i > 0; --i) {
    switch (pick(0, 4)) {
    case 0:
      append_transpose(chain);
      break;
    case 1:
      append_slice(chain);
      break;
    case 2:
      append_expand(chain);
      break;
    default:
      append_reshape(chain);
      break;
    }
  }
  return chain;
}

/// What a Copy's output holds, by its nest; an opaque one holds what the view shows.
Contents copied(const Graph& graph, const Operator& op, const std::map<std::string, Contents>& held,
                const Contents& view) {
  const Access& from = op.nest.operands[1];
  if (from.opaque)
    return view;
  const Tensor& source = graph.tensor(from.tensor);
  const Tensor& target = graph.tensor(op.nest.operands[0].tensor);
  Contents result(view.size(), -7);
  test::for_each_iteration(op.nest, [&](const std::vector<std::int64_t>& index) {
    const auto to = test::position(op.nest.operands[0], target.shape, index);
    const auto at = test::position(from, source.shape, index);
    RC_ASSERT(to.has_value() && at.has_value());
    result[static_cast<std::size_t>(*to)] = held.at(source.name)[static_cast<std::size_t>(*at)];
  });
  return result;
}

/// The element of `base` that operand 1 reads in every iteration (-1 = padding), in loop order.
Contents reads(const Graph& graph, const LoopNest& nest, std::size_t operand,
               const std::map<std::string, Contents>& held) {
  Contents list;
  const Access& access = nest.operands[operand];
  const Tensor& tensor = graph.tensor(access.tensor);
  test::for_each_iteration(nest, [&](const std::vector<std::int64_t>& index) {
    const auto at = test::position(access, tensor.shape, index);
    list.push_back(at ? held.at(tensor.name)[static_cast<std::size_t>(*at)] : -1);
  });
  return list;
}

/// The reader of the chain is the last operator. Splitting a loop keeps the order of iterations, so
/// lists compare.
void expect_same_reads(const Chain& chain, std::size_t operand) {
  const Graph folded = fold_views(chain.graph);
  verify(folded);
  std::map<std::string, Contents> held{{"base", chain.contents.at("base")}};
  for (const Operator& op : folded.operators()) {
    if (op.op_type != "Copy")
      continue;
    const std::string& name = folded.tensor(*op.outputs[0]).name;
    held[name] = copied(folded, op, held, chain.contents.at(name));
    RC_ASSERT(held[name] == chain.contents.at(name));
  }
  const LoopNest& before = chain.graph.operators().back().nest;
  const LoopNest& after = folded.operators().back().nest;
  RC_ASSERT(iterations(before) == iterations(after));
  RC_ASSERT(reads(folded, after, operand, held) ==
            reads(chain.graph, before, operand, chain.contents));
}

RC_GTEST_PROP(FoldViews, ElementwiseReaderSeesTheSameElements, ()) {
  Chain chain = random_chain();
  const TensorId y = add_tensor(chain.graph, "y", chain.shape());
  add_op(chain.graph, "Relu", {chain.last}, {y});
  expect_same_reads(chain, 1);
}

RC_GTEST_PROP(FoldViews, ProductReaderSeesTheSameElements, ()) {
  Chain chain = random_chain();
  if (chain.shape().size() < 2U)
    append_column(chain);
  Shape out = chain.shape();
  const TensorId w = add_tensor(chain.graph, "w", {out.back(), 2}, TensorKind::parameter);
  out.back() = 2;
  const TensorId y = add_tensor(chain.graph, "y", out);
  add_op(chain.graph, "MatMul", {chain.last, w}, {y});
  expect_same_reads(chain, 1);
}

// Concat reads its second part at negative indices outside it: padding that must not become other
// elements.
RC_GTEST_PROP(FoldViews, PaddedReaderSeesTheSamePadding, ()) {
  Chain chain = random_chain();
  RC_PRE(!chain.shape().empty());
  Shape out = chain.shape();
  Shape front = out;
  front[0] = 2;
  out[0] += 2;
  const TensorId first = add_tensor(chain.graph, "front", front, TensorKind::input);
  const TensorId y = add_tensor(chain.graph, "y", out);
  add_op(chain.graph, "Concat", {first, chain.last}, {y});
  expect_same_reads(chain, 2);
}

// rows = batch * 8 + position: [2, 8, 6] seen as [16, 6]. The product's row loop becomes 2 x 8.
TEST(FoldViews, ReshapeSplitsTheRowLoop) {
  Graph graph;
  const auto x = add_tensor(graph, "x", {2, 8, 6}, TensorKind::input);
  const auto rows = add_tensor(graph, "rows", {16, 6});
  const auto w = add_tensor(graph, "w", {6, 5}, TensorKind::parameter);
  const auto y = add_tensor(graph, "y", {16, 5});
  add_op(graph, "Reshape", {x}, {rows});
  add_op(graph, "Gemm", {rows, w}, {y});
  graph.outputs = {y};
  const Graph folded = fold_views(graph);
  ASSERT_EQ(folded.operators().size(), 1U);
  const LoopNest& nest = folded.operators()[0].nest;
  const std::vector<LoopDim> expected{{"D_outer", 2}, {"D", 8}, {"C", 6}, {"K", 5}};
  EXPECT_EQ(nest.dims, expected);
  EXPECT_EQ(to_string(nest.operands[0].axes[0], nest.dims), "8*D_outer + D");
  EXPECT_EQ(folded.tensor(nest.operands[1].tensor).name, "x");
  EXPECT_FALSE(folded.find_tensor("rows").has_value());
}

// [4, 6] as [6, 4]: row 1 begins at element 4, in the middle of a row of the source. No affine map.
TEST(FoldViews, StraddlingReshapeIsACopy) {
  Graph graph;
  const auto x = add_tensor(graph, "x", {4, 6}, TensorKind::input);
  const auto v = add_tensor(graph, "v", {6, 4});
  const auto y = add_tensor(graph, "y", {6, 4});
  add_op(graph, "Reshape", {x}, {v});
  add_op(graph, "Relu", {v}, {y});
  graph.outputs = {y};
  const Graph folded = fold_views(graph);
  ASSERT_EQ(folded.operators().size(), 2U);
  EXPECT_EQ(folded.operators()[0].op_type, "Copy");
  EXPECT_EQ(folded.operators()[0].name, "Reshape_0");
  EXPECT_TRUE(folded.operators()[0].nest.operands[1].opaque);
}

/// Attention as PyTorch exports it: rows = position * images + image, a product, and back.
struct Flattened {
  Graph graph;
  TensorId y, z;

  Flattened() {
    const auto x = add_tensor(graph, "x", {3, 4, 6}, TensorKind::input);
    const auto rows = add_tensor(graph, "rows", {12, 6});
    const auto w = add_tensor(graph, "w", {6, 5}, TensorKind::parameter);
    y = add_tensor(graph, "y", {12, 5});
    const auto apart = add_tensor(graph, "apart", {3, 4, 5});
    const auto images = add_tensor(graph, "images", {4, 3, 5});
    z = add_tensor(graph, "z", {4, 3, 5});
    add_op(graph, "Reshape", {x}, {rows});
    add_op(graph, "Gemm", {rows, w}, {y});
    add_op(graph, "Reshape", {y}, {apart});
    Attributes perm;
    perm.set("perm", std::vector<std::int64_t>{1, 0, 2});
    add_op(graph, "Transpose", {apart}, {images}, perm);
    add_op(graph, "Relu", {images}, {z});
    graph.outputs = {z};
  }
  const Tensor& folded_y(const Graph& folded) const {
    return folded.tensor(*folded.find_tensor("y"));
  }
};

TEST(FoldViews, AnAxisOfInterleavedLoopsBecomesTwo) {
  const Flattened made;
  const Graph folded = fold_views(made.graph);
  verify(folded);
  ASSERT_EQ(folded.operators().size(), 2U);
  EXPECT_EQ(made.folded_y(folded).shape, (Shape{3, 4, 5}));
  const LoopNest& product = folded.operators()[0].nest;
  const Access& written = product.operands[0];
  ASSERT_EQ(written.axes.size(), 3U);
  EXPECT_EQ(to_string(written.axes[0], product.dims), "D_outer");
  EXPECT_EQ(to_string(written.axes[1], product.dims), "D");
  EXPECT_EQ(to_string(written.axes[2], product.dims), "K");
  const Operator& relu = folded.operators()[1];
  EXPECT_EQ(folded.tensor(*relu.outputs[0]).shape, (Shape{4, 3, 5}));
  EXPECT_EQ(volume(region(relu.nest.operands[1], full_tile(relu.nest), Shape{3, 4, 5})), 60);
}

TEST(FoldViews, AnAxisThatSomebodySeesWholeStaysOne) {
  Flattened made;
  const auto all = add_tensor(made.graph, "all", {12, 5});
  add_op(made.graph, "Relu", {made.y}, {all});
  EXPECT_EQ(made.folded_y(fold_views(made.graph)).shape, (Shape{12, 5}));
}

// Windows of four rows, every four, read parts of the axis; windows of five overlap by one row.
TEST(FoldViews, AnAxisWhoseReaderHasOverlappingWindowsStaysOne) {
  for (const std::int64_t window : {4, 5}) {
    Flattened made;
    const auto all = add_tensor(made.graph, "all", {12, 5});
    const OpId reader = add_op(made.graph, "Relu", {made.y}, {all});
    LoopNest& nest = made.graph.op(reader).nest;
    nest.dims = {{"O", 2}, {"F", window}, {"K", 5}};
    for (Access& operand : nest.operands)
      operand.axes = {{.terms = {{0, 4}, {1, 1}}}, {.terms = {{2, 1}}}};
    const Shape parted{3, 4, 5};
    const Shape whole{12, 5};
    EXPECT_EQ(made.folded_y(fold_views(made.graph)).shape, window == 4 ? parted : whole);
  }
}

/// The rows of y become 3 x 4: blocks of 4 rows lie along the inner axis, those of 8 would be cut.
TEST(FoldViews, PartedAxesKeepTheBlocksThatShareAScale) {
  struct Case {
    const char* type;
    Shape shape;
    const char* parted_type;
  };
  for (const Case& one : {Case{"mxint8", {3, 4, 5}, "mxint8"},
                          {"mxint8_4x1", {3, 4, 5}, "mxint8_4x1"},
                          {"mxint8_8x1", {12, 5}, "mxint8_8x1"},
                          {"fp8_e4m3_128x128", {12, 5}, "fp8_e4m3_128x128"},
                          {"mxint8_2x1x1", {3, 4, 5}, "mxint8_2x1x1x1"}}) {
    Flattened made;
    made.graph.tensor(made.y).type = element_type_named(one.type).value();
    const Tensor y = made.folded_y(fold_views(made.graph));
    EXPECT_EQ(y.shape, one.shape) << one.type;
    EXPECT_EQ(name_of(y.type), one.parted_type);
    EXPECT_EQ(size_of(y).value, size_of(made.graph.tensor(made.y)).value) << one.type;
  }
}

TEST(FoldViews, WhatLeavesTheGraphKeepsItsShape) {
  Flattened made;
  made.graph.outputs.push_back(made.y);
  EXPECT_EQ(made.folded_y(fold_views(made.graph)).shape, (Shape{12, 5}));
}

TEST(FoldViews, ViewedTensorBecomesTheOutput) {
  Graph graph;
  const auto x = add_tensor(graph, "x", {2, 3}, TensorKind::input);
  const auto y = add_tensor(graph, "y", {2, 3});
  const auto z = add_tensor(graph, "z", {3, 2});
  add_op(graph, "Relu", {x}, {y});
  add_op(graph, "Transpose", {y}, {z});
  graph.outputs = {z};
  const Graph folded = fold_views(graph);
  ASSERT_EQ(folded.outputs.size(), 1U);
  EXPECT_EQ(folded.tensor(folded.outputs[0]).name, "y");
}

} // namespace
} // namespace monet
