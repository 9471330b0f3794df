#include "training/memory/layout.hpp"

#include <algorithm>

namespace monet {

std::vector<std::int64_t> row_major(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;)
    strides[i - 1] = strides[i] * std::max<std::int64_t>(shape[i], 1);
  return strides;
}

std::optional<std::vector<std::int64_t>> reshaped_strides(const Layout& layout,
                                                          const std::vector<std::int64_t>& from,
                                                          const std::vector<std::int64_t>& to) {
  std::vector<std::int64_t> result(to.size(), 1);
  if (from.empty())
    return result;
  std::size_t t = to.size();
  std::int64_t base = layout.strides.back();
  std::int64_t elements = 1;
  std::int64_t covered = 1;
  for (std::size_t i = from.size(); i-- > 0;) {
    elements *= from[i];
    const bool joined = i > 0 && (from[i - 1] == 1 || layout.strides[i - 1] == elements * base);
    if (joined)
      continue;
    while (t > 0 && (covered < elements || to[t - 1] == 1)) {
      result[t - 1] = covered * base;
      covered *= to[t - 1];
      --t;
    }
    if (covered != elements)
      return std::nullopt;
    if (i > 0)
      base = layout.strides[i - 1];
    elements = covered = 1;
  }
  return t == 0 ? std::optional(result) : std::nullopt;
}

} // namespace monet
