// The forms in which the ranks have a tensor, and the collectives that make one of another; the
// step of a rank along one axis of the mesh.
#pragma once

#include "cluster/partition/placement.hpp"

#include "monet/cluster/partition.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace monet::mesh {

/// An axis of the mesh, and the ranks of axes that divide the step after it.
struct PassAxis : MeshAxis {
  std::int64_t later_ranks = 1;
  std::int64_t later_inputs = 1; ///< of those along the same axis of the inputs
  /// An axis that divides the step after it shares experts: their weights are left to it.
  bool experts_later = false;
  std::int64_t earlier_inputs = 1; ///< that have divided them already: some inputs are in shards
};

/// One form of a tensor.
struct Form {
  Placement placement;
  TensorId id; ///< of the graph that is made
  /// Made again in another pass: larger than what it was made of, or of a weight in a backward
  /// pass.
  bool gathered = false;
  std::size_t pass = 0; ///< forward or backward pass that made it
};

/// The graph of one rank under construction: every tensor of the source in the forms that its
/// readers have asked for.
class Forms {
public:
  /// Both must outlive this.
  Forms(const TrainingGraph& source, const PassAxis& axis);

  Graph& graph() { return step_.graph; }
  TrainingGraph& step() { return step_; }
  std::int64_t ranks() const { return ranks_; }

  /// A tensor that nothing makes begins in a form: inputs, parameters, states.
  TensorId begin(TensorId of, const Placement& placement);
  /// One that anybody may be given in any form: constants, labels, inputs that are not divided. And
  /// what nobody has read yet, which begins in the form of its first reader.
  bool is_free(TensorId of) const { return free_[of.index()] || forms_[of.index()].empty(); }
  void set_free(TensorId of) { free_[of.index()] = true; }
  /// Its result, made by an operator that is about to be added.
  TensorId make(TensorId of, const Placement& placement);

  const std::vector<Form>& of(TensorId tensor) const { return forms_[tensor.index()]; }
  /// The tensor's own form: what makes it left, or where it is kept.
  const Form& own(TensorId tensor) const { return forms_[tensor.index()].front(); }
  /// Bytes that a rank sends to have the form; 0 where it is there.
  double price(TensorId tensor, const Placement& wanted, std::size_t pass) const;
  /// The tensor in that form, by a collective before `reader` where it is not there yet.
  TensorId get(TensorId tensor, const Placement& wanted, std::size_t pass, Phase phase);
  /// The same as another tensor's memory: the result of an update that is kept where that is.
  void give_alias(TensorId made, TensorId of);

  /// By tensor of the graph that is made: what it is of the source, and how.
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
  /// The collective of the forward part that one of what is computed again repeats.
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

/// What a pass has made, and where its tensors come from.
struct AxisStep {
  TrainingGraph step;
  std::vector<Forms::Source> sources;        ///< by tensor of the step
  std::vector<TensorId> rank_numbers;        ///< scalars that hold the rank's number
  std::vector<std::optional<Placement>> own; ///< by tensor of the source: as it was made or begun
};

/// Divides a step with divisors (see with_divisors()) over the axis' ranks, at least 2.
AxisStep divide_along(const TrainingGraph& source, const PassAxis& axis);

} // namespace monet::mesh
