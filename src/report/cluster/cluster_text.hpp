// Parts of cluster.json and their names, shared by its tables and its trace.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <array>
#include <cstdint>
#include <string>

namespace monet::cluster_text {

/// A part of a stage's time or memory.
struct ClusterPart {
  const char* key; ///< in cluster.json
  const char* name;
};

/// Of a stage's `share`, in its order.
inline constexpr std::array<ClusterPart, 9> kShares{{{"compute_ns", "compute"},
                                                     {"recompute_ns", "recompute"},
                                                     {"host_ns", "host"},
                                                     {"collectives_ns", "collectives"},
                                                     {"offload_ns", "offload"},
                                                     {"sends_ns", "sends"},
                                                     {"gradients_ns", "gradients"},
                                                     {"update_ns", "update"},
                                                     {"bubble_ns", "bubble"}}};

/// Of a stage's `memory` on the device; they add up to its total.
inline constexpr std::array<ClusterPart, 6> kOwners{
    {{"parameters_bytes", "parameters"},
     {"gradients_bytes", "gradients"},
     {"optimizer_state_bytes", "optimizer state"},
     {"stored_activations_bytes", "stored activations"},
     {"temporaries_bytes", "temporaries"},
     {"workspace_bytes", "workspace"}}};

/// Columns of the rows in `timeline`.
namespace pass_column {
enum : std::size_t { stage, pass, micro_batch, chunk, start, end };
}
namespace send_column {
enum : std::size_t { from, to, part, micro_batch, gradient, start, end };
}

/// Five significant digits: "35.123 s", "812.5 us".
std::string human_nanoseconds(std::int64_t nanoseconds);

/// Five significant digits, or whole with separators: "51.545", "176,130".
std::string human_rate(double per_second);

/// Chunks a stage: one more than the last that the passes name.
std::int64_t chunks_of(const nlohmann::ordered_json& passes);

/// "F3", or "B3.1" for chunk 1 where stages have several: as to_string(PipelineTask).
std::string pass_name(const nlohmann::ordered_json& row, std::int64_t chunks);

/// A time as a part of a whole, in percent: "12.34".
std::string share_percent(const nlohmann::ordered_json& part, std::int64_t whole);

} // namespace monet::cluster_text
