// training.yaml -> TrainingOptions.
#include "base/shared/text.hpp"
#include "training_graph/options/reader.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <span>

namespace monet {

namespace {

constexpr std::array kUpdates{Choice<bool>{"fused", true}, Choice<bool>{"unfused", false}};
constexpr std::array kBatchNorms{Choice<bool>{"training", false}, Choice<bool>{"inference", true}};
constexpr std::array kPolicies{
    Choice<StorePolicy>{"minimal", StorePolicy::minimal},
    Choice<StorePolicy>{"pytorch-eager", StorePolicy::pytorch_eager},
};

constexpr std::array kAttention{
    Choice<AttentionForm>{"exported", AttentionForm::exported},
    Choice<AttentionForm>{"fused", AttentionForm::fused},
};

/// `to`: what gradients are clipped to, "a norm".
void read_limit(const YamlNode& node, ProblemList& problems, std::string_view to,
                std::optional<double>& limit) {
  if (node.kind == YamlNode::Kind::null)
    return;
  limit = as_number(node, problems);
  if (limit && !(*limit > 0.0))
    problems.add(node.where,
                 fmt::format("gradients are clipped to {} above 0, not {}", to, *limit));
}

void read_clipping(YamlMap& map, ProblemList& problems, UpdateOptions& options) {
  if (const YamlNode* norm = map.find("clip_global_norm"))
    read_limit(*norm, problems, "a norm", options.clip_global_norm);
  const YamlNode* value = map.find("clip_value");
  if (!value)
    return;
  read_limit(*value, problems, "a magnitude", options.clip_value);
  if (options.clip_value && options.clip_global_norm)
    problems.add(value->where,
                 "'clip_global_norm' and 'clip_value' exclude each other; give one of them");
}

/// `true` or patterns.
void read_sparse_gradients(const YamlNode& node, ProblemList& problems,
                           std::vector<std::string>& patterns) {
  if (node.kind == YamlNode::Kind::null || node.scalar == "false")
    return;
  if (node.scalar == "true")
    patterns = {"*"};
  else
    patterns = as_strings(node, problems, true);
}

/// `separate`, `paired` or `{paired: patterns}`.
void read_gradients(const YamlNode& node, ProblemList& problems,
                    std::vector<std::string>& patterns) {
  constexpr std::array kGradients{Choice<bool>{"separate", false}, Choice<bool>{"paired", true}};
  if (node.kind == YamlNode::Kind::map) {
    YamlMap map(node, problems);
    if (const YamlNode* paired = map.find("paired"))
      patterns = as_strings(*paired, problems, true);
    else
      problems.add(node.where, "'paired' is missing: patterns of products");
    map.finish();
    return;
  }
  bool paired = false;
  read_choice(node, problems, kGradients, paired);
  if (paired)
    patterns = {"*"};
}

/// A number that stands alone or in a map under `key`. If the map has no such key, returns null and
/// reports the `meaning` of the missing number.
const YamlNode* number_in(const YamlNode& node, ProblemList& problems, std::string_view key,
                          std::string_view meaning) {
  if (node.kind != YamlNode::Kind::map)
    return &node;
  YamlMap map(node, problems);
  const YamlNode* number = map.find(key);
  if (!number)
    problems.add(node.where, fmt::format("'{}' is missing: {}", key, meaning));
  map.finish();
  return number;
}

/// `ema: 0.999` or `{decay: 0.999}`.
void read_average(const YamlNode& node, ProblemList& problems, std::optional<double>& decay) {
  if (node.kind == YamlNode::Kind::null)
    return;
  const YamlNode* number =
      number_in(node, problems, "decay", "the share of the old mean in the new one");
  decay = number ? as_number(*number, problems) : std::nullopt;
  if (decay && !(*decay >= 0.0 && *decay < 1.0))
    problems.add(number->where, fmt::format("'decay' is {}, outside [0, 1)", *decay));
}

/// A policy, or `{default: policy, keep: patterns, recompute: patterns}`.
void read_store(const YamlNode& node, ProblemList& problems, StorageOptions& options) {
  if (node.kind != YamlNode::Kind::map) {
    read_choice(node, problems, kPolicies, options.policy);
    return;
  }
  YamlMap map(node, problems);
  read_choice(map, problems, "default", kPolicies, options.policy);
  read_key(map, problems, "keep", read_patterns, options.keep);
  if (const YamlNode* recompute = map.find("recompute")) {
    options.recompute = as_strings(*recompute, problems, true);
    if (options.policy == StorePolicy::pytorch_eager)
      problems.add(recompute->where, "PyTorch recomputes nothing; 'default' must be minimal");
  }
  map.finish();
}

/// `all` or patterns.
void read_offload(const YamlNode& node, ProblemList& problems, StorageOptions& options) {
  if (node.kind == YamlNode::Kind::null)
    return;
  if (node.scalar == "all")
    options.offload = {"*"};
  else
    options.offload = as_strings(node, problems, true);
}

/// A pattern, a map {tensor, before}, or a list of these.
void read_detach(const YamlNode& node, ProblemList& problems, std::vector<Detach>& detach) {
  const bool list = node.kind == YamlNode::Kind::sequence;
  for (const YamlNode& item : list ? std::span(node.items) : std::span(&node, 1)) {
    if (item.kind != YamlNode::Kind::map) {
      detach.push_back({as_string(item, problems).value_or(""), ""});
      continue;
    }
    YamlMap map(item, problems);
    if (const YamlNode* tensor = map.find("tensor"))
      detach.push_back({as_string(*tensor, problems).value_or(""), ""});
    else
      problems.add(item.where,
                   "'tensor' is missing: the pattern of tensors that no gradient passes");
    if (const YamlNode* before = map.find("before"); before && !detach.empty())
      detach.back().before = as_string(*before, problems).value_or("");
    map.finish();
  }
}

void read_micro_batches(const YamlNode& node, ProblemList& problems, std::int64_t& count) {
  constexpr std::int64_t kMax = 4096; // every micro-batch is spelled out in the graph
  count = as_integer(node, problems).value_or(1);
  if (count < 1 || count > kMax) {
    problems.add(node.where, fmt::format("{} micro-batches, outside [1, {}]", count, kMax));
  }
}

/// `sam: 0.05` or `{rho: 0.05}`.
void read_sam(const YamlNode& node, ProblemList& problems, std::optional<double>& rho) {
  if (node.kind == YamlNode::Kind::null)
    return;
  const YamlNode* number =
      number_in(node, problems, "rho", "how far weights move before the second pass");
  rho = number ? as_number(*number, problems) : std::nullopt;
  if (rho && !(*rho > 0.0 && std::isfinite(*rho)))
    problems.add(number->where, fmt::format("'rho' is {}, but weights move by more than 0", *rho));
}

} // namespace

void report_unknown(const YamlNode& node, ProblemList& problems, std::string_view wrong,
                    const std::vector<std::string>& names) {
  const std::string near = nearest_name_hint(wrong, names);
  problems.add(node.where, fmt::format("'{}' is not known here", wrong),
               near.empty() ? fmt::format("one of: {}", fmt::join(names, ", ")) : near);
}

void check_range(const YamlMap& map, ProblemList& problems, std::string_view key, double value,
                 double low, double high) {
  if (value >= low && value < high)
    return;
  problems.add(map.node().where,
               fmt::format("'{}' is {}, outside [{}, {})", key, value, low, high));
}

namespace {

constexpr std::array kOutputs{Choice<bool>{"all", false}, Choice<bool>{"loss", true}};

TrainingOptions read_options(YamlMap& map, ProblemList& problems, bool only_loss) {
  TrainingOptions options;
  options.only_loss = only_loss;
  read_key(map, problems, "loss", read_loss, options.loss);
  read_key(map, problems, "detach", read_detach, options.detach);
  read_key(map, problems, "optimizer", read_optimizer, options.update);
  read_choice(map, problems, "update", kUpdates, options.update.fused);
  read_clipping(map, problems, options.update);
  read_key(map, problems, "sparse_gradients", read_sparse_gradients, options.sparse_gradients);
  read_key(map, problems, "gradients", read_gradients, options.paired_gradients);
  read_key(map, problems, "ema", read_average, options.update.average_decay);
  read_key(map, problems, "precision", read_precision, options.precision);
  read_key(map, problems, "store", read_store, options.storage);
  read_key(map, problems, "offload", read_offload, options.storage);
  read_choice(map, problems, "attention", kAttention, options.attention);
  read_key(map, problems, "trainable", read_trainable, options.trainable);
  read_key(map, problems, "loss_scale", read_loss_scale, options.update.loss_scale);
  read_choice(map, problems, "batch_norm", kBatchNorms, options.frozen_batch_norm);
  read_key(map, problems, "micro_batches", read_micro_batches, options.micro_batches);
  read_key(map, problems, "sam", read_sam, options.sam_rho);
  if (options.sam_rho && !options.sparse_gradients.empty())
    problems.add(
        map.find("sam")->where,
        "'sam' moves whole weights along their gradients; 'sparse_gradients' has rows only");
  read_choice(map, problems, "outputs", kOutputs, options.only_loss);
  return options;
}

} // namespace

TrainingOptions read_training_options(const YamlNode& node, ProblemList& problems) {
  if (node.kind == YamlNode::Kind::null)
    return {};
  if (node.kind == YamlNode::Kind::sequence) {
    problems.add(node.where, "is a list of alternating steps, but one step is expected",
                 "'monet run' and 'monet graph' accept several");
    return {};
  }
  YamlMap map(node, problems);
  TrainingOptions options = read_options(map, problems, false);
  map.finish();
  return options;
}

std::vector<AlternateStep> read_alternate_steps(const YamlNode& node, ProblemList& problems) {
  constexpr std::int64_t kMax = 1'000'000;
  std::vector<AlternateStep> steps;
  for (const YamlNode& item : node.items) {
    YamlMap map(item, problems);
    AlternateStep step;
    step.name = map.require_string("name");
    const bool plain = !step.name.empty() && step.name.front() != '.' &&
                       step.name.find_first_of("/\\:") == std::string::npos;
    if (map.find("name") != nullptr && !plain)
      problems.add(item.where, "the name of a step must be a valid name of a folder");
    for (const AlternateStep& other : steps) {
      if (other.name == step.name)
        problems.add(item.where, fmt::format("two steps are called '{}'", step.name));
    }
    step.repeat = map.integer_or("repeat", 1);
    if (step.repeat < 1 || step.repeat > kMax)
      problems.add(item.where, fmt::format("'repeat' is {}, outside [1, {}]", step.repeat, kMax));
    step.options = read_options(map, problems, true);
    map.finish();
    steps.push_back(std::move(step));
  }
  if (steps.empty())
    problems.add(node.where, "a list of steps is expected, each with a 'name'");
  return steps;
}

} // namespace monet
