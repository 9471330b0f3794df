// RunSequence: writes a graph anew with some operators run several times.
#include "training_graph/memory/run_sequence.hpp"

#include "workload/shared/op_types.hpp"
#include "workload/shared/views.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace monet {

namespace {

constexpr std::string_view kSuffix = ".recomputed";

std::string without_suffix(const std::string& name) {
  const std::size_t at = name.rfind(kSuffix);
  return at == std::string::npos ? name : name.substr(0, at);
}

bool is_batch_norm(const Operator& op) {
  return op.domain == kMonetDomain && op.op_type == ops::BatchNormalization;
}

void replace(Operator& op, TensorId from, TensorId to) {
  for (Access& access : op.nest.operands) {
    if (access.tensor == from)
      access.tensor = to;
  }
}

} // namespace

Unfolded::Unfolded(const Graph& graph, const Graph& folded) : folded_(folded) {
  for (std::size_t i = 0; i < graph.operators().size(); ++i)
    ops_.emplace(graph.operators()[i].name, OpId(i));
  for (std::size_t t = 0; t < graph.tensors().size(); ++t)
    tensors_.emplace(graph.tensors()[t].name, TensorId(t));
}

/// Parts of a view with several results are called after it and their places.
std::optional<OpId> Unfolded::named(const Operator& op) const {
  const std::string_view name = op.name;
  auto found = ops_.find(name);
  if (found == ops_.end())
    found = ops_.find(name.substr(0, name.rfind('/')));
  return found == ops_.end() ? std::nullopt : std::optional(found->second);
}

Unfolded::Run Unfolded::operator[](OpId folded) const {
  const Operator& op = folded_.op(folded);
  if (const auto own = named(op))
    return {*own, false};
  const auto copied = op.forward_op ? named(folded_.op(*op.forward_op)) : std::nullopt;
  internal_check(copied.has_value(), "folding added the operator '" + op.name + "'");
  return {*copied, true};
}

TensorId Unfolded::operator[](TensorId folded) const {
  const Tensor& tensor = folded_.tensor(folded);
  if (const auto found = tensors_.find(tensor.name); found != tensors_.end())
    return found->second;
  internal_check(tensor.producer && folded_.op(*tensor.producer).forward_op,
                 "folding added the tensor '" + tensor.name + "'");
  const Operator& op = folded_.op(*tensor.producer);
  const auto place = std::ranges::find(op.outputs, folded) - op.outputs.begin();
  const Operator& first = folded_.op(*op.forward_op);
  return tensors_.at(folded_.tensor(*first.outputs.at(static_cast<std::size_t>(place))).name);
}

RunSequence::RunSequence(const Graph& graph, const Graph* as_read)
    : graph_(graph), made_(graph), viewed_(graph.tensors().size()) {
  for (std::size_t t = 0; t < graph.tensors().size(); ++t)
    current_.emplace_back(t);
  if (as_read)
    name_folded(*as_read);
}

void RunSequence::name_folded(const Graph& as_read) {
  read_as_is_.resize(graph_.operators().size());
  const Unfolded unfolded(graph_, as_read);
  for (std::size_t i = 0; i < as_read.operators().size(); ++i) {
    std::vector<TensorId>& read = read_as_is_[unfolded[OpId(i)].op.index()];
    for (const TensorId input : present(as_read.op(OpId(i)).inputs))
      read.push_back(unfolded[input]);
    std::sort(read.begin(), read.end());
  }
}

bool RunSequence::reads_as_is(OpId reader, TensorId tensor) const {
  if (read_as_is_.empty())
    return false;
  const std::vector<TensorId>& read = read_as_is_[reader.index()];
  return std::ranges::binary_search(read, tensor);
}

/// Tensor that `reader` reads now instead of `tensor`: its latest version, through the same views.
TensorId RunSequence::version(TensorId tensor, OpId reader) {
  std::vector<TensorId> views; // from the tensor read towards its storage
  TensorId at = tensor;
  while (const auto producer = graph_.tensor(at).producer) {
    const Operator& op = graph_.op(*producer);
    if (!is_view(graph_, op) || reads_as_is(reader, at))
      break;
    views.push_back(at);
    at = *op.inputs[0];
  }
  for (std::size_t k = views.size(); k-- > 0;) {
    const TensorId view = views[k];
    if (viewed_[view.index()] != current_[at.index()])
      run_view_again(*graph_.tensor(view).producer, current_[at.index()]);
    at = view;
  }
  return current_[tensor.index()];
}

void RunSequence::run(OpId id) {
  Operator op = graph_.op(id);
  for (auto& input : op.inputs) {
    if (!input)
      continue;
    const TensorId now = version(*input, id);
    if (now != *input)
      replace(op, *input, now);
    input = now;
  }
  if (has_run(id)) {
    run_again(std::move(op), id);
    return;
  }
  std::vector<std::pair<TensorId, TensorId>> written;
  for (const TensorId output : present(op.outputs))
    written.emplace_back(output, output);
  made_.copy(id, std::move(op));
  note_written(id, written);
}

TensorId RunSequence::copy(TensorId tensor, OpType op_type, std::string_view suffix, Phase phase) {
  const TensorId from = current_[tensor.index()];
  Tensor like = graph_.tensor(tensor);
  const std::string name = like.name;
  like.name += suffix;
  like.kind = TensorKind::activation;
  const TensorId made = made_.add_tensor(std::move(like));
  made_.add_operator({.name = fmt::format("{}.{}", name, op_type),
                      .op_type = std::string(op_type),
                      .domain = std::string(kMonetDomain),
                      .inputs = {from},
                      .outputs = {made},
                      .phase = phase});
  return made;
}

void RunSequence::run_again(Operator op, OpId id) {
  op.name = made_.free_op_name(without_suffix(op.name) + std::string(kSuffix));
  if (op.phase != Phase::recompute)
    op.forward_op = id;
  op.phase = Phase::recompute;
  if (is_batch_norm(op))
    leave_out_running_statistics(op);
  if (op.op_type == ops::Dropout) // the same numbers again
    op.attributes.set("drawn_as", graph_.tensor(*graph_.op(id).outputs[0]).name);
  std::vector<std::pair<TensorId, TensorId>> written;
  write_copies(op, written);
  made_.copy(id, std::move(op));
  note_written(id, written);
}

/// A view in the backward part stays what it is, the rest belongs to the recomputation.
void RunSequence::run_view_again(OpId id, TensorId source) {
  internal_check(has_run(id), "a view is read before it is made");
  Operator op = graph_.op(id);
  op.name = made_.free_op_name(without_suffix(op.name) + std::string(kSuffix));
  const bool before_backward = op.phase == Phase::forward || op.phase == Phase::loss;
  if (before_backward) {
    op.forward_op = id;
    op.phase = Phase::recompute;
  }
  replace(op, *op.inputs[0], source); // casts that change nothing have a nest
  op.inputs[0] = source;
  std::vector<std::pair<TensorId, TensorId>> written;
  write_copies(op, written);
  made_.copy(id, std::move(op));
  note_written(id, written);
}

void RunSequence::write_copies(Operator& op, std::vector<std::pair<TensorId, TensorId>>& written) {
  for (auto& output : op.outputs) {
    if (!output)
      continue;
    Tensor tensor = graph_.tensor(*output);
    internal_check(!tensor.alias_of, "an operator that runs again overwrites a tensor");
    tensor.name = without_suffix(tensor.name) + std::string(kSuffix);
    const TensorId copy = made_.add_tensor(std::move(tensor));
    replace(op, *output, copy);
    written.emplace_back(*output, copy);
    output = copy;
  }
}

void RunSequence::note_written(OpId id, const std::vector<std::pair<TensorId, TensorId>>& written) {
  const Operator& op = graph_.op(id);
  std::optional<TensorId> source; // as this run read it
  if (is_view(graph_, op))
    source = made_.graph().operators().back().inputs[0];
  for (const auto& [tensor, now] : written) {
    current_[tensor.index()] = now;
    viewed_[tensor.index()] = source;
  }
}

/// Outputs 1 and 2 overwrite the running statistics in inputs 3 and 4, which nothing else in the
/// operator depends on.
void RunSequence::leave_out_running_statistics(Operator& op) {
  for (auto* list : {&op.inputs, &op.outputs}) {
    const std::size_t first = list == &op.inputs ? 3 : 1;
    for (std::size_t i = first; i < first + 2 && i < list->size(); ++i) {
      if (!(*list)[i])
        continue;
      const TensorId tensor = *(*list)[i];
      std::erase_if(op.nest.operands,
                    [&](const Access& access) { return access.tensor == tensor; });
      (*list)[i].reset();
    }
  }
  op.inputs.resize(std::min<std::size_t>(op.inputs.size(), 3));
}

} // namespace monet
