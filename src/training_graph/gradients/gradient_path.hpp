// For messages: the way of a gradient through a network.
#pragma once

#include "monet/workload/graph.hpp"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace monet {

/// Shortest ways, counted in operators, from trained parameters to every operator and on to the
/// differentiated outputs. `depends` and `reaches` as in GradientNeeds.
class GradientPaths {
public:
  GradientPaths(const Graph& graph, const std::vector<bool>& depends,
                const std::vector<bool>& reaches, const std::vector<TensorId>& outputs);

  /// "'conv1.weight' -> conv1 (Conv) -> act (Foo) -> ... 5 more ... -> fc (Gemm) -> 'logits' ->
  /// loss".
  std::string through(const Operator& op) const;

private:
  struct Step {
    std::size_t length = 0;   ///< operators passed
    std::optional<OpId> next; ///< none: the tensor is an end of the path
    TensorId tensor;          ///< beyond `next`
    bool known = false;
  };
  static std::optional<TensorId> nearest(const std::vector<Step>& steps,
                                         std::span<const std::optional<TensorId>> among);
  void find_origins(const std::vector<bool>& depends);
  void find_goals(const std::vector<bool>& reaches, const std::vector<TensorId>& outputs);

  const Graph* graph_;
  std::vector<Step> origin_; ///< by tensor: towards a trained parameter
  std::vector<Step> goal_;   ///< by tensor: towards a differentiated output
};

} // namespace monet
