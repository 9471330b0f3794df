// Reads a kernel table file (YAML) into a KernelTable. Called for clusters whose device is a table.
#include "base/shared/file_kind.hpp"
#include "cluster/network/points.hpp"

#include "monet/base/files.hpp"
#include "monet/cluster/kernel_table.hpp"

#include <fmt/core.h>

#include <array>
#include <cmath>
#include <map>

namespace monet {

namespace {

constexpr double kMaxBytesOfDevice = 1e15;
constexpr double kLongestConstant = 1e12;

/// The type or kernel called `name` among the first `count` of its enumeration, or nullopt.
template <class Kind>
std::optional<Kind> kind_named(std::string_view name, std::size_t count) {
  for (std::size_t k = 0; k < count; ++k) {
    if (name_of(static_cast<Kind>(k)) == name)
      return static_cast<Kind>(k);
  }
  return std::nullopt;
}

std::optional<KernelType> type_cell(const PointRow& row, std::size_t column,
                                    ProblemList& problems) {
  const std::optional<KernelType> type = kind_named<KernelType>(row.cells[column], kKernelTypes);
  if (!type)
    problems.add(row.where, fmt::format("no element type '{}'", row.cells[column].substr(0, 30)),
                 "fp64, fp32, tf32, bf16, fp16, fp8 or int8");
  return type;
}

/// A measured time without overhead and launch, or nullopt if the remainder is less than half of
/// the overhead: such a point does not reveal the kernel's time.
std::optional<double> work_of(double measured, double overhead, double launch) {
  constexpr double kMinShare = 0.5;
  const double work = measured - overhead - launch;
  return work > 0 && work >= kMinShare * overhead ? std::optional(work) : std::nullopt;
}

void read_peaks(const YamlNode& node, KernelTable& table, ProblemList& problems) {
  YamlMap map(node, problems);
  bool any = false;
  for (std::size_t t = 0; t < kKernelTypes; ++t) {
    const std::string_view name = name_of(static_cast<KernelType>(t));
    if (!map.has(name))
      continue;
    table.peak_tflops[t] = figure_within(map, name, 1e-6, 1e9, std::nullopt, problems);
    any = true;
  }
  map.finish();
  if (!any)
    problems.add(node.where, "expected the rate of at least one type, like {fp16: 312}");
}

void read_host(const YamlNode& node, HostLink& link, ProblemList& problems) {
  YamlMap map(node, problems);
  link.bandwidth_gb_per_s =
      figure_within(map, "bandwidth_gb_per_s", 1e-6, 1e9, std::nullopt, problems);
  link.latency_ns = figure_within(map, "latency_ns", 0, kLongestConstant, 0.0, problems);
  link.shared_by =
      static_cast<std::int64_t>(figure_within(map, "shared_by", 1, 1024, 1.0, problems));
  map.finish();
}

void add_matmul_points(const YamlNode& node, double overhead, const FileOpener& open,
                       KernelTable& table, ProblemList& problems) {
  constexpr std::array<std::string_view, 6> kColumns{"m", "n", "k", "batch", "type", "ns"};
  std::map<std::array<std::int64_t, 5>, SourceLoc> seen;
  for (const PointRow& row : read_points(node, kColumns, open, problems)) {
    std::array<std::int64_t, 5> key{};
    bool whole = true;
    for (std::size_t c = 0; c < 4; ++c) {
      const auto size = counted_cell(row, c, kColumns[c], problems);
      whole = whole && size;
      key[c] = size.value_or(1);
    }
    const auto type = type_cell(row, 4, problems);
    const auto time = positive_cell(row, 5, kColumns[5], problems);
    if (!whole || !type || !time)
      continue;
    key[4] = static_cast<std::int64_t>(*type);
    const auto [first, is_new] = seen.try_emplace(key, row.where);
    if (!is_new)
      problems.add(row.where,
                   fmt::format("{} x {} x {}, batch {}, {} is given twice (first at {})", key[0],
                               key[1], key[2], key[3], name_of(*type), first->second.to_string()));
    if (!table.has(*type)) {
      problems.add(row.where, fmt::format("'peak_tflops' has no rate for {}", name_of(*type)));
      continue;
    }
    const auto log_of = [&](std::size_t c) { return std::log(static_cast<double>(key[c])); };
    if (const auto work = work_of(*time, overhead, table.kernel_launch_ns)) {
      const double ideal = table.ideal_matmul_ns(key[0], key[1], key[2], key[3], *type);
      table.matmul_points.push_back({log_of(0), log_of(1), log_of(2), log_of(3),
                                     std::log(alignment_of(key[1], key[2], *type)),
                                     std::log(*work / ideal), *type});
    }
  }
}

void read_matmul(const YamlNode& node, const FileOpener& open, KernelTable& table,
                 ProblemList& problems) {
  YamlMap map(node, problems);
  MatrixUnits& units = table.matrix_units;
  units.units = figure_within(map, "units", 1, 1e6, 1.0, problems);
  if (const YamlNode* tiles = map.find("tiles"))
    read_tile_shapes(*tiles, units, problems);
  units.fill = figure_within(map, "fill", 0, 1e6, 0.0, problems);
  units.memory_share = figure_within(map, "memory_share", 1e-6, 1, 1.0, problems);
  units.row_bytes =
      static_cast<std::int64_t>(figure_within(map, "row_bytes", 0, 1024, 0.0, problems));
  units.sustained = figure_within(map, "sustained", 1e-6, 1, 1.0, problems);
  const double overhead = figure_within(map, "overhead_ns", 0, kLongestConstant, 0.0, problems);
  if (const YamlNode* points = map.find("points"))
    add_matmul_points(*points, overhead, open, table, problems);
  map.finish();
}

void add_vector_points(const YamlNode& node, const std::array<double, kVectorKernels>& overheads,
                       const FileOpener& open, KernelTable& table, ProblemList& problems) {
  constexpr std::array<std::string_view, 5> kColumns{"kernel", "rows", "columns", "type", "ns"};
  std::map<std::array<std::int64_t, 4>, SourceLoc> seen;
  for (const PointRow& row : read_points(node, kColumns, open, problems)) {
    const auto kernel = kind_named<VectorKernel>(row.cells[0], kVectorKernels);
    if (!kernel)
      problems.add(row.where, fmt::format("no kernel '{}'", row.cells[0].substr(0, 30)),
                   "elementwise, gelu, layernorm, softmax, gelu_backward, layernorm_backward, "
                   "layernorm_weights, softmax_backward, column_sum or update");
    const auto rows = counted_cell(row, 1, kColumns[1], problems);
    const auto columns = counted_cell(row, 2, kColumns[2], problems);
    const auto type = type_cell(row, 3, problems);
    const auto time = positive_cell(row, 4, kColumns[4], problems);
    if (!kernel || !rows || !columns || !type || !time)
      continue;
    const bool by_elements = is_by_elements(*kernel);
    if (by_elements && *rows != 1)
      problems.add(row.where,
                   fmt::format("points of {} have one row: only elements count", name_of(*kernel)));
    const auto [first, is_new] = seen.try_emplace(
        {static_cast<std::int64_t>(*kernel), *rows, *columns, static_cast<std::int64_t>(*type)},
        row.where);
    if (!is_new)
      problems.add(row.where,
                   fmt::format("{} of {} x {} in {} is given twice (first at {})", name_of(*kernel),
                               *rows, *columns, name_of(*type), first->second.to_string()));
    const double overhead = overheads[static_cast<std::size_t>(*kernel)];
    if (const auto work = work_of(*time, overhead, table.kernel_launch_ns)) {
      const double bytes = tensors_of(*kernel) * static_cast<double>(*rows) *
                           static_cast<double>(*columns) * static_cast<double>(bytes_of(*type));
      const double columns_or_bytes = by_elements ? bytes : static_cast<double>(*columns);
      table.vector_points.push_back(
          {std::log(static_cast<double>(*rows)), std::log(columns_or_bytes),
           std::log(bytes / *work / table.memory_bandwidth_gb_per_s), *kernel});
    }
  }
}

void read_vector(const YamlNode& node, const FileOpener& open, KernelTable& table,
                 ProblemList& problems) {
  YamlMap map(node, problems);
  std::array<double, kVectorKernels> overheads{};
  if (const YamlNode* times = map.find("overhead_ns")) {
    YamlMap by_kernel(*times, problems);
    for (std::size_t t = 0; t < kVectorKernels; ++t)
      overheads[t] = figure_within(by_kernel, name_of(static_cast<VectorKernel>(t)), 0,
                                   kLongestConstant, 0.0, problems);
    by_kernel.finish();
  }
  if (const YamlNode* points = map.require("points"))
    add_vector_points(*points, overheads, open, table, problems);
  map.finish();
}

std::optional<bool> one_of(const PointRow& row, std::size_t column, std::string_view yes,
                           std::string_view no, ProblemList& problems) {
  const std::string& cell = row.cells[column];
  if (cell == yes || cell == no)
    return cell == yes;
  problems.add(row.where, fmt::format("expected {} or {}, not '{}'", yes, no, cell.substr(0, 30)));
  return std::nullopt;
}

void read_attention(const YamlNode& node, const FileOpener& open, KernelTable& table,
                    ProblemList& problems) {
  constexpr std::array<std::string_view, 7> kColumns{"heads", "sequence", "size", "causal",
                                                     "pass",  "type",     "ns"};
  YamlMap map(node, problems);
  const double overhead = figure_within(map, "overhead_ns", 0, kLongestConstant, 0.0, problems);
  table.exponential_flops =
      figure_within(map, "exponential_flops", 0, kLongestConstant, 0.0, problems);
  table.attention_share = figure_within(map, "share", 1e-6, 1, 1.0, problems);
  const YamlNode* points = map.find("points");
  map.finish();
  if (points == nullptr)
    return;
  std::map<std::array<std::int64_t, 6>, SourceLoc> seen;
  for (const PointRow& row : read_points(*points, kColumns, open, problems)) {
    const auto heads = counted_cell(row, 0, kColumns[0], problems);
    const auto sequence = counted_cell(row, 1, kColumns[1], problems);
    const auto size = counted_cell(row, 2, kColumns[2], problems);
    const auto causal = one_of(row, 3, "yes", "no", problems);
    const auto backward = one_of(row, 4, "backward", "forward", problems);
    const auto type = type_cell(row, 5, problems);
    const auto time = positive_cell(row, 6, kColumns[6], problems);
    if (!heads || !sequence || !size || !causal || !backward || !type || !time)
      continue;
    const AttentionShape shape{*heads, *sequence, *sequence, *size, *causal, *backward};
    const auto [first, is_new] = seen.try_emplace(
        {*heads, *sequence, *size, *causal, *backward, static_cast<std::int64_t>(*type)},
        row.where);
    if (!is_new)
      problems.add(row.where,
                   fmt::format("attention of {} heads, {} tokens, {} numbers is given twice (first "
                               "at {})",
                               *heads, *sequence, *size, first->second.to_string()));
    if (!table.has(*type)) {
      problems.add(row.where, fmt::format("'peak_tflops' has no rate for {}", name_of(*type)));
      continue;
    }
    if (const auto work = work_of(*time, overhead, table.kernel_launch_ns))
      table.attention_points.push_back(
          {.log_heads = std::log(static_cast<double>(*heads)),
           .log_sequence = std::log(static_cast<double>(*sequence)),
           .log_size = std::log(static_cast<double>(*size)),
           .log_alignment = std::log(alignment_of(*size, *size, *type)),
           .log_slowdown = std::log(*work / table.ideal_attention_ns(shape, *type)),
           .causal = *causal,
           .backward = *backward,
           .type = *type});
  }
}

KernelTable table_of(const YamlNode& root, const FileOpener& open, bool may_borrow,
                     ProblemList& problems);

/// Copies the points of another table, which are relative to that device's figures. Products of
/// matrices reach `matmul_efficiency` times the share of the peak that they reach on that device.
void borrow(const YamlNode& node, const FileOpener& open, bool may_borrow, KernelTable& table,
            ProblemList& problems) {
  YamlMap map(node, problems);
  const std::string name = map.require_string("table");
  const double efficiency = figure_within(map, "matmul_efficiency", 0.01, 100, 1.0, problems);
  map.finish();
  if (!may_borrow) {
    problems.add(node.where, "a table from which another one borrows cannot borrow");
    return;
  }
  if (!problems.empty())
    return;
  try {
    const FileText file = open(name, node.where);
    const KernelTable other = table_of(parse_yaml(file.text, file.path), open, false, problems);
    table.vector_points = other.vector_points;
    table.attention_points = other.attention_points;
    table.matmul_points = other.matmul_points;
    for (MatmulPoint& point : table.matmul_points)
      point.log_slowdown -= std::log(efficiency);
  } catch (const InputError& error) {
    problems.add(error.problems());
  }
}

KernelTable table_of(const YamlNode& root, const FileOpener& open, bool may_borrow,
                     ProblemList& problems) {
  require_kind(root, {FileKind::kernel_table});
  KernelTable table;
  YamlMap map(root, problems);
  table.origin = root.where.origin;
  table.name = map.require_string("name");
  map.ignore("source");
  table.measured = map.boolean_or("measured", true);
  if (const YamlNode* peaks = map.require("peak_tflops"))
    read_peaks(*peaks, table, problems);
  table.memory_bandwidth_gb_per_s =
      figure_within(map, "memory_bandwidth_gb_per_s", 1e-6, 1e9, std::nullopt, problems);
  table.memory_share = figure_within(map, "memory_share", 1e-6, 1, 1.0, problems);
  table.memory_bytes =
      figure_within(map, "memory_bytes", 1, kMaxBytesOfDevice, std::nullopt, problems);
  table.workspace_bytes =
      figure_within(map, "workspace_bytes", 0, kMaxBytesOfDevice, 0.0, problems);
  table.kernel_launch_ns =
      figure_within(map, "kernel_launch_ns", 0, kLongestConstant, 0.0, problems);
  table.host_ns_per_kernel =
      figure_within(map, "host_ns_per_kernel", 0, kLongestConstant, 0.0, problems);
  if (const YamlNode* link = map.find("host_link"))
    read_host(*link, table.host_link, problems);
  if (const YamlNode* matmul = map.require("matmul"))
    read_matmul(*matmul, open, table, problems);
  if (const YamlNode* vector = map.find("vector"))
    read_vector(*vector, open, table, problems);
  if (const YamlNode* attention = map.find("attention"))
    read_attention(*attention, open, table, problems);
  if (const YamlNode* other = map.find("borrow")) {
    if (!table.matmul_points.empty() || !table.vector_points.empty() ||
        !table.attention_points.empty())
      problems.add(other->where, "a table with points cannot borrow points");
    borrow(*other, open, may_borrow, table, problems);
  }
  if (table.workspace_bytes >= table.memory_bytes)
    problems.add(root.where, "the workspace is as large as the memory");
  map.finish();
  return table;
}

} // namespace

KernelTable parse_kernel_table(std::string_view text, const std::string& origin,
                               const FileOpener& open) {
  ProblemList problems;
  KernelTable table = table_of(parse_yaml(text, origin), open, true, problems);
  problems.throw_if_any();
  return table;
}

KernelTable read_kernel_table(const std::string& path) {
  constexpr std::size_t kMax = std::size_t{1} << 24;
  return parse_kernel_table(read_file(path, kMax), path, open_beside);
}

} // namespace monet
