// The `loss:` part of a training file.
#include "training/options_reader.hpp"

#include <fmt/format.h>

#include <array>
#include <span>

namespace monet {

namespace {

constexpr std::array kLosses{
    Choice<LossKind>{"cross_entropy", LossKind::cross_entropy},
    Choice<LossKind>{"mse", LossKind::mse},
    Choice<LossKind>{"bce_with_logits", LossKind::bce_with_logits},
    Choice<LossKind>{"none", LossKind::none},
};

void read_kind(const YamlNode& node, ProblemList& problems, LossKind& kind) {
  read_choice(node, problems, std::span<const Choice<LossKind>>(kLosses), kind);
}

/// A setting of another loss than the one chosen is a mistake.
const YamlNode* setting(YamlMap& map, ProblemList& problems, std::string_view key, LossKind of,
                        LossKind chosen) {
  const YamlNode* node = map.find(key);
  if (node == nullptr || of == chosen)
    return node;
  const char* name = of == LossKind::cross_entropy ? "cross_entropy" : "bce_with_logits";
  problems.add(node->where, fmt::format("'{}' is a setting of {}", key, name));
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

void read_loss(const YamlNode& node, ProblemList& problems, TrainingOptions& options) {
  if (node.kind != YamlNode::Kind::map) {
    read_kind(node, problems, options.loss);
    return;
  }
  YamlMap map(node, problems);
  if (const YamlNode* type = map.find("type"))
    read_kind(*type, problems, options.loss);
  LossOptions& loss = options.loss_options;
  const auto find = [&](std::string_view key, LossKind of) {
    return setting(map, problems, key, of, options.loss);
  };
  if (const YamlNode* smoothing = find("label_smoothing", LossKind::cross_entropy)) {
    loss.label_smoothing = as_number(*smoothing, problems).value_or(0.0);
    if (!(loss.label_smoothing >= 0.0 && loss.label_smoothing <= 1.0)) {
      problems.add(smoothing->where,
                   fmt::format("'label_smoothing' is {}, outside [0, 1]", loss.label_smoothing));
    }
  }
  if (const YamlNode* ignored = find("ignore_index", LossKind::cross_entropy))
    loss.ignore_index = as_integer(*ignored, problems);
  if (const YamlNode* axis = find("class_axis", LossKind::cross_entropy))
    loss.class_axis = as_integer(*axis, problems);
  if (const YamlNode* weights = find("pos_weight", LossKind::bce_with_logits))
    loss.pos_weight = read_weights(*weights, problems);
  map.finish();
}

} // namespace monet
