// What one rank of a mesh of devices computes of a training step, and what it exchanges with the
// others: both follow from the access maps of the step's operators.
//
// An axis of the mesh cuts loops: a loop of a result shards the result, a summed loop leaves
// partial sums, an operand without the loop is whole on every rank. Where an operator finds its
// operand in another form than it needs, a collective stands between them: partial sums to whole is
// an AllReduce, partial sums to shards a ReduceScatter, shards to whole an AllGather, shards of one
// axis to shards of another an AllToAll. (Xu et al. 2021, "GSPMD", has the same rules for XLA.)
#pragma once

#include "monet/training_graph/training.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace monet {

/// How an axis of the mesh divides a step. What is not said follows from what its operands are.
struct MeshAxis {
  std::string name;      ///< "data", "tensor": collectives name it
  std::int64_t size = 1; ///< ranks along it
  /// Axis of the network's inputs that is divided: samples, tokens. None: ranks see all of them.
  std::optional<std::size_t> inputs;
  /// Products with weights are cut along a loop of the weight: columns, or rows where what they
  /// multiply is in shards already. Whole stays a weight whose columns all readers need together,
  /// as a router's softmax does.
  bool weights = false;
  /// Between such products, results are in shards of the axis `inputs` rather than whole ("sequence
  /// parallel", Korthikanti et al. 2022).
  bool between = false;
  /// Weights with a loop that their data and result have, too (experts), are cut along it.
  bool experts = false;
  /// What else is cut of what all ranks would hold alike (Rajbhandari et al. 2020, "ZeRO"): 1
  /// states of the optimiser, 2 gradients as well, 3 parameters as well.
  int zero = 0;
};

/// A cut of one axis of a tensor: with the axis as [outer][parts][rest], rank r of the mesh's axis
/// has part r of each of the outer ones.
struct ShardCut {
  std::size_t mesh_axis = 0;
  std::size_t dim = 0;
  std::int64_t outer = 1;

  friend bool operator==(const ShardCut&, const ShardCut&) = default;
};

/// Where numbers of a rank's tensor come from or go to.
struct TensorOrigin {
  TensorId whole;             ///< of the step that was divided
  std::vector<ShardCut> cuts; ///< in this order, each of what those before have left
};

/// The step of one rank. All ranks run the same operators on tensors of the same shapes.
struct RankStep {
  TrainingGraph step;
  std::vector<MeshAxis> mesh;
  /// Of every tensor that is fed in, kept or given back: no producer, an update, an output.
  std::map<TensorId, TensorOrigin> origins;
  /// Scalars that hold the rank's number along an axis, by tensor.
  std::map<TensorId, std::size_t> rank_numbers;
};

/// Product of the axes' sizes.
std::int64_t ranks_of(std::span<const MeshAxis> mesh);

/// Divides a step whose views are folded, axis by axis. InfeasibleError, saying by how much, where
/// a size is not divisible: the inputs' axis, heads or columns of a weight.
RankStep partition_step(const TrainingGraph& step, std::span<const MeshAxis> mesh);

/// AllReduce, ReduceScatter, AllGather, AllToAll and TakeShard (no communication) of domain
/// ai.monet. Attributes: `mesh_axis` (name), `parts`, and `dim`, `outer` of a cut (`to_dim`,
/// `to_outer` of an AllToAll's result); `reduce`: "sum" or "max".
bool is_collective(const Operator& op);
/// Bytes of a rank's operand or result, whichever is larger: what closed forms of collectives call
/// n.
std::int64_t collective_bytes(const Graph& graph, const Operator& op);

} // namespace monet
