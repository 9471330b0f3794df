// Parses a graph into nodes and layers with sources of operands and mapping entries. This is the
// first step of make_stream_workload() (stream_tiles.cpp).
#include "reference/stream/tiles/network.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace monet::stream {

namespace {

NodeKind layout_kind(const Operator& op) {
  constexpr std::pair<std::string_view, NodeKind> kKinds[] = {
      {"Transpose", NodeKind::transpose}, {"Reshape", NodeKind::reshape},
      {"Flatten", NodeKind::flatten},     {"Gather", NodeKind::gather},
      {"Slice", NodeKind::slice},         {"Split", NodeKind::split},
      {"Concat", NodeKind::concat},
  };
  for (const auto& [type, kind] : kKinds) {
    if (op.domain.empty() && op.op_type == type)
      return kind;
  }
  return NodeKind::dummy;
}

void add_once(std::vector<std::uint32_t>& list, std::uint32_t value) {
  if (std::ranges::find(list, value) == list.end())
    list.push_back(value);
}

class NetworkParser {
public:
  NetworkParser(const Graph& graph, const Chip& chip, const MappingFile& mapping,
                bool pools_channels_twice)
      : graph_(graph), chip_(chip), mapping_(mapping), pools_channels_twice_(pools_channels_twice),
        default_(mapping.find("default", "default")), last_node_(graph.operators().size(), kNone) {
    if (default_ == nullptr) {
      throw InputError({mapping.origin}, "the mapping has no entry called 'default'",
                       "the reference scheduler requires one");
    }
  }

  Network run() {
    for (std::size_t i = 0; i < graph_.operators().size(); ++i)
      visit(OpId(i));
    problems_.throw_if_any();
    return std::move(network_);
  }

private:
  void visit(OpId id) {
    const Operator& op = graph_.op(id);
    const MappingEntry& entry = *mapping_.find(op.name, op.op_type);
    const auto node = static_cast<std::uint32_t>(network_.nodes.size());
    const ParseContext context{graph_,
                               op,
                               node,
                               predecessors(op),
                               entry.layer_dimension_names,
                               network_.notes,
                               pools_channels_twice_};
    std::vector<ParsedLayer> layers = parse_layers(context);
    if (layers.empty())
      add_passive(id, context.predecessors);
    for (ParsedLayer& parsed : layers)
      add_layer(id, entry, std::move(parsed));
    last_node_[id.index()] = static_cast<std::uint32_t>(network_.nodes.size() - 1);
  }

  /// Nodes that make the inputs of an operator. Operators folded by the reader are no nodes.
  std::vector<std::uint32_t> predecessors(const Operator& op) const {
    std::vector<std::uint32_t> list;
    for (const std::optional<TensorId>& input : op.inputs) {
      if (input && graph_.tensor(*input).producer)
        list.push_back(last_node_[graph_.tensor(*input).producer->index()]);
    }
    return list;
  }

  void add_passive(OpId id, const std::vector<std::uint32_t>& predecessors) {
    Node node;
    node.kind = layout_kind(graph_.op(id));
    node.op = id;
    for (const std::uint32_t from : predecessors)
      node.sources.push_back({Operand::I, from});
    add(std::move(node));
  }

  void add_layer(OpId id, const MappingEntry& entry, ParsedLayer parsed) {
    Node node;
    node.kind = NodeKind::compute;
    node.op = id;
    node.layer = static_cast<std::uint32_t>(network_.layers.size());
    node.sources = std::move(parsed.sources);
    Layer& layer = parsed.layer;
    layer.id = static_cast<int>(network_.nodes.size());
    layer.op = id;
    if (layer.name.empty())
      layer.name = graph_.op(id).name;
    layer.cores = cores_of(entry);
    layer.spatial_mapping = entry.spatial_mapping;
    const auto& intra =
        entry.intra_core_tiling.empty() ? default_->intra_core_tiling : entry.intra_core_tiling;
    const auto& inter =
        entry.inter_core_tiling.empty() ? default_->inter_core_tiling : entry.inter_core_tiling;
    network_.tilings.push_back({&intra, &inter});
    network_.layers.push_back(std::move(layer));
    add(std::move(node));
  }

  void add(Node node) {
    const auto id = static_cast<std::uint32_t>(network_.nodes.size());
    for (const NodeSource& source : node.sources) {
      add_once(node.predecessors, source.node);
      add_once(network_.nodes[source.node].successors, id);
    }
    network_.nodes.push_back(std::move(node));
  }

  std::vector<CoreId> cores_of(const MappingEntry& entry) {
    const std::vector<std::int64_t> allocation =
        entry.core_allocation.value_or(std::vector<std::int64_t>{0});
    std::vector<CoreId> cores;
    for (const std::int64_t core : allocation) {
      if (core < 0 || core >= static_cast<std::int64_t>(chip_.compute_cores())) {
        add_problem(entry, fmt::format("'{}' names core {}, but the chip's cores are 0 to {}",
                                       entry.name, core, chip_.compute_cores() - 1));
        continue;
      }
      cores.emplace_back(static_cast<std::size_t>(core));
    }
    if (allocation.empty())
      add_problem(entry, fmt::format("'{}' allows no core", entry.name));
    return cores;
  }

  /// Adds a problem of a mapping entry, once even if several layers use the entry.
  void add_problem(const MappingEntry& entry, const std::string& what) {
    const auto same = [&](const InputProblem& problem) {
      return problem.where.line == entry.where.line && problem.what == what;
    };
    if (std::ranges::none_of(problems_.problems(), same))
      problems_.add(entry.where, what);
  }

  const Graph& graph_;
  const Chip& chip_;
  const MappingFile& mapping_;
  bool pools_channels_twice_;
  const MappingEntry* default_;
  std::vector<std::uint32_t> last_node_; ///< per operator
  Network network_;
  ProblemList problems_;
};

} // namespace

Network parse_network(const Graph& graph, const Chip& chip, const MappingFile& mapping,
                      bool pools_channels_twice) {
  return NetworkParser(graph, chip, mapping, pools_channels_twice).run();
}

} // namespace monet::stream
