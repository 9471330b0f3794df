#include "base/shared/parallel.hpp"

#include "monet/base/warnings.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace monet {
namespace {

TEST(Warnings, WithoutAScopeAreLost) {
  EXPECT_EQ(WarningScope::current(), nullptr);
  EXPECT_NO_THROW(warn({"a.yaml", 1, 2, ""}, "lost"));
}

TEST(Warnings, ReachTheInnermostScopeOnce) {
  std::vector<std::string> heard;
  const WarningScope outer;
  {
    const WarningScope inner([&](const InputProblem& w) { heard.push_back(w.to_string()); });
    warn({"b.yaml", 1, 1, ""}, "second");
    warn({"a.yaml", 7, 1, ""}, "first", "look there");
    warn({"b.yaml", 1, 1, ""}, "second");
    ASSERT_EQ(inner.warnings().size(), 2U);
    EXPECT_EQ(inner.warnings()[0].what, "first");
    EXPECT_EQ(inner.warnings()[0].hint, "look there");
    EXPECT_EQ(inner.warnings()[1].what, "second");
  }
  EXPECT_EQ(heard.size(), 2U);
  EXPECT_TRUE(outer.warnings().empty());
}

TEST(Warnings, OfAllThreadsOfALoopAreSorted) {
  const WarningScope scope;
  parallel_for(100, 4, [](std::size_t i) {
    warn({"n.onnx", 0, 0, fmt::format("node {:02}", i / 2)}, "shared by two");
  });
  const std::vector<InputProblem> found = scope.warnings();
  ASSERT_EQ(found.size(), 50U);
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_EQ(found[i].where.element, fmt::format("node {:02}", i));
}

} // namespace
} // namespace monet
