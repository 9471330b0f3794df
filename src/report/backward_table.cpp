// Prints the tables of `monet backward` from the JSON of backward_json.cpp.
#include "base/shared/text.hpp"
#include "report/shared/backward_result.hpp"
#include "report/shared/text.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <map>

namespace monet {

namespace {

using Json = nlohmann::ordered_json;
using TextRow = std::vector<std::string>;

constexpr std::size_t kNameColumns = 19;
constexpr std::size_t kProductColumns = 23;

/// Abbreviated name of a technique, for the head of its column.
std::string short_name(const std::string& technique) {
  static const std::map<std::string, std::string> kShort{
      {"best-sequential", "b-seq"}, {"interleave", "inter"},    {"dx-major", "dX"},
      {"dw-major", "dW"},           {"algorithm-1", "alg-1"},   {"best-of-three", "best3"},
      {"joint", "joint"},           {"joint-update", "update"}, {"sequential", "seq"}};
  const auto found = kShort.find(technique);
  return found == kShort.end() ? technique : found->second;
}

std::string part_text(const Json& number) {
  return number.is_null() ? "-" : fmt::format("{:.1f} %", 100 * number.get<double>());
}

std::string product_text(const Json& layer) {
  const auto repeats = layer.at("repeats").get<std::int64_t>();
  return fmt::format("{} {} {}{}", layer.at("m").get<std::int64_t>(),
                     layer.at("k").get<std::int64_t>(), layer.at("n").get<std::int64_t>(),
                     repeats > 1 ? fmt::format(" x{}", repeats) : "");
}

std::string layers_table(const Json& json) {
  const std::string first = json.at("techniques").begin().key();
  TextRow head{"layer", "M K N", first == "sequential" ? "sequential" : first};
  for (const auto& [name, technique] : json.at("techniques").items()) {
    if (name != first)
      head.push_back(short_name(name));
  }
  std::vector<TextRow> rows{head};
  for (const Json& layer : json.at("layers")) {
    const Json& techniques = layer.at("techniques");
    const auto cycles = techniques.at(first).at("latency_cycles").get<std::int64_t>();
    TextRow row{clipped(printable(layer.at("name").get<std::string>()), kNameColumns),
                clipped(product_text(layer), kProductColumns), group_digits(cycles)};
    for (const auto& [name, technique] : techniques.items()) {
      if (name != first)
        row.push_back(fmt::format("{:.3f}", technique.at("latency_cycles").get<double>() /
                                                static_cast<double>(cycles)));
    }
    rows.push_back(std::move(row));
  }
  return aligned_table(rows);
}

/// Bytes of a tensor, read and written together, as text; `written` is empty for tensors only read.
std::string tensor_text(const Json& traffic, const char* read, const char* written) {
  std::int64_t bytes = traffic.at(read).get<std::int64_t>();
  if (*written != '\0')
    bytes += traffic.at(written).get<std::int64_t>();
  return human_bytes(bytes);
}

std::string totals_table(const Json& json) {
  std::vector<TextRow> rows{
      {"technique", "cycles", "gain", "vs best", "DRAM", "dY", "W", "X", "dX", "dW", "gap"}};
  for (const auto& [name, technique] : json.at("techniques").items()) {
    const Json& traffic = technique.at("traffic_bytes");
    rows.push_back(
        {name, group_digits(technique.at("latency_cycles").get<std::int64_t>()),
         part_text(technique.at("gain")), part_text(technique.at("gain_over_best_sequential")),
         human_bytes(technique.at("dram_bytes").get<std::int64_t>()),
         tensor_text(traffic, "dy_read", ""), tensor_text(traffic, "w_read", ""),
         tensor_text(traffic, "x_read", ""), tensor_text(traffic, "dx_read", "dx_write"),
         tensor_text(traffic, "dw_read", "dw_write"), part_text(technique.at("latency_gap"))});
  }
  rows.push_back({"bound", group_digits(json.at("bound_latency_cycles").get<std::int64_t>()), "",
                  "", human_bytes(json.at("bound_dram_bytes").get<std::int64_t>()), "", "", "", "",
                  "", ""});
  return aligned_table(rows);
}

} // namespace

std::string backward_table(const Json& json) {
  const Json& machine = json.at("machine");
  std::string text =
      fmt::format("{} on {}: {} x {} of {} x {}, {}, {:.6g} bits a cycle\n\n",
                  clipped(printable(json.at("name").get<std::string>()), 40),
                  clipped(printable(machine.at("name").get<std::string>()), 30),
                  machine.at("cores").get<std::int64_t>(),
                  machine.at("cores").get<std::int64_t>() == 1 ? "array" : "arrays",
                  machine.at("rows").get<std::int64_t>(), machine.at("columns").get<std::int64_t>(),
                  human_bytes(machine.at("buffer_bytes").get<std::int64_t>()),
                  machine.at("bandwidth_bits_per_cycle").get<double>());
  text += layers_table(json) + "\n" + totals_table(json);
  if (!json.at("skipped").empty()) {
    text += fmt::format("\nskipped, without dX and dW:\n");
    for (const Json& one : json.at("skipped"))
      text +=
          fmt::format("  {} ({}) {}\n", clipped(printable(one.at("name").get<std::string>()), 60),
                      clipped(printable(one.at("op_type").get<std::string>()), 20),
                      one.at("why").get<std::string>());
  }
  return text;
}

} // namespace monet
