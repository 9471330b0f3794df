// Finds designs near a given one that satisfy the constraints and are not taken.
#pragma once

#include "base/shared/rng.hpp"

#include "monet/explore/strategy.hpp"

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

namespace monet {

/// Tracks the open designs of a strategy: those that satisfy the constraints and are not taken.
class OpenDesigns {
public:
  explicit OpenDesigns(DesignSet designs) : designs_(std::move(designs)), size_(designs_.size()) {}

  const DesignSet& designs() const { return designs_; }
  std::uint64_t size() const { return size_; }
  bool open(DesignId id);
  void take(DesignId id) { taken_.insert(id); }
  void release(DesignId id) { taken_.erase(id); }
  std::uint64_t excluded() const { return excluded_.size(); }
  std::uint64_t taken() const { return taken_.size(); }

  /// An open design near `choices`: the design itself, or the closest one that differs in one
  /// parameter. Otherwise random designs are tried that differ in 2, 3, ... parameters, then
  /// anywhere. Empty if no open design was found.
  std::optional<DesignId> nearby(const std::vector<std::uint32_t>& choices, RandomStream& random);
  std::vector<std::uint32_t> random_choices(RandomStream& random) const;

private:
  std::optional<DesignId> one_step(const std::vector<std::uint32_t>& choices, RandomStream& random);

  DesignSet designs_;
  std::uint64_t size_;
  std::set<DesignId> taken_;
  std::set<DesignId> excluded_; ///< found so far
};

} // namespace monet
