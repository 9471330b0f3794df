// Adds casts of weights before products of another type, when the forward graph is built.
#include "training_graph/build/rebuild.hpp"
#include "training_graph/build/scaled_casts.hpp"
#include "workload/shared/op_types.hpp"
#include "workload/shared/views.hpp"

#include <map>

namespace monet {

namespace {

class CastWriter {
public:
  CastWriter(const Graph& network, const Precision& precision, const std::vector<bool>& trained)
      : network_(network), precision_(precision), trained_(trained), made_(network) {}

  Graph run() {
    for (std::size_t i = 0; i < network_.operators().size(); ++i) {
      Operator op = network_.operators()[i];
      if (op.nest.compute == ComputeKind::mac)
        cast_weights(op);
      made_.copy(OpId(i), std::move(op));
    }
    return made_.release();
  }

private:
  void cast_weights(Operator& op) {
    for (auto& input : op.inputs) {
      if (!input || !needs_cast(*input, activation_type(op)))
        continue;
      const TensorId before = *input;
      input = cast(before, activation_type(op), op.phase);
      for (Access& access : op.nest.operands) {
        if (access.mode == AccessMode::read && access.tensor == before)
          access.tensor = *input;
      }
    }
  }

  /// Type in which a product takes its operands: that of activations if set, else that of its
  /// result.
  ElementType activation_type(const Operator& op) const {
    return precision_.activations.value_or(network_.tensor(*op.outputs[0]).type);
  }

  /// True for a parameter, or a view of one, whose type cannot be multiplied with `activations`.
  bool needs_cast(TensorId id, ElementType activations) const {
    const TensorId root = storage_root(network_, id);
    const Tensor& tensor = network_.tensor(root);
    return tensor.kind == TensorKind::parameter && is_floating(tensor.type) &&
           !multiplies_with(weight_type(precision_, trained_[root.index()]).value_or(tensor.type),
                            activations);
  }

  TensorId cast(TensorId from, ElementType type, Phase phase) {
    const auto known = casts_.find(from);
    if (known != casts_.end())
      return known->second;
    const Tensor& source = network_.tensor(from);
    const TensorId to =
        made_.add_tensor({.name = source.name + ".cast", .shape = source.shape, .type = type});
    made_.add_operator({.name = source.name + ".Cast",
                        .op_type = ops::Cast,
                        .inputs = {from},
                        .outputs = {to},
                        .phase = phase});
    casts_.emplace(from, to);
    return to;
  }

  const Graph& network_;
  const Precision& precision_;
  const std::vector<bool>& trained_;
  GraphRewriter made_;
  std::map<TensorId, TensorId> casts_;
};

} // namespace

bool multiplies_with(ElementType a, ElementType b) {
  const auto single = [](ElementType type) {
    return type == ElementType::fp32 || type == ElementType::tf32;
  };
  if (a == b || (single(a) && single(b)))
    return true;
  return bits_of(a) <= 8 && bits_of(b) <= 8 && block_of(a).size == block_of(b).size &&
         (a == ElementType::qint8) == (b == ElementType::qint8);
}

std::optional<Graph> in_single_precision(const Graph& network) {
  bool any = false;
  for (const Tensor& tensor : network.tensors()) {
    if (tensor.kind != TensorKind::parameter || !is_floating(tensor.type))
      continue;
    if (tensor.type != ElementType::fp64)
      return std::nullopt;
    any = true;
  }
  if (!any)
    return std::nullopt;
  Graph single = network;
  for (std::size_t i = 0; i < single.tensors().size(); ++i) {
    ElementType& type = single.tensor(TensorId(i)).type;
    if (type == ElementType::fp64)
      type = ElementType::fp32;
  }
  return single;
}

std::optional<ElementType> weight_type(const Precision& precision, bool trained) {
  return trained || !precision.frozen_weights ? precision.weights : precision.frozen_weights;
}

bool casts_weights(const Precision& precision) {
  const auto differs = [&](const std::optional<ElementType>& weights) {
    return weights && precision.activations ? !multiplies_with(*weights, *precision.activations)
                                            : weights || precision.activations;
  };
  return differs(weight_type(precision, true)) || differs(weight_type(precision, false));
}

Graph add_weight_casts(const Graph& network, const Precision& precision,
                       const std::vector<bool>& trained) {
  return CastWriter(network, precision, trained).run();
}

} // namespace monet
