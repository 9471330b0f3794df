// Reads core costs from JSON files into one table; cost_match.cpp assigns them to tiles.
#include "base/shared/text.hpp"

#include "monet/base/files.hpp"
#include "monet/reference/stream_costs.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>

namespace monet::stream {

namespace {

using nlohmann::json;

constexpr std::size_t kMaxBytes = std::size_t{1} << 30;
constexpr std::size_t kMaxRows = std::size_t{1} << 24;
constexpr double kMaxCycles = 1e15;
constexpr double kMaxEnergy = 1e25;
constexpr std::int64_t kMaxBandwidth = std::int64_t{1} << 32;

/// An object in a file's list. Invalid values are reported and treated as missing.
class Row {
public:
  Row(const json& values, SourceLoc where, ProblemList& problems)
      : values_(values), where_(std::move(where)), problems_(problems) {}

  const SourceLoc& where() const { return where_; }
  bool has(const char* key) const {
    const auto found = values_.find(key);
    return found != values_.end() && !found->is_null();
  }
  const json& at(const char* key) const { return *values_.find(key); }

  std::optional<double> figure(const char* key, double most) const {
    if (!has(key))
      return std::nullopt;
    const json& value = at(key);
    if (!value.is_number() || !(value.get<double>() >= 0) || value.get<double>() > most) {
      report(fmt::format("'{}' must be a number between 0 and {:g}", key, most));
      return std::nullopt;
    }
    return value.get<double>();
  }
  std::optional<std::int64_t> whole(const char* key, std::int64_t most) const {
    const std::optional<double> value = figure(key, static_cast<double>(most));
    if (!value)
      return std::nullopt;
    if (std::floor(*value) != *value) {
      report(fmt::format("'{}' must be a whole number", key));
      return std::nullopt;
    }
    return static_cast<std::int64_t>(*value);
  }
  std::string text(const char* key) const {
    if (!has(key))
      return {};
    if (!at(key).is_string()) {
      report(fmt::format("'{}' must be a string", key));
      return {};
    }
    return at(key).get<std::string>();
  }
  /// Reports a missing key.
  void require(const char* key) const {
    if (!has(key))
      report(fmt::format("'{}' is missing", key));
  }
  void report(const std::string& what) const {
    constexpr std::size_t kEnough = 20;
    if (problems_.size() < kEnough)
      problems_.add(where_, what);
  }

private:
  const json& values_;
  SourceLoc where_;
  ProblemList& problems_;
};

constexpr std::int64_t kMaxId = 1 << 30;

std::optional<MemoryOperand> operand_named(std::string_view name) {
  if (name == "I1" || name == "I")
    return MemoryOperand::I1;
  if (name == "I2" || name == "W")
    return MemoryOperand::I2;
  if (name == "O")
    return MemoryOperand::O;
  return std::nullopt;
}

void read_streamed(const Row& row, CostRow& cost) {
  if (!row.has("too_large_operands"))
    return;
  const json& list = row.at("too_large_operands");
  std::vector<MemoryOperand> streamed;
  bool good = list.is_array();
  for (std::size_t i = 0; good && i < list.size(); ++i) {
    const auto operand = list[i].is_string() ? operand_named(list[i].get<std::string>())
                                             : std::optional<MemoryOperand>{};
    good = operand.has_value() && i < kMemoryOperands;
    if (good)
      streamed.push_back(*operand);
  }
  if (!good) {
    row.report("'too_large_operands' must be a list of I1, I2 and O");
    return;
  }
  cost.streamed = std::move(streamed);
}

/// Calls visit(name, row of all entries) for each entry of a map; the map may be missing.
template <class Visit>
void each_entry(const Row& row, const char* key, const char* wanted, ProblemList& problems,
                const Visit& visit) {
  if (!row.has(key))
    return;
  const json& map = row.at(key);
  if (!map.is_object()) {
    row.report(fmt::format("'{}' must contain {}", key, wanted));
    return;
  }
  const Row entries(map, row.where(), problems);
  for (const auto& entry : map.items())
    visit(entry.key(), entries);
}

void read_bandwidths(const Row& row, ProblemList& problems, CostRow& cost) {
  each_entry(row, "offchip_bandwidth", "bits per cycle by operand", problems,
             [&](const std::string& name, const Row& entries) {
               if (const auto operand = operand_named(name))
                 cost.offchip_bandwidth[static_cast<std::size_t>(*operand)] =
                     entries.whole(name.c_str(), kMaxBandwidth);
               else
                 row.report(fmt::format("'{}' is not an operand: I1, I2 or O", name.substr(0, 40)));
             });
}

void read_dims(const Row& row, ProblemList& problems, CostRow& cost) {
  each_entry(row, "dims", "sizes by loop", problems,
             [&](const std::string& name, const Row& entries) {
               if (const auto size = entries.whole(name.c_str(), std::int64_t{1} << 40))
                 cost.dims.emplace_back(name, *size);
             });
}

/// Reads a cost row with our own names of figures or those of cost_lut.json.
void read_cost(const Row& row, ProblemList& problems, CostTable& table) {
  CostRow cost;
  cost.where = row.where();
  if (const auto id = row.whole("id", kMaxId))
    cost.layer = static_cast<int>(*id);
  cost.node = row.text("node");
  if (!cost.layer && cost.node.empty())
    row.report("neither 'id' nor 'node' identifies the layer");
  row.require("core");
  cost.core = row.whole("core", kMaxId).value_or(0);
  read_dims(row, problems, cost);
  if (row.has("runtime_cycles")) {
    cost.runtime = row.figure("runtime_cycles", kMaxCycles);
    cost.onchip_pj = row.figure("onchip_energy_pj", kMaxEnergy);
    cost.offchip_pj = row.figure("offchip_energy_pj", kMaxEnergy);
    row.require("onchip_energy_pj");
  } else {
    if (!row.has("latency_total2"))
      row.report("'runtime_cycles' (or 'latency_total2') is missing");
    cost.runtime = row.figure("latency_total2", kMaxCycles);
    cost.other_runtime = row.figure("latency_total1", kMaxCycles);
    cost.onchip_pj =
        row.figure(row.has("onchip_energy") ? "onchip_energy" : "energy_total", kMaxEnergy);
    cost.offchip_pj = row.figure("offchip_energy", kMaxEnergy);
  }
  read_streamed(row, cost);
  read_bandwidths(row, problems, cost);
  table.costs.push_back(std::move(cost));
}

void read_tile(const Row& row, CostTable& table) {
  for (const char* key : {"id", "sub_id", "core", "runtime", "onchip_energy", "offchip_energy"})
    row.require(key);
  TileRow tile;
  tile.where = row.where();
  tile.layer = static_cast<int>(row.whole("id", kMaxId).value_or(0));
  tile.sub = row.whole("sub_id", kMaxId).value_or(0);
  tile.core = row.whole("core", kMaxId).value_or(0);
  tile.runtime = row.figure("runtime", kMaxCycles).value_or(0);
  tile.onchip_pj = row.figure("onchip_energy", kMaxEnergy).value_or(0);
  tile.offchip_pj = row.figure("offchip_energy", kMaxEnergy).value_or(0);
  table.tiles.push_back(std::move(tile));
}

/// Parses a name such as "Tensor(3, 0, W)": layer 3, operand W.
std::optional<std::pair<int, MemoryOperand>> parse_tensor(const std::string& name) {
  int layer = 0;
  int sub = 0;
  char operand = 0;
  char closing = 0;
  if (name.size() > 64 ||
      std::sscanf(name.c_str(), "Tensor(%9d, %9d, %c%c", &layer, &sub, &operand, &closing) != 4 ||
      closing != ')')
    return std::nullopt;
  const auto memory = operand_named(std::string_view(&operand, 1));
  if (!memory)
    return std::nullopt;
  return std::pair{layer, *memory};
}

void read_event(const Row& row, CostTable& table) {
  table.has_events = true;
  if (row.text("type") != "block")
    return;
  for (const char* key : {"activity", "tensor", "sender", "receiver"})
    row.require(key);
  const auto tensor = parse_tensor(row.text("tensor"));
  if (!tensor) {
    row.report("'tensor' must be like 'Tensor(3, 0, W)'");
    return;
  }
  StreamRow stream;
  stream.layer = tensor->first;
  stream.operand = tensor->second;
  stream.core =
      row.whole(tensor->second == MemoryOperand::O ? "sender" : "receiver", kMaxId).value_or(0);
  stream.bandwidth = row.whole("activity", kMaxBandwidth).value_or(0);
  table.streams.push_back(stream);
}

/// Line and column of a byte, both counted from 1.
SourceLoc place(std::string_view text, const std::string& origin, std::size_t byte) {
  SourceLoc where{origin, 1, 1};
  for (std::size_t i = 0; i + 1 < byte && i < text.size(); ++i) {
    where.column = text[i] == '\n' ? 1 : where.column + 1;
    where.line += text[i] == '\n' ? 1 : 0;
  }
  return where;
}

json parse_json(std::string_view text, const std::string& origin) {
  // Rows are flat. Deep nesting is refused early, because it would cost the parser much memory.
  constexpr int kDeepest = 8;
  if (json_depth(text) > kDeepest)
    throw InputError({origin}, "this is nested too deeply for a list of core costs");
  try {
    return json::parse(text);
  } catch (const json::parse_error& error) {
    throw InputError(place(text, origin, error.byte), "this is not JSON");
  } catch (const json::exception&) {
    throw InputError({origin}, "this JSON is not valid for core costs");
  }
}

} // namespace

CostTable parse_core_costs(std::string_view text, const std::string& origin) {
  const json document = parse_json(text, origin);
  const json* rows = &document;
  if (document.is_object() && document.contains("costs"))
    rows = &document["costs"];
  if (!rows->is_array() || rows->size() > kMaxRows)
    throw InputError({origin}, "core costs are a list of rows, or an object with such a list under "
                               "'costs'");
  CostTable table;
  ProblemList problems;
  for (std::size_t i = 0; i < rows->size(); ++i) {
    const json& values = (*rows)[i];
    SourceLoc where{origin, 0, 0, fmt::format("row {}", i)};
    const Row row(values, std::move(where), problems);
    if (!values.is_object()) {
      row.report("a row must be an object");
    } else if (row.has("sub_id")) {
      read_tile(row, table);
    } else if (row.has("link")) {
      read_event(row, table);
    } else {
      read_cost(row, problems, table);
    }
  }
  problems.throw_if_any();
  return table;
}

CostTable read_core_costs(const std::vector<std::string>& paths) {
  namespace fs = std::filesystem;
  CostTable table;
  const auto add = [&](const std::string& path) {
    CostTable more = parse_core_costs(read_file(path, kMaxBytes), path);
    std::move(more.costs.begin(), more.costs.end(), std::back_inserter(table.costs));
    std::move(more.tiles.begin(), more.tiles.end(), std::back_inserter(table.tiles));
    std::move(more.streams.begin(), more.streams.end(), std::back_inserter(table.streams));
    table.has_events = table.has_events || more.has_events;
  };
  for (const std::string& path : paths) {
    std::error_code ignored;
    if (!fs::is_directory(path, ignored)) {
      add(path);
      continue;
    }
    bool any = false;
    for (const char* name :
         {"core_costs.json", "cost_lut.json", "schedule.json", "comm_events.json"}) {
      const fs::path file = fs::path(path) / name;
      if (!fs::is_regular_file(file, ignored))
        continue;
      add(file.string());
      table.has_events = table.has_events || std::string_view(name) == "comm_events.json";
      any = true;
    }
    if (!any)
      throw InputError({path}, "this folder has none of core_costs.json, cost_lut.json, "
                               "schedule.json and comm_events.json");
  }
  return table;
}

} // namespace monet::stream
