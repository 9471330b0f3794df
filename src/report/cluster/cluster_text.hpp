// Names and columns of parts of cluster.json, shared by its tables and its trace.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <array>
#include <cstdint>
#include <string>

namespace monet::cluster_text {

/// Part of a stage's time or memory, with its key and its displayed name.
struct ClusterPart {
  const char* key; ///< key in cluster.json
  const char* name;
};

/// Parts of a stage's time in `share`, in the order of cluster.json.
inline constexpr std::array<ClusterPart, 9> kShares{{{"compute_ns", "compute"},
                                                     {"recompute_ns", "recompute"},
                                                     {"host_ns", "host"},
                                                     {"collectives_ns", "collectives"},
                                                     {"offload_ns", "offload"},
                                                     {"sends_ns", "sends"},
                                                     {"gradients_ns", "gradients"},
                                                     {"update_ns", "update"},
                                                     {"bubble_ns", "bubble"}}};

/// Owners of a stage's device memory in `memory`; their sum is the stage's total.
inline constexpr std::array<ClusterPart, 6> kOwners{
    {{"parameters_bytes", "parameters"},
     {"gradients_bytes", "gradients"},
     {"optimizer_state_bytes", "optimizer state"},
     {"stored_activations_bytes", "stored activations"},
     {"temporaries_bytes", "temporaries"},
     {"workspace_bytes", "workspace"}}};

/// Column numbers of the rows in `timeline`.
namespace pass_column {
enum : std::size_t { stage, pass, micro_batch, chunk, start, end };
}
namespace send_column {
enum : std::size_t { from, to, part, micro_batch, gradient, start, end };
}

/// Time with five significant digits: "35.123 s", "812.5 us".
std::string human_nanoseconds(std::int64_t nanoseconds);

/// Rate with five significant digits, or as a whole number with separators from 10,000 on:
/// "51.545", "176,130".
std::string human_rate(double per_second);

/// Number of chunks per stage: one more than the largest chunk number in `passes`.
std::int64_t chunks_of(const nlohmann::ordered_json& passes);

/// Name of a pass in the format of to_string(PipelineTask): "F3", or "B3.1" for chunk 1 if stages
/// have several chunks.
std::string pass_name(const nlohmann::ordered_json& row, std::int64_t chunks);

/// Percentage that `part` is of `whole`: "12.34".
std::string share_percent(const nlohmann::ordered_json& part, std::int64_t whole);

} // namespace monet::cluster_text
