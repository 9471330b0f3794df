// Enumerates the parallelism strategies of a search space: mesh degrees, then micro-batches,
// schedules, ZeRO levels, recomputation and offload. The planner bounds and models the result.
#include "base/shared/divisors.hpp"
#include "cluster/cost/layout.hpp"

#include "monet/base/errors.hpp"
#include "monet/cluster/planner.hpp"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>

namespace monet {

namespace {

/// The values in `given` that divide `whole`, or all divisors of `whole` if `given` is empty.
std::vector<std::int64_t> chosen(const std::vector<std::int64_t>& given, std::int64_t whole) {
  if (given.empty())
    return divisors(whole);
  std::vector<std::int64_t> fit;
  for (const std::int64_t value : given) {
    if (whole % value == 0)
      fit.push_back(value);
  }
  return fit;
}

bool allows(const std::vector<std::int64_t>& given, std::int64_t value) {
  return given.empty() || std::ranges::find(given, value) != given.end();
}

/// Enumerates the degrees of the mesh, then the options of each mesh.
class Enumeration {
public:
  Enumeration(const StrategySpace& space, std::int64_t devices, const ClusterWorkload& workload,
              bool has_host_link)
      : space_(space), devices_(devices), workload_(workload), has_host_link_(has_host_link) {
    strategy_.global_batch = space.global_batch;
    strategy_.overlap = space.overlap;
  }

  std::vector<ParallelStrategy> run() {
    add_degrees(0, devices_);
    return std::move(found_);
  }

private:
  bool is_transformer() const { return workload_.transformer.has_value(); }

  bool is_searched(SearchedFor networks) const {
    return networks == SearchedFor::all ||
           (is_transformer() &&
            (networks == SearchedFor::transformers || workload_.transformer->experts));
  }

  /// Degrees of an axis that divide `whole`: the given ones, or else those worth a search. Samples
  /// of a general network may lack tokens, for example.
  std::vector<std::int64_t> degrees_of(AxisRole role, std::int64_t whole) const {
    const std::vector<std::int64_t>& given = space_.axes[role];
    if (given.empty() && !is_searched(row_of(role).searched))
      return {1};
    return chosen(given, whole);
  }

  /// Chooses the degree of the role `at` in kSearchOrder, then those of the later roles. `rest`:
  /// devices that no earlier axis divides.
  void add_degrees(std::size_t at, std::int64_t rest) {
    if (at == kSearchOrder.size()) {
      strategy_.axes.reset(AxisRole::virtual_stages);
      if (cluster_cost::sizes_misfit(workload_, strategy_).empty())
        add_micro_batches();
      return;
    }
    const AxisRoleRow& row = row_of(kSearchOrder[at]);
    std::int64_t& degree = strategy_.axes[row.role];
    if (row.form == AxisForm::toggle) {
      for (const std::int64_t value : {0, 1}) {
        degree = value;
        if (allows(space_.axes[row.role], value) && (value == 0 || strategy_.axes.has(*row.within)))
          add_degrees(at + 1, rest);
      }
    } else if (row.within) {
      for (const std::int64_t value : degrees_of(row.role, strategy_.axes[*row.within])) {
        degree = value;
        add_degrees(at + 1, rest);
      }
    } else if (row.divides == Divided::samples) {
      degree = rest;
      if (allows(space_.axes[row.role], rest) && space_.global_batch % rest == 0)
        add_degrees(at + 1, 1);
    } else {
      for (const std::int64_t value : degrees_of(row.role, rest)) {
        degree = value;
        add_degrees(at + 1, rest / value);
      }
    }
  }

  void add_micro_batches() {
    for (const std::int64_t samples :
         chosen(space_.micro_batch, space_.global_batch / strategy_.parts_of(Divided::samples))) {
      strategy_.micro_batch = samples;
      for (const std::int64_t parts : virtual_degrees()) {
        strategy_.axes[AxisRole::virtual_stages] = parts;
        add_schedules();
      }
    }
  }

  std::vector<std::int64_t> virtual_degrees() const {
    const std::vector<std::int64_t>& given = space_.axes[AxisRole::virtual_stages];
    if (!is_transformer())
      return given.empty() ? std::vector<std::int64_t>{1} : given;
    if (strategy_.stages() == 1) // virtual stages need a pipeline
      return allows(given, 1) ? std::vector<std::int64_t>{1} : std::vector<std::int64_t>{};
    return chosen(given, workload_.transformer->layers / strategy_.stages());
  }

  void add_schedules() {
    for (std::size_t kind = 0; kind < pipeline_kind_names().size(); ++kind) {
      strategy_.schedule = static_cast<PipelineKind>(kind);
      // Without a pipeline all schedules are equivalent.
      const bool alone = strategy_.stages() == 1 && space_.schedule.empty();
      if (alone && strategy_.schedule != PipelineKind::one_f_one_b)
        continue;
      if (!has(space_.schedule, strategy_.schedule) ||
          why_not(strategy_.schedule, strategy_.stages(), strategy_.parts_per_stage(),
                  strategy_.micro_batches()))
        continue;
      add_storage();
    }
  }

  void add_storage() {
    const AxisRoleRow& zero = row_of(AxisRole::zero);
    const std::vector<std::int64_t>& given = space_.axes[zero.role];
    const bool is_alone = given.empty() && strategy_.ranks_with_copies(false) == 1;
    for (std::int64_t stage = 0; stage <= (is_alone ? 0 : zero.maximum); ++stage) {
      if (!allows(given, stage))
        continue;
      strategy_.axes[zero.role] = stage;
      for (const RecomputeKind recompute :
           {RecomputeKind::none, RecomputeKind::selective, RecomputeKind::full}) {
        if (!has(space_.recompute, recompute) || !differs(recompute))
          continue;
        strategy_.recompute = recompute;
        add_offloads();
      }
    }
  }

  void add_offloads() {
    for (std::size_t kind = 0; kind < offload_kind_names().size(); ++kind) {
      strategy_.offload = static_cast<OffloadKind>(kind);
      const bool possible = has_host_link_ || strategy_.offload == OffloadKind::none;
      const bool waits =
          offloads_activations(strategy_.offload) && splits_backward(strategy_.schedule);
      if (!possible || waits || !has(space_.offload, strategy_.offload))
        continue;
      if (found_.size() == kMaxStrategies)
        throw InfeasibleError(fmt::format(
            "there are more than {} strategies: set some keys of 'parallel'", kMaxStrategies));
      found_.push_back(strategy_);
    }
  }

  /// Whether the kind of recomputation changes the step, or the space lists kinds. Fused attention
  /// always recomputes its scores, and general networks have no layers to recompute.
  bool differs(RecomputeKind recompute) const {
    if (!space_.recompute.empty())
      return true;
    if (recompute == RecomputeKind::selective)
      return workload_.training.attention != AttentionForm::fused;
    return recompute == RecomputeKind::none || is_transformer();
  }

  template <class T>
  static bool has(const std::vector<T>& given, T value) {
    return given.empty() || std::ranges::find(given, value) != given.end();
  }

  const StrategySpace& space_;
  std::int64_t devices_;
  const ClusterWorkload& workload_;
  bool has_host_link_;
  ParallelStrategy strategy_;
  std::vector<ParallelStrategy> found_;
};

} // namespace

std::vector<ParallelStrategy> strategies_of(const StrategySpace& space, std::int64_t devices,
                                            const ClusterWorkload& workload, bool has_host_link) {
  std::vector<ParallelStrategy> found = Enumeration(space, devices, workload, has_host_link).run();
  if (found.empty())
    throw InfeasibleError(fmt::format(
        "no strategy divides a step of {} samples over {} devices with the values in 'parallel'",
        space.global_batch, devices));
  return found;
}

} // namespace monet
