// Joins the rows of one Einsum after another to mappings of the cascade, and keeps of those that
// have the same future the ones that no other dominates.
#pragma once

#include "einsum_rows.hpp"

#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <vector>

namespace monet::einsum {

/// A tensor that a later Einsum uses, as that Einsum needs to know it.
struct Live {
  struct Loop {
    int axis = -1; ///< of the tensor; -1: the loop does not index it
    std::int64_t tile = 0;
    friend bool operator==(const Loop&, const Loop&) = default;
  };
  std::uint32_t tensor = 0;
  int level = kInDram;   ///< loops of the path above its tile in the buffer
  std::int64_t bits = 0; ///< of that tile
  /// The loops above the tile, and those below it under which Einsums since its making have run:
  /// who reads it under such a loop must find there what is complete.
  std::vector<Loop> loops;
};

/// Partial mappings with the same future. A row is {DRAM bits, C_0 .. C_n-1, P_0 .. P_n}: n loops
/// are shared with what comes; C_d bits are held under at most d of them; P_d bits is the peak of
/// branches that have ended under d loops.
struct State {
  std::vector<std::int64_t> trips; ///< of the shared loops
  std::vector<Live> live;          ///< by tensor
  std::vector<std::int64_t> values;
  struct Back {
    std::uint32_t state, row; ///< before this Einsum
    std::uint32_t group, group_row;
  };
  std::vector<Back> backs;

  std::size_t loops() const { return trips.size(); }
  std::size_t stride() const { return 2 * trips.size() + 2; }
  std::size_t size() const { return backs.size(); }
  const std::int64_t* row(std::size_t i) const { return values.data() + i * stride(); }
};

/// What an Einsum does to the tensors that are followed from Einsum to Einsum.
struct Uses {
  struct Use {
    std::uint32_t operand = 0;
    std::uint32_t tensor = 0;
    bool before = false; ///< an Einsum before uses or makes it
    bool after = false;  ///< an Einsum after uses it
    bool made = false;   ///< by this or an earlier Einsum, not given from outside
  };
  std::vector<Use> uses; ///< by tensor
};

struct JoinLimits {
  std::int64_t buffer_bits = std::numeric_limits<std::int64_t>::max();
  bool unordered = false;
  std::size_t max_rows = 0;
};

struct JoinStatistics {
  std::int64_t pairs = 0; ///< key with key
  std::int64_t compatible = 0;
  std::int64_t joined = 0; ///< row with row
  std::int64_t fitting = 0;
  std::int64_t kept = 0;
};

/// The empty mapping.
std::vector<State> start();

/// One Einsum more. `complete` becomes false when rows had to be dropped for `max_rows`.
std::vector<State> join(const std::vector<State>& before, const Shape& shape, const Rows& rows,
                        const Uses& uses, const JoinLimits& limits, const SearchControl& control,
                        JoinStatistics& statistics, bool& complete);

} // namespace monet::einsum
