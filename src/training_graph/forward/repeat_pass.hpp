// Forward, loss and backward once more: the operators of a pass on new tensors.
#pragma once

#include "training_graph/build/rebuild.hpp"

#include <map>
#include <string>
#include <vector>

namespace monet {

/// Appends the operators of a rewriter's source, pass by pass.
class PassRepeater {
public:
  /// The first pass has the tensors of the source. Keeps a reference.
  explicit PassRepeater(GraphRewriter& rewriter);

  /// Tensors of a further pass, called "x" + suffix. Parameters, buffers, constants and states that
  /// no operator makes are shared, buffers as the pass before left them. `given`: what else is read
  /// instead of a tensor of the source. Copies of inputs and outputs of the source are such as
  /// well.
  void begin(std::string suffix, const std::map<TensorId, TensorId>& given = {});

  /// An operator of the source, in its order.
  OpId append(const Operator& op);
  /// In place of one: an operator of an earlier pass that stands for it.
  void skip(OpId earlier) { place_.push_back(earlier); }

  /// Kept from one pass to the next, or the same for all.
  static bool is_shared(const Tensor& tensor);

  /// The tensor of this pass that stands for one of the source.
  TensorId now(TensorId id) const { return now_[id.index()]; }
  /// Whether this pass has a separate copy.
  bool own(TensorId id) const { return own_[id.index()]; }

private:
  GraphRewriter* rewriter_;
  std::string suffix_;
  std::vector<TensorId> now_; ///< by tensor of the source
  std::vector<bool> own_;
  std::vector<OpId> place_; ///< by operator of the source, in this pass
};

/// Per operator of a pass: it casts weights to fp8, which the first micro-batch does for all.
std::vector<bool> made_once(const Graph& pass);

} // namespace monet
