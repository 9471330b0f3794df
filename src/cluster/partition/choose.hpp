// Chooses the loop of each operator that an axis of the mesh cuts. Used by axis_pass.cpp.
#pragma once

#include "cluster/partition/forms.hpp"

#include <map>
#include <optional>
#include <vector>

namespace monet::mesh {

/// The share of an operator that one rank runs.
struct Choice {
  std::optional<LoopCut> cut;      ///< nullopt: every rank runs the whole operator
  std::vector<Placement> operands; ///< in the order of the nest
  bool adds_later = false;         ///< its operands are partial sums, and so is its result
  double price = 0;                ///< bytes that a rank sends for it
};

/// Applies the rules of an axis to operators. `preferred`: placements of results between cut
/// products, by tensor.
class Chooser {
public:
  Chooser(const TrainingGraph& source, const PassAxis& axis, const Forms& forms,
          std::vector<std::optional<Placement>> preferred);

  /// The choice for an operator. Calls must follow the order of operators, because the gradients of
  /// a product follow its cut. Throws InfeasibleError if a rule needs a cut that sizes do not
  /// allow.
  Choice choose(OpId id, std::size_t pass);
  /// The choice for an operator, preferably with a cut that makes `result` in the placement
  /// `wanted`.
  Choice choose_for(OpId id, TensorId result, const Placement& wanted, std::size_t pass);
  /// Whether the tensor is a parameter, or a cast of one.
  bool is_weight(TensorId id) const { return is_weight_[id.index()]; }

private:
  const Graph& graph() const { return source_.graph; }
  const std::vector<std::int64_t>& shape_of(const Access& access) const;
  std::optional<Choice> with_cut(const Operator& op, const LoopCut& cut, std::size_t pass) const;
  Choice without_cut(const Operator& op, std::size_t pass) const;
  /// Adds the cuts that place an operand as `shard`.
  void add_cuts(const Operator& op, const Access& access, const Placement& shard,
                std::vector<LoopCut>& cuts) const;
  std::vector<LoopCut> followed(const Operator& op, std::size_t pass) const;
  std::vector<LoopCut> wanted(const Operator& op) const;
  std::vector<LoopCut> sharded_kept(const Operator& op) const;
  std::optional<LoopCut> weight_cut(const Operator& op, std::size_t pass) const;
  std::optional<LoopCut> expert_cut(const Operator& op) const;
  std::vector<LoopCut> sharded_weight(const Operator& op) const;
  std::optional<LoopCut> gradient_cut(const Operator& op) const;
  std::optional<LoopCut> ruled(const Operator& op, std::size_t pass) const;
  Choice chosen(const Operator& op, std::size_t pass) const;
  std::optional<Placement> shard_in_update(const Operator& op, TensorId gradient) const;
  std::optional<Placement> kept_shard(TensorId id) const;
  std::optional<LoopCut> column_cut(const Operator& op, const Access& of_weight) const;
  bool adds_later(const Operator& op) const;
  bool has_shards(const Operator& op, std::size_t pass) const;
  bool is_gathered(TensorId id, Phase phase) const;
  bool is_better_whole(const Operator& op, const Choice& cut, const Choice& whole) const;
  std::vector<LoopCut> other_cuts(const Operator& op) const;
  bool gives_preferred(const Operator& op, const LoopCut& cut) const;
  std::optional<Choice> cheapest(const Operator& op, const std::vector<LoopCut>& cuts,
                                 std::size_t pass) const;

  const TrainingGraph& source_;
  const PassAxis& axis_;
  const Forms& forms_;
  std::vector<std::optional<Placement>> preferred_;
  std::map<TensorId, TensorId> weights_; ///< by gradient, and by term of a gradient
  std::map<OpId, LoopCut> cut_forward_;  ///< by operator of the forward part
  std::vector<bool> is_weight_;
};

/// Whether a parameter with three axes belongs to experts, which this axis or a later one shares.
bool is_expert(const PassAxis& axis, const Tensor& parameter);
/// The shard along the first axis whose extent is divisible by `ranks`, or nullopt.
std::optional<Placement> even_shard(std::span<const std::int64_t> shape, std::int64_t ranks);

} // namespace monet::mesh
