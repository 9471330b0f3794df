// The chip model of the reference scheduler: a directed graph of cores, with the off-chip memory as
// one node, and the outermost memory of each operand.
#pragma once

#include "monet/hardware/chip.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace monet::stream {

/// An outermost memory; the cores of a sharing group share it.
struct TopMemory {
  std::string name;
  std::vector<CoreId> cores; ///< in the order of the graph's nodes
  Bits capacity;
  std::int64_t read_bits = 1; ///< width of a full word
  std::int64_t write_bits = 1;
  double read_pj = 0; ///< per full word
  double write_pj = 0;
};

class Fabric {
public:
  explicit Fabric(const Chip& chip);

  const std::vector<TopMemory>& memories() const { return memories_; }
  /// Index of the operand's outermost memory in a core, or kNone.
  std::uint32_t top(CoreId core, MemoryOperand operand) const {
    return tops_[core.index()][static_cast<std::size_t>(operand)];
  }
  /// Indices of the core's outermost memories.
  std::span<const std::uint32_t> tops(CoreId core) const { return tops_of_[core.index()]; }

  /// Links from one core to another, in order: the path with the fewest hops, with ties broken like
  /// networkx. A link may occur twice on a path through the off-chip memory. Empty if from == to or
  /// no path exists.
  std::span<const LinkId> path(CoreId from, CoreId to);

private:
  void add_node(CoreId core);
  void add_edge(CoreId from, CoreId to, LinkId link);
  void make_edges(const Chip& chip);
  void make_memories(const Chip& chip);
  std::vector<LinkId> search(CoreId from, CoreId to) const;

  std::vector<CoreId> nodes_;                   ///< in order of appearance in edges
  std::vector<bool> known_;                     ///< by core: whether it is in nodes_
  std::vector<std::vector<std::uint32_t>> out_; ///< by core, in order of insertion
  std::vector<std::vector<std::uint32_t>> in_;  ///< by core, in order of insertion
  std::vector<TopMemory> memories_;             ///< by node, then in the core file's order
  std::vector<std::array<std::uint32_t, kMemoryOperands>> tops_;
  std::vector<std::vector<std::uint32_t>> tops_of_;
  std::vector<std::uint32_t> link_of_; ///< [from * cores + to], or kNone
  std::vector<std::uint32_t> path_of_; ///< [from * cores + to], index into paths_
  std::vector<std::vector<LinkId>> paths_;
};

} // namespace monet::stream
