// PassRepeater: appends further passes, for micro-batches and sharpness-aware minimisation.
#include "training_graph/forward/repeat_pass.hpp"

#include "training_graph/build/scaled_casts.hpp"

#include <algorithm>

namespace monet {

bool PassRepeater::is_shared(const Tensor& tensor) {
  return is_state(tensor.kind) && !tensor.producer;
}

PassRepeater::PassRepeater(GraphRewriter& rewriter) : rewriter_(&rewriter) {
  const std::size_t tensors = rewriter.source().tensors().size();
  for (std::size_t i = 0; i < tensors; ++i)
    now_.emplace_back(i);
  own_.assign(tensors, true);
}

void PassRepeater::begin(std::string suffix, const std::map<TensorId, TensorId>& given) {
  const Graph& source = rewriter_->source();
  suffix_ = std::move(suffix);
  place_.clear();
  std::map<TensorId, TensorId> left; // buffer -> its last version
  for (std::size_t i = 0; i < now_.size(); ++i) {
    if (const auto root = source.tensors()[i].alias_of)
      left.insert_or_assign(*root, now_[i]);
  }
  for (std::size_t i = 0; i < now_.size(); ++i) {
    Tensor tensor = source.tensors()[i];
    const auto instead = given.find(TensorId(i));
    own_[i] = instead == given.end() && !is_shared(tensor);
    if (instead != given.end()) {
      now_[i] = instead->second;
    } else if (own_[i]) {
      tensor.name += suffix_;
      now_[i] = rewriter_->add_tensor(std::move(tensor));
    } else {
      const auto last = left.find(TensorId(i));
      now_[i] = last == left.end() ? TensorId(i) : last->second;
    }
  }
  for (const TensorId id : source.inputs) {
    if (own(id))
      rewriter_->graph().inputs.push_back(now(id));
  }
  for (const TensorId id : source.outputs) {
    if (own(id))
      rewriter_->graph().outputs.push_back(now(id));
  }
}

OpId PassRepeater::append(const Operator& of_source) {
  Operator op = of_source;
  if (!suffix_.empty())
    op.name = rewriter_->free_op_name(op.name + suffix_);
  for (auto* list : {&op.inputs, &op.outputs}) {
    for (auto& id : *list) {
      if (id)
        id = now(*id);
    }
  }
  for (Access& access : op.nest.operands)
    access.tensor = now(access.tensor);
  if (op.forward_op)
    op.forward_op = place_[op.forward_op->index()];
  place_.push_back(rewriter_->graph().add_operator(std::move(op)));
  return place_.back();
}

std::vector<bool> made_once(const Graph& pass) {
  std::vector<bool> of_weights(pass.tensors().size());
  for (std::size_t i = 0; i < of_weights.size(); ++i)
    of_weights[i] = PassRepeater::is_shared(pass.tensors()[i]);
  std::vector<bool> once(pass.operators().size());
  for (std::size_t i = 0; i < once.size(); ++i) {
    const Operator& op = pass.operators()[i];
    const bool follows = std::ranges::all_of(present(op.inputs),
                                             [&](TensorId id) { return of_weights[id.index()]; });
    once[i] = follows && op.phase == Phase::forward && casts_scaled(op);
    for (const TensorId output : present(op.outputs))
      of_weights[output.index()] = follows;
  }
  return once;
}

} // namespace monet
