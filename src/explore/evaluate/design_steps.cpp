// Builds the training graphs of a space's designs and lower bounds of their steps, once per
// training that designs choose. The evaluator of chips (evaluator.cpp) calls this.
#include "explore/evaluate/design_steps.hpp"

#include "optimise/shared/step_bounds.hpp"

#include "monet/base/stop.hpp"
#include "monet/training_graph/training.hpp"
#include "monet/workload/imported_steps.hpp"

#include <algorithm>
#include <cmath>

namespace monet {

StepFloors::Traffic StepFloors::traffic(const Chip& chip) {
  // Traffic does not grow with memory. The memory size is therefore rounded up to a power of the
  // fourth root of 2, so that few distinct sizes need bounds.
  constexpr double kPerOctave = 4;
  const int step = static_cast<int>(std::ceil(std::log2(onchip_bits(chip) + 1) * kPerOctave));
  const std::lock_guard lock(mutex_);
  if (const auto known = known_.find(step); known != known_.end())
    return known->second;
  StepBoundOptions options;
  options.made_once = made_once_;
  options.onchip.value = static_cast<std::int64_t>(std::min(1e18, std::exp2(step / kPerOctave)));
  options.separators = 128;
  Traffic found;
  try {
    const StepBounds bounds = step_bounds(*step_, chip, options);
    found.read = static_cast<double>(bounds.offchip_read().value);
    found.written = static_cast<double>(bounds.offchip_written().value);
    found.peak_bytes = bounds.peak_memory_bytes;
  } catch (const InfeasibleError&) {
    return found; // this chip has no core for some operator; not cached
  }
  check_stop(); // bounds of a stopped computation are valid but weaker: not cached
  return known_.emplace(step, found).first->second;
}

StepFigures StepFloors::of(const Chip& chip) {
  StepFigures least;
  const Traffic bits = traffic(chip);
  least.peak_memory_bytes = bits.peak_bytes;
  if (!chip.offchip)
    return least;
  const OffchipPort port = offchip_port(chip);
  constexpr double kSums = 1 - 1e-9; // margin for the rounding of sums of doubles
  least.latency_cycles =
      static_cast<std::int64_t>(port.min_cycles(bits.read, bits.written) * kSums);
  constexpr double kRounding = 0.5 / Energy::kUnitsPerPicojoule; // per transfer (at least 1 bit)
  least.energy_pj = kSums * (bits.read * std::max(0.0, port.read_pj_per_bit - kRounding) +
                             bits.written * std::max(0.0, port.write_pj_per_bit - kRounding));
  return least;
}

AllDesignSteps::AllDesignSteps(const Space& space) : space_(space) {
  if (!space.workload.mapping.empty())
    mapping_ = read_mapping(space.workload.mapping);
}

const DesignSteps& AllDesignSteps::of(DesignId id) {
  const std::string key = space_.settings_key(id);
  Entry* entry = nullptr;
  {
    const std::lock_guard lock(mutex_);
    entry = &entries_[key];
  }
  const std::lock_guard lock(entry->mutex); // other entries can be built meanwhile
  if (!entry->made)
    entry->made = make(id);
  return *entry->made;
}

std::unique_ptr<DesignSteps> AllDesignSteps::make(DesignId id) const {
  const StepSettings settings = space_.settings(id);
  OnnxReadOptions reading = settings.network_options;
  if (settings.training)
    read_for(reading, *settings.training);
  ForeignReport report;
  const Graph network =
      recognise(read_onnx(settings.network, reading), settings.training.has_value(), report,
                "leave out 'training:'; the step is then the run 'inference'");
  auto steps = std::make_unique<DesignSteps>();
  const std::vector<std::string>& runs = space_.workload.runs;
  steps->graphs.reserve(runs.size()); // floors point to the elements
  for (const std::string& run : runs) {
    steps->graphs.push_back(fold_views(
        run == "training" ? make_training_graph(network, *settings.training)
                          : make_inference_graph(network, inference_precision(settings))));
    const TrainingGraph& step = steps->graphs.back();
    steps->floors.push_back(std::make_unique<StepFloors>(step, settings.halo == Halo::cached));
    steps->shared.push_back(std::make_unique<SharedPlans>(step, settings.halo));
  }
  steps->subjects.add(network);
  for (const TrainingGraph& step : steps->graphs)
    steps->subjects.add(step.graph);
  ProblemList problems;
  if (mapping_)
    check_subjects(*mapping_, steps->subjects, MappingUse::step, problems);
  problems.throw_if_any();
  return steps;
}

} // namespace monet
