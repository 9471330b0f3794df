// Chooses the loop of each operator that a mesh axis cuts, by the axis' rules and by bytes sent.
// Called by axis_pass.cpp.
#include "cluster/partition/choose.hpp"

#include "cluster/partition/sums.hpp"
#include "workload/shared/operators.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace monet::mesh {

namespace {

bool reads(const Access& access) {
  return access.mode == AccessMode::read;
}

/// The placement of a result that lacks the cut loop.
Placement joined(OverLoop over) {
  if (over == OverLoop::sum)
    return kPartial;
  return over == OverLoop::largest ? kLargest : kWhole;
}

const Access* access_of(const LoopNest& nest, TensorId tensor) {
  const auto found = std::ranges::find_if(nest.operands, [&](const Access& access) {
    return reads(access) && access.tensor == tensor;
  });
  return found == nest.operands.end() ? nullptr : &*found;
}

} // namespace

std::optional<Placement> even_shard(std::span<const std::int64_t> shape, std::int64_t ranks) {
  for (std::size_t dim = 0; dim < shape.size(); ++dim) {
    if (shape[dim] % ranks == 0 && shape[dim] > 0)
      return shard_of(dim);
  }
  return std::nullopt;
}

bool is_expert(const PassAxis& axis, const Tensor& parameter) {
  return (axis.experts || axis.experts_later) && parameter.shape.size() >= 3;
}

Chooser::Chooser(const TrainingGraph& source, const PassAxis& axis, const Forms& forms,
                 std::vector<std::optional<Placement>> preferred)
    : source_(source), axis_(axis), forms_(forms), preferred_(std::move(preferred)),
      weights_(weights_of_gradients(source)), is_weight_(source.graph.tensors().size(), false) {
  for (std::size_t i = 0; i < is_weight_.size(); ++i)
    is_weight_[i] = graph().tensors()[i].kind == TensorKind::parameter;
  for (const Operator& op : graph().operators()) {
    if (op.phase != Phase::forward || !casts_weight(op) || !op.inputs[0] ||
        !is_weight(*op.inputs[0]))
      continue;
    for (const TensorId output : present(op.outputs))
      is_weight_[output.index()] = true;
  }
}

const std::vector<std::int64_t>& Chooser::shape_of(const Access& access) const {
  return graph().tensor(access.tensor).shape;
}

std::optional<Choice> Chooser::with_cut(const Operator& op, const LoopCut& cut,
                                        std::size_t pass) const {
  Choice choice{.cut = cut};
  const bool local = has_local_statistics(op, cut.loop);
  if (op.nest.dims[cut.loop].coupled && !local)
    return std::nullopt;
  const double others = static_cast<double>(axis_.size - 1) / static_cast<double>(axis_.size);
  for (const Access& access : op.nest.operands) {
    auto placement = placement_of(op.nest, access, shape_of(access), cut, axis_.size);
    if (!placement)
      return std::nullopt;
    if (reads(access)) {
      choice.price += forms_.price(access.tensor, *placement, pass);
    } else if (!placement->is(PlacementKind::shard)) {
      const OverLoop over = over_loop(op, access, cut.loop);
      if (over == OverLoop::none)
        return std::nullopt;
      placement = joined(over);
      if (placement->is_terms())
        choice.price +=
            others * static_cast<double>(bytes_of(size_of(graph().tensor(access.tensor))));
    }
    choice.operands.push_back(*placement);
  }
  return choice;
}

Choice Chooser::without_cut(const Operator& op, std::size_t pass) const {
  Choice choice;
  choice.operands.assign(op.nest.operands.size(), kWhole);
  for (const Access& access : op.nest.operands) {
    if (reads(access))
      choice.price += forms_.price(access.tensor, kWhole, pass);
  }
  return choice;
}

/// Whether a tensor is a parameter that is kept in shards and gathered for its readers, except in
/// the update.
bool Chooser::is_gathered(TensorId id, Phase phase) const {
  const Tensor& tensor = graph().tensor(id);
  return axis_.zero >= 3 && phase != Phase::update && tensor.kind == TensorKind::parameter &&
         !is_expert(axis_, tensor);
}

/// Whether an operand is in shards, so that reading the whole of it needs a collective.
bool Chooser::has_shards(const Operator& op, std::size_t pass) const {
  return std::ranges::any_of(op.nest.operands, [&](const Access& access) {
    if (!reads(access) || is_gathered(access.tensor, op.phase) || forms_.is_free(access.tensor))
      return false;
    return forms_.own(access.tensor).placement.is(PlacementKind::shard) &&
           forms_.price(access.tensor, kWhole, pass) > 0;
  });
}

void Chooser::add_cuts(const Operator& op, const Access& access, const Placement& shard,
                       std::vector<LoopCut>& cuts) const {
  std::ranges::copy(cuts_for(op.nest, access, shape_of(access), shard, axis_.size),
                    std::back_inserter(cuts));
}

/// Cuts for which at least one operand is read in an existing form.
std::vector<LoopCut> Chooser::followed(const Operator& op, std::size_t pass) const {
  std::vector<LoopCut> cuts;
  for (const Access& access : op.nest.operands) {
    if (!reads(access) || is_gathered(access.tensor, op.phase))
      continue;
    for (const Form& form : forms_.of(access.tensor)) {
      if (!form.placement.is(PlacementKind::shard) || (form.gathered && form.pass != pass))
        continue;
      add_cuts(op, access, form.placement, cuts);
    }
  }
  return cuts;
}

/// Cuts that reduce partial sums to their preferred shards. Empty unless the axis shards results
/// between cut products.
std::vector<LoopCut> Chooser::wanted(const Operator& op) const {
  std::vector<LoopCut> cuts;
  if (!axis_.between)
    return cuts;
  for (const Access& access : op.nest.operands) {
    const auto& preferred = preferred_[access.tensor.index()];
    const bool sums = reads(access) && !forms_.is_free(access.tensor) &&
                      forms_.own(access.tensor).placement.is_terms();
    if (!sums || !preferred || !preferred->is(PlacementKind::shard))
      continue;
    add_cuts(op, access, *preferred, cuts);
  }
  return cuts;
}

/// The placement of a gradient in an operator that also reads its parameter in even shards.
std::optional<Placement> Chooser::shard_in_update(const Operator& op, TensorId gradient) const {
  const Access* of_gradient = access_of(op.nest, gradient);
  for (const Access& access : op.nest.operands) {
    const bool parameter = graph().tensor(access.tensor).kind == TensorKind::parameter;
    if (!parameter || !reads(access) || !of_gradient)
      continue;
    const auto shard = even_shard(shape_of(access), axis_.size);
    if (!shard)
      return std::nullopt;
    for (const LoopCut& cut : cuts_for(op.nest, access, shape_of(access), *shard, axis_.size)) {
      if (auto lies = placement_of(op.nest, *of_gradient, shape_of(*of_gradient), cut, axis_.size))
        return lies;
    }
  }
  return std::nullopt;
}

/// The shard of a parameter or gradient that its update reads, found through the sums before the
/// update. The fallback is an even shard.
std::optional<Placement> Chooser::kept_shard(TensorId id) const {
  const Tensor* tensor = &graph().tensor(id);
  if (tensor->kind == TensorKind::parameter)
    return even_shard(tensor->shape, axis_.size);
  while (true) {
    std::optional<TensorId> next;
    for (const OpId reader : tensor->consumers) {
      const Operator& op = graph().op(reader);
      if (const auto lies = shard_in_update(op, id); lies && op.phase == Phase::update)
        return lies;
      // Results of these have the placement of the operand, element by element.
      if ((is_sum_of_operands(op) || op.op_type == ops::AllReduce) && op.outputs.size() == 1)
        next = op.outputs[0];
    }
    if (!next)
      return even_shard(tensor->shape, axis_.size);
    id = *next;
    tensor = &graph().tensor(id);
  }
}

/// Cuts of operators that all ranks would repeat: updates from ZeRO 1 on, and sums of parameter
/// gradients from ZeRO 2 on.
std::vector<LoopCut> Chooser::sharded_kept(const Operator& op) const {
  std::vector<LoopCut> cuts;
  const bool update = axis_.zero >= 1 && op.phase == Phase::update;
  const bool sum = axis_.zero >= 2 && is_sum_of_operands(op) && op.outputs.size() == 1 &&
                   graph().tensor(*op.outputs[0]).kind == TensorKind::parameter_gradient;
  if (!update && !sum)
    return cuts;
  for (const Access& access : op.nest.operands) {
    const TensorKind kind = graph().tensor(access.tensor).kind;
    if (!reads(access) || (kind != TensorKind::parameter && kind != TensorKind::parameter_gradient))
      continue;
    if (axis_.experts_later && is_expert(axis_, graph().tensor(access.tensor)))
      continue;
    const auto shard = kept_shard(access.tensor);
    if (!shard || !shard->is(PlacementKind::shard))
      continue;
    add_cuts(op, access, *shard, cuts);
  }
  return cuts;
}

/// The cut of a weight's columns, or nullopt if every reader needs all of them, as the softmax of
/// an expert router does. Throws InfeasibleError if the columns are not divisible.
std::optional<LoopCut> Chooser::column_cut(const Operator& op, const Access& of_weight) const {
  const Access& result = op.nest.operands.front();
  for (const AxisExpr& axis : of_weight.axes) {
    for (const AffineTerm& term : axis.terms) {
      const bool of_data = std::ranges::any_of(op.nest.operands, [&](const Access& access) {
        return reads(access) && access.tensor != of_weight.tensor && has_term(access, term.dim);
      });
      const auto at = std::ranges::find_if(
          result.axes, [&](const AxisExpr& written) { return has_loop(written, term.dim); });
      if (of_data || at == result.axes.end())
        continue;
      const auto dim = static_cast<std::size_t>(at - result.axes.begin());
      if (is_taken_whole(graph(), result.tensor, dim))
        return std::nullopt;
      const std::int64_t size = op.nest.dims[term.dim].size;
      const std::int64_t parts = parts_read(graph(), result.tensor, dim);
      const std::int64_t outer = size % parts == 0 ? parts : 1;
      if (size % (outer * axis_.size) == 0)
        return LoopCut{term.dim, outer};
      throw InfeasibleError(fmt::format(
          "{}: {} columns in {} parts of '{}' are not divisible by the {} ranks of axis '{}'",
          op.name, size, outer, graph().tensor(of_weight.tensor).name, axis_.size, axis_.name));
    }
  }
  return std::nullopt;
}

/// The cut of a forward product with a weight: rows if its data are sharded along the summed loop,
/// else columns.
std::optional<LoopCut> Chooser::weight_cut(const Operator& op, std::size_t pass) const {
  for (const Access& access : op.nest.operands) {
    if (!reads(access) || !is_weight(access.tensor) || shape_of(access).size() < 2)
      continue;
    for (const LoopCut& cut : followed(op, pass)) {
      if (has_term(access, cut.loop) && with_cut(op, cut, pass))
        return cut;
    }
    return column_cut(op, access);
  }
  return std::nullopt;
}

/// The cut along the experts of a forward product: a loop that its weight, data and result have.
/// Throws InfeasibleError if the experts are not divisible.
std::optional<LoopCut> Chooser::expert_cut(const Operator& op) const {
  const bool weighted = std::ranges::any_of(op.nest.operands, [&](const Access& access) {
    return reads(access) && is_weight(access.tensor);
  });
  if (!weighted)
    return std::nullopt;
  for (std::size_t loop = 0; loop < op.nest.dims.size(); ++loop) {
    const bool everywhere = std::ranges::all_of(
        op.nest.operands, [&](const Access& access) { return has_term(access, loop); });
    if (everywhere && op.nest.dims[loop].size > 1) {
      if (op.nest.dims[loop].size % axis_.size == 0)
        return LoopCut{loop, 1};
      throw InfeasibleError(fmt::format("{}: {} experts are not divisible by the {} ranks of axis "
                                        "'{}'",
                                        op.name, op.nest.dims[loop].size, axis_.size, axis_.name));
    }
  }
  return std::nullopt;
}

bool Chooser::adds_later(const Operator& op) const {
  if (!is_sum_of_operands(op) && !is_linear_exchange(op))
    return false;
  return std::ranges::all_of(op.nest.operands, [&](const Access& access) {
    return !reads(access) ||
           (!forms_.is_free(access.tensor) && forms_.of(access.tensor).size() == 1 &&
            forms_.own(access.tensor).placement == kPartial);
  });
}

std::optional<Choice> Chooser::cheapest(const Operator& op, const std::vector<LoopCut>& cuts,
                                        std::size_t pass) const {
  std::optional<Choice> best;
  for (const LoopCut& cut : cuts) {
    if (auto choice = with_cut(op, cut, pass); choice && (!best || choice->price < best->price))
      best = std::move(choice);
  }
  return best;
}

/// The cut of a gradient or a recomputation: that of the forward operator, found by the loop's
/// name.
std::optional<LoopCut> Chooser::gradient_cut(const Operator& op) const {
  const bool again = op.phase == Phase::recompute;
  if ((op.gradient_of == GradientOf::none && !again) || !op.forward_op)
    return std::nullopt;
  const auto found = cut_forward_.find(*op.forward_op);
  if (found == cut_forward_.end())
    return std::nullopt;
  const LoopDim& loop = graph().op(*op.forward_op).nest.dims[found->second.loop];
  const std::size_t own = find_dim(op.nest, loop.name);
  if (own == op.nest.dims.size() || op.nest.dims[own].size != loop.size)
    return std::nullopt;
  return LoopCut{own, found->second.outer};
}

/// Cuts that place the gradient of a sharded weight like the weight. gradient_cut() finds no cut if
/// views have split the loops, because their names then differ from the forward product's.
std::vector<LoopCut> Chooser::sharded_weight(const Operator& op) const {
  if ((!axis_.experts && !axis_.weights) || op.phase != Phase::backward)
    return {};
  for (const Access& access : op.nest.operands) {
    const auto weight = weights_.find(access.tensor);
    if (reads(access) || weight == weights_.end() || forms_.is_free(weight->second) ||
        is_gathered(weight->second, op.phase))
      continue;
    if (const Placement& lies = forms_.own(weight->second).placement; lies.is(PlacementKind::shard))
      return cuts_for(op.nest, access, shape_of(access), lies, axis_.size);
  }
  return {};
}

/// The cut by the axis' rules for products, or nullopt.
std::optional<LoopCut> Chooser::ruled(const Operator& op, std::size_t pass) const {
  if (const auto cut = gradient_cut(op))
    return cut;
  std::optional<LoopCut> cut;
  if (op.nest.compute != ComputeKind::mac || op.phase != Phase::forward)
    return cut;
  if (axis_.experts)
    cut = expert_cut(op);
  if (!cut && axis_.weights)
    cut = weight_cut(op, pass);
  return cut;
}

Choice Chooser::choose(OpId id, std::size_t pass) {
  const Operator& op = graph().op(id);
  Choice choice = chosen(op, pass);
  if (choice.cut && op.phase == Phase::forward)
    cut_forward_.emplace(id, *choice.cut);
  return choice;
}

Choice Chooser::choose_for(OpId id, TensorId result, const Placement& wanted, std::size_t pass) {
  const Operator& op = graph().op(id);
  for (const Access& access : op.nest.operands) {
    if (reads(access) || access.tensor != result || !wanted.is(PlacementKind::shard))
      continue;
    for (const LoopCut& cut : cuts_for(op.nest, access, shape_of(access), wanted, axis_.size)) {
      if (const auto choice = with_cut(op, cut, pass)) {
        cut_forward_.emplace(id, cut);
        return *choice;
      }
    }
  }
  return choose(id, pass);
}

Choice Chooser::chosen(const Operator& op, std::size_t pass) const {
  if (const auto cut = ruled(op, pass)) {
    if (auto choice = with_cut(op, *cut, pass))
      return *choice;
  }
  for (const auto& cuts : {sharded_weight(op), sharded_kept(op)}) {
    if (const auto choice = cheapest(op, cuts, pass))
      return *choice;
  }
  if (adds_later(op)) {
    Choice choice{.adds_later = true};
    choice.operands.assign(op.nest.operands.size(), kPartial);
    return choice;
  }
  std::vector<LoopCut> cuts = followed(op, pass);
  std::ranges::copy(wanted(op), std::back_inserter(cuts));
  Choice whole = without_cut(op, pass);
  if (auto choice = cheapest(op, cuts, pass); choice && !is_better_whole(op, *choice, whole))
    return *choice;
  if (!has_shards(op, pass))
    return whole;
  auto other = cheapest(op, other_cuts(op), pass);
  return other && other->price < whole.price ? *other : whole;
}

/// Whether a product runs whole between cut products: gathering its operands sends no more bytes
/// than reducing its partial sums, as for tokens on their way to experts.
bool Chooser::is_better_whole(const Operator& op, const Choice& cut, const Choice& whole) const {
  const bool terms = std::ranges::any_of(cut.operands, &Placement::is_terms);
  return terms && axis_.between && op.phase == Phase::forward &&
         op.nest.compute == ComputeKind::mac && whole.price <= cut.price;
}

/// Candidate cuts for operators whose operands all need a collective. If the axis shards results
/// between cut products, only cuts with the preferred shards as results remain.
std::vector<LoopCut> Chooser::other_cuts(const Operator& op) const {
  std::vector<LoopCut> cuts;
  for (std::size_t loop = op.nest.dims.size(); loop-- > 0;) {
    // Outer loops, and the outer part of each loop, are left to later axes.
    cuts.push_back({loop, axis_.later_ranks});
    if (axis_.between && axis_.later_inputs != axis_.later_ranks)
      cuts.push_back({loop, axis_.later_inputs}); // the placement of inputs
    cuts.push_back({loop, 1});
  }
  if (axis_.between)
    std::erase_if(cuts, [&](const LoopCut& cut) { return !gives_preferred(op, cut); });
  return cuts;
}

bool Chooser::gives_preferred(const Operator& op, const LoopCut& cut) const {
  bool any = false;
  for (const Access& access : op.nest.operands) {
    const auto& preferred = preferred_[access.tensor.index()];
    if (reads(access) || !preferred || !preferred->is(PlacementKind::shard))
      continue;
    any = true;
    if (placement_of(op.nest, access, shape_of(access), cut, axis_.size) != preferred)
      return false;
  }
  return any;
}

} // namespace monet::mesh
