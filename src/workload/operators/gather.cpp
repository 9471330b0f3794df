// Rules of reads and writes at indices. Constant indices in arithmetic progression become affine;
// all others make their axis data-dependent.
#include "workload/operators/families.hpp"

namespace monet {

namespace {

/// Arithmetic progression of constant indices: index = start + sum(step[i] * position[i]).
struct Progression {
  std::int64_t start = 0;
  Integers steps;
};

std::optional<Progression> progression(const Integers& shape, Integers indices,
                                       std::int64_t extent) {
  if (indices.empty())
    return std::nullopt;
  for (std::int64_t& index : indices) {
    if (index < 0)
      index += extent;
    if (index < 0 || index >= extent)
      return std::nullopt;
  }
  Progression found{indices[0], Integers(shape.size(), 0)};
  Integers strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;)
    strides[i - 1] = strides[i] * shape[i];
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] > 1)
      found.steps[i] = indices[static_cast<std::size_t>(strides[i])] - indices[0];
  }
  for (std::size_t at = 0; at < indices.size(); ++at) {
    std::int64_t expected = found.start;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      expected += found.steps[i] * (static_cast<std::int64_t>(at) / strides[i] % shape[i]);
    }
    if (indices[at] != expected)
      return std::nullopt;
  }
  return found;
}

} // namespace

LoopNest build_gather(const Graph& graph, const Operator& op) {
  const auto& data = input_shape(graph, op, 0);
  const auto& indices = input_shape(graph, op, 1);
  const auto& out = output_shape(graph, op, 0);
  const std::size_t at = normal_axis(graph, op, op.attributes.integer("axis", 0), data.size());
  if (out.size() + 1 != data.size() + indices.size()) {
    fail(graph, op, "the output's axes are not those of data and indices");
  }
  LoopNestBuilder nest(graph, op, ComputeKind::copy);
  const std::vector<LoopIndex> loops = nest.loops_over(out);
  const auto constant = known_integers(graph, op, 1);
  const auto affine = constant ? progression(indices, *constant, data[at]) : std::nullopt;
  std::vector<AxisExpr> from;
  for (std::size_t i = 0; i < data.size(); ++i) {
    if (i != at) {
      from.push_back(axis(loops[i < at ? i : i + indices.size() - 1]));
    } else if (affine) {
      std::vector<AffineTerm> terms;
      for (std::size_t j = 0; j < indices.size(); ++j) {
        if (affine->steps[j] != 0)
          terms.push_back({loops[at + j], affine->steps[j]});
      }
      from.push_back(axis_sum(std::move(terms), affine->start));
    } else {
      from.push_back(axis_data_dependent());
    }
  }
  nest.output(0, "O", nest.broadcast(out, loops));
  nest.input(0, "I", std::move(from));
  if (!affine)
    nest.input(1, "indices", axes_of(std::span(loops).subspan(at, indices.size())));
  nest.input(2, "rank", {}); // rank's rows of a partitioned table
  return nest.finish();
}

LoopNest build_gather_elements(const Graph& graph, const Operator& op) {
  const auto& data = input_shape(graph, op, 0);
  const std::size_t at = normal_axis(graph, op, op.attributes.integer("axis", 0), data.size());
  LoopNestBuilder nest(graph, op, ComputeKind::copy);
  const std::vector<LoopIndex> loops = nest.loops_over(output_shape(graph, op, 0));
  if (loops.size() != data.size())
    fail(graph, op, "data and indices have different axes");
  const std::vector<AxisExpr> place = axes_of(loops);
  std::vector<AxisExpr> from = place;
  from[at] = axis_data_dependent();
  nest.output(0, "O", place);
  nest.input(0, "I", std::move(from));
  nest.input(1, "indices", place);
  return nest.finish();
}

LoopNest build_gather_nd(const Graph& graph, const Operator& op) {
  LoopNestBuilder nest(graph, op, ComputeKind::copy);
  const std::vector<LoopIndex> loops = nest.loops_over(output_shape(graph, op, 0));
  nest.output(0, "O", nest.broadcast(output_shape(graph, op, 0), loops));
  nest.opaque_input(0, "I");
  nest.opaque_input(1, "indices");
  return nest.finish();
}

/// NonZero: indices of nonzero elements, up to the output's size. The position of each depends on
/// those before it.
LoopNest build_nonzero(const Graph& graph, const Operator& op) {
  const auto& x = input_shape(graph, op, 0);
  const auto& places = output_shape(graph, op, 0);
  if (x.empty() || places.size() != 2 || places[0] != static_cast<std::int64_t>(x.size()))
    fail(graph, op, "an index along every axis of the input is expected");
  LoopNestBuilder nest(graph, op, ComputeKind::vector, VectorWork{0, 0, 0, 1, 0, 0});
  const std::vector<LoopIndex> loops = nest.loops_over(x);
  nest.opaque_output(0, "O");
  nest.input(0, "I", axes_of(loops));
  return nest.finish();
}

/// Scatter: copies the data, then overwrites elements at positions that depend on the indices.
LoopNest build_scatter(const Graph& graph, const Operator& op) {
  LoopNestBuilder nest(graph, op, ComputeKind::copy);
  const std::vector<LoopIndex> loops = nest.loops_over(output_shape(graph, op, 0));
  nest.output(0, "O", nest.broadcast(output_shape(graph, op, 0), loops));
  nest.input(0, "I", nest.broadcast(input_shape(graph, op, 0), loops));
  nest.opaque_input(1, "indices");
  nest.opaque_input(2, "updates");
  return nest.finish();
}

} // namespace monet
