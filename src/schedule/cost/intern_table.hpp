// Table that numbers distinct values by their hashes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace monet {

/// Mixes a word into a hash (the finaliser of splitmix64).
inline std::uint64_t mix(std::uint64_t hash, std::int64_t word) {
  hash = (hash ^ static_cast<std::uint64_t>(word)) + 0x9E3779B97F4A7C15ULL;
  hash = (hash ^ (hash >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  hash = (hash ^ (hash >> 27U)) * 0x94D049BB133111EBULL;
  return hash ^ (hash >> 31U);
}

/// Hash table with open addressing that stores only numbers; the caller stores the values.
class InternTable {
public:
  /// The stored number with this hash for which `equals(number)` is true. If none exists, stores
  /// and returns `next`.
  template <class Equals>
  std::uint32_t find(std::uint64_t hash, std::uint32_t next, Equals equals) {
    if (2 * (count_ + 1) > slots_.size())
      grow();
    for (std::size_t i = hash & (slots_.size() - 1);; i = (i + 1) & (slots_.size() - 1)) {
      Slot& slot = slots_[i];
      if (slot.number == kFree) {
        slot = {hash, next};
        ++count_;
        return next;
      }
      if (slot.hash == hash && equals(slot.number))
        return slot.number;
    }
  }

private:
  static constexpr std::uint32_t kFree = 0xFFFFFFFFU;
  struct Slot {
    std::uint64_t hash = 0;
    std::uint32_t number = kFree;
  };

  void grow() {
    std::vector<Slot> old(slots_.empty() ? 16 : 2 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.number == kFree)
        continue;
      std::size_t i = slot.hash & (slots_.size() - 1);
      while (slots_[i].number != kFree)
        i = (i + 1) & (slots_.size() - 1);
      slots_[i] = slot;
    }
  }

  std::vector<Slot> slots_; ///< their number is a power of two
  std::size_t count_ = 0;
};

} // namespace monet
