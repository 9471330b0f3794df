#include "optimise/joint/archive.hpp"

#include <tuple>
#include <utility>

namespace monet {

/// The smallest key, of those that have one.
template <class Key>
const JointArchive::Tried* JointArchive::first(const Allowed& allowed, const Key& key) const {
  const Tried* found = nullptr;
  for (const Tried& tried : tried_) {
    if (!tried.figures.feasible || (allowed && !allowed(tried.way)))
      continue;
    if (key(tried) && (found == nullptr || *key(tried) < *key(*found)))
      found = &tried;
  }
  return found;
}

const JointArchive::Tried* JointArchive::best(std::int64_t most_bytes,
                                              const Allowed& allowed) const {
  return first(allowed, [&](const Tried& tried) {
    const std::int64_t peak = tried.figures.peak_memory_bytes;
    return peak <= most_bytes
               ? std::optional(std::tuple(value(tried), peak, tried.figures.latency_cycles,
                                          tried.figures.energy_pj))
               : std::nullopt;
  });
}

const JointArchive::Tried* JointArchive::least(const Allowed& allowed) const {
  return first(allowed, [&](const Tried& tried) {
    return std::optional(std::pair(tried.figures.peak_memory_bytes, value(tried)));
  });
}

} // namespace monet
