#include "explore/evaluate/design_steps.hpp"

#include "monet/training/training.hpp"
#include "monet/workload/foreign.hpp"

namespace monet {

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
  const std::lock_guard lock(entry->mutex); // others make theirs meanwhile
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
  steps->graphs.reserve(runs.size()); // floors refer to them
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
    check_subjects(*mapping_, steps->subjects, problems);
  problems.throw_if_any();
  return steps;
}

} // namespace monet
