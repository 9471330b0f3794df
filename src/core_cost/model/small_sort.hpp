// Stable sorting of a few elements in place: std::stable_sort asks the heap for a buffer.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

namespace monet::core_cost_detail {

template <class Value, class Before>
void sort_few(std::span<Value> values, const Before& before) {
  for (std::size_t i = 1; i < values.size(); ++i) {
    for (std::size_t j = i; j > 0 && before(values[j], values[j - 1]); --j)
      std::swap(values[j], values[j - 1]);
  }
}

} // namespace monet::core_cost_detail
