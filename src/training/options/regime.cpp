// Which parameters are trained, and how: `trainable:`, `loss_scale:`.
#include "training/options/reader.hpp"

#include <fmt/core.h>

#include <array>

namespace monet {

namespace {

LayerRange read_layers(const YamlNode& node, ProblemList& problems) {
  LayerRange range;
  YamlMap map(node, problems);
  range.from = map.integer_or("from", range.from);
  range.to = map.integer_or("to", range.to);
  map.finish();
  return range;
}

LoraOptions read_lora(const YamlNode& node, ProblemList& problems) {
  LoraOptions lora;
  YamlMap map(node, problems);
  lora.rank = map.integer_or("rank", lora.rank);
  lora.alpha = map.number_or("alpha", lora.alpha);
  if (const YamlNode* targets = map.find("targets"))
    lora.targets = as_strings(*targets, problems, true);
  if (lora.rank < 1 || lora.rank > 65536)
    problems.add(node.where, fmt::format("'rank' is {}, outside [1, 65536]", lora.rank));
  check_range(map, problems, "alpha", lora.alpha, 1e-12, 1e12);
  map.finish();
  return lora;
}

SparseOptions read_sparse(const YamlNode& node, ProblemList& problems) {
  SparseOptions sparse;
  YamlMap map(node, problems);
  sparse.biases = map.boolean_or("biases", sparse.biases);
  const YamlNode* channels = map.find("channels");
  if (channels && channels->kind != YamlNode::Kind::map)
    problems.add(channels->where, "'channels' gives a share of channels for each pattern");
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
  return sparse;
}

} // namespace

void read_trainable(const YamlNode& node, ProblemList& problems, TrainableOptions& options) {
  if (node.kind == YamlNode::Kind::scalar) {
    if (node.scalar != "all") {
      problems.add(node.where, fmt::format("'{}' is not known here", node.scalar),
                   "all, or a map with: train, freeze, parameters, buffers, train_last, layers, "
                   "lora, sparse");
    }
    return;
  }
  YamlMap map(node, problems);
  if (const YamlNode* train = map.find("train"))
    options.train = as_strings(*train, problems, true);
  if (const YamlNode* freeze = map.find("freeze"))
    options.freeze = as_strings(*freeze, problems, true);
  if (const YamlNode* parameters = map.find("parameters"))
    options.parameters = as_strings(*parameters, problems, true);
  if (const YamlNode* buffers = map.find("buffers"))
    options.buffers = as_strings(*buffers, problems, true);
  if (const YamlNode* layers = map.find("layers"))
    options.layers = read_layers(*layers, problems);
  if (const YamlNode* last = map.find("train_last")) {
    const std::int64_t count = as_integer(*last, problems).value_or(1);
    if (count < 1)
      problems.add(last->where, fmt::format("the last {} layers cannot be trained", count));
    if (options.layers)
      problems.add(last->where, "'layers' and 'train_last' say the same thing; give one of them");
    options.layers = LayerRange{-count, -1};
  }
  if (const YamlNode* lora = map.find("lora"))
    options.lora = read_lora(*lora, problems);
  if (const YamlNode* sparse = map.find("sparse"))
    options.sparse = read_sparse(*sparse, problems);
  if (options.lora && options.sparse)
    problems.add(node.where,
                 "adapters and a sparse update are two ways to train; give one of them");
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
  if (const YamlNode* mode = map.find("mode"))
    read_choice(*mode, problems, kModes, scale.dynamic);
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
