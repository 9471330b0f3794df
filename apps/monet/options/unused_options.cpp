// Finds options without an effect by modelling the step without them (unused_options.hpp); commands
// warn about them.
#include "options/unused_options.hpp"

#include "report/shared/cluster_result.hpp"
#include "training_graph/shared/unused_options.hpp"

#include "monet/base/warnings.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <string>

namespace monet::cli {

namespace {

using Json = nlohmann::ordered_json;

void warn_of(const SourceLoc& where, const std::string& key) {
  warn(where, fmt::format("'{}' has no effect on this step", key));
}

/// Figures of a modelled step, without the parts that repeat the request.
Json figures_of(const ClusterInputs& inputs, const ClusterStep& step) {
  const ClusterResult result{"", &inputs.cluster, &inputs.device, &inputs.workload, {}, &step};
  Json json = cluster_json(result, {});
  for (const char* key : {"cluster", "workload", "strategy", "provenance", "warnings"})
    json.erase(key);
  return json;
}

class ClusterVariants {
public:
  ClusterVariants(const ClusterExperiment& experiment, const ClusterInputs& inputs,
                  const ClusterStep& step)
      : experiment_(experiment), inputs_(inputs), figures_(figures_of(inputs, step)),
        model_(inputs.cluster, inputs.device, inputs.workload) {}

  void run() {
    const std::vector<std::string> keys = [&] {
      const WarningScope again; // discards warnings already reported for the step
      return find();
    }();
    for (const std::string& key : keys)
      warn_of(key.starts_with("training: ") ? experiment_.settings.training_where
                                            : experiment_.where,
              key);
  }

private:
  std::vector<std::string> find() {
    find_in_strategy();
    find_in_table();
    find_in_workload();
    find_in_training();
    return std::move(found_);
  }

  template <class Make>
  void compare(const std::string& key, Make make) {
    try {
      if (make() == figures_)
        found_.push_back(key);
    } catch (const InputError&) { // the step needs the option
    } catch (const InfeasibleError&) {
    }
  }

  void axis(AxisRole role) {
    ParallelStrategy without = experiment_.strategy;
    without.axes.reset(role);
    strategy(fmt::format("parallel: {}", row_of(role).key), experiment_.strategy.axes.has(role),
             without);
  }

  void strategy(const std::string& key, bool given, const ParallelStrategy& without) {
    if (given)
      compare(key, [&] { return figures_of(inputs_, model_.model(without)); });
  }

  void find_in_strategy() {
    const ParallelStrategy& given = experiment_.strategy;
    axis(AxisRole::zero);
    axis(AxisRole::sequence);
    ParallelStrategy without = given;
    without.overlap = true;
    strategy("parallel: overlap", !given.overlap, without);
    without = given;
    without.recompute = RecomputeKind::none;
    strategy("parallel: recompute", given.recompute != RecomputeKind::none, without);
    without = given;
    without.offload = OffloadKind::none;
    strategy("parallel: offload", given.offload != OffloadKind::none, without);
    without = given;
    without.schedule = ParallelStrategy{}.schedule;
    without.axes.reset(AxisRole::virtual_stages);
    strategy("parallel: schedule", given.schedule != without.schedule, without);
    axis(AxisRole::virtual_stages);
    without = given;
    without.layers.clear();
    strategy("parallel: layers", !given.layers.empty(), without);
  }

  Json modelled(const ClusterInputs& inputs) const {
    return figures_of(
        inputs,
        ClusterModel(inputs.cluster, inputs.device, inputs.workload).model(experiment_.strategy));
  }

  void find_in_table() {
    for (std::size_t i = 0; i < experiment_.figures.size(); ++i) {
      compare(fmt::format("cluster: {}", experiment_.figures[i].figure.key), [&] {
        ClusterExperiment other = experiment_;
        other.figures.erase(other.figures.begin() + static_cast<std::ptrdiff_t>(i));
        return modelled(read_cluster_inputs(other));
      });
    }
  }

  void workload(const char* key, bool given, const ClusterWorkload& without) {
    if (given)
      compare(key, [&] { return modelled({inputs_.cluster, inputs_.device, without}); });
  }

  void find_in_workload() {
    if (!inputs_.workload.transformer)
      return;
    ClusterWorkload without = inputs_.workload;
    without.in_place_loss = true;
    workload("workload: in_place_loss", !inputs_.workload.in_place_loss, without);
    const TransformerShape& shape = *inputs_.workload.transformer;
    without = inputs_.workload;
    without.transformer->dropout = 0;
    workload("workload: transformer: dropout", shape.dropout != 0, without);
    without = inputs_.workload;
    without.transformer->attention_dropout.reset();
    workload("workload: transformer: attention_dropout",
             shape.attention_dropout.value_or(shape.dropout) != shape.dropout, without);
    without = inputs_.workload;
    without.transformer->causal = true;
    workload("workload: transformer: causal", !shape.causal, without);
  }

  /// Finds training options without an effect. For chips only the graphs are compared, since
  /// scheduling a step takes long.
  void find_in_training() {
    const TrainingOptions& given = inputs_.workload.training;
    if (inputs_.device.chip) {
      if (!inputs_.workload.network)
        return;
      const Graph network = inputs_.workload.network(experiment_.samples());
      for (const std::string& key :
           options_without_effect(network, given, make_training_graph(network, given)))
        found_.push_back("training: " + key);
      return;
    }
    for (const OptionLeftOut& left : each_option_left_out(given)) {
      compare("training: " + left.key, [&] {
        ClusterInputs other{inputs_.cluster, inputs_.device, inputs_.workload};
        other.workload.training = left.options;
        return modelled(other);
      });
    }
  }

  const ClusterExperiment& experiment_;
  const ClusterInputs& inputs_;
  Json figures_;
  ClusterModel model_;
  std::vector<std::string> found_;
};

} // namespace

TrainingGraph make_step(const Graph& network, const TrainingOptions& options,
                        const SourceLoc& where) {
  TrainingGraph step = make_training_graph(network, options);
  for (const std::string& key : options_without_effect(network, options, step))
    warn_of(where, key);
  return step;
}

void warn_of_unused(const ClusterExperiment& experiment, const ClusterInputs& inputs,
                    const ClusterStep& step) {
  ClusterVariants(experiment, inputs, step).run();
}

} // namespace monet::cli
