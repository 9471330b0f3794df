// Writes cluster.json (docs/cluster.schema.json), the result of one step on a cluster. Tables and
// the trace are made from it.
#include "base/shared/text.hpp"
#include "report/cluster/cluster_text.hpp"
#include "report/shared/cluster_result.hpp"
#include "report/shared/text.hpp"
#include "report/shared/written.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>

namespace monet {

namespace {

using Json = nlohmann::ordered_json;

Json null_if_zero(double value) {
  return value == 0 ? Json() : Json(value);
}

Json used_cluster_json(const Cluster& cluster, const ClusterDevice& device) {
  Json tiers = Json::array();
  for (const Tier& tier : cluster.tiers)
    tiers.push_back({{"name", valid_utf8(tier.name)},
                     {"size", tier.size},
                     {"bandwidth_gb_per_s", tier.bandwidth_gb_per_s},
                     {"latency_ns", tier.latency_ns}});
  return {{"name", valid_utf8(cluster.name)},
          {"device", valid_utf8(device.table ? device.table->name : device.chip->name)},
          {"device_kind", device.table ? "table" : "chip"},
          {"devices", cluster.devices},
          {"tiers", std::move(tiers)}};
}

Json transformer_json(const TransformerShape& shape) {
  Json json{{"layers", shape.layers},
            {"hidden", shape.hidden},
            {"heads", shape.heads},
            {"kv_heads", shape.heads_of_keys()},
            {"head_size", shape.size_of_head()},
            {"ffn", shape.size_of_ffn()},
            {"sequence", shape.sequence},
            {"vocabulary", shape.vocabulary},
            {"padded_vocabulary", shape.padded_vocabulary()},
            {"experts", nullptr}};
  if (shape.experts)
    json["experts"] = *shape.experts;
  return json;
}

Json stage_memory_json(const StageMemory& memory) {
  Json json;
  for (int i = 0; i < kMemoryOwners; ++i)
    json[std::string(name_of(static_cast<MemoryOwner>(i))) + "_bytes"] =
        memory.bytes[static_cast<std::size_t>(i)];
  json["workspace_bytes"] = memory.workspace;
  json["total_bytes"] = memory.total();
  json["host_bytes"] = memory.host;
  return json;
}

Json stage_share_json(const StageShare& share) {
  return {{"compute_ns", share.compute},     {"recompute_ns", share.recompute},
          {"host_ns", share.host},           {"collectives_ns", share.collectives},
          {"offload_ns", share.offload},     {"sends_ns", share.sends},
          {"gradients_ns", share.gradients}, {"update_ns", share.update},
          {"bubble_ns", share.bubble}};
}

Json stage_json(const ClusterStep& step, std::size_t index) {
  const StageResult& stage = step.stages[index];
  return {{"stage", index},
          {"first_block", stage.first_block},
          {"blocks", stage.blocks},
          {"parameters", stage.parameters},
          {"in_flight", stage.memory.in_flight},
          {"memory", stage_memory_json(stage.memory)},
          {"share", stage_share_json(stage.share)}};
}

Json block_json(const BlockCost& block) {
  return {{"name", valid_utf8(block.name)},
          {"count", block.count},
          {"forward_ns", block.forward},
          {"backward_input_ns", block.backward_input},
          {"backward_weight_ns", block.backward_weight},
          {"recompute_ns", block.recompute},
          {"collectives_ns", block.collectives},
          {"host_ns", block.host},
          {"offload_ns", block.offload},
          {"update_ns", block.update},
          {"kernels", block.kernels},
          {"parameters", block.parameters},
          {"parameters_bytes", block.parameter_bytes},
          {"gradients_bytes", block.gradient_bytes},
          {"optimizer_state_bytes", block.state_bytes},
          {"stored_activations_bytes", block.stored_bytes},
          {"temporaries_bytes", block.temporary_bytes},
          {"output_bytes", block.output_bytes},
          {"model_flops", block.model_flops},
          {"masked_flops", block.masked_flops},
          {"hardware_flops", block.hardware_flops}};
}

/// Time before which listed passes and sends must start. All passes are listed, or the first
/// kMaxListedPasses of a longer step.
Nanoseconds end_of_list(const PipelineTimeline& timeline) {
  std::vector<Nanoseconds> starts;
  for (const std::vector<PipelineRun>& runs : timeline.runs) {
    for (const PipelineRun& run : runs)
      starts.push_back(run.start);
  }
  if (starts.size() <= kMaxListedPasses)
    return std::numeric_limits<Nanoseconds>::max();
  const auto first_left_out = starts.begin() + kMaxListedPasses;
  std::nth_element(starts.begin(), first_left_out, starts.end());
  return *first_left_out;
}

Json pipeline_timeline_json(const ClusterStep& step) {
  const PipelineTimeline& timeline = step.timeline;
  const Nanoseconds until = end_of_list(timeline);
  Json passes = Json::array();
  for (std::size_t stage = 0; stage < timeline.runs.size(); ++stage) {
    for (const PipelineRun& run : timeline.runs[stage]) {
      if (run.start < until)
        passes.push_back({stage, static_cast<int>(run.task.pass), run.task.micro_batch,
                          run.task.chunk, run.start, run.end});
    }
  }
  Json sends = Json::array();
  for (const PipelineSend& send : timeline.sends) {
    if (send.start < until)
      sends.push_back({send.from, send.to, send.part, send.micro_batch, send.gradient ? 1 : 0,
                       send.start, send.end});
  }
  Json stages = Json::array();
  for (const StageTimes& times : timeline.stages)
    stages.push_back(
        {{"begin_ns", times.begin}, {"end_ns", times.end}, {"finish_ns", times.finish}});
  const bool is_whole = until == std::numeric_limits<Nanoseconds>::max();
  return {{"makespan_ns", timeline.makespan},
          {"listed_until_ns", is_whole ? timeline.makespan : until},
          {"stages", std::move(stages)},
          {"passes", std::move(passes)},
          {"sends", std::move(sends)}};
}

} // namespace

Json strategy_json(const ParallelStrategy& strategy) {
  Json json;
  for (const AxisRoleRow& row : axis_roles()) {
    const std::int64_t degree = strategy.axes[row.role];
    json[row.key] = row.form == AxisForm::toggle ? Json(degree != 0) : Json(degree);
  }
  json.update({{"schedule", name_of(strategy.schedule)},
               {"micro_batch", strategy.micro_batch},
               {"global_batch", strategy.global_batch},
               {"micro_batches", strategy.micro_batches()},
               {"recompute", name_of(strategy.recompute)},
               {"offload", name_of(strategy.offload)},
               {"overlap", strategy.overlap},
               {"layers", strategy.layers},
               {"text", to_string(strategy)}});
  return json;
}

Json cluster_json(const ClusterResult& result, const Provenance& provenance) {
  const ClusterStep& step = *result.step;
  Json workload;
  if (result.workload->transformer)
    workload["transformer"] = transformer_json(*result.workload->transformer);
  else
    workload["network"] = valid_utf8(result.network);
  Json stages = Json::array();
  for (std::size_t i = 0; i < step.stages.size(); ++i)
    stages.push_back(stage_json(step, i));
  Json blocks = Json::array();
  for (const BlockCost& block : step.blocks)
    blocks.push_back(block_json(block));
  Json memory{{"largest_bytes", step.fullest().memory.total()},
              {"limit_bytes", nullptr},
              {"fits", step.fits()},
              {"host_bytes", step.largest_host}};
  if (step.fullest().memory.limit > 0)
    memory["limit_bytes"] = step.fullest().memory.limit;
  return written(ResultSchema::cluster,
                 {{"schema_version", 1},
                  {"kind", "cluster"},
                  {"name", valid_utf8(result.name)},
                  {"cluster", used_cluster_json(*result.cluster, *result.device)},
                  {"workload", std::move(workload)},
                  {"strategy", strategy_json(step.strategy)},
                  {"time_ns", step.time},
                  {"samples_per_second", step.samples_per_second},
                  {"tokens_per_second", null_if_zero(step.tokens_per_second)},
                  {"mfu", null_if_zero(step.mfu)},
                  {"mfu_with_masked", null_if_zero(step.mfu_with_masked)},
                  {"hfu", null_if_zero(step.hfu)},
                  {"energy_pj", null_if_zero(step.energy_pj)},
                  {"memory", std::move(memory)},
                  {"stages", std::move(stages)},
                  {"blocks", std::move(blocks)},
                  {"timeline", pipeline_timeline_json(step)},
                  {"provenance", provenance_json(provenance)}});
}

std::string memory_overflow(const ClusterStep& step) {
  if (step.fits())
    return {};
  const StageResult* worst = &step.fullest();
  const auto text_of = [](std::int64_t bytes) {
    const std::string human = human_bytes(bytes);
    return human.ends_with("iB") ? fmt::format("{} ({} bytes)", human, group_digits(bytes)) : human;
  };
  std::vector<std::pair<std::int64_t, std::string>> owners{{worst->memory.workspace, "workspace"}};
  for (int i = 0; i < kMemoryOwners; ++i) {
    const auto owner = static_cast<MemoryOwner>(i);
    if (owner != MemoryOwner::offloaded_activations)
      owners.emplace_back(worst->memory.bytes[static_cast<std::size_t>(i)], name_of(owner));
  }
  std::ranges::stable_sort(owners, std::greater<>{}, &std::pair<std::int64_t, std::string>::first);
  const std::int64_t total = worst->memory.total();
  std::string text =
      fmt::format("a device of stage {} keeps {}, {} more than it has:", worst - step.stages.data(),
                  text_of(total), text_of(total - worst->memory.limit));
  const char* separator = " ";
  for (const auto& [bytes, owner] : owners) {
    if (bytes > 0)
      text += fmt::format("{}{} {}", separator, owner, text_of(bytes));
    separator = ", ";
  }
  return text;
}

} // namespace monet
