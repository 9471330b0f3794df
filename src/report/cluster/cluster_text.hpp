// What cluster.json calls things, and what people do; shared by its tables and its page.
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
  const char* colour;
};

/// Of a stage's `share`, in its order. Colours that people with colour-blindness tell apart.
inline constexpr std::array<ClusterPart, 9> kShares{{{"compute_ns", "compute", "#0072b2"},
                                                     {"recompute_ns", "recompute", "#56b4e9"},
                                                     {"host_ns", "host", "#cc79a7"},
                                                     {"collectives_ns", "collectives", "#d55e00"},
                                                     {"offload_ns", "offload", "#882255"},
                                                     {"sends_ns", "sends", "#e69f00"},
                                                     {"gradients_ns", "gradients", "#f0e442"},
                                                     {"update_ns", "update", "#009e73"},
                                                     {"bubble_ns", "bubble", "#bbbbbb"}}};

/// Of a stage's `memory` on the device; they add up to its total.
inline constexpr std::array<ClusterPart, 6> kOwners{
    {{"parameters_bytes", "parameters", "#0072b2"},
     {"gradients_bytes", "gradients", "#d55e00"},
     {"optimizer_state_bytes", "optimizer state", "#009e73"},
     {"stored_activations_bytes", "stored activations", "#e69f00"},
     {"temporaries_bytes", "temporaries", "#56b4e9"},
     {"workspace_bytes", "workspace", "#bbbbbb"}}};

/// Of its pages.
inline constexpr const char* kClusterStyle =
    "body{font:15px/1.45 system-ui,sans-serif;max-width:1160px;margin:2em auto;padding:0 1em;"
    "color:#222;background:#fff}h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2em}"
    "table{border-collapse:collapse;margin:.6em 0}"
    "td,th{padding:.2em .7em;text-align:right;white-space:nowrap;"
    "border-bottom:1px solid #ddd}td:first-child,th:first-child{text-align:left}"
    "svg{display:block}.wide{overflow-x:auto}svg .in{fill:#fff;font-size:10px}"
    "svg .send{stroke:#8886}.no{color:#b34700;font-weight:bold}"
    ".key{display:inline-block;width:.8em;height:.8em;margin:0 .3em 0 1em}"
    "@media(prefers-color-scheme:dark){body{background:#15181c;color:#ddd}td,th{border-color:#444}"
    ".no{color:#ff9a5a}svg text{fill:#ddd}}";

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
