// Every core and system file in tests/input_errors/ must be refused with the line that follows it.
#include "base/input_cases.hpp"

#include "monet/hardware/read_hardware.hpp"

#include <gtest/gtest.h>

namespace monet {
namespace MONET_TEST_FILE {

using test::InputCase;

class CoreInputErrors : public testing::TestWithParam<InputCase> {};
class ChipInputErrors : public testing::TestWithParam<InputCase> {};

TEST_P(CoreInputErrors, NameTheirPlaceAndCause) {
  EXPECT_EQ(test::error_of(GetParam(), read_core), GetParam().error);
}

TEST_P(ChipInputErrors, NameTheirPlaceAndCause) {
  EXPECT_EQ(test::error_of(GetParam(), read_chip), GetParam().error);
}

INSTANTIATE_TEST_SUITE_P(Files, CoreInputErrors, testing::ValuesIn(test::input_cases("core")),
                         test::input_case_name);
INSTANTIATE_TEST_SUITE_P(Files, ChipInputErrors, testing::ValuesIn(test::input_cases("chip")),
                         test::input_case_name);

TEST(BadHardware, HasManyCases) {
  EXPECT_GE(test::input_cases("core").size(), 70U);
  EXPECT_GE(test::input_cases("chip").size(), 25U);
}

TEST(BadHardware, ReportsAllProblemsInOneRun) {
  const std::vector<InputCase> cases = test::input_cases("core");
  const auto three = std::ranges::find(cases, "core_three_problems", &InputCase::name);
  ASSERT_NE(three, cases.end());
  try {
    parse_core(three->text(), "core.yaml");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.problems().size(),
              4U); // the key that is unknown is also the one that is missing
  }
}

} // namespace MONET_TEST_FILE
} // namespace monet
