// Which parameters are trained, and how: `trainable:`, `loss_scale:`.
#include "training_graph/options/reader.hpp"

#include <fmt/core.h>

#include <array>

namespace monet {

namespace {

void read_layers(const YamlNode& node, ProblemList& problems, std::optional<LayerRange>& layers) {
  LayerRange& range = layers.emplace();
  YamlMap map(node, problems);
  range.from = map.integer_or("from", range.from);
  range.to = map.integer_or("to", range.to);
  map.finish();
}

void read_lora(const YamlNode& node, ProblemList& problems, std::optional<LoraOptions>& options) {
  LoraOptions& lora = options.emplace();
  YamlMap map(node, problems);
  lora.rank = map.integer_or("rank", lora.rank);
  lora.alpha = map.number_or("alpha", lora.alpha);
  read_key(map, problems, "targets", read_patterns, lora.targets);
  if (lora.rank < 1 || lora.rank > 65536)
    problems.add(node.where, fmt::format("'rank' is {}, outside [1, 65536]", lora.rank));
  check_range(map, problems, "alpha", lora.alpha, 1e-12, 1e12);
  map.finish();
}

void read_sparse(const YamlNode& node, ProblemList& problems,
                 std::optional<SparseOptions>& options) {
  SparseOptions& sparse = options.emplace();
  YamlMap map(node, problems);
  sparse.biases = map.boolean_or("biases", sparse.biases);
  const YamlNode* channels = map.find("channels");
  if (channels && channels->kind != YamlNode::Kind::map)
    problems.add(channels->where, "'channels' has a share of channels for each pattern");
  if (channels) {
    for (const YamlNode::Entry& entry : channels->entries) {
      const double share = as_number(entry.value, problems).value_or(1.0);
      if (!(share > 0.0) || share > 1.0) {
        problems.add(entry.value.where,
                     fmt::format("a share of channels is in (0, 1], not {}", share));
      }
      sparse.channels.push_back({entry.key, share});
    }
  }
  map.finish();
}

/// all, none, auto, or patterns.
void read_ties(const YamlNode& node, ProblemList& problems,
               std::optional<std::vector<std::string>>& ties) {
  if (node.kind == YamlNode::Kind::scalar && node.scalar == "auto")
    return;
  ties.emplace();
  if (node.kind == YamlNode::Kind::scalar && node.scalar == "all")
    ties->push_back("*");
  else if (node.kind != YamlNode::Kind::scalar || node.scalar != "none")
    read_patterns(node, problems, *ties);
}

} // namespace

void read_trainable(const YamlNode& node, ProblemList& problems, TrainableOptions& options) {
  if (node.kind == YamlNode::Kind::scalar) {
    if (node.scalar != "all") {
      problems.add(node.where, fmt::format("'{}' is not known here", node.scalar),
                   "all, or a map with: train, freeze, parameters, buffers, ties, train_last, "
                   "layers, lora, sparse");
    }
    return;
  }
  YamlMap map(node, problems);
  read_key(map, problems, "train", read_patterns, options.train);
  read_key(map, problems, "freeze", read_patterns, options.freeze);
  read_key(map, problems, "parameters", read_patterns, options.parameters);
  read_key(map, problems, "buffers", read_patterns, options.buffers);
  read_key(map, problems, "ties", read_ties, options.ties);
  read_key(map, problems, "layers", read_layers, options.layers);
  if (const YamlNode* last = map.find("train_last")) {
    const std::int64_t count = as_integer(*last, problems).value_or(1);
    if (count < 1)
      problems.add(last->where, fmt::format("the last {} layers cannot be trained", count));
    if (options.layers)
      problems.add(last->where, "'layers' and 'train_last' mean the same; give one of them");
    options.layers = LayerRange{-count, -1};
  }
  read_key(map, problems, "lora", read_lora, options.lora);
  read_key(map, problems, "sparse", read_sparse, options.sparse);
  if (options.lora && options.sparse)
    problems.add(node.where, "adapters and a sparse update exclude each other; give one of them");
  map.finish();
}

void read_loss_scale(const YamlNode& node, ProblemList& problems,
                     std::optional<LossScaleOptions>& result) {
  if (node.kind == YamlNode::Kind::null || node.scalar == "none")
    return;
  LossScaleOptions& scale = result.emplace();
  if (node.kind == YamlNode::Kind::scalar && node.scalar == "dynamic")
    return;
  if (node.kind == YamlNode::Kind::scalar) { // loss_scale: 1024
    scale.dynamic = false;
    scale.initial = as_number(node, problems).value_or(1.0);
    if (!(scale.initial > 0.0))
      problems.add(node.where, fmt::format("a loss scale is above 0, not {}", scale.initial));
    return;
  }
  constexpr std::array kModes{Choice<bool>{"dynamic", true}, Choice<bool>{"static", false}};
  YamlMap map(node, problems);
  read_choice(map, problems, "mode", kModes, scale.dynamic);
  scale.initial = map.number_or("initial", scale.initial);
  scale.growth_interval = map.integer_or("growth_interval", scale.growth_interval);
  scale.factor = map.number_or("factor", scale.factor);
  scale.backoff = map.number_or("backoff", scale.backoff);
  check_range(map, problems, "initial", scale.initial, 1e-30, 1e30);
  check_range(map, problems, "growth_interval", static_cast<double>(scale.growth_interval), 1.0,
              16777216.0);
  check_range(map, problems, "factor", scale.factor, 1.0, 1e6);
  check_range(map, problems, "backoff", scale.backoff, 1e-6, 1.0);
  map.finish();
}

} // namespace monet
