// Helper for writing loop nests: loops by name, axis expressions, operands with their checks.
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

/// coefficient * loop + offset.
AxisExpr axis(LoopIndex loop, std::int64_t coefficient = 1, std::int64_t offset = 0);
/// Sum of terms (any order, each loop once) + offset.
AxisExpr axis_sum(std::vector<AffineTerm> terms, std::int64_t offset = 0);
/// One fixed index, for broadcast axes of size 1.
AxisExpr axis_fixed(std::int64_t index = 0);
/// One axis per loop, each the loop itself.
std::vector<AxisExpr> axes_of(std::span<const LoopIndex> loops);
/// Any index: it is read from another operand.
AxisExpr axis_data_dependent();

/// Loop names for the axes of a tensor in vector nests: N | N,C | B,T,C | N,C,H,W | N,C,D,H,W |
/// A0,A1,...
std::vector<std::string> axis_names(std::size_t rank);

/// Of the batch axes of a product: B; B,H; B0,B1,...,H.
std::string batch_name(std::size_t index, std::size_t count);

/// Throws the InputError of this node; `detail` as in location_of ("attribute 'strides'").
[[noreturn]] void fail(const Graph& graph, const Operator& op, std::string_view what,
                       std::string_view detail = {});

/// The shape of a present input or output; fails when the operator lacks it.
const Integers& input_shape(const Graph& graph, const Operator& op, std::size_t index);
const Integers& output_shape(const Graph& graph, const Operator& op, std::size_t index);
bool has_input(const Operator& op, std::size_t index);
bool has_output(const Operator& op, std::size_t index);
/// `axis` counted from the front; fails when it is outside [-rank, rank).
std::size_t normal_axis(const Graph& graph, const Operator& op, std::int64_t axis,
                        std::size_t rank);
/// Roles of operands without names of their own: I, W, I2, I3, ...
std::string input_role(std::size_t index);
class LoopNestBuilder {
public:
  LoopNestBuilder(const Graph& graph, const Operator& op, ComputeKind compute,
                  VectorWork work = {});

  LoopIndex loop(std::string name, std::int64_t size);
  /// One loop per axis of `shape`, named by axis_names.
  std::vector<LoopIndex> loops_over(std::span<const std::int64_t> shape);

  /// Results along this loop depend on all of it (see LoopDim::coupled).
  void couple(LoopIndex loop) { nest_.dims[loop].coupled = true; }

  /// Adds an operand; does nothing when the operator leaves it out. Outputs are to be added first.
  /// Axes of inputs must stay inside the tensor unless `padded`.
  void output(std::size_t index, std::string role, std::vector<AxisExpr> axes,
              AccessMode mode = AccessMode::write, int passes = 1);
  void input(std::size_t index, std::string role, std::vector<AxisExpr> axes, int passes = 1);
  void padded_input(std::size_t index, std::string role, std::vector<AxisExpr> axes,
                    int passes = 1);
  /// Operands from `first` on, by role, with the same axes.
  void outputs(std::size_t first, std::initializer_list<const char*> roles,
               const std::vector<AxisExpr>& axes);
  void inputs(std::size_t first, std::initializer_list<const char*> roles,
              const std::vector<AxisExpr>& axes, int passes = 1);
  /// The same, each broadcast to `loops`.
  void outputs_over(std::span<const LoopIndex> loops, std::size_t first,
                    std::initializer_list<const char*> roles);
  void inputs_over(std::span<const LoopIndex> loops, std::size_t first,
                   std::initializer_list<const char*> roles, int passes = 1);
  /// The whole tensor is touched, nobody knows where.
  void opaque_output(std::size_t index, std::string role, AccessMode mode = AccessMode::write);
  void opaque_input(std::size_t index, std::string role);

  /// One of several products of the nest (see LoopNest::products), its operands by their roles; an
  /// operand that is not there stays inside.
  void product(std::string_view result, std::string_view first, std::string_view second);

  /// Axes of a tensor that is broadcast, numpy's way, to `loops` (aligned at the last axis).
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
