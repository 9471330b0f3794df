// The trace of a step that has hundreds of thousands of transfers, many on one link at a time.
#include "cli/run_monet.hpp"
#include "level.hpp"
#include "report/trace_rules.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace monet::test {
namespace {

TEST(LargeTrace, OfAFusedTransformerOnFourArraysHoldsTheRules) {
  MONET_FROM_LEVEL(slow);
  const Scratch scratch;
  const std::string experiment = scratch.file(
      "gpt2.yaml", "workload: {network: " + repository("data/workload/gpt2.onnx") +
                       ", batch: 1}\n"
                       "training: {loss: cross_entropy, optimizer: {type: adamw, learning_rate: "
                       "3.0e-4, weight_decay: 0.1}}\n"
                       "hardware: " +
                       repository("data/hardware/tpu_like_quad_core.yaml") +
                       "\nschedule: {mode: fused}\n");
  const Ran ran = run_monet({"run", experiment}, scratch.path());
  ASSERT_EQ(ran.code, 0) << ran.err;
  const nlohmann::json trace = parse_file(scratch / "out/gpt2/trace.json");
  EXPECT_EQ(trace_violations(trace), std::vector<std::string>{});
  const auto& events = trace.at("traceEvents");
  EXPECT_GT(std::count_if(events.begin(), events.end(),
                          [](const nlohmann::json& event) { return event.at("ph") == "X"; }),
            400000);
}

} // namespace
} // namespace monet::test
