// training.yaml -> TrainingOptions.
#include "training/options/reader.hpp"

#include "monet/base/text.hpp"

#include <fmt/format.h>

#include <array>
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

void read_clipping(const YamlNode& node, ProblemList& problems, std::optional<double>& norm) {
  if (node.kind == YamlNode::Kind::null)
    return;
  norm = as_number(node, problems);
  if (norm && !(*norm > 0.0))
    problems.add(node.where, fmt::format("gradients are clipped to a norm above 0, not {}", *norm));
}

/// A policy, or `{default: policy, keep: patterns, recompute: patterns}`.
void read_store(const YamlNode& node, ProblemList& problems, StorageOptions& options) {
  if (node.kind != YamlNode::Kind::map) {
    read_choice(node, problems, kPolicies, options.policy);
    return;
  }
  YamlMap map(node, problems);
  if (const YamlNode* policy = map.find("default"))
    read_choice(*policy, problems, kPolicies, options.policy);
  if (const YamlNode* keep = map.find("keep"))
    options.keep = as_strings(*keep, problems, true);
  if (const YamlNode* recompute = map.find("recompute")) {
    options.recompute = as_strings(*recompute, problems, true);
    if (options.policy == StorePolicy::pytorch_eager)
      problems.add(recompute->where, "PyTorch computes nothing again; 'default' has to be minimal");
  }
  map.finish();
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
      problems.add(item.where, "'tensor' is missing: the pattern of what no gradient passes");
    if (const YamlNode* before = map.find("before"); before && !detach.empty())
      detach.back().before = as_string(*before, problems).value_or("");
    map.finish();
  }
}

void read_micro_batches(const YamlNode& node, ProblemList& problems, std::int64_t& count) {
  constexpr std::int64_t kMost = 4096; // every micro-batch is spelled out in the graph
  count = as_integer(node, problems).value_or(1);
  if (count < 1 || count > kMost) {
    problems.add(node.where, fmt::format("{} micro-batches, outside [1, {}]", count, kMost));
  }
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

TrainingOptions read_training_options(const YamlNode& node, ProblemList& problems) {
  TrainingOptions options;
  if (node.kind == YamlNode::Kind::null)
    return options;
  YamlMap map(node, problems);
  const auto key = [&](std::string_view name, auto read, auto& target) {
    if (const YamlNode* at = map.find(name))
      read(*at, problems, target);
  };
  const auto choice = [&](std::string_view name, const auto& choices, auto& target) {
    if (const YamlNode* at = map.find(name))
      read_choice(*at, problems, choices, target);
  };
  key("loss", read_loss, options.loss);
  key("detach", read_detach, options.detach);
  key("optimizer", read_optimizer, options.update);
  choice("update", kUpdates, options.update.fused);
  key("clip_global_norm", read_clipping, options.update.clip_global_norm);
  key("precision", read_precision, options.precision);
  key("store", read_store, options.storage);
  choice("attention", kAttention, options.attention);
  key("trainable", read_trainable, options.trainable);
  key("loss_scale", read_loss_scale, options.update.loss_scale);
  choice("batch_norm", kBatchNorms, options.frozen_batch_norm);
  key("micro_batches", read_micro_batches, options.micro_batches);
  map.finish();
  return options;
}

} // namespace monet
