// JSON and table of `monet optimise fusion --model einsum` (docs/optimise.schema.json).
#include "report/shared/einsum_result.hpp"
#include "report/shared/text.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace monet {

namespace {

using Json = nlohmann::ordered_json;

/// Groups of consecutive Einsums that exchange tensors in the buffer.
Json einsum_groups_json(const EinsumCascade& cascade, const EinsumPoint& point) {
  Json groups = Json::array();
  std::vector<std::uint32_t> last(cascade.tensors.size(), 0); // last Einsum that uses each tensor
  for (std::uint32_t e = 0; e < cascade.einsums.size(); ++e) {
    for (const EinsumOperand& operand : cascade.einsums[e].operands)
      last[operand.tensor] = e;
  }
  std::uint32_t end = 0; // last Einsum that uses a tensor in the buffer, so far
  for (std::uint32_t e = 0; e < cascade.einsums.size(); ++e) {
    if (e == 0 || end < e) {
      groups.push_back({{"operators", Json::array()},
                        {"exchanged", Json::array()},
                        {"reason", e == 0 ? "first" : "every tensor before it crosses DRAM"}});
      end = e;
    }
    groups.back()["operators"].push_back(valid_utf8(cascade.einsums[e].name));
    for (const EinsumMapping::Node& node : point.einsums[e].nodes) {
      const EinsumOperand& operand = cascade.einsums[e].operands[node.operand];
      if (!node.in_buffer)
        continue;
      end = std::max(end, last[operand.tensor]);
      if (operand.written)
        groups.back()["exchanged"].push_back(valid_utf8(cascade.tensors[operand.tensor].name));
    }
  }
  return groups;
}

Json mappings_json(const EinsumCascade& cascade, const EinsumPoint& point) {
  Json list = Json::array();
  for (std::size_t e = 0; e < point.einsums.size(); ++e) {
    Json nodes = Json::array();
    for (const EinsumMapping::Node& node : point.einsums[e].nodes) {
      Json loops = Json::array();
      for (const EinsumMapping::Loop& loop : node.loops)
        loops.push_back({{"rank", loop.rank}, {"tile", loop.tile}, {"trips", loop.trips}});
      const std::uint32_t tensor = cascade.einsums[e].operands[node.operand].tensor;
      nodes.push_back({{"loops", std::move(loops)},
                       {"tensor", valid_utf8(cascade.tensors[tensor].name)},
                       {"tile_bits", node.tile_bits},
                       {"dram_bits", node.dram_bits},
                       {"backing", node.in_buffer ? "buffer" : "dram"}});
    }
    list.push_back({{"name", valid_utf8(cascade.einsums[e].name)},
                    {"shared_loops", point.einsums[e].shared_loops},
                    {"nodes", std::move(nodes)}});
  }
  return list;
}

Json rules_json(const EinsumStatistics& statistics) {
  Json rules = Json::array();
  for (const EinsumStatistics::Rule& rule : statistics.rules) {
    rules.push_back(
        {{"rule", rule.name},
         {"seen", rule.seen},
         {"kept", rule.kept},
         {"kept_fraction",
          rule.seen == 0 ? 1.0 : static_cast<double>(rule.kept) / static_cast<double>(rule.seen)}});
  }
  return rules;
}

} // namespace

Json einsum_json(const SearchHead& head, const EinsumCascade& cascade, const EinsumResult& result,
                 std::optional<std::int64_t> buffer_bits) {
  Json json = search_json(head);
  json["model"] = "einsum";
  json["exact"] = result.exact;
  json["buffer_bits"] = buffer_bits ? Json(*buffer_bits) : Json(nullptr);
  json["front"] = Json::array();
  for (const EinsumPoint& point : result.front)
    json["front"].push_back({{"buffer_bits", point.buffer_bits}, {"dram_bits", point.dram_bits}});
  if (!result.front.empty()) {
    json["front"].back()["chosen"] = true;
    json["groups"] = einsum_groups_json(cascade, result.front.back());
    json["einsums"] = mappings_json(cascade, result.front.back());
  }
  json["signatures"] = result.statistics.signatures;
  json["rules"] = rules_json(result.statistics);
  return json;
}

std::string einsum_table(const EinsumCascade& cascade, const EinsumResult& result,
                         const Certificate& found) {
  std::vector<std::vector<std::string>> rows{{"buffer bits", "DRAM bits"}};
  for (const EinsumPoint& point : result.front)
    rows.push_back({fmt::format("{}", point.buffer_bits), fmt::format("{}", point.dram_bits)});
  return aligned_table(rows) +
         fmt::format(
             "\n{} Einsums, {} different; {} mappings of one; bound {} DRAM bits, gap {}{}\n",
             cascade.einsums.size(), result.statistics.signatures, result.statistics.rows,
             result.bound_dram_bits, gap_text(found), result.exact ? " (exact)" : "");
}

} // namespace monet
