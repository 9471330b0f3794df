// A naive evaluator in double precision, for checking gradient rules against finite differences.
// Products and element-wise operators are run through their own loop nests, so that a wrong nest
// shows as a wrong number.
#pragma once

#include "monet/workload/graph.hpp"

#include <functional>
#include <span>
#include <vector>

namespace monet {

using Values = std::vector<double>;

class Evaluator {
public:
  explicit Evaluator(const Graph& graph);

  void set(TensorId tensor, Values values) { values_.at(tensor.index()) = std::move(values); }
  const Values& get(TensorId tensor) const { return values_.at(tensor.index()); }
  /// Runs the operators of these phases in order.
  void run(std::span<const Phase> phases);

private:
  using Body = std::function<void(std::span<const double> in, std::span<double> out)>;

  void run(const Operator& op);
  bool run_scalar(const Operator& op);
  bool run_normalisation(const Operator& op);
  struct Groups;
  void normalise(const Operator& op, const Groups& groups);
  void normalise_backward(const Operator& op, const Groups& groups);
  bool run_row(const Operator& op);
  bool run_loss(const Operator& op);
  bool run_rearrangement(const Operator& op);
  bool run_window(const Operator& op);
  bool run_parts(const Operator& op);
  bool run_indexed(const Operator& op);
  void run_product(const Operator& op);
  void run_nest(const Operator& op, const Body& body);

  const Tensor& tensor(std::optional<TensorId> id) const { return graph_->tensor(id.value()); }
  Values& in(const Operator& op, std::size_t i) { return values_[op.inputs.at(i).value().index()]; }
  Values& out(const Operator& op, std::size_t i);
  std::vector<std::int64_t> ints(const Operator& op, std::size_t i) const;

  const Graph* graph_;
  std::vector<Values> values_;
};

} // namespace monet
