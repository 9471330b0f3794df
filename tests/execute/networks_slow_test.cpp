// Three steps of the larger networks with every recorded optimiser.
#include "execute/network_check.hpp"

#include <gtest/gtest.h>

namespace monet {
namespace {

using test::Training;

class LargeNetworks : public testing::TestWithParam<Training> {};

TEST_P(LargeNetworks, ThreeStepsEqualPyTorch) {
  test::check_training(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Slow, LargeNetworks, testing::ValuesIn(test::recorded_trainings(true)),
                         [](const auto& training) { return test::name_of(training.param); });

} // namespace
} // namespace monet
