// Every cluster file and kernel table in tests/input_errors/ must be refused with the line that
// follows it.
#include "base/input_cases.hpp"

#include "monet/cluster/cluster.hpp"
#include "monet/cluster/kernel_table.hpp"

#include <gtest/gtest.h>

namespace monet {
namespace {

using test::InputCase;

class ClusterInputErrors : public testing::TestWithParam<InputCase> {};
class KernelInputErrors : public testing::TestWithParam<InputCase> {};

TEST_P(ClusterInputErrors, NameTheirPlaceAndCause) {
  EXPECT_EQ(test::error_of(GetParam(), read_cluster), GetParam().error);
}

TEST_P(KernelInputErrors, NameTheirPlaceAndCause) {
  EXPECT_EQ(test::error_of(GetParam(), read_kernel_table), GetParam().error);
}

INSTANTIATE_TEST_SUITE_P(Files, ClusterInputErrors, testing::ValuesIn(test::input_cases("cluster")),
                         test::input_case_name);
INSTANTIATE_TEST_SUITE_P(Files, KernelInputErrors, testing::ValuesIn(test::input_cases("kernels")),
                         test::input_case_name);

TEST(BadClusters, HaveManyCases) {
  EXPECT_GE(test::input_cases("cluster").size(), 18U);
  EXPECT_GE(test::input_cases("kernels").size(), 18U);
}

} // namespace
} // namespace monet
