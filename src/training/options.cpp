// training.yaml -> TrainingOptions.
#include "monet/base/text.hpp"
#include "monet/training/training.hpp"

#include <fmt/format.h>

#include <array>
#include <span>

namespace monet {

namespace {

template <class T>
struct Choice {
  std::string_view name;
  T value;
};

constexpr std::array kLosses{
    Choice<LossKind>{"cross_entropy", LossKind::cross_entropy},
    Choice<LossKind>{"mse", LossKind::mse},
    Choice<LossKind>{"bce_with_logits", LossKind::bce_with_logits},
    Choice<LossKind>{"none", LossKind::none},
};
constexpr std::array kOptimizers{
    Choice<OptimizerKind>{"sgd", OptimizerKind::sgd},
    Choice<OptimizerKind>{"momentum", OptimizerKind::momentum},
    Choice<OptimizerKind>{"adam", OptimizerKind::adam},
    Choice<OptimizerKind>{"adamw", OptimizerKind::adamw},
};
constexpr std::array kPolicies{
    Choice<StorePolicy>{"minimal", StorePolicy::minimal},
    Choice<StorePolicy>{"pytorch-eager", StorePolicy::pytorch_eager},
};

std::string join(std::span<const std::string> names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string hint_among(std::string_view wrong, const std::vector<std::string>& names) {
  const std::string near = nearest_name_hint(wrong, names);
  return near.empty() ? fmt::format("one of: {}", join(names)) : near;
}

template <class T>
void read_choice(const YamlNode& node, ProblemList& problems, std::span<const Choice<T>> choices,
                 T& value) {
  const auto text = as_string(node, problems);
  if (!text)
    return;
  std::vector<std::string> names;
  for (const Choice<T>& choice : choices) {
    if (choice.name == *text) {
      value = choice.value;
      return;
    }
    names.emplace_back(choice.name);
  }
  problems.add(node.where, fmt::format("'{}' is not known here", *text), hint_among(*text, names));
}

void check_range(const YamlMap& map, ProblemList& problems, std::string_view key, double value,
                 double low, double high) {
  if (value >= low && value < high)
    return;
  problems.add(map.node().where,
               fmt::format("'{}' is {}, outside [{}, {})", key, value, low, high));
}

void read_betas(YamlMap& map, ProblemList& problems, OptimizerOptions& options) {
  const YamlNode* betas = map.find("betas");
  if (!betas)
    return;
  if (betas->kind != YamlNode::Kind::sequence || betas->items.size() != 2) {
    problems.add(betas->where, "'betas' is a list of two numbers");
    return;
  }
  if (map.has("beta1") || map.has("beta2")) {
    problems.add(betas->where, "'betas' and 'beta1', 'beta2' say the same thing; give one of them");
  }
  options.beta1 = as_number(betas->items[0], problems).value_or(options.beta1);
  options.beta2 = as_number(betas->items[1], problems).value_or(options.beta2);
}

OptimizerOptions read_optimizer(const YamlNode& node, ProblemList& problems) {
  OptimizerOptions options;
  if (node.kind == YamlNode::Kind::scalar) { // optimizer: sgd
    read_choice(node, problems, std::span<const Choice<OptimizerKind>>(kOptimizers), options.kind);
    return options;
  }
  YamlMap map(node, problems);
  if (const YamlNode* type = map.find("type")) {
    read_choice(*type, problems, std::span<const Choice<OptimizerKind>>(kOptimizers), options.kind);
  }
  options.learning_rate = map.number_or("learning_rate", options.learning_rate);
  options.momentum = map.number_or("momentum", options.momentum);
  options.beta1 = map.number_or("beta1", options.beta1);
  options.beta2 = map.number_or("beta2", options.beta2);
  read_betas(map, problems, options);
  options.epsilon = map.number_or("epsilon", options.epsilon);
  options.weight_decay = map.number_or("weight_decay", options.weight_decay);
  const YamlNode* fused = map.find("fused");
  if (fused && !as_boolean(*fused, problems).value_or(true)) {
    problems.add(fused->where,
                 "unfused updates are not supported: an update is one operator per parameter");
  }
  check_range(map, problems, "learning_rate", options.learning_rate, 0.0, 1e6);
  check_range(map, problems, "momentum", options.momentum, 0.0, 1.0);
  check_range(map, problems, "beta1", options.beta1, 0.0, 1.0);
  check_range(map, problems, "beta2", options.beta2, 0.0, 1.0);
  check_range(map, problems, "epsilon", options.epsilon, 0.0, 1.0);
  check_range(map, problems, "weight_decay", options.weight_decay, 0.0, 1e6);
  map.finish();
  return options;
}

void read_type(YamlMap& map, ProblemList& problems, std::string_view key, ElementType& type) {
  const YamlNode* node = map.find(key);
  if (!node)
    return;
  const auto text = as_string(*node, problems);
  if (!text)
    return;
  const auto named = element_type_named(*text);
  if (named && is_floating(*named)) {
    type = *named;
    return;
  }
  problems.add(node->where, fmt::format("'{}' is no floating-point element type", *text),
               "one of: fp64, fp32, tf32, fp16, bf16, fp8_e4m3, fp8_e5m2");
}

Precision read_precision(const YamlNode& node, ProblemList& problems) {
  Precision precision;
  YamlMap map(node, problems);
  read_type(map, problems, "weights", precision.weights);
  read_type(map, problems, "activations", precision.activations);
  read_type(map, problems, "gradients", precision.gradients);
  read_type(map, problems, "optimizer_state", precision.optimizer_state);
  read_type(map, problems, "accumulate", precision.accumulate);
  const YamlNode* master = map.find("master_weights");
  const bool none = master && (master->kind == YamlNode::Kind::null || master->scalar == "none");
  if (master && !none) {
    ElementType type = ElementType::fp32;
    read_type(map, problems, "master_weights", type);
    precision.master_weights = type;
  }
  map.finish();
  return precision;
}

void read_store(const YamlNode& node, ProblemList& problems, StorePolicy& policy) {
  if (node.kind == YamlNode::Kind::map) {
    problems.add(node.where, "choosing what to keep and what to recompute is not supported yet",
                 "one of: minimal, pytorch-eager");
    return;
  }
  read_choice(node, problems, std::span<const Choice<StorePolicy>>(kPolicies), policy);
}

/// `all`, {freeze: [patterns]} or {lora: ...}, which is not supported yet.
std::vector<std::string> read_trainable(const YamlNode& node, ProblemList& problems) {
  if (node.kind == YamlNode::Kind::scalar) {
    if (node.scalar != "all") {
      problems.add(node.where, fmt::format("'{}' is not known here", node.scalar),
                   "all, or {freeze: [patterns]}");
    }
    return {};
  }
  std::vector<std::string> patterns;
  YamlMap map(node, problems);
  if (const YamlNode* freeze = map.find("freeze"))
    patterns = as_strings(*freeze, problems, true);
  if (const YamlNode* lora = map.find("lora"))
    problems.add(lora->where, "'lora' is not supported yet");
  map.finish();
  return patterns;
}

} // namespace

TrainingOptions read_training_options(const YamlNode& node, ProblemList& problems) {
  TrainingOptions options;
  if (node.kind == YamlNode::Kind::null)
    return options;
  YamlMap map(node, problems);
  if (const YamlNode* loss = map.find("loss")) {
    read_choice(*loss, problems, std::span<const Choice<LossKind>>(kLosses), options.loss);
  }
  if (const YamlNode* optimizer = map.find("optimizer"))
    options.optimizer = read_optimizer(*optimizer, problems);
  if (const YamlNode* precision = map.find("precision"))
    options.precision = read_precision(*precision, problems);
  if (const YamlNode* store = map.find("store"))
    read_store(*store, problems, options.store);
  if (const YamlNode* trainable = map.find("trainable"))
    options.freeze = read_trainable(*trainable, problems);
  if (const YamlNode* micro_batches = map.find("micro_batches")) {
    const auto count = as_integer(*micro_batches, problems);
    if (count && *count != 1) {
      problems.add(micro_batches->where,
                   fmt::format("{} micro-batches are not supported yet, only 1", *count));
    }
  }
  map.finish();
  return options;
}

} // namespace monet
