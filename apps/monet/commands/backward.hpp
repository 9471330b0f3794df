// Arguments of `monet backward`, shared by the command and its studies.
#pragma once

#include "console.hpp"
#include "options/backward_options.hpp"
#include "options/network_options.hpp"

#include <optional>
#include <string>
#include <vector>

namespace monet::cli {

struct BackwardArguments {
  std::string hardware;
  std::string workload;
  std::vector<std::int64_t> gemm; ///< M, K, N
  std::optional<std::int64_t> batch;
  std::vector<std::string> dimensions; ///< "name=value", for ONNX networks
  std::string technique;
  std::string partition = "none"; ///< default for a single core
  std::optional<std::int64_t> cores;
  BackwardChoices choices;
  std::string json;
  int jobs = 1;
  std::string study;
  std::string folder;
};

/// Runs monet backward --study: compares our figures with those of the paper.
int run_backward_study(const BackwardArguments& arguments, Session& session);

} // namespace monet::cli
