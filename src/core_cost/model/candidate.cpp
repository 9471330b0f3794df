// Evaluates one mapping: allocation, data movement, energy and latency; the order search calls it
// for every candidate.
#include "core_cost/model/candidate.hpp"

#include "core_cost/model/program_cost.hpp"

namespace monet::core_cost_detail {

bool evaluate(const NestModel& model, const Hierarchy& hierarchy, const SpatialModel& spatial,
              Candidate& candidate, AllocationFailure* failure) {
  const std::span<const Loop> loops = candidate.order();
  if (!allocate(model, hierarchy, spatial.exact, loops, candidate.allocation, failure))
    return false;
  merge_stationary(model, hierarchy, loops, candidate.allocation);
  const TemporalOrder order(loops);
  move_data(model, hierarchy, spatial.exact, order, candidate.allocation, candidate.exact);
  if (!spatial.same) {
    move_data(model, hierarchy, spatial.truncated, order, candidate.allocation,
              candidate.truncated);
  }
  const DataMovement& for_latency = spatial.same ? candidate.exact : candidate.truncated;
  candidate.double_buffered = find_double_buffers(model, hierarchy, candidate.exact);
  candidate.energy = mapping_energy(model, hierarchy, spatial, candidate.exact);
  candidate.latency =
      mapping_latency(model, hierarchy, for_latency, candidate.double_buffered, spatial.issued);
  candidate.latency.instructions += cycles_beside(model, hierarchy, for_latency);
  return true;
}

} // namespace monet::core_cost_detail
