// The forms of a tensor on the ranks of one mesh axis, the collectives that convert between them,
// and the step of a rank along that axis. Used by all files of the partition.
#pragma once

#include "cluster/partition/placement.hpp"

#include "monet/cluster/partition.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace monet::mesh {

/// An axis of the mesh, and the numbers of ranks of axes that divide the step before and after it.
struct PassAxis : MeshAxis {
  std::int64_t later_ranks = 1;
  std::int64_t later_inputs = 1; ///< later ranks that divide the same axis of the inputs
  /// Whether a later axis divides experts. Their weights are left to it.
  bool experts_later = false;
  std::int64_t earlier_inputs = 1; ///< earlier ranks that have divided some inputs already
};

/// One form of a tensor: a placement, and the tensor that has it.
struct Form {
  Placement placement;
  TensorId id; ///< in the graph under construction
  /// Whether other passes must convert again: the form was gathered from shards, or converted in a
  /// backward pass from a tensor without a producer.
  bool gathered = false;
  std::size_t pass = 0; ///< forward or backward pass that made it
};

/// The graph of one rank under construction, with every tensor of the source in the forms that its
/// readers need.
class Forms {
public:
  /// `source` and `axis` must outlive the object.
  Forms(const TrainingGraph& source, const PassAxis& axis);

  Graph& graph() { return step_.graph; }
  TrainingGraph& step() { return step_; }
  std::int64_t ranks() const { return ranks_; }

  /// Adds the first form of a tensor without a producer: an input, a parameter or a state.
  TensorId begin(TensorId of, const Placement& placement);
  /// Whether a tensor is available in any form without a collective: constants, labels, inputs that
  /// are not divided. Also true for tensors without a form, which start in the form of their first
  /// reader.
  bool is_free(TensorId of) const { return free_[of.index()] || forms_[of.index()].empty(); }
  void set_free(TensorId of) { free_[of.index()] = true; }
  /// Adds a form of a tensor that is written by the operator to be added next.
  TensorId make(TensorId of, const Placement& placement);

  const std::vector<Form>& of(TensorId tensor) const { return forms_[tensor.index()]; }
  /// The first form of a tensor: as its producer writes it, or as it is kept.
  const Form& own(TensorId tensor) const { return forms_[tensor.index()].front(); }
  /// Bytes that a rank sends for a tensor in the form `wanted`; 0 if the form exists.
  double price(TensorId tensor, const Placement& wanted, std::size_t pass) const;
  /// The tensor in the form `wanted`, which a collective of phase `phase` makes if it is missing.
  TensorId get(TensorId tensor, const Placement& wanted, std::size_t pass, Phase phase);
  /// Marks `made` as the result of an update that is stored in the memory of `of`.
  void give_alias(TensorId made, TensorId of);

  /// The tensor of the source that a tensor of the new graph stems from, and its placement.
  struct Source {
    TensorId of;
    Placement placement;
  };
  const std::vector<Source>& sources() const { return sources_; }
  std::string unique_op_name(const std::string& name);
  TensorId add_tensor(Tensor tensor, TensorId of, const Placement& placement);

private:
  struct ConversionPath {
    const Form* from = nullptr;
    double bytes = 0;
  };
  bool is_usable(const Form& form, std::size_t pass) const;
  std::optional<ConversionPath> cheapest(TensorId tensor, const Placement& wanted,
                                         std::size_t pass) const;
  /// The forward collective that the collective `what` of a recomputed tensor repeats, or nullopt.
  std::optional<OpId> repeated(TensorId tensor, std::string_view what,
                               const Placement& wanted) const;
  TensorId convert(TensorId tensor, Form from, const Placement& wanted, Phase phase);

  const TrainingGraph& source_;
  const PassAxis& axis_;
  std::int64_t ranks_;
  TrainingGraph step_;
  std::vector<std::vector<Form>> forms_;
  std::vector<bool> free_;
  std::vector<Source> sources_;
  std::unordered_set<std::string> tensor_names_, op_names_;
};

/// The step of a rank along one axis, and the origins of its tensors.
struct AxisStep {
  TrainingGraph step;
  std::vector<Forms::Source> sources;        ///< by tensor of the step
  std::vector<TensorId> rank_numbers;        ///< scalars that hold the rank's number
  std::vector<std::optional<Placement>> own; ///< first placement, by tensor of the source
};

/// Divides a step over the ranks of an axis, at least 2. Its divisors must be explicit: see
/// with_divisors().
AxisStep divide_along(const TrainingGraph& source, const PassAxis& axis);

} // namespace monet::mesh
