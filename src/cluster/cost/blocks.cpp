// Computes the profile of a strategy: the costs of each block of a rank's step, by pass. Called by
// the planner and by ClusterModel through Profiler.
#include "cluster/cost/blocks.hpp"

#include "cluster/cost/costs.hpp"
#include "cluster/cost/layout.hpp"
#include "workload/shared/operators.hpp"

#include "monet/base/errors.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace monet::cluster_cost {

namespace {

/// Sums the costs of a rank's step by block.
class BlockSums {
public:
  BlockSums(const Cluster& cluster, const ClusterDevice& device, const ParallelStrategy& strategy,
            const RankLayout& layout, CoreCostCache& costs, const ClusterWorkload& workload)
      : cluster_(cluster), device_(device), strategy_(strategy), layout_(layout), costs_(costs),
        in_place_loss_(workload.in_place_loss),
        shape_(workload.transformer ? &*workload.transformer : nullptr),
        blocks_(layout.names.size()), forward_flops_(layout.names.size()) {
    for (std::size_t i = 0; i < blocks_.size(); ++i)
      blocks_[i].name = layout.names[i];
  }

  Profile run() {
    find_shared_sums();
    if (device_.chip) {
      add_chip_costs();
    } else {
      add_kernels();
      add_updates();
    }
    add_parameters();
    add_exchanges(cluster_, strategy_, layout_, host_ns(), blocks_, shared_);
    add_activations(layout_, in_place_loss_, blocks_);
    add_flops();
    if (strategy_.recompute == RecomputeKind::full)
      run_layers_again();
    return {std::move(blocks_), layout_.sequence, std::move(shared_), peak()};
  }

private:
  const TrainingGraph& step() const { return layout_.ranks.step; }
  const Graph& graph() const { return layout_.ranks.step.graph; }
  const Operator& op(std::size_t i) const { return graph().operators()[i]; }
  Block& block(std::int64_t part) { return blocks_.at(static_cast<std::size_t>(part)); }
  Block& block_of(std::size_t i) { return block(layout_.places[i].part); }

  PassCost& pass_of(std::size_t i) { return cluster_cost::pass_of(layout_, blocks_, i); }

  const KernelTable& table() const { return *device_.table; }
  double host_ns() const { return device_.table ? device_.table->host_ns_per_kernel : 0; }

  void add_chip_costs() {
    const ChipCosts costs = chip_costs(step(), *device_.chip, costs_,
                                       accumulates() || strategy_.parts_of(Divided::samples) > 1);
    for (std::size_t i = 0; i < costs.nanoseconds.size(); ++i) {
      if (op(i).phase == Phase::update) {
        add_update(i, costs.nanoseconds[i], costs.picojoules[i]);
        continue;
      }
      pass_of(i).compute += costs.nanoseconds[i];
      block_of(i).pass_pj += costs.picojoules[i];
      if (shared_sums_.contains(OpId(i)))
        shared_sums_[OpId(i)] = {.compute = costs.nanoseconds[i]};
    }
  }

  /// Adds the update of a weight to every block that has the weight, and to its shared weights: a
  /// stage with several of these blocks updates it only once.
  void add_update(std::size_t i, double time, double energy) {
    const std::vector<std::int64_t>& parts = layout_.places[i].updates;
    for (const std::int64_t part : parts) {
      block(part).update += time;
      block(part).update_pj += energy;
      if (part == parts.front())
        continue;
      SharedWeights& of = shared(parts.front(), part);
      of.update += time;
      of.update_pj += energy;
    }
  }

  SharedWeights& shared(std::int64_t first, std::int64_t second) {
    const auto a = static_cast<std::size_t>(first);
    const auto b = static_cast<std::size_t>(second);
    for (SharedWeights& of : shared_) {
      if (of.first == a && of.second == b)
        return of;
    }
    SharedWeights& added = shared_.emplace_back();
    added.first = a;
    added.second = b;
    return added;
  }

  /// Finds the operators that add up the gradients of one weight from several blocks.
  void find_shared_sums() {
    for (const ParameterRecord& record : step().parameters) {
      if (parts_reading(record.weight).size() < 2)
        continue;
      const std::optional<OpId> made = sum_behind(record.gradient);
      if (made && op(made->index()).phase == Phase::backward && op(made->index()).domain.empty())
        shared_sums_.emplace(*made, PassCost{});
    }
  }

  bool accumulates() const { return strategy_.micro_batches() > 1; }

  void add_kernels() {
    for (const Kernel& kernel :
         kernels_of(graph(), layout_.places, table(), layout_.causal_masks)) {
      PassCost& pass = pass_of(kernel.ops.front().index());
      pass.compute += kernel.nanoseconds;
      pass.host += host_ns();
      ++pass.kernels;
      const auto sum = shared_sums_.find(kernel.ops.front());
      if (sum != shared_sums_.end() && kernel.ops.size() == 1)
        sum->second = {.compute = kernel.nanoseconds, .host = host_ns(), .kernels = 1};
    }
  }

  /// Adds the updates of parameters. A few kernels update all parameters, bound by memory
  /// bandwidth.
  void add_updates() {
    std::vector<double> bytes(graph().operators().size(), 0);
    double all = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if (op(i).phase != Phase::update || is_collective(op(i)))
        continue;
      for (const Access& access : op(i).nest.operands)
        bytes[i] += moved_bytes(graph(), op(i).nest, access);
      all += bytes[i];
    }
    if (all == 0)
      return;
    const double of_byte = table().vector_bytes_ns(VectorKernel::update, 1, 1, all) / all;
    for (std::size_t i = 0; i < bytes.size(); ++i)
      add_update(i, bytes[i] * of_byte, 0);
  }

  /// Adds the bytes of each parameter, its accumulated gradient and its states to the blocks that
  /// read the parameter.
  void add_parameters() {
    const auto bytes = [&](TensorId id) { return bytes_of(size_of(graph().tensor(id))); };
    std::map<TensorId, const ParameterRecord*> records;
    for (const ParameterRecord& record : step().parameters)
      records.emplace(record.weight, &record);
    for (std::size_t t = 0; t < graph().tensors().size(); ++t) {
      const TensorId id(t);
      if (graph().tensor(id).kind != TensorKind::parameter || graph().tensor(id).producer)
        continue;
      SharedWeights weights{.count = element_count(graph().tensor(id)),
                            .parameter_bytes = evenly(bytes(id), id, 3)};
      if (const auto record = records.find(id); record != records.end()) {
        const std::vector<TensorId>& states = record->second->states;
        weights.gradient_bytes = bytes(summed(record->second->gradient));
        if (!states.empty())
          weights.gradient_bytes = evenly(weights.gradient_bytes, states.front(), 2);
        weights.accumulation = add_accumulation(summed(record->second->gradient));
        weights.sum = sum_of(record->second->gradient);
        for (const TensorId state : record->second->states)
          weights.state_bytes += evenly(bytes(state), state, 1);
      }
      give_weights(weights, parts_reading(id));
    }
  }

  /// Bytes of a rank's shard of a tensor that ZeRO shards from stage `from` on. The shards are even
  /// although no axis may be divisible, because libraries shard the concatenated parameters.
  std::int64_t evenly(std::int64_t bytes, TensorId like, int from) const {
    const bool experts = is_of_experts(like);
    const std::int64_t ranks = strategy_.ranks_with_copies(experts);
    const auto origin = layout_.ranks.origins.find(like);
    if (strategy_.zero() < from || ranks == 1 || origin == layout_.ranks.origins.end())
      return bytes;
    std::int64_t parts = 1; // existing shards of the tensor
    for (const ShardCut& shard : origin->second.cuts) {
      const MeshAxis& axis = layout_.ranks.mesh[shard.mesh_axis];
      if (row_of(axis_role(axis.name)).has_copies(experts))
        parts *= axis.size;
    }
    return (bytes * parts + ranks - 1) / ranks;
  }

  bool is_of_experts(TensorId id) const {
    return strategy_.parts_of(Divided::experts) > 1 && graph().tensor(id).shape.size() >= 3;
  }

  /// Adds the kernel that accumulates a gradient over micro-batches, as Megatron and
  /// DistributedDataParallel do. It reads the gradient in the type of the product's operands, and
  /// reads and writes the sum.
  PassCost add_accumulation(TensorId gradient) {
    const Tensor& tensor = graph().tensor(gradient);
    if (!tensor.producer)
      return {};
    if (device_.chip)
      return add_accumulation_on_chip(tensor);
    std::int64_t made = bits_of(tensor.type);
    for (const TensorId id : present(graph().op(*tensor.producer).inputs)) {
      if (is_floating(graph().tensor(id).type))
        made = std::min(made, bits_of(graph().tensor(id).type));
    }
    const std::int64_t elements = std::max<std::int64_t>(element_count(tensor), 1);
    const double bytes =
        static_cast<double>(elements) * static_cast<double>(made + 2 * bits_of(tensor.type)) / 8;
    PassCost& pass = pass_of(tensor.producer->index());
    const double time = table().vector_bytes_ns(VectorKernel::elementwise, 1, elements, bytes);
    const PassCost cost{.compute = time,
                        .sharded = strategy_.zero() >= 2 ? time : 0,
                        .host = host_ns(),
                        .kernels = 1};
    pass = joined(pass, cost);
    return cost;
  }

  PassCost sum_of(TensorId gradient) const {
    const std::optional<OpId> made = sum_behind(gradient);
    const auto found = made ? shared_sums_.find(*made) : shared_sums_.end();
    return found == shared_sums_.end() ? PassCost{} : found->second;
  }

  /// The nearest operator with several operands among the producers of a gradient.
  std::optional<OpId> sum_behind(TensorId gradient) const {
    std::optional<OpId> made = graph().tensor(gradient).producer;
    while (made && op(made->index()).inputs.size() == 1 && op(made->index()).inputs[0])
      made = graph().tensor(*op(made->index()).inputs[0]).producer;
    return made;
  }

  /// Adds the read of a gradient's previous sum from off-chip memory; the write is already part of
  /// the step. Accumulation is free on a chip without off-chip memory.
  PassCost add_accumulation_on_chip(const Tensor& gradient) {
    if (!accumulates() || !device_.chip->offchip)
      return {};
    const OffchipPort port = offchip_port(*device_.chip);
    const auto bits = static_cast<double>(size_of(gradient).value);
    const double cycles = bits / static_cast<double>(port.read_bits_per_cycle);
    const std::size_t made = gradient.producer->index();
    const double time = cycles * 1e9 / device_.chip->frequency_hz;
    const double energy = port.energy_pj(bits, 0);
    const PassCost cost{.compute = time, .sharded = strategy_.zero() >= 2 ? time : 0};
    pass_of(made) = joined(pass_of(made), cost);
    block_of(made).pass_pj += energy;
    block_of(made).sharded_pj += strategy_.zero() >= 2 ? energy : 0;
    return cost;
  }

  void give_weights(const SharedWeights& weights, const std::set<std::int64_t>& parts) {
    for (const std::int64_t part : parts) {
      Block& of = block(part);
      of.parameter_count += weights.count;
      of.parameter_bytes += weights.parameter_bytes;
      of.gradient_bytes += weights.gradient_bytes;
      of.state_bytes += weights.state_bytes;
      if (part == *parts.begin())
        continue;
      SharedWeights& both = shared(*parts.begin(), part);
      both.count += weights.count;
      both.parameter_bytes += weights.parameter_bytes;
      both.gradient_bytes += weights.gradient_bytes;
      both.state_bytes += weights.state_bytes;
      both.sum = joined(both.sum, weights.sum);
      both.accumulation = joined(both.accumulation, weights.accumulation);
    }
  }

  /// Recomputes whole layers from their stored input, as PyTorch's checkpoint() and Megatron do.
  /// This includes the last product of a layer, although its result is unused.
  void run_layers_again() {
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      Block& of = blocks_[i];
      const bool between = i > 0 && i + 1 < blocks_.size();
      of.recompute = between ? of.forward : PassCost{};
      if (!between)
        continue;
      of.temporary_bytes += of.stored_bytes; // of one layer at a time
      of.stored_bytes = blocks_[i - 1].output_bytes;
      of.hardware_flops += forward_flops_[i];
    }
  }

  double peak() const {
    for (const Operator& product : graph().operators()) {
      if (product.nest.compute == ComputeKind::mac && device_.table)
        return table()
            .peak_tflops[static_cast<std::size_t>(product_type(graph(), product, table()))];
    }
    return 0;
  }

  std::set<std::int64_t> parts_reading(TensorId id) const {
    return cluster_cost::parts_reading(layout_, id);
  }

  /// The tensor that accumulates a gradient: the one before its exchange, or the shard after it if
  /// ZeRO keeps only shards of gradients.
  TensorId summed(TensorId gradient) const {
    while (strategy_.zero() < 2) {
      const auto producer = graph().tensor(gradient).producer;
      if (!producer || !is_collective(graph().op(*producer)))
        break;
      gradient = *graph().op(*producer).inputs[0];
    }
    return gradient;
  }

  void add_flops() {
    const Operations of =
        operations_of(graph(), layout_.causal_masks, device_.table.has_value(), shape_);
    for (std::size_t i = 0; i < graph().operators().size(); ++i) {
      if (op(i).phase == Phase::update)
        continue;
      block_of(i).hardware_flops += of.hardware[i];
      block_of(i).model_flops += of.model[i];
      block_of(i).masked_flops += of.masked[i];
      if (op(i).phase == Phase::forward)
        forward_flops_[static_cast<std::size_t>(layout_.places[i].part)] += of.hardware[i];
    }
  }

  const Cluster& cluster_;
  const ClusterDevice& device_;
  const ParallelStrategy& strategy_;
  const RankLayout& layout_;
  CoreCostCache& costs_;
  bool in_place_loss_;
  const TransformerShape* shape_; ///< null if the network is no transformer
  std::vector<Block> blocks_;
  std::vector<double> forward_flops_; ///< by block
  std::vector<SharedWeights> shared_;
  std::map<OpId, PassCost> shared_sums_;
};

} // namespace

PassCost joined(PassCost a, const PassCost& b) {
  a.compute += b.compute;
  a.sharded += b.sharded;
  a.host += b.host;
  a.exchange += b.exchange;
  a.gather += b.gather;
  a.gather_host += b.gather_host;
  a.link += b.link;
  a.kernels += b.kernels;
  return a;
}

ProfileKey profile_key(const ParallelStrategy& strategy) {
  ProfileKey key{.axes = strategy.axes,
                 .micro_batch = strategy.micro_batch,
                 .accumulates = strategy.micro_batches() > 1,
                 .recompute = strategy.recompute};
  for (const AxisRoleRow& row : axis_roles()) {
    if (!row.changes_profile)
      key.axes.reset(row.role);
  }
  return key;
}

Profile Profiler::profile(const ParallelStrategy& strategy) const {
  const RankLayout layout = lay_out(workload_, strategy);
  return BlockSums(cluster_, device_, strategy, layout, *costs_, workload_).run();
}

} // namespace monet::cluster_cost
