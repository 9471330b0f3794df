// Partitions a training step over a mesh of devices, axis by axis, and records the origins of
// tensors. Called by cost/layout.cpp.
#include "base/shared/checked.hpp"
#include "cluster/partition/forms.hpp"
#include "cluster/partition/sums.hpp"
#include "workload/shared/operators.hpp"

#include "monet/base/errors.hpp"

#include <algorithm>
#include <set>

namespace monet {

namespace {

using Shape = std::vector<std::int64_t>;

/// Tensors whose values enter a rank's step from outside, or are its results.
std::set<TensorId> exchanged(const TrainingGraph& step) {
  std::set<TensorId> ids(step.graph.outputs.begin(), step.graph.outputs.end());
  for (std::size_t i = 0; i < step.graph.tensors().size(); ++i) {
    if (const Tensor& tensor = step.graph.tensors()[i]; !tensor.producer || tensor.alias_of)
      ids.insert(TensorId(i));
  }
  for (const ParameterRecord& record : step.parameters)
    ids.insert(record.gradient);
  for (const auto& id : {step.loss, step.gradient_norm, step.found_inf}) {
    if (id)
      ids.insert(*id);
  }
  return ids;
}

std::map<TensorId, TensorOrigin> whole_origins(const TrainingGraph& step) {
  std::map<TensorId, TensorOrigin> origins;
  for (std::size_t i = 0; i < step.graph.tensors().size(); ++i)
    origins.emplace(TensorId(i), TensorOrigin{TensorId(i), {}});
  return origins;
}

/// The origins in the whole step of the tensors of a divided step.
std::map<TensorId, TensorOrigin> origins_after(const mesh::AxisStep& made, std::size_t axis,
                                               const std::map<TensorId, TensorOrigin>& before) {
  std::map<TensorId, TensorOrigin> origins;
  for (std::size_t i = 0; i < made.sources.size(); ++i) {
    const mesh::Forms::Source& source = made.sources[i];
    const auto found = before.find(source.of);
    if (found == before.end())
      continue;
    TensorOrigin origin = found->second;
    if (source.placement.is(mesh::PlacementKind::shard))
      origin.cuts.push_back({axis, source.placement.dim, source.placement.outer});
    origins.emplace(TensorId(i), std::move(origin));
  }
  return origins;
}

/// The axis of the mesh at index `at`, with the ranks of other axes. Axes are applied from the last
/// to the first.
mesh::PassAxis pass_axis(std::span<const MeshAxis> mesh, std::size_t at) {
  mesh::PassAxis axis{mesh[at]};
  for (const MeshAxis& later : mesh.first(at)) {
    axis.later_ranks *= later.size;
    axis.experts_later = axis.experts_later || (later.experts && later.size > 1);
    if (axis.inputs && later.inputs == axis.inputs)
      axis.later_inputs *= later.size;
  }
  for (const MeshAxis& earlier : mesh.subspan(at + 1)) {
    if (axis.inputs && earlier.inputs == axis.inputs)
      axis.earlier_inputs *= earlier.size;
  }
  return axis;
}

} // namespace

std::int64_t ranks_of(std::span<const MeshAxis> mesh) {
  std::int64_t ranks = 1;
  for (const MeshAxis& axis : mesh)
    ranks = checked_multiply(ranks, axis.size);
  return ranks;
}

RankStep partition_step(const TrainingGraph& step, std::span<const MeshAxis> mesh) {
  RankStep made;
  made.mesh.assign(mesh.begin(), mesh.end());
  made.origins = whole_origins(step);
  made.step = ranks_of(mesh) == 1 ? step : mesh::with_divisors(step);
  for (std::size_t i = mesh.size(); i-- > 0;) {
    if (mesh[i].size == 1)
      continue;
    mesh::AxisStep next = mesh::divide_along(made.step, pass_axis(mesh, i));
    std::map<TensorId, std::size_t> numbers;
    for (std::size_t k = 0; k < next.sources.size(); ++k) {
      const auto found = made.rank_numbers.find(next.sources[k].of);
      if (found != made.rank_numbers.end() && !next.step.graph.tensors()[k].producer)
        numbers.emplace(TensorId(k), found->second);
    }
    for (const TensorId id : next.rank_numbers)
      numbers.emplace(id, i);
    made.origins = origins_after(next, i, made.origins);
    made.rank_numbers = std::move(numbers);
    made.step = std::move(next.step);
  }
  const std::set<TensorId> kept = exchanged(made.step);
  std::erase_if(made.origins, [&](const auto& entry) { return !kept.contains(entry.first); });
  return made;
}

bool is_collective(const Operator& op) {
  return op.domain == kMonetDomain &&
         op.op_type.is_one_of(
             {ops::AllReduce, ops::ReduceScatter, ops::AllGather, ops::AllToAll, ops::TakeShard});
}

std::int64_t collective_bytes(const Graph& graph, const Operator& op) {
  const auto bytes = [&](const auto& id) { return bytes_of(size_of(graph.tensor(*id))); };
  return std::max(bytes(op.inputs[0]), bytes(op.outputs[0]));
}

} // namespace monet
