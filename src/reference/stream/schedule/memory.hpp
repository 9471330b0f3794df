// Contents of the outermost memories over time in the reference scheduler, and the remaining uses
// of tensors there.
#pragma once

#include "reference/stream/schedule/fabric.hpp"

#include "monet/reference/stream_tiles.hpp"

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace monet::stream {

/// Use of a memory over time. Times are truncated to whole cycles, because the reference stores
/// them in an integer array, but are inserted at the position of the fractional time.
class Usage {
public:
  /// The first time >= `when` from which `bits` more always fit. If they never do, the last time of
  /// maximum use.
  double room_from(double when, std::int64_t bits, std::int64_t capacity) const;
  std::int64_t at(double time) const;
  /// Adds `bits` from `time` on.
  void add(double time, std::int64_t bits);
  /// Maximum use from the first recorded time at or after `time` on; empty if no such time exists.
  std::optional<std::int64_t> max_from(double time) const;
  std::int64_t peak() const;

private:
  std::vector<std::int64_t> times_{0}; ///< ascending, possibly with duplicates
  std::vector<std::int64_t> bits_{0};
};

/// The contents of all memories. Objects with equal content share their space in a memory.
class Storage {
public:
  static constexpr std::uint32_t kNil = std::numeric_limits<std::uint32_t>::max();

  /// The presence of a content in a memory.
  struct MemoryContent {
    std::uint32_t object = 0;
    std::uint32_t content = 0;
    std::uint32_t memory = 0;
    double since = 0;     ///< occupies space from this time on
    double available = 0; ///< readable from this time on
    std::uint32_t next_of_content = kNil;
    std::uint32_t next_in_memory = kNil; ///< in order of insertion
    std::uint32_t previous_in_memory = kNil;
  };

  explicit Storage(std::size_t memories) : first_(memories, kNil), last_(memories, kNil) {}

  /// Extends the tables to `count` contents.
  void grow(std::size_t count) {
    if (holdings_of_.size() < count)
      holdings_of_.resize(count, kNil);
  }
  const MemoryContent* find(std::uint32_t content, std::uint32_t memory) const;
  bool contains(std::uint32_t content, std::uint32_t memory) const {
    return find(content, memory) != nullptr;
  }
  void insert(const MemoryContent& holding);
  void erase(std::uint32_t content, std::uint32_t memory);
  /// The copy that has been available longest; ties go to the first memory. Null if no memory holds
  /// the content.
  const MemoryContent* oldest(std::uint32_t content) const;

  template <class Visit>
  void for_each_of(std::uint32_t content, Visit&& visit) const {
    for (std::uint32_t h = holdings_of_[content]; h != kNil; h = pool_[h].next_of_content)
      visit(pool_[h]);
  }
  template <class Visit>
  void for_each_in(std::uint32_t memory, Visit&& visit) const {
    for (std::uint32_t h = first_[memory]; h != kNil; h = pool_[h].next_in_memory)
      visit(pool_[h]);
  }

private:
  std::vector<MemoryContent> pool_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> holdings_of_; ///< by content
  std::vector<std::uint32_t> first_;       ///< by memory
  std::vector<std::uint32_t> last_;
};

/// Remaining uses of each tensor per memory.
class Priorities {
public:
  /// A constant counts `base_priority` in every memory whose core uses it, so its total never
  /// reaches zero if several cores use it. An output counts its readers per memory.
  Priorities(const Workload& workload, const Fabric& fabric);

  struct Count {
    std::uint32_t memory = 0;
    std::int64_t left = 0;
  };
  std::span<const Count> of(std::uint32_t tensor) const {
    return {counts_.data() + first_[tensor], counts_.data() + first_[tensor + 1]};
  }
  std::int64_t total(std::uint32_t tensor) const { return totals_[tensor]; }
  /// Decrements the remaining uses; has no effect if the memory has no count.
  void use(std::uint32_t tensor, std::uint32_t memory);

private:
  std::vector<std::uint32_t> first_;
  std::vector<Count> counts_;
  std::vector<std::int64_t> totals_;
};

} // namespace monet::stream
