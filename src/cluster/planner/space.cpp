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
    for (const std::int64_t tensor : chosen(space_.tensor, devices_)) {
      for (const std::int64_t pipeline : chosen(space_.pipeline, devices_ / tensor)) {
        const std::int64_t rest = devices_ / tensor / pipeline;
        for (const std::int64_t context : contexts(rest)) {
          strategy_.tensor = tensor;
          strategy_.pipeline = pipeline;
          strategy_.context = context;
          strategy_.data = rest / context;
          if (allows(space_.data, strategy_.data) && space_.global_batch % strategy_.data == 0)
            add_experts();
        }
      }
    }
    return std::move(found_);
  }

private:
  bool is_transformer() const { return workload_.transformer.has_value(); }

  /// Context-parallel degrees. Samples of a general network may lack tokens, so the default is 1.
  std::vector<std::int64_t> contexts(std::int64_t rest) const {
    if (!is_transformer() && space_.context.empty())
      return {1};
    return chosen(space_.context, rest);
  }

  void add_experts() {
    const bool has_experts = is_transformer() && workload_.transformer->experts;
    const std::vector<std::int64_t> degrees = has_experts || !space_.expert.empty()
                                                  ? chosen(space_.expert, strategy_.data)
                                                  : std::vector<std::int64_t>{1};
    for (const std::int64_t expert : degrees) {
      strategy_.expert = expert;
      for (const bool sequence : {false, true}) {
        if (!has(space_.sequence, sequence) || (sequence && strategy_.tensor == 1))
          continue;
        strategy_.sequence = sequence;
        strategy_.virtual_stages = 1;
        if (cluster_cost::sizes_misfit(workload_, strategy_).empty())
          add_micro_batches();
      }
    }
  }

  void add_micro_batches() {
    for (const std::int64_t samples :
         chosen(space_.micro_batch, space_.global_batch / strategy_.data)) {
      strategy_.micro_batch = samples;
      for (const std::int64_t parts : virtual_degrees()) {
        strategy_.virtual_stages = parts;
        add_schedules();
      }
    }
  }

  std::vector<std::int64_t> virtual_degrees() const {
    if (!is_transformer())
      return space_.virtual_stages.empty() ? std::vector<std::int64_t>{1} : space_.virtual_stages;
    const std::int64_t layers = workload_.transformer->layers / strategy_.pipeline;
    if (strategy_.pipeline == 1) // virtual stages need a pipeline
      return allows(space_.virtual_stages, 1) ? std::vector<std::int64_t>{1}
                                              : std::vector<std::int64_t>{};
    return chosen(space_.virtual_stages, layers);
  }

  void add_schedules() {
    for (std::size_t kind = 0; kind < pipeline_kind_names().size(); ++kind) {
      strategy_.schedule = static_cast<PipelineKind>(kind);
      // Without a pipeline all schedules are equivalent.
      const bool alone = strategy_.pipeline == 1 && space_.schedule.empty();
      if (alone && strategy_.schedule != PipelineKind::one_f_one_b)
        continue;
      if (!has(space_.schedule, strategy_.schedule) ||
          why_not(strategy_.schedule, strategy_.pipeline, strategy_.virtual_stages,
                  strategy_.micro_batches()))
        continue;
      add_storage();
    }
  }

  void add_storage() {
    for (int zero = 0; zero <= 3; ++zero) {
      if (!allows(space_.zero, zero) ||
          (zero > 0 && strategy_.data * strategy_.context == 1 && space_.zero.empty()))
        continue;
      strategy_.zero = zero;
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
