// The forms of each tensor in the step of a rank, and the collectives that convert between them.
// Used by axis_pass.cpp and choose.cpp.
#include "cluster/partition/forms.hpp"

#include "workload/shared/operators.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace monet::mesh {

namespace {

std::string free_name(std::unordered_set<std::string>& taken, const std::string& name) {
  std::string candidate = name;
  for (int i = 2; !taken.insert(candidate).second; ++i)
    candidate = fmt::format("{}.{}", name, i);
  return candidate;
}

/// The operator that converts a placement to another one, which must be whole or a shard.
std::string_view collective_of(const Placement& from, const Placement& to) {
  if (from.is(PlacementKind::partial) || from.is(PlacementKind::largest))
    return to.is(PlacementKind::shard) ? ops::ReduceScatter : ops::AllReduce;
  if (from.is(PlacementKind::shard))
    return to.is(PlacementKind::shard) ? ops::AllToAll : ops::AllGather;
  return ops::TakeShard;
}

/// Whether both placements shard the same axis in different orders. No exchange of blocks converts
/// between them, so the tensor is gathered first.
bool is_cut_anew(const Placement& from, const Placement& to) {
  return from.is(PlacementKind::shard) && to.is(PlacementKind::shard) && from != to &&
         from.dim == to.dim;
}

/// Bytes that a rank sends to convert a placement, by the closed forms of rings and of direct
/// exchanges.
double sent_bytes(const Placement& from, const Placement& to, double whole, double ranks) {
  const double others = (ranks - 1) / ranks;
  if (from == to)
    return 0;
  if (from.is(PlacementKind::partial) || from.is(PlacementKind::largest))
    return (to.is(PlacementKind::shard) ? 1 : 2) * others * whole;
  if (from.is(PlacementKind::shard))
    return others * (to.is(PlacementKind::shard) && !is_cut_anew(from, to) ? whole / ranks : whole);
  return 0;
}

} // namespace

Forms::Forms(const TrainingGraph& source, const PassAxis& axis)
    : source_(source), axis_(axis), ranks_(axis.size), step_(source),
      forms_(source.graph.tensors().size()), free_(source.graph.tensors().size(), false) {
  step_.graph = Graph();
  step_.graph.name = source.graph.name;
  step_.graph.origin = source.graph.origin;
  step_.owner.clear();
}

std::string Forms::unique_op_name(const std::string& name) {
  return free_name(op_names_, name);
}

TensorId Forms::add_tensor(Tensor tensor, TensorId of, const Placement& placement) {
  tensor.name = free_name(tensor_names_, tensor.name);
  tensor.producer.reset();
  tensor.consumers.clear();
  tensor.alias_of.reset();
  sources_.push_back({of, placement});
  return graph().add_tensor(std::move(tensor));
}

TensorId Forms::make(TensorId of, const Placement& placement) {
  Tensor tensor = source_.graph.tensor(of);
  tensor.shape = part_shape(std::move(tensor.shape), placement, ranks_);
  const TensorId id = add_tensor(std::move(tensor), of, placement);
  forms_[of.index()].push_back({placement, id});
  return id;
}

TensorId Forms::begin(TensorId of, const Placement& placement) {
  const TensorId id = make(of, placement);
  if (placement.is(PlacementKind::shard))
    graph().tensor(id).values.reset(); // values differ between ranks
  return id;
}

bool Forms::is_usable(const Form& form, std::size_t pass) const {
  return !form.gathered || form.pass == pass;
}

std::optional<Forms::ConversionPath> Forms::cheapest(TensorId tensor, const Placement& wanted,
                                                     std::size_t pass) const {
  std::optional<ConversionPath> best;
  const double whole = static_cast<double>(bytes_of(size_of(source_.graph.tensor(tensor))));
  for (const Form& form : of(tensor)) {
    if (!is_usable(form, pass))
      continue;
    const double bytes = sent_bytes(form.placement, wanted, whole, static_cast<double>(ranks_));
    if (!best || bytes < best->bytes)
      best = ConversionPath{&form, bytes};
  }
  return best;
}

double Forms::price(TensorId tensor, const Placement& wanted, std::size_t pass) const {
  if (is_free(tensor))
    return 0;
  const auto way = cheapest(tensor, wanted, pass);
  internal_check(way.has_value(), "a tensor is read before it is made");
  return way->bytes;
}

TensorId Forms::get(TensorId tensor, const Placement& wanted, std::size_t pass, Phase phase) {
  for (const Form& form : of(tensor)) {
    if (form.placement == wanted && is_usable(form, pass))
      return form.id;
  }
  if (is_free(tensor))
    return begin(tensor, wanted);
  const auto way = cheapest(tensor, wanted, pass);
  internal_check(way.has_value(), "a tensor is read before it is made");
  Form from = *way->from;
  // Later forward passes cannot reuse a form of this backward pass: pipelines may run them first.
  const bool late = !source_.graph.tensor(tensor).producer &&
                    (phase == Phase::backward || phase == Phase::recompute);
  const bool gathers = from.placement.is(PlacementKind::shard) && wanted.is(PlacementKind::whole);
  if (is_cut_anew(from.placement, wanted))
    from = {kWhole, get(tensor, kWhole, pass, phase)};
  const TensorId made = convert(tensor, from, wanted, phase);
  forms_[tensor.index()].push_back({wanted, made, gathers || late, pass});
  return made;
}

std::optional<OpId> Forms::repeated(TensorId tensor, std::string_view what,
                                    const Placement& wanted) const {
  const auto producer = source_.graph.tensor(tensor).producer;
  if (!producer || source_.graph.op(*producer).phase != Phase::recompute)
    return std::nullopt;
  const Operator& again = source_.graph.op(*producer);
  const auto at = std::ranges::find(again.outputs, std::optional(tensor)) - again.outputs.begin();
  const auto before =
      again.forward_op
          ? source_.graph.op(*again.forward_op).outputs.at(static_cast<std::size_t>(at))
          : std::nullopt;
  if (!before)
    return std::nullopt;
  for (const Form& form : of(*before)) {
    const auto made = step_.graph.tensor(form.id).producer;
    if (form.placement == wanted && made && step_.graph.op(*made).op_type == what &&
        step_.graph.op(*made).phase == Phase::forward)
      return made;
  }
  return std::nullopt;
}

TensorId Forms::convert(TensorId tensor, Form from, const Placement& wanted, Phase phase) {
  internal_check(wanted.is(PlacementKind::whole) || wanted.is(PlacementKind::shard),
                 "nothing is made partial by a collective");
  const Tensor like = source_.graph.tensor(tensor);
  const std::string_view what = collective_of(from.placement, wanted);
  Tensor made = like;
  made.name = fmt::format("{}.{}.{}", like.name, axis_.name, what);
  made.shape = part_shape(like.shape, wanted, ranks_);
  if (made.kind == TensorKind::parameter || made.kind == TensorKind::optimizer_state)
    made.kind = TensorKind::activation;
  made.values.reset();
  const TensorId id = add_tensor(std::move(made), tensor, wanted);
  Attributes attributes{{"mesh_axis", axis_.name}, {"parts", ranks_}};
  if (from.placement.is(PlacementKind::largest) || from.placement.is(PlacementKind::partial))
    attributes.set("reduce",
                   std::string(from.placement.is(PlacementKind::largest) ? "max" : "sum"));
  const Placement& cut = from.placement.is(PlacementKind::shard) ? from.placement : wanted;
  if (cut.is(PlacementKind::shard)) {
    attributes.set("dim", static_cast<std::int64_t>(cut.dim));
    attributes.set("outer", cut.outer);
  }
  if (what == ops::AllToAll) {
    attributes.set("to_dim", static_cast<std::int64_t>(wanted.dim));
    attributes.set("to_outer", wanted.outer);
  }
  Operator op{.name = unique_op_name(fmt::format("{}.{}.{}", like.name, axis_.name, what)),
              .op_type = std::string(what),
              .domain = std::string(kMonetDomain),
              .attributes = std::move(attributes),
              .inputs = {from.id},
              .outputs = {id},
              .phase = phase,
              .forward_op = repeated(tensor, what, wanted)};
  build_nest(graph(), graph().add_operator(std::move(op)));
  return id;
}

void Forms::give_alias(TensorId made, TensorId of) {
  graph().tensor(made).alias_of = of;
}

} // namespace monet::mesh
