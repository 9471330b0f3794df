// The `loss:` part of a training file.
#include "training/options/reader.hpp"

#include <fmt/core.h>

#include <span>

namespace monet {

namespace {

void read_kind(const YamlNode& node, ProblemList& problems, Loss& loss) {
  const Choice<Loss> losses[]{{"cross_entropy", CrossEntropy{}},
                              {"mse", Mse{}},
                              {"bce_with_logits", BceWithLogits{}},
                              {"none", NoLoss{}},
                              {"network", NetworkLoss{}}};
  read_choice(node, problems, losses, loss);
}

/// A setting of another loss than the one chosen is a mistake.
const YamlNode* setting(YamlMap& map, ProblemList& problems, std::string_view key, bool chosen,
                        std::string_view of) {
  const YamlNode* node = map.find(key);
  if (node == nullptr || chosen)
    return node;
  problems.add(node->where, fmt::format("'{}' is a setting of {}", key, of));
  return nullptr;
}

std::vector<double> read_weights(const YamlNode& node, ProblemList& problems) {
  std::vector<double> weights;
  const bool list = node.kind == YamlNode::Kind::sequence;
  for (const YamlNode& item : list ? std::span(node.items) : std::span(&node, 1)) {
    const double weight = as_number(item, problems).value_or(1.0);
    if (!(weight >= 0.0))
      problems.add(item.where, fmt::format("a weight of {} is below 0", weight));
    weights.push_back(weight);
  }
  if (weights.empty())
    problems.add(node.where, "a number or a list of numbers is expected");
  return weights;
}

} // namespace

void read_loss(const YamlNode& node, ProblemList& problems, Loss& loss) {
  if (node.kind != YamlNode::Kind::map) {
    read_kind(node, problems, loss);
    return;
  }
  YamlMap map(node, problems);
  if (const YamlNode* type = map.find("type"))
    read_kind(*type, problems, loss);
  auto* classes = std::get_if<CrossEntropy>(&loss);
  auto* binary = std::get_if<BceWithLogits>(&loss);
  const auto of_classes = [&](std::string_view key) {
    return setting(map, problems, key, classes, "cross_entropy");
  };
  if (const YamlNode* smoothing = of_classes("label_smoothing")) {
    classes->label_smoothing = as_number(*smoothing, problems).value_or(0.0);
    if (!(classes->label_smoothing >= 0.0 && classes->label_smoothing <= 1.0)) {
      problems.add(smoothing->where, fmt::format("'label_smoothing' is {}, outside [0, 1]",
                                                 classes->label_smoothing));
    }
  }
  if (const YamlNode* ignored = of_classes("ignore_index"))
    classes->ignore_index = as_integer(*ignored, problems);
  if (const YamlNode* axis = of_classes("class_axis"))
    classes->class_axis = as_integer(*axis, problems);
  if (const YamlNode* weights = setting(map, problems, "pos_weight", binary, "bce_with_logits"))
    binary->pos_weight = read_weights(*weights, problems);
  auto* network = std::get_if<NetworkLoss>(&loss);
  if (const YamlNode* outputs = setting(map, problems, "outputs", network, "network")) {
    if (outputs->kind != YamlNode::Kind::map)
      problems.add(outputs->where, "'outputs' gives a weight for each output that is a loss");
    for (const YamlNode::Entry& entry : outputs->entries)
      network->outputs.emplace_back(entry.key, as_number(entry.value, problems).value_or(1.0));
  }
  map.finish();
}

} // namespace monet
