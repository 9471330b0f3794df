// Enumeration of every plan of a small step.
#pragma once

#include "optimise/fusion/space.hpp"

#include <cstdint>
#include <functional>
#include <vector>

namespace monet {

/// Enumerates all partitions of a small step's operators into groups, with all slices.
class FusionPlans {
public:
  FusionPlans(const Graph& graph, const FusionOrder& order, const FusionOptions& options);

  /// Number of plans; if there are more than `limit`, any number above `limit`.
  std::int64_t count(std::int64_t limit);
  /// Calls `visit` with every plan, until it returns false.
  void for_each(const std::function<bool(FusionPlan)>& visit);

private:
  using Mask = std::uint32_t;
  static constexpr std::size_t kMaxOperators = 12;

  void prepare();
  std::vector<OpId> members_of(Mask mask) const;
  bool part(Mask left, const std::function<bool()>& whole);
  bool with_slices(const std::function<bool(FusionPlan)>& visit) const;

  const Graph& graph_;
  const FusionOrder& order_;
  const FusionOptions& options_;
  std::vector<bool> legal_;                       ///< [mask]
  std::vector<std::vector<StackSlices>> choices_; ///< [mask]: slice choices of legal groups
  std::vector<Mask> groups_;                      ///< groups of the current partition
};

} // namespace monet
