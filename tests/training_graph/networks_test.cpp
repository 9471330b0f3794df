// The reference networks as training steps, against closed forms.
#include "training_graph/tiny_network.hpp"

#include "monet/training_graph/training.hpp"
#include "monet/workload/onnx_reader.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace monet {
namespace MONET_TEST_FILE {

Graph read(const std::string& name, std::int64_t batch) {
  OnnxReadOptions options;
  options.batch = batch;
  return read_onnx(std::string(MONET_SOURCE_DIR "/data/workload/") + name + ".onnx", options);
}

TrainingGraph step_of(const std::string& name, std::int64_t batch,
                      StorePolicy store = StorePolicy::minimal) {
  TrainingOptions options;
  options.storage.policy = store;
  TrainingGraph step = make_training_graph(read(name, batch), options);
  verify(step);
  return step;
}

std::int64_t stored_bytes(const TrainingGraph& step) {
  std::int64_t bytes = 0;
  for (const TensorId id : step.stored_activations)
    bytes += bytes_of(size_of(step.graph.tensor(id)));
  return bytes;
}

std::int64_t trained_elements(const TrainingGraph& step) {
  std::set<TensorId> weights;
  std::int64_t elements = 0;
  for (const ParameterRecord& record : step.parameters) {
    EXPECT_TRUE(weights.insert(record.weight).second);
    elements += element_count(step.graph.tensor(record.weight));
  }
  return elements;
}

/// ResNet-18: stem, then four stages of two blocks with 64, 128, 256, 512 channels; the first block
/// of stages 2 to 4 halves the size and has a 1x1 shortcut. `stem` and `size` describe the image
/// side.
struct ResNet18 {
  std::int64_t stem_macs = 0;
  std::int64_t macs = 0;         ///< per image
  std::int64_t conv_inputs = 0;  ///< elements of distinct convolution inputs, without the image
  std::int64_t conv_outputs = 0; ///< elements of all convolution outputs = inputs of batch-norms
  std::int64_t relu_outputs = 0; ///< elements
  std::int64_t channels = 0;     ///< over all batch-norms
};

ResNet18 resnet18(std::int64_t stem_kernel, std::int64_t stem_size, std::int64_t size,
                  std::int64_t classes) {
  ResNet18 net;
  const auto conv = [&](std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t side) {
    net.macs += in * out * kernel * kernel * side * side;
    net.conv_outputs += out * side * side;
    net.channels += out;
  };
  conv(3, 64, stem_kernel, stem_size);
  net.stem_macs = net.macs;
  net.relu_outputs = 64 * stem_size * stem_size;
  std::int64_t in = 64;
  for (const std::int64_t out : {64, 128, 256, 512}) {
    if (out != 64) {
      size /= 2;
      conv(in, out, 1, size);
    }
    conv(in, out, 3, size);
    for (int i = 0; i < 3; ++i)
      conv(out, out, 3, size);
    net.relu_outputs += 4 * out * size * size;
    in = out;
  }
  net.macs += 512 * classes;
  return net;
}

TEST(Networks, ResNet18CifarMacsAndParameters) {
  const ResNet18 net = resnet18(3, 32, 32, 10);
  const TrainingGraph step = step_of("resnet18_cifar", 4);
  const MacSplit macs = count_macs(step.graph);
  EXPECT_EQ(macs.forward, 4 * net.macs);
  EXPECT_EQ(macs.forward, 2'221'690'880); // 2.222 GMAC
  EXPECT_EQ(macs.backward_input, 4 * (net.macs - net.stem_macs));
  EXPECT_EQ(macs.backward_weight, 4 * net.macs);
  EXPECT_EQ(trained_elements(step), 11'173'962);
  EXPECT_EQ(parameter_count(step.graph), 11'173'962);
  EXPECT_EQ(step.parameters.size(),
            62U); // 20 convolutions, 20 x 2 of batch-norms, weight and bias of the classifier
  EXPECT_EQ(count_ops(step.graph, "AdamUpdate", Phase::update), 62);
}

TEST(Networks, ResNet18OperatorCounts) {
  const TrainingGraph step = step_of("resnet18", 1);
  const auto count = [&](std::string_view type) {
    return count_ops(step.graph, type, Phase::backward);
  };
  EXPECT_EQ(count("ConvGradWeight"), 20);
  EXPECT_EQ(count("ConvGradInput"), 19);
  EXPECT_EQ(count("BatchNormGrad"), 20);
  EXPECT_EQ(count("ReluGrad"), 15);
  EXPECT_EQ(count("MaskGrad"), 2); // before max-pooling and before the average
  EXPECT_EQ(count("MaxPoolGrad"), 1);
  EXPECT_EQ(count("Add"), 8); // one for every residual block, as autograd
}

/// PyTorch 1.13's saved tensors, parameters excluded, measured: 22,260,652 B (ImageNet, batch 1)
/// and 18,877,636 B (CIFAR-10, batch 4). In elements of 4 bytes: batch-norm inputs, ReLU outputs
/// (every convolution's input is one, or the image, or the max-pool's output), the pooled features,
/// log-probabilities; per batch-norm channel mean and inverse deviation and both running
/// statistics; the pool's int64 indices; int64 labels; one scalar.
std::int64_t pytorch_bytes(const ResNet18& net, std::int64_t batch, std::int64_t image,
                           std::int64_t pooled, std::int64_t classes) {
  const std::int64_t floats = net.conv_outputs + net.relu_outputs + image + pooled + 512 + classes;
  return batch * (4 * floats + 8 * pooled + 8) + 4 * 4 * net.channels + 4;
}

TEST(Networks, ResNet18StoresWhatPyTorchKeepsToTheByte) {
  const ResNet18 imagenet = resnet18(7, 112, 56, 1000);
  EXPECT_EQ(imagenet.channels, 4800);
  EXPECT_EQ(pytorch_bytes(imagenet, 1, 3 * 224 * 224, 64 * 56 * 56, 1000), 22'260'652);
  EXPECT_EQ(stored_bytes(step_of("resnet18", 1, StorePolicy::pytorch_eager)), 22'260'652);
  const ResNet18 cifar = resnet18(3, 32, 32, 10);
  EXPECT_EQ(pytorch_bytes(cifar, 4, 3 * 32 * 32, 0, 10), 18'877'636);
  EXPECT_EQ(stored_bytes(step_of("resnet18_cifar", 4, StorePolicy::pytorch_eager)), 18'877'636);
  // Folding views moves no byte between owners: pooled features are stored once, flattened or not.
  EXPECT_EQ(stored_bytes(fold_views(step_of("resnet18", 1, StorePolicy::pytorch_eager))),
            22'260'652);
  // Ours need neither the running statistics (2 x 4 B per channel) nor the scalar; a mask instead
  // of the ReLU outputs before pooling; a byte for a place in the pool's window.
  EXPECT_EQ(stored_bytes(step_of("resnet18", 1)),
            22'260'652 - 8 * 4800 - 4 - 31 * (64 * 112 * 112 + 512 * 7 * 7) / 8 - 7 * 64 * 56 * 56);
  EXPECT_EQ(stored_bytes(step_of("resnet18_cifar", 4)),
            18'877'636 - 8 * 4800 - 4 - 31 * 4 * 512 * 4 * 4 / 8);
}

struct Transformer {
  std::int64_t layers, width, tokens, vocabulary;
};

/// Per token and layer: QKV 3w^2, projection w^2, MLP 8w^2; attention 2tw; the head Vw.
std::int64_t weight_macs(const Transformer& t) {
  return t.tokens * (t.layers * 12 * t.width * t.width + t.vocabulary * t.width);
}
std::int64_t attention_macs(const Transformer& t) {
  return t.layers * 2 * t.tokens * t.tokens * t.width;
}
/// Embeddings (the head is the token embedding), 12w^2 + 13w a layer, the last normalisation.
std::int64_t parameters(const Transformer& t) {
  return t.vocabulary * t.width + t.tokens * t.width +
         t.layers * (12 * t.width * t.width + 13 * t.width) + 2 * t.width;
}

void check_transformer(const std::string& name, const Transformer& t) {
  const TrainingGraph step = step_of(name, 1);
  const MacSplit macs = count_macs(step.graph);
  EXPECT_EQ(macs.forward, weight_macs(t) + attention_macs(t));
  EXPECT_EQ(macs.backward_weight, weight_macs(t));
  EXPECT_EQ(macs.backward_input,
            weight_macs(t) + 2 * attention_macs(t)); // the embedding is below every product
  EXPECT_EQ(parameter_count(step.graph), parameters(t));
  EXPECT_EQ(trained_elements(step), parameters(t));
  EXPECT_EQ(count_ops(step.graph, "GatherGrad", Phase::backward), 2); // tokens and positions
}

TEST(Networks, Gpt2) {
  constexpr Transformer kGpt2{12, 768, 1024, 50257};
  EXPECT_EQ(parameters(kGpt2), 124'439'808);
  check_transformer("gpt2", kGpt2);
}

TEST(Networks, Gpt2Nano) {
  check_transformer("gpt2_nano", {2, 64, 64, 256});
}

class EveryNetwork : public testing::TestWithParam<std::string> {};

TEST_P(EveryNetwork, BecomesAStepWithEveryParameterUpdatedOnce) {
  const Graph network = read(GetParam(), 2);
  const TrainingGraph step = step_of(GetParam(), 2);
  EXPECT_EQ(trained_elements(step), parameter_count(network));
  const MacSplit macs = count_macs(step.graph);
  EXPECT_EQ(macs.forward, count_macs(network).forward);
  EXPECT_LE(macs.backward_weight, macs.forward);
  EXPECT_GT(macs.backward_weight + macs.backward_input, macs.forward);
  const TrainingGraph inference = make_inference_graph(network);
  verify(inference);
  EXPECT_EQ(count_macs(inference.graph).forward, macs.forward);
}

TEST_P(EveryNetwork, KeepsItsRecordsWhenViewsAreFolded) {
  const TrainingGraph step = step_of(GetParam(), 1, StorePolicy::pytorch_eager);
  const TrainingGraph folded = fold_views(step);
  verify(folded);
  const MacSplit before = count_macs(step.graph);
  const MacSplit after = count_macs(folded.graph);
  EXPECT_EQ(before.forward, after.forward);
  EXPECT_EQ(before.backward_input, after.backward_input);
  EXPECT_EQ(before.backward_weight, after.backward_weight);
  EXPECT_EQ(trained_elements(folded), trained_elements(step));
  for (const Operator& op : folded.graph.operators())
    EXPECT_FALSE(find_row(op.domain, op.op_type)->view) << op.name;
  for (const ParameterRecord& record : folded.parameters) {
    EXPECT_EQ(element_count(folded.graph.tensor(record.gradient)),
              element_count(folded.graph.tensor(record.weight)));
  }
  for (const TensorId id : folded.stored_activations)
    EXPECT_TRUE(!folded.graph.tensor(id).consumers.empty() || folded.graph.tensor(id).producer);
}

INSTANTIATE_TEST_SUITE_P(Networks, EveryNetwork,
                         testing::Values("resnet18", "resnet18_cifar", "mobilenet_v2", "vgg16",
                                         "vit_tiny", "gpt2", "gpt2_nano"),
                         [](const auto& param) { return param.param; });

} // namespace MONET_TEST_FILE
} // namespace monet
