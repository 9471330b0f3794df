// `monet schedule --model stream-coala`: the reference scheduler's figures from our files.
#pragma once

#include "console.hpp"
#include "network_options.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace monet::cli {

struct StreamArguments {
  std::string hardware;
  std::string workload;
  std::string mapping;
  std::string stacks; ///< file, or empty
  bool fused = false;
  std::vector<std::string> core_costs; ///< files and folders; empty: our own core model
  OnnxReadOptions network;
};

/// The whole result, with name and provenance.
nlohmann::ordered_json run_stream_model(const StreamArguments& arguments, Session& session);

} // namespace monet::cli
