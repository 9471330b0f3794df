// Checks that the names and unrollings of a mapping file fit the network, after mapping_file.cpp
// has read it.
#include "base/shared/text.hpp"
#include "workload/shared/operators.hpp"

#include "monet/base/units.hpp"
#include "monet/base/warnings.hpp"
#include "monet/core_cost/mapping_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>
#include <map>

namespace monet {

namespace {

/// Names other than ONNX operators: everything, ZigZag's word for all poolings, and an entry of
/// Stream's files that it applies to no operator.
constexpr std::array<std::string_view, 3> kOtherNames{"default", "Pooling", "Pool"};

class Check {
public:
  Check(const MappingSubjects& subjects, ProblemList& problems)
      : subjects_(subjects), problems_(problems) {}

  void check(const MappingEntry& entry) {
    if (!is_subject(entry))
      report_unknown(entry);
    for (const auto* tiling : {&entry.intra_core_tiling, &entry.inter_core_tiling}) {
      for (const TilingFactor& factor : *tiling)
        check_loop(entry, factor.dim);
    }
    for (const auto& [dim, unrollings] : entry.spatial_mapping) {
      for (const Unrolling& unrolling : unrollings)
        check_loop(entry, unrolling.dim);
    }
    for (const auto& [dim, loops] : entry.spatial_mapping_hint) {
      for (const std::string& loop : loops)
        check_loop(entry, loop);
    }
    for (const auto& [loop, size] : entry.temporal_ordering) {
      if (loop != "*")
        check_loop(entry, loop);
    }
  }

private:
  bool is_subject(const MappingEntry& entry) const {
    if (subjects_.layers.contains(entry.name))
      return true;
    return !entry.allocation_only &&
           (subjects_.types.contains(entry.name) ||
            std::ranges::find(kOtherNames, entry.name) != kOtherNames.end() ||
            std::ranges::any_of(
                all_rows(), [&](const OperatorRow& rule) { return rule.op_type == entry.name; }));
  }

  /// Reports a likely misspelt name, or a name that can only be a layer, as an error. A name like
  /// an operator type may be a type that this network lacks, so it is a warning.
  void report_unknown(const MappingEntry& entry) {
    const std::string nearest = hint(entry);
    if (entry.allocation_only || !nearest.empty() || !is_like_a_type(entry.name))
      problems_.add(entry.where,
                    fmt::format("there is no layer '{}'{}", entry.name,
                                entry.allocation_only ? "" : ", nor a type of operators"),
                    nearest);
    else
      warn(entry.where, fmt::format("entry '{}' is ignored: there is no such layer, nor a type of "
                                    "operators",
                                    entry.name));
  }

  /// Whether a name looks like an operator type: "LayerNormalization", but not "fc1".
  static bool is_like_a_type(std::string_view name) {
    return !name.empty() && name.front() >= 'A' && name.front() <= 'Z' &&
           std::ranges::all_of(name, [](unsigned char c) { return std::isalnum(c) != 0; });
  }

  std::string hint(const MappingEntry& entry) const {
    std::vector<std::string> names(subjects_.layers.begin(), subjects_.layers.end());
    if (!entry.allocation_only) {
      names.insert(names.end(), kOtherNames.begin(), kOtherNames.end());
      names.insert(names.end(), subjects_.types.begin(), subjects_.types.end());
      for (const OperatorRow& rule : all_rows())
        names.emplace_back(rule.op_type);
    }
    return nearest_name_hint(entry.name, names);
  }

  void check_loop(const MappingEntry& entry, const std::string& loop) {
    if (std::ranges::find(entry.layer_dimension_names, loop) == entry.layer_dimension_names.end())
      check_loops(std::array{Unrolling{loop, 1}}, subjects_.loops, entry.where, problems_);
  }

  const MappingSubjects& subjects_;
  ProblemList& problems_;
};

/// Layers whose loop is shorter than an unrolling.
struct Narrow {
  std::string first;
  std::int64_t size = 0; ///< size of the first layer's loop
  std::size_t count = 0;
  bool all = true; ///< no other layer with that loop is wide enough
};

/// Finds layers with narrower loops. The first unrolling of a loop covers as much of it as
/// possible, the next one covers the rest.
Narrow layers_within(const MappingFile& mapping, const MappingEntry& entry,
                     const MappingSubjects& subjects, const Unrolling& unrolling,
                     std::int64_t before) {
  Narrow narrow;
  std::set<std::string_view> seen; // the training step contains a network's layers again
  for (const MappingSubjects::LoopsOfLayer& layer : subjects.sizes) {
    const auto dim = std::ranges::find(layer.dims, unrolling.dim, &LoopDim::name);
    if (dim == layer.dims.end() || mapping.find(layer.name, layer.op_type) != &entry ||
        !seen.insert(layer.name).second)
      continue;
    if (const std::int64_t left = ceil_div(dim->size, before); left >= unrolling.factor) {
      narrow.all = false;
    } else if (++narrow.count == 1) {
      narrow.first = layer.name;
      narrow.size = dim->size;
    }
  }
  return narrow;
}

/// Warns if an unrolling of all layers, or of a type, is wider than some of them.
void warn_of_width(const MappingFile& mapping, const MappingEntry& entry,
                   const MappingSubjects& subjects) {
  if (!entry.layer_dimension_names.empty())
    return; // loops have other names
  constexpr std::int64_t kWidest = std::numeric_limits<std::int64_t>::max();
  std::map<std::string, std::int64_t> unrolled;
  for (const auto& [array_dim, unrollings] : entry.spatial_mapping) {
    for (const Unrolling& unrolling : unrollings) {
      std::int64_t& before = unrolled.try_emplace(unrolling.dim, 1).first->second;
      const Narrow narrow = layers_within(mapping, entry, subjects, unrolling, before);
      before = before > kWidest / unrolling.factor ? kWidest : before * unrolling.factor;
      if (narrow.count == 0 || (!subjects.layers.contains(entry.name) && !narrow.all))
        continue;
      const std::string more =
          narrow.count > 1 ? fmt::format(" and {} more layers", narrow.count - 1) : "";
      warn(entry.where,
           fmt::format("'{}, {}' on {} is wider than {} of '{}' ({}){}: lanes stay idle",
                       unrolling.dim, unrolling.factor, array_dim, unrolling.dim, narrow.first,
                       narrow.size, more));
    }
  }
}

/// Keys of an entry that only the mapping of a layer on one core uses.
std::vector<std::string_view> keys_of_layers(const MappingEntry& entry) {
  std::vector<std::string_view> keys;
  if (!entry.spatial_mapping.empty())
    keys.push_back("spatial_mapping");
  if (!entry.spatial_mapping_hint.empty())
    keys.push_back("spatial_mapping_hint");
  if (!entry.temporal_ordering.empty())
    keys.push_back("temporal_ordering");
  static const std::map<std::string, MemoryOperand> usual{
      {"O", MemoryOperand::O}, {"W", MemoryOperand::I2}, {"I", MemoryOperand::I1}};
  if (!std::ranges::includes(usual, entry.memory_operand_links))
    keys.push_back("memory_operand_links");
  return keys;
}

/// Warns once, at the first entry, of keys that a step does not use.
void warn_of_keys(const MappingFile& mapping) {
  std::vector<const MappingEntry*> entries;
  for (const MappingEntry& entry : mapping.entries) {
    if (!keys_of_layers(entry).empty())
      entries.push_back(&entry);
  }
  if (entries.empty())
    return;
  const MappingEntry& first = *entries.front();
  warn(first.where,
       fmt::format("{} of '{}'{} without effect on a step: unrollings and loop orders are searched "
                   "within the core file's dataflows",
                   fmt::join(keys_of_layers(first), ", "), first.name,
                   entries.size() > 1 ? fmt::format(" and keys of {} more", entries.size() - 1)
                                      : ""));
}

} // namespace

void MappingSubjects::add(const std::string& name, const std::string& op_type,
                          const std::vector<LoopDim>& dims) {
  layers.insert(name);
  types.insert(op_type);
  for (const LoopDim& dim : dims)
    loops.insert(dim.name);
  sizes.push_back({name, op_type, dims});
}

void MappingSubjects::add(const Graph& graph) {
  for (const Operator& op : graph.operators())
    add(op.name, op.op_type.str(), op.nest.dims);
}

void check_subjects(const MappingFile& mapping, const MappingSubjects& subjects, MappingUse use,
                    ProblemList& problems) {
  Check check(subjects, problems);
  for (const MappingEntry& entry : mapping.entries) {
    check.check(entry);
    if (use == MappingUse::layers)
      warn_of_width(mapping, entry, subjects);
  }
  if (use == MappingUse::step)
    warn_of_keys(mapping);
}

} // namespace monet
