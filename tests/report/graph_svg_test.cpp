#include "report/shared/optimise_result.hpp"
#include "training_graph/tiny_network.hpp"

#include <gtest/gtest.h>

#include <regex>
#include <set>

namespace monet::test {
namespace {

std::ptrdiff_t count(const std::string& text, const std::string& part) {
  const std::regex pattern(part);
  return std::distance(std::sregex_iterator(text.begin(), text.end(), pattern),
                       std::sregex_iterator());
}

TrainingGraph step_of(const std::string& name) {
  TinyNetwork net;
  net.graph.name = name;
  const TensorId x = net.input("x", {4, 8});
  const TensorId hidden =
      net.op("Gemm", {x, net.parameter("w", {8, 16}), net.parameter("b", {16})}, {4, 16});
  const TensorId relu = net.op("Relu", {hidden}, {4, 16});
  const TensorId y =
      net.op("Gemm", {relu, net.parameter("v", {16, 3}), net.parameter("c", {3})}, {4, 3});
  net.graph.outputs = {y};
  return fold_views(make_training_graph(net.graph, {}));
}

TEST(GraphSvg, DrawsEveryOperatorAndEveryTensorBetweenTwo) {
  const TrainingGraph step = step_of("mlp");
  const std::string svg = graph_svg(step);
  const auto operators = static_cast<std::ptrdiff_t>(step.graph.operators().size());
  EXPECT_EQ(count(svg, "rx=\"5\""), operators);
  std::ptrdiff_t edges = 0;
  for (const Operator& op : step.graph.operators()) {
    std::set<TensorId> read;
    for (const auto& input : op.inputs) {
      if (input && step.graph.tensor(*input).producer)
        edges += read.insert(*input).second;
    }
  }
  EXPECT_EQ(count(svg, "marker-end"), edges);
  EXPECT_EQ(count(svg, ">AdamUpdate<"), 4);
  EXPECT_GT(count(svg, "stroke=\"#d55e00\" stroke-width=\"1.4\" stroke-dasharray"), 1); // stored
  EXPECT_EQ(graph_svg(step), svg);
}

TEST(GraphSvg, NamesAreText) {
  const std::string svg = graph_svg(step_of("<script>alert('&')</script>"));
  EXPECT_EQ(svg.find("<script"), std::string::npos);
  EXPECT_NE(svg.find("&lt;script&gt;"), std::string::npos);
}

} // namespace
} // namespace monet::test
