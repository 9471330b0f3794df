// Whole networks against PyTorch: the loss, every gradient and the running statistics of one step
// however it is made, and every weight and optimiser state after three steps, in double precision.
#include "execute/network_check.hpp"
#include "level.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace monet {
namespace {

using test::Training;
using test::Variant;

class Networks : public testing::TestWithParam<std::tuple<std::string, Variant>> {};

TEST_P(Networks, LossAndGradientsEqualPyTorch) {
  test::check_gradients(std::get<0>(GetParam()), std::get<1>(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(All, Networks,
                         testing::Combine(testing::ValuesIn(test::recorded_networks()),
                                          testing::Values(Variant::plain, Variant::pytorch_eager,
                                                          Variant::fused_attention,
                                                          Variant::folded)),
                         [](const auto& chosen) {
                           return fmt::format("{}_{}", std::get<0>(chosen.param),
                                              test::name_of(std::get<1>(chosen.param)));
                         });

class ThreeSteps : public testing::TestWithParam<Training> {};

TEST_P(ThreeSteps, EqualPyTorch) {
  test::check_training(GetParam());
}

/// The chains of element-wise operators give the same numbers; one network has every optimiser.
TEST(Unfused, UpdatesEqualPyTorch) {
  for (const Training& training : test::recorded_trainings(false)) {
    if (training.network == "lstm")
      test::check_training(training, false);
  }
}

INSTANTIATE_TEST_SUITE_P(Quick, ThreeSteps, testing::ValuesIn(test::recorded_trainings(false)),
                         [](const auto& training) { return test::name_of(training.param); });

class LargeNetworks : public ThreeSteps {};

TEST_P(LargeNetworks, EqualPyTorch) {
  MONET_FROM_LEVEL(slow);
  test::check_training(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Slow, LargeNetworks, testing::ValuesIn(test::recorded_trainings(true)),
                         [](const auto& training) { return test::name_of(training.param); });

} // namespace
} // namespace monet
