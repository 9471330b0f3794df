// monet backward: what its files share.
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
  std::vector<std::string> dimensions; ///< of ONNX networks, name=value
  std::string technique;
  std::string partition = "none"; ///< unless there are several cores
  std::optional<std::int64_t> cores;
  BackwardChoices choices;
  std::string json;
  int jobs = 1;
  std::string study;
  std::string folder;
};

/// monet backward --study: the paper's figures, and ours beside them.
int run_backward_study(const BackwardArguments& arguments, Session& session);

} // namespace monet::cli
