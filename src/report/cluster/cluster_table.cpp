// Prints the tables of `monet cluster` from cluster.json.
#include "base/shared/text.hpp"
#include "report/cluster/cluster_text.hpp"
#include "report/shared/cluster_result.hpp"
#include "report/shared/text.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace monet {

namespace {

using Json = nlohmann::ordered_json;
using Rows = std::vector<std::vector<std::string>>;
using namespace cluster_text;

constexpr std::size_t kMaxStageRows = 32;

std::string digits_of(const Json& number) {
  return group_digits(number.get<std::int64_t>());
}

std::string utilisation(const Json& share) {
  return share.is_null() ? "-" : fmt::format("{:.2f} %", 100 * share.get<double>());
}

std::string head_lines(const Json& result) {
  const Json& cluster = result.at("cluster");
  const Json& memory = result.at("memory");
  std::string text = fmt::format(
      "{}\n{} devices of {} ({}): {}\n\n", printable(result.at("name").get<std::string>()),
      digits_of(cluster.at("devices")), printable(cluster.at("name").get<std::string>()),
      printable(cluster.at("device").get<std::string>()),
      result.at("strategy").at("text").get<std::string>());
  text += fmt::format("step     {}, {} micro-batches\n",
                      human_nanoseconds(result.at("time_ns").get<std::int64_t>()),
                      digits_of(result.at("strategy").at("micro_batches")));
  text += fmt::format("rate     {} samples/s",
                      human_rate(result.at("samples_per_second").get<double>()));
  if (!result.at("tokens_per_second").is_null())
    text += fmt::format(", {} tokens/s", human_rate(result.at("tokens_per_second").get<double>()));
  if (!result.at("mfu").is_null())
    text += fmt::format("; MFU {}, HFU {}", utilisation(result.at("mfu")),
                        utilisation(result.at("hfu")));
  text += fmt::format("\nmemory   {} a device at most",
                      human_bytes(memory.at("largest_bytes").get<std::int64_t>()));
  if (!memory.at("limit_bytes").is_null())
    text += fmt::format(", of {}{}", human_bytes(memory.at("limit_bytes").get<std::int64_t>()),
                        memory.at("fits").get<bool>() ? "" : ": does not fit");
  if (memory.at("host_bytes").get<std::int64_t>() > 0)
    text += fmt::format("\nhost     {} a device at most",
                        human_bytes(memory.at("host_bytes").get<std::int64_t>()));
  if (!result.at("energy_pj").is_null())
    text += fmt::format("\nenergy   {}", human_energy(result.at("energy_pj").get<double>()));
  return text + "\n";
}

bool has_row(std::size_t stage, std::size_t stages) {
  return stages <= kMaxStageRows || stage < kMaxStageRows / 2 ||
         stage >= stages - kMaxStageRows / 2;
}

/// Table with one row per stage: its number, then the cells that `cells` returns for it.
template <class Cells>
std::string stages_table(const Json& stages, std::vector<std::string> head, Cells cells) {
  head.insert(head.begin(), "stage");
  Rows rows{std::move(head)};
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (!has_row(i, stages.size()))
      continue;
    rows.push_back(cells(stages[i]));
    rows.back().insert(rows.back().begin(), std::to_string(i));
  }
  return aligned_table(rows);
}

std::string memory_table(const Json& stages) {
  std::vector<std::string> head{"blocks", "parameters", "in flight"};
  for (const ClusterPart& owner : kOwners)
    head.emplace_back(owner.name);
  head[3] = "their bytes";
  head.emplace_back("total");
  return stages_table(stages, head, [](const Json& stage) {
    std::vector<std::string> cells{digits_of(stage.at("blocks")), digits_of(stage.at("parameters")),
                                   digits_of(stage.at("in_flight"))};
    const Json& memory = stage.at("memory");
    for (const ClusterPart& owner : kOwners)
      cells.push_back(human_bytes(memory.at(owner.key).get<std::int64_t>()));
    cells.push_back(human_bytes(memory.at("total_bytes").get<std::int64_t>()));
    return cells;
  });
}

std::string share_table(const Json& stages, std::int64_t time) {
  std::vector<std::string> head;
  for (const ClusterPart& share : kShares)
    head.push_back(fmt::format("{} %", share.name));
  return stages_table(stages, head, [&](const Json& stage) {
    std::vector<std::string> cells;
    for (const ClusterPart& share : kShares)
      cells.push_back(share_percent(stage.at("share").at(share.key), time));
    return cells;
  });
}

std::string blocks_table(const Json& blocks) {
  Rows rows{{"block", "count", "forward", "backward input", "backward weight", "recompute",
             "collectives", "host", "offload", "update", "kernels", "parameters", "stored"}};
  for (const Json& block : blocks) {
    const auto time = [&](const char* key) {
      return human_nanoseconds(block.at(key).get<std::int64_t>());
    };
    rows.push_back({block.at("name").get<std::string>(), digits_of(block.at("count")),
                    time("forward_ns"), time("backward_input_ns"), time("backward_weight_ns"),
                    time("recompute_ns"), time("collectives_ns"), time("host_ns"),
                    time("offload_ns"), time("update_ns"), digits_of(block.at("kernels")),
                    digits_of(block.at("parameters")),
                    human_bytes(block.at("stored_activations_bytes").get<std::int64_t>())});
  }
  return aligned_table(rows);
}

} // namespace

std::string cluster_table(const Json& result) {
  const Json& stages = result.at("stages");
  std::string text = head_lines(result);
  if (stages.size() > kMaxStageRows)
    text += fmt::format("\nOf {} stages the first and the last {}:\n", stages.size(),
                        kMaxStageRows / 2);
  text += "\nMemory of a device, by stage\n" + memory_table(stages);
  text += "\nTime of a step, by stage\n" + share_table(stages, result.at("time_ns"));
  text += "\nBlocks, of one micro-batch on one device; collectives, host and offload are parts "
          "of the passes\n" +
          blocks_table(result.at("blocks"));
  return text;
}

} // namespace monet
