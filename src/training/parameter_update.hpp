// One parameter's update while it is written: its tensors, and the operators made of them.
#pragma once

#include "training/optimizer.hpp"

namespace monet {

class ParameterUpdate {
public:
  ParameterUpdate(UpdateEmitter& owner, const OptimizerOptions& options, TensorId weight,
                  TensorId gradient);
  /// Emits everything and returns what was made.
  ParameterRecord run();

private:
  void one_operator(std::string_view op_type, const std::vector<std::string_view>& states,
                    bool reads_step);
  void lamb();
  void adafactor();
  TensorId adafactor_matrix_direction();
  TensorId adafactor_vector_direction();
  TensorId adafactor_moment(std::string_view name, std::int64_t axis);
  void adafactor_apply(TensorId direction);
  void muon();
  TensorId orthogonalise(TensorId matrix);
  TensorId polynomial(std::string_view name, double alpha, TensorId a, double beta, TensorId b);

  /// What holds the weight in full precision: the master copy where there is one.
  TensorId master_or_weight() const { return master_.value_or(weight_); }
  const Graph& graph() const { return owner_.builder_->graph(); }
  const std::vector<std::int64_t>& shape() const { return shape_; }
  ElementType state_type() const { return owner_.builder_->precision().optimizer_state; }
  NewOperator named(std::string_view op_type) const;
  TensorId add_state(std::string_view name, std::vector<std::int64_t> shape);
  TensorId add_temporary(std::string_view name, std::vector<std::int64_t> shape);
  /// The tensor after the update, in the same memory.
  TensorId updated(TensorId before, TensorKind kind);
  /// Inputs and outputs of an operator that writes the weight; `states` are read and written.
  void write_weight(NewOperator& op, TensorId gradient, const std::vector<TensorId>& states);
  /// Scalar or smaller: a reduction of a tensor.
  TensorId reduce(std::string_view op_type, std::string_view name, TensorId of,
                  std::vector<std::int64_t> axes, bool keep);
  TensorId transpose(TensorId matrix);

  UpdateEmitter& owner_;
  OptimizerOptions options_;
  TensorId weight_;
  TensorId gradient_;
  std::string name_;
  std::vector<std::int64_t> shape_;
  std::optional<TensorId> master_;
  ParameterRecord record_;
};

} // namespace monet
