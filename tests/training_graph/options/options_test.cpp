#include "training_graph/read_options.hpp"

#include "monet/base/yaml.hpp"
#include "monet/training_graph/training.hpp"

#include <gtest/gtest.h>

#include <filesystem>

namespace monet {
namespace {

std::string message(std::string_view text) {
  try {
    read_options(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(TrainingOptionsFile, EveryKeyHasADefault) {
  const TrainingOptions options = read_options("{}");
  EXPECT_TRUE(std::holds_alternative<CrossEntropy>(options.loss));
  EXPECT_TRUE(std::holds_alternative<Adam>(options.update.optimizer));
  EXPECT_EQ(options.storage.policy, StorePolicy::minimal);
  EXPECT_FALSE(options.precision.weights.has_value()); // as the file has them
  EXPECT_FALSE(options.precision.master_weights.has_value());
}

TEST(TrainingOptionsFile, ReadsEveryKey) {
  const TrainingOptions options = read_options(R"(
loss: mse
optimizer: {type: adamw, learning_rate: 2.0e-4, betas: [0.8, 0.95], epsilon: 1.0e-6, weight_decay: 0.1, fused: true}
precision: {weights: bf16, master_weights: fp32, activations: bf16, gradients: fp16, optimizer_state: fp64, accumulate: fp32}
store: pytorch-eager
micro_batches: 1
trainable: {freeze: ["conv1.*", fc.bias]}
)");
  EXPECT_TRUE(std::holds_alternative<Mse>(options.loss));
  const auto& adamw = std::get<AdamW>(options.update.optimizer);
  EXPECT_EQ(adamw.learning_rate, 2e-4);
  EXPECT_EQ(adamw.beta1, 0.8);
  EXPECT_EQ(adamw.beta2, 0.95);
  EXPECT_EQ(adamw.epsilon, 1e-6);
  EXPECT_EQ(adamw.weight_decay, 0.1);
  EXPECT_EQ(options.precision.weights, ElementType::bf16);
  EXPECT_EQ(options.precision.master_weights, ElementType::fp32);
  EXPECT_EQ(options.precision.gradients, ElementType::fp16);
  EXPECT_EQ(options.precision.optimizer_state, ElementType::fp64);
  EXPECT_EQ(options.storage.policy, StorePolicy::pytorch_eager);
  EXPECT_EQ(options.trainable.freeze, (std::vector<std::string>{"conv1.*", "fc.bias"}));
}

TEST(TrainingOptionsFile, LossesHaveSettings) {
  const TrainingOptions plain = read_options("loss: {type: mse}");
  EXPECT_TRUE(std::holds_alternative<Mse>(plain.loss));
  const auto classes = std::get<CrossEntropy>(
      read_options("loss: {label_smoothing: 0.1, ignore_index: -100, class_axis: -1}").loss);
  EXPECT_EQ(classes.label_smoothing, 0.1);
  EXPECT_EQ(classes.ignore_index, -100);
  EXPECT_EQ(classes.class_axis, -1);
  const auto weights = [](const std::string& text) {
    return std::get<BceWithLogits>(
               read_options("loss: {type: bce_with_logits, pos_weight: " + text + "}").loss)
        .pos_weight;
  };
  EXPECT_EQ(weights("2"), std::vector<double>{2.0});
  EXPECT_EQ(weights("[1, 0.5]"), (std::vector<double>{1.0, 0.5}));
  EXPECT_NE(message("loss: {label_smoothing: 1.5}").find("outside [0, 1]"), std::string::npos);
  EXPECT_NE(message("loss: {type: mse, ignore_index: 0}").find("a setting of cross_entropy"),
            std::string::npos);
  EXPECT_NE(message("loss: {type: bce_with_logits, pos_weight: [-1]}").find("below 0"),
            std::string::npos);
  EXPECT_NE(message("loss: {type: hinge}").find("'hinge' is not known here"), std::string::npos);
}

TEST(TrainingOptionsFile, LossesOfElementsHaveThresholdsAndReductions) {
  const auto elements = [](const std::string& text) {
    return std::get<ElementwiseLoss>(read_options("loss: " + text).loss);
  };
  EXPECT_EQ(elements("l1").kind, ElementwiseLoss::Kind::l1);
  EXPECT_EQ(elements("{type: huber, delta: 0.5}").threshold, 0.5);
  EXPECT_EQ(elements("{type: smooth_l1, beta: 0}").threshold, 0.0);
  EXPECT_EQ(elements("{type: kl_div, log_target: true}").kind,
            ElementwiseLoss::Kind::kl_div_of_logs);
  EXPECT_EQ(elements("{type: kl_div, reduction: batchmean}").reduction, Reduction::batch_mean);
  const auto nll = std::get<CrossEntropy>(
      read_options("loss: {type: nll, weight: [1, 2, 0.5], reduction: sum}").loss);
  EXPECT_TRUE(nll.of_log_probabilities);
  EXPECT_EQ(nll.weight, (std::vector<double>{1.0, 2.0, 0.5}));
  EXPECT_EQ(nll.reduction, Reduction::sum);
  EXPECT_NE(message("loss: {type: huber, delta: 0}").find("'delta' is 0, not above 0"),
            std::string::npos);
  EXPECT_NE(message("loss: {type: mse, beta: 1}").find("a setting of smooth_l1"),
            std::string::npos);
  EXPECT_NE(message("loss: {type: nll, label_smoothing: 0.1}").find("a setting of cross_entropy"),
            std::string::npos);
  EXPECT_NE(message("loss: {reduction: batchmean}").find("a mean over labels, or a sum"),
            std::string::npos);
  EXPECT_NE(message("loss: {type: none, reduction: sum}").find("computed from an output"),
            std::string::npos);
}

TEST(TrainingOptionsFile, SequencesHaveABlankAndALength) {
  const auto ctc = std::get<Ctc>(
      read_options(
          "loss: {type: ctc, target_length: 7, blank: 3, zero_infinity: true, reduction: sum}")
          .loss);
  EXPECT_EQ(ctc.target_length, 7);
  EXPECT_EQ(ctc.blank, 3);
  EXPECT_TRUE(ctc.zero_infinity);
  EXPECT_EQ(ctc.reduction, Reduction::sum);
  EXPECT_NE(message("loss: {type: ctc}").find("'target_length' is missing"), std::string::npos);
  EXPECT_NE(message("loss: {blank: 1}").find("a setting of ctc"), std::string::npos);
}

TEST(TrainingOptionsFile, SeveralLossesAreAddedUp) {
  const auto sum = std::get<LossSum>(
      read_options("loss: [{type: nll, output: class}, {type: l1, output: box, scale: 0.5}, mse]")
          .loss);
  ASSERT_EQ(sum.terms.size(), 3U);
  EXPECT_EQ(sum.terms[0].output, "class");
  EXPECT_EQ(sum.terms[1].weight, 0.5);
  EXPECT_TRUE(std::holds_alternative<Mse>(sum.terms[2].loss));
  EXPECT_EQ(sum.terms[2].output, "");
  EXPECT_NE(message("loss: [network]").find("not a loss of one output"), std::string::npos);
  EXPECT_NE(message("loss: []").find("a list of them"), std::string::npos);
}

TEST(TrainingOptionsFile, DetachTakesPatternsOfTensorsAndOfTheirReaders) {
  const TrainingOptions options =
      read_options("detach: [teacher.*, {tensor: h, before: /cell_2/*}]");
  ASSERT_EQ(options.detach.size(), 2U);
  EXPECT_EQ(options.detach[0].tensor, "teacher.*");
  EXPECT_EQ(options.detach[1].before, "/cell_2/*");
  EXPECT_EQ(read_options("detach: h").detach.at(0).tensor, "h");
  EXPECT_NE(message("detach: [{before: x}]").find("'tensor' is missing"), std::string::npos);
}

TEST(TrainingOptionsFile, OffloadTakesAllOrPatterns) {
  const auto patterns = [](const char* text) { return read_options(text).storage.offload; };
  EXPECT_TRUE(patterns("offload:").empty());
  EXPECT_EQ(patterns("offload: all"), std::vector<std::string>{"*"});
  EXPECT_EQ(patterns("offload: h"), std::vector<std::string>{"h"});
  EXPECT_EQ(patterns("offload: [h, layer1.*]"), (std::vector<std::string>{"h", "layer1.*"}));
  EXPECT_NE(message("offload: {keep: h}").find(":1:10: expected a list"), std::string::npos);
  EXPECT_NE(message("offload: [[h]]").find(":1:11: "), std::string::npos);
}

TEST(TrainingOptionsFile, GroupsInheritWhatTheyDoNotChange) {
  const TrainingOptions options = read_options(R"(
optimizer:
  type: adamw
  learning_rate: 0.5
  weight_decay: 0.1
  groups: [{match: ["head.*"], learning_rate: 0.25}, {match: emb, type: sgd, momentum: 0.9}]
  no_decay: norms_and_biases
clip_global_norm: 1.0
update: unfused
)");
  ASSERT_EQ(options.update.groups.size(), 3U);
  const auto& head = std::get<AdamW>(options.update.groups[0].optimizer);
  EXPECT_EQ(head.learning_rate, 0.25);
  EXPECT_EQ(head.weight_decay, 0.1);
  const auto& embedding = std::get<Sgd>(options.update.groups[1].optimizer);
  EXPECT_EQ(embedding.learning_rate, 0.5);
  EXPECT_EQ(embedding.momentum, 0.9);
  EXPECT_TRUE(options.update.groups[2].norms_and_biases);
  EXPECT_EQ(std::get<AdamW>(options.update.groups[2].optimizer).weight_decay, 0.0);
  EXPECT_EQ(options.update.clip_global_norm, 1.0);
  EXPECT_FALSE(options.update.fused);
  EXPECT_FALSE(read_options("optimizer: {type: sgd, fused: false}").update.fused);
}

TEST(TrainingOptionsFile, RolesTakeScaledAndBlockFormats) {
  const Precision precision =
      read_options("precision: {weights: mxfp4_e2m1, activations: int8, gradients: fp8_e5m2, "
                   "accumulate: int32, frozen_weights: mxint8}")
          .precision;
  EXPECT_EQ(precision.weights, ElementType::mxfp4_e2m1);
  EXPECT_EQ(precision.activations, ElementType::qint8);
  EXPECT_EQ(precision.accumulate, ElementType::int32);
  EXPECT_EQ(precision.reduction_type(), ElementType::fp32);
  EXPECT_EQ(precision.frozen_weights, ElementType::mxint8);
}

TEST(TrainingOptionsFile, DefaultsAreThoseOfPyTorch) {
  const auto optimizer = [](const std::string& text) {
    return read_options("optimizer: " + text).update.optimizer;
  };
  EXPECT_EQ(std::get<AdamW>(optimizer("adamw")).weight_decay, 0.01);
  EXPECT_FALSE(std::get<AdamW>(optimizer("adamw")).amsgrad);
  EXPECT_TRUE(std::get<Adam>(optimizer("{type: adam, amsgrad: true}")).amsgrad);
  EXPECT_EQ(std::get<Sgd>(optimizer("sgd")).momentum, 0.0);
  EXPECT_EQ(std::get<Sgd>(optimizer("momentum")).momentum, 0.9);
  EXPECT_EQ(std::get<Sgd>(optimizer("{type: momentum, beta1: 0.5}")).momentum, 0.9);
}

TEST(TrainingOptionsFile, WhatMuonLeavesHasItsSettingsButTheEpsilon) {
  const auto muon = std::get<Muon>(
      read_options("optimizer: {type: muon, learning_rate: 0.5, epsilon: 0.125, beta1: 0.25}")
          .update.optimizer);
  EXPECT_EQ(muon.learning_rate, 0.5);
  EXPECT_EQ(muon.epsilon, 0.125);
  EXPECT_EQ(muon.others.learning_rate, 0.5);
  EXPECT_EQ(muon.others.epsilon, 1e-8);
  EXPECT_EQ(muon.others.beta1, 0.25);
  EXPECT_EQ(muon.others.weight_decay, 0.0);
}

TEST(TrainingOptionsFile, WrongValuesAreLocatedAndToldWhatIsPossible) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"loss: crossentropy", "t.yaml:1:7: 'crossentropy' is not known here"},
      {"loss: crossentropy", "did you mean 'cross_entropy'?"},
      {"optimizer: {type: shampoo}", "one of: sgd, momentum, adam, adamw, rmsprop, adagrad, lion"},
      {"optimizer: {type: sgd, nesterov: true}", "'nesterov' needs a momentum"},
      {"optimizer: {groups: {match: w}}", "'groups' is a list"},
      {"optimizer: {groups: [{weight_decay: 0}]}", "selects parameters by 'match' or 'rule'"},
      {"optimizer: {no_decay: norms}", "one of: norms_and_biases"},
      {"clip_global_norm: 0", "to a norm above 0, not 0"},
      {"clip_value: -1", "to a magnitude above 0, not -1"},
      {"{clip_global_norm: 1, clip_value: 2}", "t.yaml:1:35: 'clip_global_norm' and 'clip_value'"},
      {"ema: 1", "t.yaml:1:6: 'decay' is 1, outside [0, 1)"},
      {"ema: {rate: 0.5}", "'decay' is missing"},
      {"optimizer: {type: adam, amsgrad: 3}", "t.yaml:1:34: "},
      {"sparse_gradients: {table: true}", "t.yaml:1:19: "},
      {"sam: 0", "t.yaml:1:6: 'rho' is 0, but weights move by more than 0"},
      {"sam: {radius: 1}", "'rho' is missing"},
      {"sam: {rho: -1}", "t.yaml:1:12: 'rho' is -1"},
      {"{sam: 0.05, sparse_gradients: true}", "t.yaml:1:7: 'sam' moves whole weights"},
      {"update: chain", "one of: fused, unfused"},
      {"optimizer: {beta1: 1.5}", "'beta1' is 1.5, outside [0, 1)"},
      {"optimizer: {betas: [0.9]}", "'betas' is a list of two numbers"},
      {"optimizer: {betas: [0.9, 0.99], beta1: 0.9}", "mean the same"},
      {"optimizer: {lr: 0.1}", "lr"},
      {"precision: {weights: int64}", "'int64' is not an element type for 'weights'"},
      {"precision: {master_weights: int8}", "'int8' is not an element type for 'master_weights'"},
      {"precision: {accumulate: mxfp4_e2m1}", "one of: fp64, fp32, tf32"},
      {"micro_batches: 0", "t.yaml:1:16: 0 micro-batches, outside [1, 4096]"},
      {"trainable: {lora: {rank: 0}}", "'rank' is 0, outside [1, 65536]"},
      {"trainable: {train_last: 0}", "the last 0 layers cannot be trained"},
      {"trainable: {sparse: {channels: {w: 1.5}}}", "a share of channels is in (0, 1], not 1.5"},
      {"loss_scale: {mode: automatic}", "one of: dynamic, static"},
      {"loss_scale: -1", "a loss scale is above 0, not -1"},
      {"batch_norm: frozen", "one of: training, inference"},
      {"trainable: some", "'some' is not known here"},
      {"store: {default: pytorch-eager, recompute: [a]}", "recomputes nothing"},
      {"optimiser: adam", "did you mean 'optimizer'?"},
  };
  for (const auto& [text, expected] : cases)
    EXPECT_NE(message(text).find(expected), std::string::npos)
        << text << " gives " << message(text);
}

TEST(TrainingOptionsFile, AllProblemsAreReportedAtOnce) {
  const std::string text = message("loss: l0\nmicro_batches: -2\nstore: everything\n");
  EXPECT_NE(text.find(":1:"), std::string::npos);
  EXPECT_NE(text.find(":2:"), std::string::npos);
  EXPECT_NE(text.find(":3:"), std::string::npos);
}

TEST(TrainingOptionsFile, ExamplesAreValid) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(MONET_SOURCE_DIR "/data/training")) {
    ProblemList problems;
    read_training_options(load_yaml(entry.path().string()), problems);
    EXPECT_TRUE(problems.empty()) << entry.path();
    ++files;
  }
  EXPECT_GE(files, 5);
}

} // namespace
} // namespace monet
