// docs/operators.md is generated from the code's own tables.
#include "monet/base/files.hpp"
#include "monet/training/operator_table.hpp"

#include <gtest/gtest.h>

#include <string>

namespace monet {
namespace {

TEST(OperatorTable, is_what_the_documentation_shows) {
  EXPECT_EQ(operator_table(), read_file(std::string(MONET_SOURCE_DIR) + "/docs/operators.md"))
      << "run: monet graph --operators > docs/operators.md";
}

TEST(OperatorTable, tells_views_and_gradients) {
  const std::string table = operator_table();
  EXPECT_NE(table.find("| Conv | ai.onnx | nest | yes |"), std::string::npos);
  EXPECT_NE(table.find("| Reshape | ai.onnx | view | yes |"), std::string::npos);
  EXPECT_NE(table.find("| Greater | ai.onnx | nest | stops here |"), std::string::npos);
  EXPECT_NE(table.find("| TopK | ai.onnx | nest | no |"), std::string::npos);
  EXPECT_EQ(table.find("ai.monet"), std::string::npos);
}

} // namespace
} // namespace monet
