// Where PyTorch has a tensor in memory: a storage, and strides into it.
#pragma once

#include "monet/base/ids.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace monet {

struct Layout {
  TensorId storage;                  ///< the tensor that the storage was made for
  std::vector<std::int64_t> strides; ///< 0 for a broadcast axis
};

std::vector<std::int64_t> row_major(const std::vector<std::int64_t>& shape);

/// Strides of `to` over the same storage, or nullopt when a reshape has to copy: axes are joined
/// only when they follow each other in memory (torch's computeStride).
std::optional<std::vector<std::int64_t>> reshaped_strides(const Layout& layout,
                                                          const std::vector<std::int64_t>& from,
                                                          const std::vector<std::int64_t>& to);

} // namespace monet
