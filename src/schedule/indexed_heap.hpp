// A binary heap whose entries can change their key or leave from anywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace monet {

/// Holds each index at most once. The smallest key is on top; equal keys must not matter. Heaps
/// that never hold the same index may share the list of places.
template <class Key>
class IndexedHeap {
public:
  explicit IndexedHeap(std::vector<std::uint32_t>& places) : places_(&places) {}

  bool empty() const { return heap_.empty(); }
  std::size_t size() const { return heap_.size(); }
  const Key& top_key() const { return heap_.front().first; }
  std::uint32_t top() const { return heap_.front().second; }
  bool contains(std::uint32_t index) const {
    return index < places_->size() && (*places_)[index] != kNowhere;
  }

  /// Adds the index or gives it another key.
  void set(std::uint32_t index, const Key& key) {
    if (index >= places_->size())
      places_->resize(index + 1, kNowhere);
    if ((*places_)[index] == kNowhere) {
      heap_.emplace_back(key, index);
      up(heap_.size() - 1);
      return;
    }
    const std::size_t at = (*places_)[index];
    const bool smaller = key < heap_[at].first;
    heap_[at].first = key;
    if (smaller) {
      up(at);
    } else {
      down(at);
    }
  }

  void erase(std::uint32_t index) {
    if (!contains(index))
      return;
    const std::size_t at = (*places_)[index];
    (*places_)[index] = kNowhere;
    const std::size_t last = heap_.size() - 1;
    if (at != last)
      move(at, heap_[last]);
    heap_.pop_back();
    if (at < heap_.size()) {
      up(at);
      down(at);
    }
  }

  void pop() { erase(top()); }

private:
  static constexpr std::uint32_t kNowhere = std::numeric_limits<std::uint32_t>::max();

  void move(std::size_t to, std::pair<Key, std::uint32_t> entry) {
    (*places_)[entry.second] = static_cast<std::uint32_t>(to);
    heap_[to] = entry;
  }

  void up(std::size_t at) {
    const auto entry = heap_[at];
    while (at > 0) {
      const std::size_t parent = (at - 1) / 2;
      if (!(entry.first < heap_[parent].first))
        break;
      move(at, heap_[parent]);
      at = parent;
    }
    move(at, entry);
  }

  void down(std::size_t at) {
    const auto entry = heap_[at];
    for (;;) {
      std::size_t child = 2 * at + 1;
      if (child >= heap_.size())
        break;
      if (child + 1 < heap_.size() && heap_[child + 1].first < heap_[child].first)
        ++child;
      if (!(heap_[child].first < entry.first))
        break;
      move(at, heap_[child]);
      at = child;
    }
    move(at, entry);
  }

  std::vector<std::pair<Key, std::uint32_t>> heap_;
  std::vector<std::uint32_t>* places_; ///< per index: where it is in its heap
};

} // namespace monet
