// The designs of a space as strategies see them: numbers, and which of them there are.
#pragma once

#include "monet/explore/design.hpp"
#include "monet/explore/space.hpp"

#include <cstdint>
#include <functional>
#include <vector>

namespace monet {

/// Designs are mixed-radix numbers, the first parameter most significant; constraints exclude some.
struct DesignSet {
  std::vector<std::uint32_t> values; ///< per parameter, how many; at least 1 each
  /// Whether constraints exclude a design; may be empty: none are. Called from several threads.
  std::function<bool(DesignId)> excludes;
  std::vector<FrontRequest> fronts;

  /// Excluded designs included. InternalError beyond 64 bits.
  std::uint64_t size() const;
  bool keeps(DesignId id) const { return !excludes || !excludes(id); }
  std::vector<std::uint32_t> choices(DesignId id) const;
  DesignId id_of(const std::vector<std::uint32_t>& choices) const;
};

/// Keeps a reference to the space.
DesignSet design_set(const Space& space);

} // namespace monet
