// Adds the times of a rank's collectives to the passes and updates of its blocks. Called by
// blocks.cpp.
#include "cluster/cost/costs.hpp"
#include "cluster/partition/sums.hpp"
#include "cluster/shared/collectives.hpp"
#include "workload/shared/operators.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <ranges>
#include <set>
#include <string>
#include <utility>

namespace monet::cluster_cost {

namespace {

Collective collective_kind(const Operator& op) {
  if (op.op_type == ops::AllReduce)
    return Collective::all_reduce;
  if (op.op_type == ops::ReduceScatter)
    return Collective::reduce_scatter;
  return op.op_type == ops::AllGather ? Collective::all_gather : Collective::all_to_all;
}

/// Exchanges over data ranks that are merged into one collective.
struct Bucket {
  std::int64_t part = 0;           ///< block
  std::size_t first = 0;           ///< first operator
  double Block::*update = nullptr; ///< total of its time if it runs once a step, else null
  Collective kind = Collective::all_reduce;
  std::vector<AxisRole> axes;
};

/// Sums the costs of a rank's collectives.
class ExchangeSums {
public:
  ExchangeSums(const Cluster& cluster, const ParallelStrategy& strategy, const RankLayout& layout,
               double host_ns, std::vector<Block>& blocks, std::vector<SharedWeights>& shared)
      : cluster_(cluster), strategy_(strategy), layout_(layout), host_ns_(host_ns), blocks_(blocks),
        shared_(shared) {}

  void run() {
    for (std::size_t i = 0; i < graph().operators().size(); ++i) {
      if (!is_collective(op(i)) || op(i).op_type == ops::TakeShard || is_continued(i))
        continue;
      const std::vector<AxisRole> axes = axes_of(i);
      const auto bytes = static_cast<double>(collective_bytes(graph(), op(i)));
      if (is_cut_in_a_row(i, axes)) {
        add_cut_in_a_row(i, axes);
      } else if (op(i).phase == Phase::update) {
        const bool gathers = op(i).op_type == ops::AllGather;
        add_once(i, gathers, collective_kind(op(i)), axes, bytes);
      } else if (is_over_data(i, axes)) {
        bucket(i, nullptr, collective_kind(op(i)), axes) += bytes;
      } else {
        PassCost& pass = pass_of(i);
        pass.exchange += time_of(collective_kind(op(i)), axes, bytes);
        pass.host += host_ns_;
        ++pass.kernels;
      }
    }
    for (const auto& [of, bytes] : buckets_) {
      const double time = time_of(of.kind, of.axes, bytes);
      if (of.update) {
        block(of.part).*of.update += time;
        continue;
      }
      PassCost& pass = pass_of(of.first);
      pass.gather += time;
      pass.gather_host += host_ns_;
      pass.host += host_ns_;
      ++pass.kernels;
    }
  }

private:
  const TrainingGraph& step() const { return layout_.ranks.step; }
  const Graph& graph() const { return layout_.ranks.step.graph; }
  const Operator& op(std::size_t i) const { return graph().operators()[i]; }
  Block& block(std::int64_t part) { return blocks_.at(static_cast<std::size_t>(part)); }
  PassCost& pass_of(std::size_t i) { return cluster_cost::pass_of(layout_, blocks_, i); }

  /// The mesh axes of a collective. Consecutive all-reduces over several axes count as one over all
  /// of them.
  std::vector<AxisRole> axes_of(std::size_t i) const {
    std::vector<AxisRole> axes;
    for (std::size_t at = i; true;) {
      axes.push_back(
          axis_role(std::get<std::string>(op(at).attributes.all().find("mesh_axis")->second)));
      const auto before = graph().tensor(*op(at).inputs[0]).producer;
      if (!before || op(before->index()).op_type != op(i).op_type ||
          !is_collective(op(before->index())) || op(i).op_type != ops::AllReduce)
        return axes;
      at = before->index();
    }
  }

  /// Whether the only reader of an all-reduce is another all-reduce, which counts for both.
  bool is_continued(std::size_t i) const {
    const auto& readers = graph().tensor(*op(i).outputs[0]).consumers;
    return op(i).op_type == ops::AllReduce && readers.size() == 1 &&
           op(readers.front().index()).op_type == ops::AllReduce;
  }

  /// Whether a collective exchanges gradients or parameters, which may overlap with passes. False
  /// for tokens on their way to experts, and for keys and values of other tokens.
  bool is_over_data(std::size_t i, const std::vector<AxisRole>& axes) const {
    switch (row_of(axes.front()).overlapping) {
    case OverlappingCollectives::none:
      return false;
    case OverlappingCollectives::of_weights:
      return is_of_weights(i);
    case OverlappingCollectives::all_but_all_to_all:
      return op(i).op_type != ops::AllToAll;
    case OverlappingCollectives::all:
      return true;
    }
    return false;
  }

  bool is_of_weights(std::size_t i) const {
    TensorId id = *op(i).inputs[0];
    while (graph().tensor(id).producer && is_collective(graph().op(*graph().tensor(id).producer)))
      id = *graph().op(*graph().tensor(id).producer).inputs[0];
    const TensorKind kind = graph().tensor(id).kind;
    return kind == TensorKind::parameter || kind == TensorKind::parameter_gradient;
  }

  double time_of(Collective kind, const std::vector<AxisRole>& axes, double bytes) {
    return static_cast<double>(collective_cost(group(axes), kind, bytes).time);
  }

  /// The bytes so far of an exchange's bucket, which is created if missing. Exchanges of one kind
  /// over data ranks are merged by block and pass, or by block for those that run once a step, as
  /// FSDP gathers layers and DistributedDataParallel reduces buckets.
  double& bucket(std::size_t i, double Block::*update, Collective kind,
                 const std::vector<AxisRole>& axes) {
    const std::int64_t part = layout_.places[i].part;
    const PassCost* pass = update ? nullptr : &pass_of(i);
    for (auto& [of, bytes] : buckets_) {
      const bool alike = of.part == part && of.update == update && of.kind == kind;
      if (alike && of.axes == axes && (update || &pass_of(of.first) == pass))
        return bytes;
    }
    return buckets_.emplace_back(Bucket{part, i, update, kind, axes}, 0.0).second;
  }

  /// Whether a collective all-reduces a gradient that ZeRO shards although no axis of it is
  /// divisible. The gradient is then cut like its states (see evenly()).
  bool is_cut_in_a_row(std::size_t i, const std::vector<AxisRole>& axes) const {
    return strategy_.zero() > 0 && op(i).phase == Phase::update &&
           op(i).op_type == ops::AllReduce &&
           std::ranges::any_of(axes, [](AxisRole role) { return row_of(role).has_copies(true); }) &&
           element_count(graph().tensor(*op(i).inputs[0])) > 1;
  }

  void add_cut_in_a_row(std::size_t i, const std::vector<AxisRole>& axes) {
    const Tensor& gradient = graph().tensor(*op(i).inputs[0]);
    const std::int64_t elements = element_count(gradient);
    const ElementType weight = graph().tensor(step().parameters.front().weight).type;
    const auto bytes = [&](const ElementType& type) {
      return static_cast<double>(elements * bits_of(type)) / 8;
    };
    add_once(i, false, Collective::reduce_scatter, axes, bytes(gradient.type));
    add_once(i, true, Collective::all_gather, axes, bytes(weight));
  }

  /// Adds an exchange that runs once a step: a gather of parameters, or a reduction of gradients.
  void add_once(std::size_t i, bool gathers, Collective kind, const std::vector<AxisRole>& axes,
                double bytes) {
    bucket(i, gathers ? &Block::parameters : &Block::gradients, kind, axes) += bytes;
    const auto weight = shared_.empty() ? std::nullopt : weight_of(i);
    if (!weight)
      return;
    const std::set<std::int64_t> parts = parts_reading(layout_, *weight);
    for (SharedWeights& both : shared_) {
      const bool here = parts.size() > 1 &&
                        static_cast<std::int64_t>(both.first) == *parts.begin() &&
                        parts.contains(static_cast<std::int64_t>(both.second));
      if (here)
        (gathers ? both.parameters : both.gradients) += time_of(kind, axes, bytes);
    }
  }

  /// The weight whose gradient or updated value a collective of the update exchanges.
  std::optional<TensorId> weight_of(std::size_t i) const {
    for (TensorId id = *op(i).inputs[0];;) {
      if (const auto found = weights_.find(id); found != weights_.end())
        return found->second;
      const auto producer = graph().tensor(id).producer;
      if (!producer || !is_collective(graph().op(*producer)))
        break;
      id = *graph().op(*producer).inputs[0];
    }
    for (TensorId id = *op(i).outputs[0];;) {
      const Tensor& tensor = graph().tensor(id);
      if (tensor.alias_of)
        return tensor.alias_of;
      if (tensor.consumers.size() != 1 || !is_collective(graph().op(tensor.consumers.front())))
        return std::nullopt;
      id = *graph().op(tensor.consumers.front()).outputs[0];
    }
  }

  const GroupPlacement& group(const std::vector<AxisRole>& axes) {
    if (const auto found = groups_.find(axes); found != groups_.end())
      return found->second;
    return groups_.emplace(axes, group_of(cluster_, strategy_, axes)).first->second;
  }

  const Cluster& cluster_;
  const ParallelStrategy& strategy_;
  const RankLayout& layout_;
  double host_ns_; ///< host time of launching one collective
  std::vector<Block>& blocks_;
  std::vector<SharedWeights>& shared_;
  const std::map<TensorId, TensorId> weights_ = mesh::weights_of_gradients(layout_.ranks.step);
  std::map<std::vector<AxisRole>, GroupPlacement> groups_;
  std::vector<std::pair<Bucket, double>> buckets_; ///< with their bytes
};

} // namespace

std::set<std::int64_t> parts_reading(const RankLayout& layout, TensorId weight) {
  const Graph& graph = layout.ranks.step.graph;
  std::set<std::int64_t> parts;
  for (const OpId reader : graph.tensor(weight).consumers) {
    if (graph.op(reader).phase != Phase::update)
      parts.insert(layout.places[reader.index()].part);
  }
  return parts;
}

PassCost& pass_of(const RankLayout& layout, std::vector<Block>& blocks, std::size_t i) {
  Block& of = blocks.at(static_cast<std::size_t>(layout.places[i].part));
  if (layout.ranks.step.graph.operators()[i].phase == Phase::recompute)
    return of.recompute;
  switch (layout.places[i].pass) {
  case PipelinePass::forward:
    return of.forward;
  case PipelinePass::backward:
    return of.backward;
  default:
    return of.weight;
  }
}

void add_exchanges(const Cluster& cluster, const ParallelStrategy& strategy,
                   const RankLayout& layout, double host_ns, std::vector<Block>& blocks,
                   std::vector<SharedWeights>& shared) {
  ExchangeSums(cluster, strategy, layout, host_ns, blocks, shared).run();
}

GroupPlacement group_of(const Cluster& cluster, const ParallelStrategy& strategy,
                        std::span<const AxisRole> axes) {
  std::vector<GroupAxis> group;
  std::int64_t stride = 1;
  for (const AxisRole role : kMeshRoles | std::views::reverse) {
    const std::int64_t count = mesh_size(strategy, role);
    if (std::ranges::find(axes, role) != axes.end() && count > 1)
      group.push_back({stride, count});
    stride *= count;
  }
  return place(cluster, group);
}

GroupPlacement neighbours(const Cluster& cluster, const ParallelStrategy& strategy) {
  const GroupAxis group{strategy.ranks_of_stage(), std::min<std::int64_t>(strategy.stages(), 2)};
  return place(cluster, std::span(&group, 1));
}

} // namespace monet::cluster_cost
