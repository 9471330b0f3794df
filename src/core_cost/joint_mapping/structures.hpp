// Structures of the search space, in the order in which they are tried.
#pragma once

#include "core_cost/joint_mapping/plan.hpp"

#include <array>
#include <vector>

namespace monet::joint_mapping {

using Order = std::array<int, kDims>;

/// All six orders; the first is (m, k, n).
const std::array<Order, 6>& all_orders();

inline constexpr Order kRowsOfDx{0, 1, 2};    ///< m, k, n: rows of dX, rows of dY
inline constexpr Order kRowsOfDw{1, 2, 0};    ///< k, n, m: rows of dW, columns of dY
inline constexpr Order kColumnsOfDy{2, 1, 0}; ///< n, k, m: columns of dW and of dY

inline constexpr Order kTilesOfRows{0, 2, 1};    ///< m, n, k: rows of dY, a tile for all of k
inline constexpr Order kTilesOfColumns{2, 0, 1}; ///< n, m, k: columns of dY, a tile for all of k

/// Structures that keep factors only from one step to the next (Retention::steps).
std::vector<Structure> kept_by_steps(std::vector<Structure> structures);

/// One product in one order, with all choices of kept operands. `dy`: every use except block.
std::vector<Structure> single_structures(const PairProblem& problem, int product,
                                         const Order& order, DyUse dy);

/// `shared` loops in common, the rest in these orders, whose beginnings agree.
std::vector<Structure> shared_structures(const PairProblem& problem, int shared, const Order& dx,
                                         const Order& dw, bool dw_first);

/// Interleaved products, each in its own order; equal orders share all three loops.
std::vector<Structure> interleaved_structures(const PairProblem& problem, const Order& dx,
                                              const Order& dw, bool dw_first);

/// Every pair of orders with 1, 2 or 3 shared loops, and every pair of interleaved ones, dX first;
/// of updates those in which dX has used a weight before it changes.
const std::vector<Structure>& joint_structures(const PairProblem& problem);

} // namespace monet::joint_mapping
