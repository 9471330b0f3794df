#include "cluster/networks.hpp"

#include "workload/shared/operators.hpp"

#include "monet/workload/onnx_reader.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace monet::test {

std::int64_t pick(Random& random, std::initializer_list<std::int64_t> from) {
  const auto at = static_cast<std::ptrdiff_t>(random() % from.size());
  return *(from.begin() + at);
}

Graph read_network(const std::string& name, std::int64_t batch) {
  OnnxReadOptions read;
  read.batch = batch;
  return read_onnx(MONET_SOURCE_DIR "/data/workload/" + name, read);
}

/// x [B, 24] -> three products with biases and activations -> 8 classes.
Graph small_mlp(std::int64_t batch, bool linear) {
  Graph graph;
  graph.name = "mlp";
  TensorId x = graph.add_tensor({.name = "x", .shape = {batch, 24}, .kind = TensorKind::input});
  graph.inputs = {x};
  const std::vector<std::int64_t> widths{24, 48, 16, 8};
  const auto append = [&](const std::string& type, const std::string& name,
                          std::vector<std::optional<TensorId>> inputs, std::int64_t width) {
    const TensorId made = graph.add_tensor({.name = name, .shape = {batch, width}});
    build_nest(graph, graph.add_operator({.name = name + ".op",
                                          .op_type = type,
                                          .inputs = std::move(inputs),
                                          .outputs = {made}}));
    return made;
  };
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    const std::string layer = fmt::format("{}", i);
    const TensorId weight = graph.add_tensor(
        {.name = "w" + layer, .shape = {widths[i], widths[i + 1]}, .kind = TensorKind::parameter});
    x = append("MatMul", "y" + layer, {x, weight}, widths[i + 1]);
    if (linear)
      continue;
    const TensorId bias = graph.add_tensor(
        {.name = "b" + layer, .shape = {widths[i + 1]}, .kind = TensorKind::parameter});
    x = append("Add", "z" + layer, {x, bias}, widths[i + 1]);
    if (i + 2 < widths.size())
      x = append("Gelu", "a" + layer, {x}, widths[i + 1]);
  }
  graph.outputs = {x};
  return graph;
}

TrainingOptions some_options(Random& random) {
  TrainingOptions options;
  CrossEntropy loss;
  if (random() % 4 == 0)
    loss.label_smoothing = 0.1;
  if (random() % 4 == 0)
    loss.ignore_index = 3;
  options.loss = loss;
  switch (random() % 5) {
  case 0:
    options.update.optimizer = Sgd{.learning_rate = 0.1};
    break;
  case 1:
    options.update.optimizer = Sgd{.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.01};
    break;
  case 2:
    options.update.optimizer = Adam{.epsilon = 1e-4};
    break;
  case 3:
    options.update.optimizer = AdamW{.epsilon = 1e-4};
    break;
  default:
    options.update.optimizer = Lamb{.epsilon = 1e-4};
  }
  if (random() % 3 == 0)
    options.update.clip_global_norm = 0.5;
  if (random() % 4 == 0)
    options.update.loss_scale = LossScaleOptions{.initial = 8.0};
  options.micro_batches = pick(random, {1, 1, 2});
  if (random() % 3 == 0)
    options.attention = AttentionForm::fused;
  if (random() % 3 == 0) { // products cast their weights
    options.precision.weights = ElementType::fp32;
    options.precision.activations = ElementType::bf16;
  }
  return options;
}

TransformerShape some_transformer(Random& random, std::int64_t batch) {
  using Shape = TransformerShape;
  Shape shape{.layers = 2, .hidden = 16, .heads = 4, .ffn = 24, .sequence = 8, .vocabulary = 30};
  shape.batch = batch;
  if (random() % 2 == 0)
    shape.kv_heads = 2;
  shape.norm = random() % 2 == 0 ? Shape::Norm::layer : Shape::Norm::rms;
  constexpr std::array kActivations{Shape::Activation::gelu, Shape::Activation::relu,
                                    Shape::Activation::swiglu};
  shape.activation = kActivations.at(random() % kActivations.size());
  if (random() % 4 == 0)
    shape.positions = Shape::Positions::none;
  shape.biases = random() % 2 == 0;
  shape.tied = random() % 2 == 0;
  shape.vocabulary_multiple = 4;
  return shape;
}

TransformerShape some_mixture(Random& random, std::int64_t batch) {
  TransformerShape shape = some_transformer(random, batch);
  shape.experts = 4;
  shape.topk = pick(random, {1, 2});
  shape.capacity_factor = random() % 2 == 0 ? 1.25 : 0.5;
  shape.expert_every = pick(random, {1, 2});
  return shape;
}

std::vector<std::string> some_recomputation(Random& random) {
  switch (random() % 4) {
  case 0:
    return {"*.scaled", "*.masked", "*.probabilities"};
  case 1:
    return {"h.0.*"};
  case 2:
    return {"h.*"};
  default:
    return {};
  }
}

std::vector<MeshAxis> some_mesh(Random& random, const Sizes& sizes) {
  std::int64_t ranks = sizes.ranks;
  std::int64_t samples = sizes.samples;
  const auto size = [&](std::initializer_list<std::int64_t> from, std::int64_t most) {
    const std::int64_t drawn = std::min({pick(random, from), most, sizes.most, ranks});
    ranks /= drawn;
    return drawn;
  };
  const std::int64_t tensor = size({1, 2, 4}, sizes.most);
  const std::int64_t expert = sizes.experts ? size({1, 2, 2, 4}, samples) : 1;
  samples /= expert;
  const std::int64_t data = size({1, 2, 4}, samples);
  const std::int64_t context = sizes.tokens ? size({1, 1, 2}, 2) : 1;
  const int zero = static_cast<int>(random() % 4);
  std::vector<MeshAxis> mesh{{.name = "data", .size = data, .inputs = 0, .zero = zero}};
  if (sizes.experts)
    mesh.push_back({.name = "expert", .size = expert, .inputs = 0, .experts = true, .zero = zero});
  mesh.push_back({.name = "context", .size = context, .inputs = 1, .zero = zero});
  MeshAxis last{.name = "tensor", .size = tensor, .weights = true};
  if (sizes.tokens && random() % 2 == 0) {
    last.inputs = 1;
    last.between = true;
  }
  mesh.push_back(last);
  return mesh;
}

std::string words(const std::vector<MeshAxis>& mesh) {
  std::string text;
  for (const MeshAxis& axis : mesh)
    text +=
        fmt::format("{}={} zero={} between={}; ", axis.name, axis.size, axis.zero, axis.between);
  return text;
}

PipelineCase some_pipeline(Random& random) {
  constexpr std::array<PipelineCase, 7> kCases{{
      {PipelineKind::gpipe, 2, 1},
      {PipelineKind::one_f_one_b, 2, 1},
      {PipelineKind::one_f_one_b, 4, 1},
      {PipelineKind::interleaved, 2, 2},
      {PipelineKind::zero_bubble_h1, 2, 1},
      {PipelineKind::zero_bubble_h2, 4, 1},
      {PipelineKind::zero_bubble_v, 2, 2},
  }};
  return kCases.at(random() % kCases.size());
}

std::string words(const PipelineCase& pipeline) {
  return fmt::format("{} of {} stages with {} chunks", name_of(pipeline.kind), pipeline.stages,
                     pipeline.chunks);
}

} // namespace monet::test
