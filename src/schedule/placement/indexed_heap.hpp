// Heap whose entries can be changed or removed by index.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace monet {

/// Heap that holds each index at most once, with the smallest entry on top. `Entry` has operator<
/// and index(); no two entries are equal. Heaps that never hold the same index may share `places`.
template <class Entry>
class IndexedHeap {
public:
  explicit IndexedHeap(std::vector<std::uint32_t>& places) : places_(&places) {}

  bool empty() const { return heap_.empty(); }
  const Entry& top() const { return heap_.front(); }
  bool contains(std::uint32_t index) const {
    return index < places_->size() && (*places_)[index] != kNowhere;
  }

  /// Adds the entry, or replaces the entry with the same index.
  void set(const Entry& entry) {
    const std::uint32_t index = entry.index();
    if (index >= places_->size())
      places_->resize(index + 1, kNowhere);
    std::size_t at = (*places_)[index];
    if (at == kNowhere) {
      at = heap_.size();
      heap_.push_back(entry);
      up(at, entry);
    } else if (entry < heap_[at]) {
      up(at, entry);
    } else {
      down(at, entry);
    }
  }

  void erase(std::uint32_t index) {
    if (!contains(index))
      return;
    const std::size_t at = (*places_)[index];
    (*places_)[index] = kNowhere;
    const Entry last = heap_.back();
    heap_.pop_back();
    if (at == heap_.size())
      return;
    if (at > 0 && last < heap_[(at - 1) / kWidth]) {
      up(at, last);
    } else {
      down(at, last);
    }
  }

private:
  static constexpr std::uint32_t kNowhere = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::size_t kWidth = 4; ///< children of an entry

  void put(std::size_t at, const Entry& entry) {
    (*places_)[entry.index()] = static_cast<std::uint32_t>(at);
    heap_[at] = entry;
  }

  void up(std::size_t at, const Entry entry) {
    while (at > 0 && entry < heap_[(at - 1) / kWidth]) {
      put(at, heap_[(at - 1) / kWidth]);
      at = (at - 1) / kWidth;
    }
    put(at, entry);
  }

  void down(std::size_t at, const Entry entry) {
    for (;;) {
      const std::size_t first = kWidth * at + 1;
      if (first >= heap_.size())
        break;
      std::size_t child = first;
      const std::size_t last = std::min(first + kWidth, heap_.size());
      for (std::size_t c = first + 1; c < last; ++c) {
        if (heap_[c] < heap_[child])
          child = c;
      }
      if (!(heap_[child] < entry))
        break;
      put(at, heap_[child]);
      at = child;
    }
    put(at, entry);
  }

  std::vector<Entry> heap_;
  std::vector<std::uint32_t>* places_; ///< per index: its position in its heap
};

} // namespace monet
