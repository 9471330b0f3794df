// Divides a training step over the ranks of one mesh axis: places tensors, cuts operators and
// inserts collectives. Called by partition.cpp for each axis in turn.
#include "cluster/partition/choose.hpp"
#include "cluster/partition/forms.hpp"
#include "cluster/partition/sums.hpp"
#include "workload/shared/operators.hpp"

#include "monet/base/errors.hpp"
#include "monet/training_graph/training.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

namespace monet::mesh {

namespace {

/// The nest's access of each input or output: the k-th use of a tensor is its k-th access.
std::vector<std::optional<std::size_t>> accesses_of(const Operator& op, bool outputs) {
  const auto& ids = outputs ? op.outputs : op.inputs;
  std::vector<std::optional<std::size_t>> found(ids.size());
  std::vector<bool> taken(op.nest.operands.size(), false);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    for (std::size_t k = 0; ids[i] && k < taken.size() && !found[i]; ++k) {
      const Access& access = op.nest.operands[k];
      if (taken[k] || access.tensor != *ids[i] || (access.mode == AccessMode::read) == outputs)
        continue;
      taken[k] = true;
      found[i] = k;
    }
  }
  return found;
}

class AxisPass {
public:
  AxisPass(const TrainingGraph& source, const PassAxis& axis,
           std::vector<std::optional<Placement>> preferred)
      : source_(source), axis_(axis), forms_(source, axis),
        chooser_(source, axis, forms_, std::move(preferred)),
        places_(source.graph.operators().size(), OpId(kNone)) {}

  AxisStep run() {
    begin();
    for (std::size_t i = 0; i < graph().operators().size(); ++i) {
      const Operator& op = graph().operators()[i];
      if (i > 0 && as_pass(graph().operators()[i - 1].phase) != as_pass(op.phase))
        ++pass_;
      if (op.phase != Phase::forward)
        make_waiting();
      if (!waits(op)) {
        append(OpId(i));
        continue;
      }
      for (const TensorId output : present(op.outputs))
        waiting_.emplace(output, OpId(i));
    }
    make_waiting();
    return release();
  }

private:
  const Graph& graph() const { return source_.graph; }
  static Phase as_pass(Phase phase) { return phase == Phase::recompute ? Phase::backward : phase; }

  /// Sets the initial forms of tensors without a producer. Inputs are divided along the axis, or
  /// available in any form. Parameters are shards under ZeRO 3, and whole if the axis divides no
  /// weights. Other parameters, and states, start in the form of their first reader.
  void begin() {
    const auto extent = divided_extent();
    for (std::size_t i = 0; i < graph().tensors().size(); ++i) {
      const Tensor& tensor = graph().tensors()[i];
      if (tensor.producer)
        continue;
      const TensorId id(i);
      switch (tensor.kind) {
      case TensorKind::input:
        begin_input(id, extent);
        break;
      case TensorKind::parameter:
        begin_parameter(id);
        break;
      case TensorKind::optimizer_state:
        break; // starts in the form that its update reads
      case TensorKind::buffer:
        if (is_kept(id))
          forms_.begin(id, kWhole);
        else
          forms_.set_free(id);
        break;
      default:
        forms_.set_free(id);
      }
    }
  }

  bool is_kept(TensorId id) const {
    return std::ranges::any_of(graph().tensors(),
                               [&](const Tensor& other) { return other.alias_of == id; });
  }

  /// The extent of the axis along which inputs are divided, from the first input that has it.
  std::optional<std::int64_t> divided_extent() const {
    if (!axis_.inputs)
      return std::nullopt;
    for (const TensorId id : graph().inputs) {
      const Tensor& tensor = graph().tensor(id);
      if (tensor.kind == TensorKind::input && tensor.shape.size() > *axis_.inputs)
        return tensor.shape[*axis_.inputs];
    }
    return std::nullopt;
  }

  /// Whether an input is divided: its extent equals that of the first input. Earlier axes may have
  /// divided only one of the two.
  bool is_divided(const Tensor& tensor, std::optional<std::int64_t> extent) const {
    if (!extent || *extent <= 1 || tensor.shape.size() <= *axis_.inputs)
      return false;
    const std::int64_t own = tensor.shape[*axis_.inputs];
    return own == *extent || own == *extent * axis_.earlier_inputs ||
           own * axis_.earlier_inputs == *extent;
  }

  void begin_input(TensorId id, std::optional<std::int64_t> first) {
    const Tensor& tensor = graph().tensor(id);
    if (!is_divided(tensor, first)) {
      forms_.set_free(id);
      return;
    }
    const std::int64_t extent = tensor.shape[*axis_.inputs];
    if (extent % (axis_.size * axis_.later_inputs) != 0)
      throw InfeasibleError(
          fmt::format("axis {} of '{}' has {} elements, which the {} ranks of axis '{}' do not "
                      "divide: {} are left over",
                      *axis_.inputs, tensor.name, extent, axis_.size * axis_.later_inputs,
                      axis_.name, extent % (axis_.size * axis_.later_inputs)));
    forms_.begin(id, shard_of(*axis_.inputs, axis_.later_inputs));
    forms_.set_free(id); // the whole input is available, too
  }

  void begin_parameter(TensorId id) {
    const auto shard = even_shard(graph().tensor(id).shape, axis_.size);
    if (axis_.zero >= 3 && shard && !is_expert(axis_, graph().tensor(id)))
      forms_.begin(id, *shard);
    else if (!axis_.weights && !axis_.experts)
      forms_.begin(id, kWhole);
  }

  void append(OpId id) {
    if (!axis_.weights || !append_gather(id))
      add(id, chooser_.choose(id, pass_));
    finish(graph().op(id));
  }

  /// Whether the operator is a cast of a weight that is added only for its first reader, because
  /// the product that reads it determines the shard.
  bool waits(const Operator& op) const {
    if ((!axis_.weights && !axis_.experts) || op.phase != Phase::forward || !casts_weight(op))
      return false;
    return std::ranges::all_of(present(op.inputs), [&](TensorId input) {
      return chooser_.is_weight(input) || forms_.is_free(input);
    });
  }

  void make_waiting() {
    while (!waiting_.empty())
      make(waiting_.begin()->second, waiting_.begin()->first, std::nullopt);
  }

  /// Adds a waiting operator, with `result` in the placement `wanted` if that is possible.
  void make(OpId id, TensorId result, const std::optional<Placement>& wanted) {
    for (const TensorId output : present(graph().op(id).outputs))
      waiting_.erase(output);
    add(id, wanted ? chooser_.choose_for(id, result, *wanted, pass_) : chooser_.choose(id, pass_));
    finish(graph().op(id));
  }

  TensorId get(TensorId id, const Placement& wanted, Phase phase) {
    if (const auto found = waiting_.find(id); found != waiting_.end())
      make(found->second, id, wanted);
    return forms_.get(id, wanted, pass_, phase);
  }

  void add(OpId id, const Choice& choice) {
    const Operator& op = graph().op(id);
    Operator made = op;
    std::vector<std::vector<std::int64_t>> shapes;
    for (const Access& access : op.nest.operands)
      shapes.push_back(graph().tensor(access.tensor).shape);
    if (choice.cut)
      made.nest = cut_nest(op.nest, shapes, *choice.cut, axis_.size);
    give_operands(op, choice, made);
    if (choice.cut && is_collective(op))
      cut_collective(op, *choice.cut, made);
    insert(id, std::move(made));
  }

  /// Adds the rank's share of an operator to the new graph.
  void insert(OpId id, Operator made) {
    made.name = forms_.unique_op_name(made.name);
    if (made.forward_op)
      made.forward_op = places_.at(made.forward_op->index());
    places_.at(id.index()) = forms_.graph().add_operator(std::move(made));
  }

  void give_operands(const Operator& op, const Choice& choice, Operator& made) {
    const auto inputs = accesses_of(op, false);
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      if (!op.inputs[i])
        continue;
      const Placement wanted = inputs[i] ? choice.operands[*inputs[i]] : kWhole;
      const TensorId id =
          choice.adds_later ? forms_.own(*op.inputs[i]).id : get(*op.inputs[i], wanted, op.phase);
      made.inputs[i] = id;
      if (inputs[i])
        made.nest.operands[*inputs[i]].tensor = id;
    }
    const auto outputs = accesses_of(op, true);
    for (std::size_t i = 0; i < op.outputs.size(); ++i) {
      if (!op.outputs[i])
        continue;
      const TensorId id =
          forms_.make(*op.outputs[i], outputs[i] ? choice.operands[*outputs[i]] : kWhole);
      made.outputs[i] = id;
      if (outputs[i])
        made.nest.operands[*outputs[i]].tensor = id;
    }
  }

  /// Divides the `outer` or `to_outer` attribute of a collective that is cut along that loop.
  void cut_collective(const Operator& op, const LoopCut& cut, Operator& made) const {
    const std::string& loop = op.nest.dims[cut.loop].name; // equals the attribute's name
    if (loop == "outer" || loop == "to_outer")
      made.attributes.set(loop, op.attributes.integer(loop, 1) / axis_.size);
  }

  /// Adds a gather from a table that is sharded by rows, or its gradient. Returns false for other
  /// operators. A rank's result has zeros for the rows of other ranks, and it drops their
  /// gradients.
  bool append_gather(OpId id) {
    const Operator& op = graph().op(id);
    const bool gradient = op.op_type == ops::GatherGrad && op.domain == kMonetDomain;
    if (!gradient && !(op.op_type == ops::Gather && op.domain.empty()))
      return false;
    const TensorId table = gradient ? *op.outputs[0] : *op.inputs[0];
    const Access& access = op.nest.operands[gradient ? 0 : 1];
    const auto at =
        std::ranges::find_if(access.axes, [](const AxisExpr& axis) { return axis.data_dependent; });
    if (access.tensor != table || at == access.axes.end())
      return false;
    const auto rows = shard_of(static_cast<std::size_t>(at - access.axes.begin()));
    if (!is_cut_by_rows(op, table, gradient, rows))
      return false;
    add_gather(id, gradient, rows);
    return true;
  }

  bool is_cut_by_rows(const Operator& op, TensorId table, bool gradient, const Placement& rows) {
    const Tensor& tensor = graph().tensor(table);
    if (tensor.shape[rows.dim] % axis_.size != 0)
      return false;
    if (gradient)
      return op.forward_op && cut_gathers_.contains(*op.forward_op);
    if (tensor.kind != TensorKind::parameter)
      return false;
    return forms_.is_free(table) || forms_.own(table).placement == rows;
  }

  void add_gather(OpId id, bool gradient, const Placement& rows) {
    const Operator& op = graph().op(id);
    if (!rank_)
      rank_ = forms_.add_tensor(
          {.name = "rank." + axis_.name, .type = ElementType::int64, .kind = TensorKind::buffer},
          TensorId(kNone), kWhole);
    Operator made = op;
    made.domain = kMonetDomain;
    made.op_type = gradient ? ops::ShardGatherGrad : ops::ShardGather;
    made.attributes.set("parts", axis_.size);
    Choice choice;
    choice.operands.assign(op.nest.operands.size(), kWhole);
    choice.operands[gradient ? 0 : 1] = rows;
    if (!gradient)
      choice.operands[0] = kPartial;
    give_operands(op, choice, made);
    made.inputs.resize(2);
    made.inputs.emplace_back(*rank_);
    made.nest.operands.push_back(Access{*rank_, AccessMode::read, "rank", {}});
    if (!gradient)
      cut_gathers_.insert(id);
    insert(id, std::move(made));
  }

  /// Completes the results of an operator: reduces partial sums that the step returns, and converts
  /// a result that overwrites a tensor to the placement of that tensor.
  void finish(const Operator& op) {
    for (const TensorId id : present(op.outputs)) {
      if (const Tensor& tensor = graph().tensor(id); tensor.alias_of) {
        const Form kept = forms_.own(*tensor.alias_of);
        const TensorId made = forms_.get(id, kept.placement, pass_, op.phase);
        forms_.give_alias(made, kept.id);
        finals_.emplace(id, made);
        continue;
      }
      const bool given = source_.loss == id || source_.gradient_norm == id ||
                         std::ranges::find(graph().outputs, id) != graph().outputs.end();
      const Form& own = forms_.own(id);
      if (given)
        finals_.emplace(id, own.placement.is_terms() ? forms_.get(id, kWhole, pass_, op.phase)
                                                     : own.id);
    }
  }

  /// The final form of a tensor that outputs or records refer to. Creates a form if it has none.
  TensorId final(TensorId id) {
    if (const auto found = finals_.find(id); found != finals_.end())
      return found->second;
    if (forms_.of(id).empty())
      return forms_.begin(id, kWhole);
    return forms_.of(id).back().id;
  }
  std::optional<TensorId> final(std::optional<TensorId> id) {
    return id ? std::optional(final(*id)) : std::nullopt;
  }
  TensorId kept(TensorId id) { return forms_.of(id).empty() ? final(id) : forms_.own(id).id; }

  AxisStep release() {
    TrainingGraph& step = forms_.step();
    for (const TensorId id : graph().outputs)
      forms_.graph().outputs.push_back(final(id));
    for (const TensorId id : graph().inputs) {
      if (forms_.of(id).empty())
        forms_.begin(id, kWhole);
      for (const Form& form : forms_.of(id)) {
        if (!forms_.graph().tensor(form.id).producer)
          forms_.graph().inputs.push_back(form.id);
      }
    }
    rename_records(step);
    find_stored(step);
    AxisStep made;
    for (std::size_t i = 0; i < graph().tensors().size(); ++i) {
      const auto& forms = forms_.of(TensorId(i));
      made.own.push_back(forms.empty() ? std::nullopt : std::optional(forms.front().placement));
    }
    made.sources = forms_.sources();
    if (rank_)
      made.rank_numbers.push_back(*rank_);
    made.step = std::move(step);
    return made;
  }

  void rename_records(TrainingGraph& step) {
    step.loss = final(step.loss);
    for (ParameterRecord& record : step.parameters) {
      record.weight = kept(record.weight);
      record.gradient = final(record.gradient);
      for (TensorId& state : record.states)
        state = kept(state);
      record.updated = final(record.updated);
      record.rows = final(record.rows);
      for (std::optional<TensorId>* state : {&record.average, &record.master}) {
        if (*state)
          *state = kept(**state);
      }
    }
    for (StepInput& input : step.learning_rates)
      input.tensor = final(input.tensor);
    step.step_number = final(step.step_number);
    for (InitialState& state : step.initial) {
      state.state = kept(state.state);
      if (state.copy_of)
        state.copy_of = kept(*state.copy_of);
    }
    if (step.loss_scale)
      step.loss_scale = kept(*step.loss_scale);
    step.found_inf = final(step.found_inf);
    step.gradient_norm = final(step.gradient_norm);
  }

  /// Sets the stored activations: tensors that the backward part reads and, with PyTorch's rule,
  /// stored activations of the source that are not recomputed.
  void find_stored(TrainingGraph& step) {
    const Graph& made = forms_.graph();
    std::vector<TensorId> stored = tensors_read_by_backward(made);
    if (step.store == StorePolicy::pytorch_eager) {
      std::set<TensorId> kept(stored.begin(), stored.end());
      std::set<OpId> again;
      for (const Operator& op : graph().operators()) {
        if (op.phase == Phase::recompute && op.forward_op)
          again.insert(*op.forward_op);
      }
      for (const TensorId id : source_.stored_activations) {
        const auto producer = graph().tensor(id).producer;
        if (!forms_.of(id).empty() && !(producer && again.contains(*producer)))
          kept.insert(forms_.own(id).id);
      }
      stored.assign(kept.begin(), kept.end());
    }
    step.stored_bytes = 0;
    for (const TensorId id : stored)
      step.stored_bytes += bytes_of(size_of(made.tensor(id)));
    step.stored_bytes /= std::max<std::int64_t>(step.passes, 1);
    step.owner = find_owners(made, stored);
    step.stored_activations = std::move(stored);
  }

  const TrainingGraph& source_;
  const PassAxis& axis_;
  Forms forms_;
  Chooser chooser_;
  std::size_t pass_ = 0;             ///< index of the current phase
  std::vector<OpId> places_;         ///< by operator of the source
  std::map<TensorId, OpId> waiting_; ///< casts of weights without a reader yet, by result
  std::map<TensorId, TensorId> finals_;
  std::unordered_set<OpId> cut_gathers_;
  std::optional<TensorId> rank_;
};

/// The placements of all results if only the inputs are divided.
std::vector<std::optional<Placement>> shards_of_inputs(const TrainingGraph& source,
                                                       const PassAxis& axis) {
  PassAxis plain;
  plain.name = axis.name;
  plain.size = axis.size;
  plain.inputs = axis.inputs;
  plain.later_inputs = axis.later_inputs;
  plain.earlier_inputs = axis.earlier_inputs;
  plain.between = true; // avoids shards along other axes
  return AxisPass(source, plain,
                  std::vector<std::optional<Placement>>(source.graph.tensors().size()))
      .run()
      .own;
}

} // namespace

AxisStep divide_along(const TrainingGraph& source, const PassAxis& axis) {
  std::vector<std::optional<Placement>> preferred(source.graph.tensors().size());
  if (axis.between)
    preferred = shards_of_inputs(source, axis);
  return AxisPass(source, axis, std::move(preferred)).run();
}

} // namespace monet::mesh
