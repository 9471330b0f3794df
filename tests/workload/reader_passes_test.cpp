// The passes of read_onnx(): their order and contracts, and what each takes and makes.
#include "base/shared/text.hpp"
#include "workload/models.hpp"

#include "monet/base/files.hpp"
#include "monet/workload/onnx_reader.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>

namespace monet {
namespace MONET_TEST_FILE {

using test::ModelMaker;

std::vector<PassRecord> passes_of(const ModelMaker& model, const OnnxReadOptions& options) {
  std::vector<PassRecord> passes;
  const Graph graph = read_onnx_bytes(model.bytes(), "net.onnx", options,
                                      [&](const PassRecord& pass) { passes.push_back(pass); });
  for (std::size_t i = 1; i < passes.size(); ++i)
    EXPECT_EQ(passes[i].before, passes[i - 1].after) << line_of(passes[i]);
  EXPECT_EQ(passes.back().after, (PassSize{graph.operators().size(), graph.tensors().size()}));
  return passes;
}

/// y = x * sigmoid(x), with a shape that is folded and a node that no output needs.
ModelMaker silu() {
  ModelMaker model;
  model.input("x", {-1, 4}).output("y");
  model.node("Sigmoid", {"x"}, {"s"});
  model.node("Mul", {"x", "s"}, {"p"});
  model.node("Shape", {"x"}, {"shape"});
  model.node("Reshape", {"p", "shape"}, {"y"});
  model.node("Relu", {"x"}, {"unused"});
  return model;
}

TEST(ReaderPasses, EachIsEnteredOnceAndNeedsOnlyWhatEarlierOnesMake) {
  std::set<std::string_view> names;
  std::set<std::string, std::less<>> made{"bytes"};
  for (const PassRecord& pass : passes_of(silu(), {.batch = 2})) {
    EXPECT_TRUE(names.insert(pass.name).second) << pass.name;
    constexpr auto kAll = std::numeric_limits<std::size_t>::max();
    for (const std::string_view need : split(pass.needs, ',', kAll))
      EXPECT_TRUE(made.contains(trimmed(need))) << pass.name << " needs " << need;
    for (const std::string_view make : split(pass.makes, ',', kAll))
      made.emplace(trimmed(make));
  }
}

TEST(ReaderPasses, ShowWhatEachTakesAndMakes) {
  std::string text;
  for (const PassRecord& pass : passes_of(silu(), {.batch = 2}))
    text += pass.skipped
                ? fmt::format("{} skipped\n", pass.name)
                : fmt::format("{} {} {}\n", pass.name, pass.after.operators, pass.after.tensors);
  EXPECT_EQ(text, "parse the file 5 0\n"
                  "tie equal weights 5 0\n"
                  "inline functions skipped\n"
                  "name nodes 5 0\n"
                  "sort nodes 5 0\n"
                  "drop dead nodes 4 0\n"
                  "bind inputs 4 1\n"
                  "decide kinds 4 1\n"
                  "take initialisers 4 1\n"
                  "evaluate nodes 3 5\n"
                  "report problems 3 5\n"
                  "recognise chains 2 5\n"
                  "drop nodes of shapes 2 5\n"
                  "assemble the graph 2 4\n"
                  "build loop nests 2 4\n");
}

TEST(ReaderPasses, TheContributorsPageListsThem) {
  const std::string page = read_file(std::string(MONET_SOURCE_DIR) + "/docs/contributing/code.md");
  for (const PassRecord& pass : passes_of(silu(), {.batch = 2})) {
    const std::string row = fmt::format("| {} | {} | {} |", pass.name, pass.needs, pass.makes);
    EXPECT_NE(page.find(row), page.npos) << row;
  }
}

} // namespace MONET_TEST_FILE
} // namespace monet
