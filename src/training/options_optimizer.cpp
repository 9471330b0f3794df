// The `optimizer:` part of a training file.
#include "training/options_reader.hpp"

#include "monet/base/text.hpp"

#include <fmt/format.h>

#include <array>

namespace monet {

namespace {

constexpr std::array kOptimizers{
    Choice<OptimizerKind>{"sgd", OptimizerKind::sgd},
    Choice<OptimizerKind>{"momentum", OptimizerKind::momentum},
    Choice<OptimizerKind>{"adam", OptimizerKind::adam},
    Choice<OptimizerKind>{"adamw", OptimizerKind::adamw},
    Choice<OptimizerKind>{"rmsprop", OptimizerKind::rmsprop},
    Choice<OptimizerKind>{"adagrad", OptimizerKind::adagrad},
    Choice<OptimizerKind>{"lion", OptimizerKind::lion},
    Choice<OptimizerKind>{"adafactor", OptimizerKind::adafactor},
    Choice<OptimizerKind>{"lamb", OptimizerKind::lamb},
    Choice<OptimizerKind>{"muon", OptimizerKind::muon},
};

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
  if (const auto first = as_number(betas->items[0], problems))
    options.beta1 = first;
  if (const auto second = as_number(betas->items[1], problems))
    options.beta2 = second;
}

struct Range {
  double low;
  double high;
};

/// The settings that any optimiser has; those that are not given stay as they are.
class SettingsReader {
public:
  SettingsReader(YamlMap& map, ProblemList& problems, OptimizerOptions& options)
      : map_(map), problems_(problems), o_(options) {}

  void read() {
    number("learning_rate", o_.learning_rate, {0.0, 1e6});
    number("momentum", o_.momentum, {0.0, 1.0});
    number("beta1", o_.beta1, {0.0, 1.0});
    number("beta2", o_.beta2, {0.0, 1.0});
    read_betas(map_, problems_, o_);
    check("beta1", o_.beta1, {0.0, 1.0}, !map_.has("beta1"));
    check("beta2", o_.beta2, {0.0, 1.0}, !map_.has("beta2"));
    number("epsilon", o_.epsilon, {0.0, 1.0});
    number("weight_decay", o_.weight_decay, {0.0, 1e6});
    plain("dampening", o_.dampening, {0.0, 1.0});
    plain("alpha", o_.alpha, {0.0, 1.0});
    plain("learning_rate_decay", o_.learning_rate_decay, {0.0, 1e6});
    plain("initial_accumulator", o_.initial_accumulator, {0.0, 1e12});
    plain("decay_rate", o_.decay_rate, {-10.0, 0.0});
    plain("clip_threshold", o_.clip_threshold, {1e-12, 1e12});
    plain("epsilon2", o_.epsilon2, {0.0, 1e6});
    flags();
    o_.newton_schulz_steps = map_.integer_or("newton_schulz_steps", o_.newton_schulz_steps);
    const auto steps = static_cast<double>(o_.newton_schulz_steps);
    check_range(map_, problems_, "newton_schulz_steps", steps, 1.0, 101.0);
  }

private:
  void check(std::string_view key, const std::optional<double>& value, Range range, bool wanted) {
    if (value && wanted)
      check_range(map_, problems_, key, *value, range.low, range.high);
  }
  void number(std::string_view key, std::optional<double>& value, Range range) {
    if (!map_.has(key))
      return;
    value = map_.number_or(key, value.value_or(0.0));
    check(key, value, range, true);
  }
  void plain(std::string_view key, double& value, Range range) {
    value = map_.number_or(key, value);
    check_range(map_, problems_, key, value, range.low, range.high);
  }
  void flags() {
    if (map_.has("nesterov"))
      o_.nesterov = map_.boolean_or("nesterov", false);
    o_.centered = map_.boolean_or("centered", o_.centered);
    o_.relative_step = map_.boolean_or("relative_step", o_.relative_step);
    o_.scale_parameter = map_.boolean_or("scale_parameter", o_.scale_parameter);
  }

  YamlMap& map_;
  ProblemList& problems_;
  OptimizerOptions& o_;
};

/// Settings that contradict each other.
void check_settings(const YamlNode& node, ProblemList& problems, const OptimizerOptions& options) {
  const OptimizerOptions o = with_defaults(options);
  const bool descent = o.kind == OptimizerKind::sgd || o.kind == OptimizerKind::momentum;
  if (descent && *o.nesterov && (*o.momentum == 0.0 || o.dampening != 0.0))
    problems.add(node.where, "'nesterov' needs a momentum and no dampening");
}

void read_rule(const YamlNode& node, ProblemList& problems, bool& norms_and_biases) {
  constexpr std::array kRules{Choice<bool>{"norms_and_biases", true}};
  read_choice(node, problems, std::span<const Choice<bool>>(kRules), norms_and_biases);
}

void read_type(YamlMap& map, ProblemList& problems, OptimizerKind& kind) {
  if (const YamlNode* type = map.find("type"))
    read_choice(*type, problems, std::span<const Choice<OptimizerKind>>(kOptimizers), kind);
}

/// {match: [patterns], rule: norms_and_biases, and what differs from the optimiser's settings}.
ParameterGroup read_group(const YamlNode& node, ProblemList& problems,
                          const OptimizerOptions& base) {
  ParameterGroup group;
  group.optimizer = base;
  YamlMap map(node, problems);
  if (const YamlNode* match = map.find("match"))
    group.match = as_strings(*match, problems, true);
  if (const YamlNode* rule = map.find("rule"))
    read_rule(*rule, problems, group.norms_and_biases);
  if (group.match.empty() && !group.norms_and_biases)
    problems.add(node.where, "a group takes parameters by 'match' or 'rule'");
  read_type(map, problems, group.optimizer.kind);
  SettingsReader(map, problems, group.optimizer).read();
  check_settings(node, problems, group.optimizer);
  map.finish();
  return group;
}

void read_groups(YamlMap& map, ProblemList& problems, TrainingOptions& options) {
  if (const YamlNode* groups = map.find("groups")) {
    if (groups->kind != YamlNode::Kind::sequence)
      problems.add(groups->where, "'groups' is a list");
    for (const YamlNode& group : groups->items)
      options.groups.push_back(read_group(group, problems, options.optimizer));
  }
  // After the groups that are spelled out, which may take some of the same parameters.
  const YamlNode* no_decay = map.find("no_decay");
  if (!no_decay)
    return;
  ParameterGroup group;
  group.optimizer = options.optimizer;
  group.optimizer.weight_decay = 0.0;
  if (no_decay->kind == YamlNode::Kind::sequence)
    group.match = as_strings(*no_decay, problems);
  else
    read_rule(*no_decay, problems, group.norms_and_biases);
  options.groups.push_back(std::move(group));
}

} // namespace

void read_optimizer(const YamlNode& node, ProblemList& problems, TrainingOptions& options) {
  if (node.kind == YamlNode::Kind::scalar) { // optimizer: sgd
    read_choice(node, problems, std::span<const Choice<OptimizerKind>>(kOptimizers),
                options.optimizer.kind);
    return;
  }
  YamlMap map(node, problems);
  read_type(map, problems, options.optimizer.kind);
  SettingsReader(map, problems, options.optimizer).read();
  check_settings(node, problems, options.optimizer);
  options.fused_update = map.boolean_or("fused", options.fused_update);
  read_groups(map, problems, options);
  map.finish();
}

} // namespace monet
