// docs/reference/operators.md is generated from the code's own tables.
#include "report/shared/operator_table.hpp"

#include "monet/base/files.hpp"

#include <gtest/gtest.h>

#include <string>

namespace monet {
namespace {

TEST(OperatorTable, IsWhatTheDocumentationShows) {
  EXPECT_EQ(operator_table(),
            read_file(std::string(MONET_SOURCE_DIR) + "/docs/reference/operators.md"))
      << "run: monet graph --operators > docs/reference/operators.md";
}

TEST(OperatorTable, TellsViewsGradientsAndFusion) {
  const std::string table = operator_table();
  EXPECT_NE(table.find("| Conv | ai.onnx | nest | yes | tiles | yes |"), std::string::npos);
  EXPECT_NE(table.find("| Reshape | ai.onnx | view | yes | folded | yes |"), std::string::npos);
  EXPECT_NE(table.find("| Softmax | ai.onnx | nest | yes | rows | yes |"), std::string::npos);
  EXPECT_NE(table.find("| Greater | ai.onnx | nest | stops here | tiles |"), std::string::npos);
  EXPECT_NE(table.find("| TopK | ai.onnx | nest | yes | whole | yes |"), std::string::npos);
  EXPECT_EQ(table.find("ReluGrad | ai.monet"), std::string::npos); // steps hold it, networks do not
}

} // namespace
} // namespace monet
