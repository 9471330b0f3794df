// Chooses which products compute both gradients in one operator, before the fusion and joint
// searches (paired_steps.hpp).
#include "options/paired_steps.hpp"

#include "report/shared/search_result.hpp"
#include "report/shared/text.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace monet::cli {

PairedSteps::PairedSteps(const SearchInputs& inputs, Objective objective, CoreCostCache& costs,
                         const SearchControl& control, Session& session)
    : steps_{&inputs} {
  const std::vector<std::string>& products = inputs.step.paired;
  if (products.empty() || inputs.files.stacks)
    return;
  const auto with = [&](const std::vector<std::string>& paired) {
    TrainingOptions training = *inputs.experiment.training;
    training.paired_gradients = paired;
    return make_training_graph(inputs.files.network, training);
  };
  const PairedStepMaker make = [&](const auto& paired) { return fold_views(with(paired)); };
  const PairingProblem problem{make,
                               products,
                               inputs.files.chip,
                               {inputs.tiling_options(), inputs.schedule_options(1), {}},
                               costs};
  const SearchControl part = control.share(4);
  const PairingResult chosen = session.stage("pairs of gradients", [&] {
    return choose_pairs(problem, {inputs.experiment.mode, objective}, part);
  });
  products_ = products.size();
  interrupted_ = chosen.interrupted;
  steps_.clear();
  const auto add = [&](const std::vector<std::string>& paired) {
    if (paired == products) {
      steps_.push_back(&inputs);
      return;
    }
    auto made = std::make_unique<SearchInputs>(
        SearchInputs{inputs.experiment, inputs.files, with(paired), {}});
    made->step = fold_views(made->graph);
    steps_.push_back(made.get());
    made_.push_back(std::move(made));
  };
  add({});
  if (!chosen.paired.empty())
    add(chosen.paired);
}

void PairedSteps::add_to(nlohmann::ordered_json& result) const {
  if (products_ == 0 || answer_ == nullptr)
    return;
  nlohmann::ordered_json json{{"products", products_},
                              {"paired", nlohmann::ordered_json::array()},
                              {"searched", nlohmann::ordered_json::array()}};
  for (const std::string& name : answer_->step.paired)
    json["paired"].push_back(valid_utf8(name));
  for (const auto& [step, best] : searched_)
    json["searched"].push_back(
        {{"paired", steps_[step]->step.paired.size()}, {"best", number_json(best)}});
  result["pairing"] = std::move(json);
}

std::string PairedSteps::line() const {
  if (products_ == 0 || answer_ == nullptr)
    return {};
  std::string text = fmt::format("gradients in pairs: {} of {} products (",
                                 answer_->step.paired.size(), products_);
  for (std::size_t i = 0; i < searched_.size(); ++i)
    text += fmt::format("{}{} paired: {:.6g}", i == 0 ? "" : "; ",
                        steps_[searched_[i].first]->step.paired.size(), searched_[i].second);
  return text + ")\n";
}

} // namespace monet::cli
