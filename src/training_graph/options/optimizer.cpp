// The `optimizer:` part of a training file.
#include "training_graph/options/reader.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <type_traits>

namespace monet {

namespace {

constexpr std::array kOptimizers{
    Choice<Optimizer>{"sgd", Sgd{}},
    Choice<Optimizer>{"momentum", Sgd{.momentum = 0.9}},
    Choice<Optimizer>{"adam", Adam{}},
    Choice<Optimizer>{"adamw", AdamW{}},
    Choice<Optimizer>{"rmsprop", Rmsprop{}},
    Choice<Optimizer>{"adagrad", Adagrad{}},
    Choice<Optimizer>{"lion", Lion{}},
    Choice<Optimizer>{"adafactor", Adafactor{}},
    Choice<Optimizer>{"lamb", Lamb{}},
    Choice<Optimizer>{"muon", Muon{}},
    Choice<Optimizer>{"sparse_adam", SparseAdam{}},
};

/// By key. Any optimiser may be given any setting, and takes those that it has: groups change the
/// optimiser and keep the settings.
using Settings = std::map<std::string_view, double>;

template <class T>
T with_settings(T o, const Settings& settings) {
  const auto take = [&](std::string_view key, auto& field) {
    if (const auto given = settings.find(key); given != settings.end())
      field = static_cast<std::remove_reference_t<decltype(field)>>(given->second);
  };
  take("learning_rate", o.learning_rate);
  if constexpr (requires { o.weight_decay; })
    take("weight_decay", o.weight_decay);
  if constexpr (requires { o.momentum; })
    take("momentum", o.momentum);
  if constexpr (requires { o.beta1; })
    take("beta1", o.beta1);
  if constexpr (requires { o.beta2; })
    take("beta2", o.beta2);
  if constexpr (requires { o.epsilon; })
    take("epsilon", o.epsilon);
  if constexpr (requires { o.amsgrad; })
    take("amsgrad", o.amsgrad);
  if constexpr (requires { o.nesterov; })
    take("nesterov", o.nesterov);
  if constexpr (std::is_same_v<T, Sgd>)
    take("dampening", o.dampening);
  if constexpr (std::is_same_v<T, Rmsprop>) {
    take("alpha", o.alpha);
    take("centered", o.centered);
  }
  if constexpr (std::is_same_v<T, Adagrad>) {
    take("learning_rate_decay", o.learning_rate_decay);
    take("initial_accumulator", o.initial_accumulator);
  }
  if constexpr (std::is_same_v<T, Adafactor>) {
    take("decay_rate", o.decay_rate);
    take("clip_threshold", o.clip_threshold);
    take("epsilon2", o.epsilon2);
    take("relative_step", o.relative_step);
    take("scale_parameter", o.scale_parameter);
  }
  if constexpr (std::is_same_v<T, Muon>) {
    take("newton_schulz_steps", o.newton_schulz_steps);
    Settings others = settings;
    others.erase("epsilon"); // Muon's is that of a norm
    o.others = with_settings(o.others, others);
  }
  return o;
}

struct OptimizerSettings {
  Optimizer optimizer; ///< with its own defaults
  Settings settings;

  Optimizer made() const {
    return std::visit([&](const auto& o) -> Optimizer { return with_settings(o, settings); },
                      optimizer);
  }
};

/// Reads settings in addition to inherited ones.
class SettingsReader {
public:
  SettingsReader(YamlMap& map, ProblemList& problems, Settings& settings)
      : map_(map), problems_(problems), settings_(settings) {}

  void read() {
    number("learning_rate", 0.0, 1e6);
    number("momentum", 0.0, 1.0);
    number("beta1", 0.0, 1.0);
    number("beta2", 0.0, 1.0);
    read_betas();
    number("epsilon", 0.0, 1.0);
    number("weight_decay", 0.0, 1e6);
    inherited("dampening", 0.0, 1.0);
    inherited("alpha", 0.0, 1.0);
    inherited("learning_rate_decay", 0.0, 1e6);
    inherited("initial_accumulator", 0.0, 1e12);
    inherited("decay_rate", -10.0, 0.0);
    inherited("clip_threshold", 1e-12, 1e12);
    inherited("epsilon2", 0.0, 1e6);
    if (map_.has("nesterov"))
      flag("nesterov");
    flag("amsgrad");
    flag("centered");
    flag("relative_step");
    flag("scale_parameter");
    constexpr std::int64_t most = std::int64_t{1} << 62; // what a double does not round up
    const std::int64_t steps = map_.integer_or("newton_schulz_steps", 1);
    give("newton_schulz_steps", static_cast<double>(std::min(steps, most)));
    check("newton_schulz_steps", 1.0, 101.0);
  }

private:
  double before(std::string_view key, double otherwise) const {
    const auto found = settings_.find(key);
    return found == settings_.end() ? otherwise : found->second;
  }
  void give(std::string_view key, double value) {
    if (map_.has(key))
      settings_[key] = value;
  }
  void check(std::string_view key, double low, double high) {
    check_range(map_, problems_, key, before(key, low), low, high);
  }
  void number(std::string_view key, double low, double high) {
    map_.ignore(key); // so that hints of unknown keys can name it
    if (map_.has(key))
      inherited(key, low, high);
  }
  /// Checked again where it was given before.
  void inherited(std::string_view key, double low, double high) {
    give(key, map_.number_or(key, before(key, low)));
    check(key, low, high);
  }
  void flag(std::string_view key) {
    give(key, map_.boolean_or(key, before(key, 0.0) != 0.0) ? 1.0 : 0.0);
  }

  void read_betas() {
    const YamlNode* betas = map_.find("betas");
    const bool list = betas && betas->kind == YamlNode::Kind::sequence && betas->items.size() == 2;
    if (betas && !list)
      problems_.add(betas->where, "'betas' is a list of two numbers");
    if (list && (map_.has("beta1") || map_.has("beta2"))) {
      problems_.add(betas->where, "'betas' and 'beta1', 'beta2' mean the same; give one of them");
    }
    for (const std::size_t i : {0U, 1U}) {
      if (const auto beta = list ? as_number(betas->items[i], problems_) : std::nullopt)
        settings_[i == 0 ? "beta1" : "beta2"] = *beta;
    }
    for (const char* key : {"beta1", "beta2"}) {
      if (!map_.has(key))
        check(key, 0.0, 1.0);
    }
  }

  YamlMap& map_;
  ProblemList& problems_;
  Settings& settings_;
};

/// Reads the optimiser, with the settings in `given` as defaults; adds new ones to `given`.
Optimizer read_settings(YamlMap& map, ProblemList& problems, OptimizerSettings& given) {
  read_choice(map, problems, "type", kOptimizers, given.optimizer);
  SettingsReader(map, problems, given.settings).read();
  const Optimizer made = given.made();
  const auto* sgd = std::get_if<Sgd>(&made);
  if (sgd && sgd->nesterov && (sgd->momentum == 0.0 || sgd->dampening != 0.0))
    problems.add(map.node().where, "'nesterov' needs a momentum and no dampening");
  return made;
}

void read_rule(const YamlNode& node, ProblemList& problems, bool& norms_and_biases) {
  constexpr std::array kRules{Choice<bool>{"norms_and_biases", true}};
  read_choice(node, problems, kRules, norms_and_biases);
}

/// {match: [patterns], rule: norms_and_biases, and what differs from the optimiser's settings}.
ParameterGroup read_group(const YamlNode& node, ProblemList& problems, OptimizerSettings given) {
  ParameterGroup group;
  YamlMap map(node, problems);
  read_key(map, problems, "match", read_patterns, group.match);
  read_key(map, problems, "rule", read_rule, group.norms_and_biases);
  if (group.match.empty() && !group.norms_and_biases)
    problems.add(node.where, "a group selects parameters by 'match' or 'rule'");
  group.optimizer = read_settings(map, problems, given);
  map.finish();
  return group;
}

void read_groups(YamlMap& map, ProblemList& problems, const OptimizerSettings& base,
                 std::vector<ParameterGroup>& result) {
  if (const YamlNode* groups = map.find("groups")) {
    if (groups->kind != YamlNode::Kind::sequence)
      problems.add(groups->where, "'groups' is a list");
    for (const YamlNode& group : groups->items)
      result.push_back(read_group(group, problems, base));
  }
  // After the groups that are spelled out, which may take some of the same parameters.
  const YamlNode* no_decay = map.find("no_decay");
  if (!no_decay)
    return;
  ParameterGroup group;
  OptimizerSettings without = base;
  without.settings["weight_decay"] = 0.0;
  group.optimizer = without.made();
  if (no_decay->kind == YamlNode::Kind::sequence)
    group.match = as_strings(*no_decay, problems);
  else
    read_rule(*no_decay, problems, group.norms_and_biases);
  result.push_back(std::move(group));
}

} // namespace

void read_optimizer(const YamlNode& node, ProblemList& problems, UpdateOptions& options) {
  if (node.kind == YamlNode::Kind::scalar) { // optimizer: sgd
    read_choice(node, problems, kOptimizers, options.optimizer);
    return;
  }
  YamlMap map(node, problems);
  OptimizerSettings given;
  options.optimizer = read_settings(map, problems, given);
  options.fused = map.boolean_or("fused", options.fused);
  read_groups(map, problems, given, options.groups);
  map.finish();
}

} // namespace monet
