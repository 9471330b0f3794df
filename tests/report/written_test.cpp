#include "report/hand_made_step.hpp"
#include "report/shared/written.hpp"

#include "monet/base/errors.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace monet::test {
namespace {

/// Message of the check of a result with one change; empty if it passes.
template <class Change>
std::string problem_after(Change change) {
  nlohmann::ordered_json result = hand_made_step().json();
  change(result);
  try {
    written(ResultSchema::result, result);
  } catch (const InternalError& error) {
    return error.what();
  }
  return {};
}

TEST(Written, ResultsHaveTheKeysOfTheirSchema) {
  EXPECT_EQ(problem_after([](nlohmann::ordered_json&) {}), "");
  EXPECT_THAT(problem_after([](nlohmann::ordered_json& json) { json["latencycycles"] = 1; }),
              ::testing::HasSubstr("result has the unknown key \"latencycycles\""));
  EXPECT_THAT(problem_after([](nlohmann::ordered_json& json) { json.erase("latency_cycles"); }),
              ::testing::HasSubstr("result lacks \"latency_cycles\""));
  EXPECT_THAT(problem_after([](nlohmann::ordered_json& json) { json["layers"][1].erase("macs"); }),
              ::testing::HasSubstr("result/layers/1 lacks \"macs\""));
  EXPECT_THAT(problem_after(
                  [](nlohmann::ordered_json& json) { json["phases"][0]["energy"]["heat_pj"] = 1; }),
              ::testing::HasSubstr("result/phases/0/energy has the unknown key \"heat_pj\""));
  EXPECT_THAT(problem_after([](nlohmann::ordered_json& json) { json["inference"]["name"] = "n"; }),
              ::testing::HasSubstr("result/inference has the unknown key \"name\""));
}

} // namespace
} // namespace monet::test
