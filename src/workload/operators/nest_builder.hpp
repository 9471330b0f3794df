// Builder of loop nests: named loops, axis expressions, and checked operands.
//
//   LoopNestBuilder nest(graph, op, ComputeKind::mac);
//   const auto d = nest.loop("D", rows), c = nest.loop("C", depth), k = nest.loop("K", columns);
//   nest.output(0, "O", {axis(d), axis(k)});
//   nest.input(0, "I", {axis(d), axis(c)});
//   nest.input(1, "W", {axis(c), axis(k)});
//   return nest.finish();
#pragma once

#include "monet/workload/graph.hpp"

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

/// Index of a loop in LoopNest::dims.
using LoopIndex = std::uint32_t;

/// Axis expression coefficient * loop + offset.
AxisExpr axis(LoopIndex loop, std::int64_t coefficient = 1, std::int64_t offset = 0);
/// Axis expression: sum of terms (any order, each loop once) + offset.
AxisExpr axis_sum(std::vector<AffineTerm> terms, std::int64_t offset = 0);
/// Axis expression with a fixed index, for broadcast axes of size 1.
AxisExpr axis_fixed(std::int64_t index = 0);
/// One axis expression per loop, each the loop itself.
std::vector<AxisExpr> axes_of(std::span<const LoopIndex> loops);
/// Axis expression with an unknown index, read from another operand.
AxisExpr axis_data_dependent();

/// Loop names for the axes of a tensor in vector nests: N | N,C | B,T,C | N,C,H,W | N,C,D,H,W |
/// A0,A1,...
std::vector<std::string> axis_names(std::size_t rank);

/// Name of a product's batch axis `index` of `count`: B; B,H; B0,B1,...,H.
std::string batch_name(std::size_t index, std::size_t count);

/// Throws an InputError for this node; `detail` as in location_of ("attribute 'strides'").
[[noreturn]] void fail(const Graph& graph, const Operator& op, std::string_view what,
                       std::string_view detail = {});

/// Shape of an input or output; fails if the operator lacks it.
const Integers& input_shape(const Graph& graph, const Operator& op, std::size_t index);
const Integers& output_shape(const Graph& graph, const Operator& op, std::size_t index);
bool has_input(const Operator& op, std::size_t index);
bool has_output(const Operator& op, std::size_t index);
/// `axis` as a non-negative axis; fails if it is outside [-rank, rank).
std::size_t normal_axis(const Graph& graph, const Operator& op, std::int64_t axis,
                        std::size_t rank);
/// Role of an operand without a specific name: I, W, I2, I3, ...
std::string input_role(std::size_t index);
class LoopNestBuilder {
public:
  LoopNestBuilder(const Graph& graph, const Operator& op, ComputeKind compute,
                  VectorWork work = {});

  LoopIndex loop(std::string name, std::int64_t size);
  /// Adds one loop per axis of `shape`, named by axis_names.
  std::vector<LoopIndex> loops_over(std::span<const std::int64_t> shape);

  /// Marks a loop on whose whole range its results depend (see LoopDim::coupled).
  void couple(LoopIndex loop) { nest_.dims[loop].coupled = true; }

  /// Adds an operand; does nothing if the operator omits it. Outputs must be added first. Axes of
  /// inputs must stay inside the tensor unless `padded`.
  void output(std::size_t index, std::string role, std::vector<AxisExpr> axes,
              AccessMode mode = AccessMode::write, int passes = 1);
  void input(std::size_t index, std::string role, std::vector<AxisExpr> axes, int passes = 1);
  void padded_input(std::size_t index, std::string role, std::vector<AxisExpr> axes,
                    int passes = 1);
  /// Adds operands from `first` on, one per role, with equal axes.
  void outputs(std::size_t first, std::initializer_list<const char*> roles,
               const std::vector<AxisExpr>& axes);
  void inputs(std::size_t first, std::initializer_list<const char*> roles,
              const std::vector<AxisExpr>& axes, int passes = 1);
  /// Adds operands from `first` on, one per role, each broadcast to `loops`.
  void outputs_over(std::span<const LoopIndex> loops, std::size_t first,
                    std::initializer_list<const char*> roles);
  void inputs_over(std::span<const LoopIndex> loops, std::size_t first,
                   std::initializer_list<const char*> roles, int passes = 1);
  /// Adds an operand that is accessed as a whole, at unknown positions.
  void opaque_output(std::size_t index, std::string role, AccessMode mode = AccessMode::write);
  void opaque_input(std::size_t index, std::string role);

  /// Adds one of several products of the nest (see LoopNest::products), with operands by their
  /// roles. An empty role is an intermediate result.
  void product(std::string_view result, std::string_view first, std::string_view second);

  /// Axes of a tensor broadcast to `loops` by numpy's rules (aligned at the last axis).
  std::vector<AxisExpr> broadcast(std::span<const std::int64_t> shape,
                                  std::span<const LoopIndex> loops) const;
  std::int64_t size(LoopIndex loop) const { return nest_.dims[loop].size; }

  LoopNest finish();

private:
  void add(const std::vector<std::optional<TensorId>>& tensors, std::size_t index, Access access,
           bool exact);

  const Graph& graph_;
  const Operator& op_;
  LoopNest nest_;
};

} // namespace monet
