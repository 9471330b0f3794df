// What the files of every run have in common.
#pragma once

#include "cli/run_monet.hpp"
#include "report/json_schema.hpp"
#include "report/trace_rules.hpp"

#include "monet/base/files.hpp"

#include <gtest/gtest.h>

#include <string>

namespace monet::test {

inline double total_of(const nlohmann::json& list, const char* key) {
  double total = 0;
  for (const auto& entry : list)
    total += entry.at(key).get<double>();
  return total;
}

inline void expect_conserved(const nlohmann::json& step) {
  const double energy = step.at("energy_pj").get<double>();
  EXPECT_EQ(total_of(step.at("layers"), "energy_pj"), energy);
  EXPECT_EQ(total_of(step.at("phases"), "energy_pj"), energy);
  EXPECT_EQ(total_of(step.at("cores"), "energy_pj") + total_of(step.at("links"), "energy_pj"),
            energy);
  EXPECT_EQ(total_of(step.at("phases"), "latency_cycles"), step.at("latency_cycles").get<double>());
  EXPECT_EQ(total_of(step.at("layers"), "macs"), step.at("macs").at("total").get<double>());
  EXPECT_EQ(total_of(step.at("phases"), "macs"), step.at("macs").at("total").get<double>());
  double owners = 0;
  for (const auto& [key, bytes] : step.at("memory").items()) {
    if (key != "peak_cycle")
      owners += bytes.get<double>();
  }
  EXPECT_EQ(owners, step.at("peak_memory_bytes").get<double>());
}

inline void expect_consistent(const Scratch& scratch, const std::string& folder) {
  const auto result = parse_file(scratch / (folder + "result.json"));
  const auto schema = parse_file(repository("docs/result.schema.json"));
  EXPECT_EQ(schema_violations(schema, result), std::vector<std::string>{});
  expect_conserved(result);
  if (result.contains("inference"))
    expect_conserved(result.at("inference"));
  const auto trace = parse_file(scratch / (folder + "trace.json"));
  EXPECT_EQ(trace_violations(trace), std::vector<std::string>{});
  EXPECT_GE(trace.at("traceEvents").size(), result.at("timeline").at("runs").size());
  EXPECT_GT(read_file(scratch / (folder + "training.onnx")).size(), 0U);
  // No path of this machine in the provenance.
  EXPECT_EQ(result.at("provenance").dump().find('/'), std::string::npos);
}

} // namespace monet::test
