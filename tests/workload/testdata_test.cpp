// ONNX's own test models (Debian package libonnx-testdata), where installed: each is read, or
// refused with words that name the node or tensor at fault.
#include "workload/shared/operators.hpp"

#include "monet/base/errors.hpp"
#include "monet/workload/onnx_reader.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>

namespace monet {
namespace {

constexpr const char* kFolder = "/usr/share/libonnx-testdata";
/// Read when this was written; fewer is a step back.
constexpr int kReadAtLeast = 900;

TEST(OnnxTestData, EveryModelIsReadOrRefusedWithAReason) {
  if (!std::filesystem::exists(kFolder))
    GTEST_SKIP() << "libonnx-testdata is not installed";
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kFolder)) {
    if (entry.path().extension() == ".onnx")
      paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  int read = 0;
  int refused = 0;
  std::map<std::pair<std::string, std::string>, Fusion> needed;
  OnnxReadOptions options;
  options.batch = 1;
  for (const std::string& path : paths) {
    try {
      const Graph graph = read_onnx(path, options);
      verify(graph);
      ++read;
      for (const Operator& op : graph.operators()) {
        Fusion& most =
            needed.try_emplace({op.domain, op.op_type.str()}, Fusion::tiles).first->second;
        most = std::max(most, fusion_of(op.nest));
      }
    } catch (const InputError& error) {
      ++refused;
      for (const InputProblem& problem : error.problems()) {
        const bool located = problem.where.element.find("node '") != std::string::npos ||
                             problem.where.element.find("tensor '") != std::string::npos;
        EXPECT_TRUE(located) << path << ": " << problem.to_string();
      }
    }
  }
  RecordProperty("read", read);
  RecordProperty("refused", refused);
  printf("%d models read, %d refused\n", read, refused);
  EXPECT_GE(read, kReadAtLeast);
  for (const auto& [type, fusion] : needed) {
    EXPECT_LE(fusion, find_row(type.first, type.second)->fusion)
        << type.first << "." << type.second << " is " << name_of(fusion);
  }
}

} // namespace
} // namespace monet
