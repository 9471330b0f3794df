// Designs near a given one that constraints keep.
#pragma once

#include "monet/base/rng.hpp"
#include "monet/explore/strategy.hpp"

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

namespace monet {

/// Which designs a strategy may ask for: those that constraints keep and that were not taken yet.
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

  /// The design itself if it is open; else an open one that differs in as few parameters as some
  /// hundreds of tries find, of those in one parameter the one whose value lies closest; at last
  /// one drawn anywhere. None: nothing was found.
  std::optional<DesignId> nearby(const std::vector<std::uint32_t>& choices, RandomStream& random);
  std::vector<std::uint32_t> random_choices(RandomStream& random) const;

private:
  std::optional<DesignId> one_step(const std::vector<std::uint32_t>& choices, RandomStream& random);

  DesignSet designs_;
  std::uint64_t size_;
  std::set<DesignId> taken_;
  std::set<DesignId> excluded_; ///< that were met
};

} // namespace monet
