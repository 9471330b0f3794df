// Numbers of ranks: what each has of a tensor, and what a collective gives each member of a group.
#pragma once

#include "monet/cluster/partition.hpp"
#include "monet/workload/graph.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace monet::test {

/// By rank: numbers of the result. `shape` is that of every rank's operand, `held` their numbers in
/// the order of ranks, in which sums are taken.
std::vector<std::vector<double>> exchanged_numbers(const Operator& op,
                                                   std::span<const std::int64_t> shape,
                                                   std::span<const std::vector<double>> held);

/// A rank's number along each axis; the last axis varies fastest.
std::vector<std::int64_t> coordinates(std::span<const MeshAxis> mesh, std::int64_t rank);

/// The part of a whole tensor's numbers that a rank has.
std::vector<double> take_part(std::span<const double> whole, std::span<const std::int64_t> shape,
                              const TensorOrigin& origin, std::span<const MeshAxis> mesh,
                              std::span<const std::int64_t> coordinates);
/// Puts the part back where take_part() took it.
void put_part(std::span<double> whole, std::span<const std::int64_t> shape,
              std::span<const double> part, const TensorOrigin& origin,
              std::span<const MeshAxis> mesh, std::span<const std::int64_t> coordinates);

} // namespace monet::test
