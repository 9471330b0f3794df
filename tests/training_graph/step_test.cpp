// Structure of training steps: what is emitted, what is left out, who owns what.
#include "training_graph/tiny_network.hpp"
#include "workload/shared/update_formula.hpp"

#include "monet/base/errors.hpp"
#include "monet/training_graph/training.hpp"
#include "monet/workload/onnx_reader.hpp"

#include <gtest/gtest.h>

#include <set>

namespace monet {
namespace {

TrainingOptions plain(const Loss& loss = Mse{}) {
  TrainingOptions options;
  options.loss = loss;
  return options;
}

std::vector<std::string> stored_names(const TrainingGraph& step) {
  std::vector<std::string> names;
  for (const TensorId id : step.stored_activations)
    names.push_back(step.graph.tensor(id).name);
  return names;
}

/// x -> linear -> relu -> linear, [2, 3] -> [2, 4] -> [2, 2].
TinyNetwork two_layers() {
  TinyNetwork n;
  const TensorId x = n.input("x", {2, 3});
  const TensorId a = n.op("Gemm", {x, n.parameter("w1", {3, 4}), n.parameter("b1", {4})}, {2, 4});
  const TensorId r = n.op("Relu", {a}, {2, 4});
  n.output(n.op("Gemm", {r, n.parameter("w2", {4, 2}), n.parameter("b2", {2})}, {2, 2}));
  return n;
}

TEST(Names, gradients_of_parameters_are_called_after_them) {
  OnnxReadOptions options;
  options.batch = 2;
  const std::string path = std::string(MONET_SOURCE_DIR) + "/data/workload/resnet18_cifar.onnx";
  const TrainingGraph step = make_training_graph(read_onnx(path, options), {});
  for (const ParameterRecord& record : step.parameters) {
    EXPECT_EQ(step.graph.tensor(record.gradient).name,
              step.graph.tensor(record.weight).name + ".grad");
  }
}

TEST(TrainingStep, ASecondPassMayBeginWithTheLoss) {
  // The forward part is a view of a parameter: folded, nothing of it is left to run again.
  TinyNetwork n;
  const TensorId shape = n.integers("shape", {2, 3});
  n.output(n.op("Reshape", {n.parameter("w", {6}), shape}, {2, 3}));
  TrainingOptions options = plain(CrossEntropy{});
  options.sam_rho = 0.05;
  const TrainingGraph step = fold_views(make_training_graph(n.graph, options));
  EXPECT_EQ(step.passes, 2);
  EXPECT_NO_THROW(verify(step));
}

TEST(TrainingStep, FirstLayerHasNoInputGradient) {
  const TrainingGraph step = make_training_graph(two_layers().graph, plain());
  verify(step);
  EXPECT_EQ(count_ops(step.graph, "GemmGradA", Phase::backward), 1);
  EXPECT_EQ(count_ops(step.graph, "GemmGradB", Phase::backward), 2);
  EXPECT_EQ(count_ops(step.graph, "ReluGrad", Phase::backward), 1);
  EXPECT_EQ(count_ops(step.graph, "ReduceSum", Phase::backward), 2); // biases
  EXPECT_EQ(count_ops(step.graph, "Add", Phase::backward), 0);
  EXPECT_EQ(step.parameters.size(), 4U);
  // forward 2*3*4 + 2*4*2, dX of the second layer, dW of both
  const MacSplit macs = count_macs(step.graph);
  EXPECT_EQ(macs.forward, 40);
  EXPECT_EQ(macs.backward_input, 16);
  EXPECT_EQ(macs.backward_weight, 40);
}

TEST(TrainingStep, PhasesFollowEachOtherAndUpdatesComeLast) {
  const TrainingGraph step = make_training_graph(two_layers().graph, plain());
  std::string phases;
  for (const Operator& op : step.graph.operators()) {
    const std::string name(name_of(op.phase));
    if (phases.empty() || !phases.ends_with(name))
      phases += " " + name;
  }
  EXPECT_EQ(phases, " forward loss backward update");
}

TEST(TrainingStep, StoresWhatBackwardReadsAndNothingElse) {
  const TrainingGraph step = make_training_graph(two_layers().graph, plain());
  // dW1 reads x, ReluGrad and dW2 read the Relu's result, the loss's gradient reads prediction and
  // targets.
  EXPECT_EQ(stored_names(step), (std::vector<std::string>{"x", "Relu_1", "Gemm_2", "targets"}));
}

TEST(TrainingStep, FrozenParametersGetNothing) {
  TrainingOptions options = plain();
  options.trainable.freeze = {"w1", "b1"};
  const TrainingGraph step = make_training_graph(two_layers().graph, options);
  verify(step);
  EXPECT_EQ(step.parameters.size(), 2U);
  EXPECT_EQ(count_ops(step.graph, "GemmGradA", Phase::backward), 0); // nobody below needs it
  EXPECT_EQ(count_ops(step.graph, "ReluGrad", Phase::backward), 0);
  EXPECT_EQ(count_ops(step.graph, "GemmGradB", Phase::backward), 1);
  EXPECT_EQ(stored_names(step), (std::vector<std::string>{"Relu_1", "Gemm_2", "targets"}));
}

TEST(TrainingStep, FreezePatternsThatMatchNothingAreErrors) {
  TrainingOptions options = plain();
  options.trainable.freeze = {"w1", "layer9.*"};
  try {
    make_training_graph(two_layers().graph, options);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "tiny.onnx: no parameter matches the freeze pattern 'layer9.*'");
  }
}

TEST(TrainingStep, NothingToTrainIsAnError) {
  TrainingOptions options = plain();
  options.trainable.freeze = {"*"};
  EXPECT_THROW(make_training_graph(two_layers().graph, options), InputError);
}

/// y is read by `readers` operators: one Add for every reader after the first.
TEST(TrainingStep, FanOutAddsOneAccumulationPerExtraReader) {
  for (int readers = 1; readers <= 4; ++readers) {
    TinyNetwork n;
    const TensorId y = n.op("Mul", {n.input("x", {2, 3}), n.parameter("w", {3})}, {2, 3});
    std::vector<std::optional<TensorId>> branches;
    for (int i = 0; i < readers; ++i)
      branches.emplace_back(n.op("Tanh", {y}, {2, 3}));
    n.output(n.op("Concat", branches, {2 * readers, 3}, with("axis", std::int64_t{0})));
    const TrainingGraph step = make_training_graph(n.graph, plain());
    verify(step);
    EXPECT_EQ(count_ops(step.graph, "Add", Phase::backward), readers - 1);
    EXPECT_EQ(count_ops(step.graph, "TanhGrad", Phase::backward), readers);
  }
}

TEST(TrainingStep, UnusedBranchesAndUnusedParametersAreNotDifferentiated) {
  TinyNetwork n = two_layers();
  const TensorId relu = *n.graph.find_tensor("Relu_1");
  n.op("Mul", {relu, n.parameter("unused", {4})}, {2, 4});
  const TrainingGraph step = make_training_graph(n.graph, plain());
  verify(step);
  EXPECT_EQ(step.parameters.size(), 4U);
  EXPECT_EQ(count_ops(step.graph, "Add", Phase::backward), 0);
}

TEST(TrainingStep, BiasGradientReducesOverWhatItWasBroadcastTo) {
  TinyNetwork n;
  const TensorId x = n.input("x", {2, 5, 3});
  const TensorId y = n.op("Add", {n.parameter("b", {3}), x}, {2, 5, 3});
  n.output(n.op("Add", {y, n.parameter("p", {1, 5, 3})}, {2, 5, 3}));
  const TrainingGraph step = make_training_graph(n.graph, plain());
  verify(step);
  ASSERT_EQ(step.parameters.size(), 2U);
  for (const ParameterRecord& record : step.parameters) {
    const Tensor& gradient = step.graph.tensor(record.gradient);
    EXPECT_EQ(gradient.shape, step.graph.tensor(record.weight).shape);
    EXPECT_EQ(gradient.kind, TensorKind::parameter_gradient);
    EXPECT_EQ(step.graph.op(*gradient.producer).op_type, "ReduceSum");
  }
}

TEST(TrainingStep, TiedWeightsAreUpdatedOnceWithBothGradients) {
  TinyNetwork n;
  const TensorId ids = n.input("ids", {2, 3}, ElementType::int64);
  const TensorId table = n.parameter("table", {5, 4});
  const TensorId x = n.op("Gather", {table, ids}, {2, 3, 4});
  const TensorId head =
      n.op("Transpose", {table}, {4, 5}, with("perm", std::vector<std::int64_t>{1, 0}));
  n.output(n.op("MatMul", {x, head}, {2, 3, 5}));
  const TrainingGraph step = make_training_graph(n.graph, plain(CrossEntropy{}));
  verify(step);
  ASSERT_EQ(step.parameters.size(), 1U);
  const Tensor& gradient = step.graph.tensor(step.parameters[0].gradient);
  EXPECT_EQ(step.graph.op(*gradient.producer).op_type, "Add");
  EXPECT_EQ(gradient.name, "table.grad"); // of which there are two parts
  EXPECT_EQ(count_ops(step.graph, "GatherGrad", Phase::backward), 1);
  // The head's product counts as a weight gradient although the parameter is seen through a view.
  EXPECT_EQ(find_op(step.graph, "MatMulGradB", Phase::backward)->gradient_of, GradientOf::weight);
  EXPECT_EQ(count_macs(step.graph).backward_weight, 2 * 3 * 4 * 5);
}

TEST(TrainingStep, AttentionProductsAreInputGradients) {
  TinyNetwork n;
  const TensorId q = n.op("Tanh", {n.parameter("q", {3, 4})}, {3, 4});
  const TensorId k = n.op("Tanh", {n.parameter("k", {4, 3})}, {4, 3});
  n.output(n.op("MatMul", {q, k}, {3, 3}));
  const MacSplit macs = count_macs(make_training_graph(n.graph, plain()).graph);
  EXPECT_EQ(macs.backward_input, 2 * 36);
  EXPECT_EQ(macs.backward_weight, 0);
}

TEST(TrainingStep, AWeightOnTheLeftIsAWeightToo) {
  TinyNetwork n;
  const TensorId x = n.op("Tanh", {n.parameter("p", {4, 5})}, {4, 5});
  n.output(n.op("MatMul", {n.parameter("w", {3, 4}), x}, {3, 5}));
  const TrainingGraph step = make_training_graph(n.graph, plain());
  EXPECT_EQ(find_op(step.graph, "MatMulGradA", Phase::backward)->gradient_of, GradientOf::weight);
  EXPECT_EQ(find_op(step.graph, "MatMulGradB", Phase::backward)->gradient_of, GradientOf::input);
}

TEST(TrainingStep, AllOperatorsWithoutARuleAreListedInOneError) {
  TinyNetwork n;
  const TensorId w = n.parameter("w", {2, 3});
  const TensorId a = n.op("Det", {w}, {2, 3});
  const TensorId b = n.op("Hardmax", {a}, {2, 3});
  const TensorId sideways = n.op("TopK", {w}, {2, 3}); // not on the way to the loss
  static_cast<void>(sideways);
  n.output(n.op("Relu", {b}, {2, 3}));
  try {
    make_training_graph(n.graph, plain());
    FAIL();
  } catch (const InputError& error) {
    ASSERT_EQ(error.problems().size(), 2U);
    EXPECT_EQ(error.problems()[0].to_string().substr(0, 90),
              std::string(
                  "tiny.onnx [node 'Det_0' (Det)]: operator type 'Det' of domain 'ai.onnx' has no "
                  "gradient rule")
                  .substr(0, 90));
    EXPECT_NE(error.problems()[1].to_string().find("'Hardmax_1'"), std::string::npos);
  }
}

TEST(TrainingStep, FormsWithoutAGradientAreRefusedByName) {
  TinyNetwork n;
  const TensorId w = n.parameter("w", {6});
  n.output(n.op("ScatterElements", {w, n.integers("i", {2}), n.parameter("u", {1})}, {6},
                with("reduction", std::string("mul"))));
  try {
    make_training_graph(n.graph, plain());
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("ScatterElements has a gradient only with reduction"),
              std::string::npos);
  }
}

TEST(TrainingStep, IntegerPathsStopGradients) {
  TinyNetwork n;
  const TensorId w = n.parameter("w", {2, 3});
  const TensorId rounded =
      n.op("Cast", {w}, {2, 3}, with("to", std::int64_t{7}), ElementType::int64);
  const TensorId back = n.op("Cast", {rounded}, {2, 3}, with("to", std::int64_t{1}));
  n.output(n.op("Mul", {w, back}, {2, 3}));
  const TrainingGraph step = make_training_graph(n.graph, plain());
  verify(step);
  EXPECT_EQ(count_ops(step.graph, "Mul", Phase::backward), 1); // dW = dY * back only
  EXPECT_EQ(count_ops(step.graph, "MulGrad", Phase::backward), 0);
}

// The noise of a variational encoder has the shape of what it is added to, and nothing else of it.
TEST(TrainingStep, RandomSourcesStopGradients) {
  TinyNetwork n;
  const TensorId w = n.parameter("w", {2, 3});
  const TensorId noise = n.op("RandomNormalLike", {w}, {2, 3});
  n.output(n.op("Mul", {w, noise}, {2, 3}));
  const TrainingGraph step = make_training_graph(n.graph, plain());
  verify(step);
  EXPECT_EQ(count_ops(step.graph, "Mul", Phase::backward), 1); // dW = dY * noise only
}

struct StateCount {
  Optimizer optimizer;
  std::size_t states;
};

TEST(Optimizers, UpdatesAreFusedInPlaceAndOwnTheirStates) {
  for (const auto& [optimizer, states] : {StateCount{Sgd{}, 0}, StateCount{Sgd{.momentum = 0.9}, 1},
                                          StateCount{Adam{}, 2}, StateCount{AdamW{}, 2}}) {
    TrainingOptions options = plain();
    options.update.optimizer = optimizer;
    const TrainingGraph step = make_training_graph(two_layers().graph, options);
    verify(step);
    std::set<OpId> updates;
    for (const ParameterRecord& record : step.parameters) {
      EXPECT_EQ(record.states.size(), states);
      const Tensor& updated = step.graph.tensor(record.updated);
      EXPECT_EQ(updated.alias_of, record.weight);
      const Operator& update = step.graph.op(*updated.producer);
      updates.insert(*updated.producer);
      EXPECT_EQ(update.inputs.size(), kUpdateFirstState + states);
      EXPECT_EQ(update.outputs.size(), 1 + states);
      for (std::size_t i = 0; i < states; ++i)
        EXPECT_EQ(step.graph.tensor(*update.outputs[1 + i]).alias_of, record.states[i]);
    }
    EXPECT_EQ(updates.size(), step.parameters.size());
    EXPECT_EQ(parameter_count(step.graph), 12 + 4 + 8 + 2); // updated weights are not counted again
  }
}

std::int64_t bytes_owned(const TrainingGraph& step, MemoryOwner owner) {
  std::int64_t bits = 0;
  for (std::size_t i = 0; i < step.owner.size(); ++i) {
    const Tensor& tensor = step.graph.tensors()[i];
    if (step.owner[i] == owner && !tensor.alias_of && tensor.kind != TensorKind::constant)
      bits += size_of(tensor).value;
  }
  return bytes_of({bits});
}

/// 26 parameters. Mixed precision keeps 2 + 2 + (4 + 4 + 4) = 16 bytes for each.
TEST(Precision, SetsTheTypeOfEveryRole) {
  TrainingOptions options = plain();
  options.precision = {.weights = ElementType::bf16,
                       .master_weights = ElementType::fp32,
                       .activations = ElementType::bf16,
                       .gradients = ElementType::bf16,
                       .optimizer_state = ElementType::fp32,
                       .accumulate = ElementType::fp32};
  const TrainingGraph step = make_training_graph(two_layers().graph, options);
  verify(step);
  EXPECT_EQ(bytes_owned(step, MemoryOwner::parameters), 26 * 2);
  EXPECT_EQ(bytes_owned(step, MemoryOwner::gradients), 26 * 2);
  EXPECT_EQ(bytes_owned(step, MemoryOwner::optimizer_state), 26 * 12);
  // x 6, Relu 8, prediction 4, targets 4 elements
  EXPECT_EQ(bytes_owned(step, MemoryOwner::stored_activations), 22 * 2);
  const Operator& update = step.graph.operators().back();
  EXPECT_FALSE(
      update.inputs[0].has_value()); // the master copy is read, the bf16 weight only written
  EXPECT_EQ(update.inputs.size(), kUpdateFirstState + 3U);
  EXPECT_EQ(step.graph.tensor(*update.outputs[0]).type, ElementType::bf16);
  EXPECT_EQ(step.graph.tensor(*step.loss).type, ElementType::fp32);
}

TEST(Precision, SinglePrecisionAdamKeepsSixteenBytesPerParameter) {
  const TrainingGraph step = make_training_graph(two_layers().graph, plain());
  EXPECT_EQ(bytes_owned(step, MemoryOwner::parameters), 26 * 4);
  EXPECT_EQ(bytes_owned(step, MemoryOwner::gradients), 26 * 4);
  EXPECT_EQ(bytes_owned(step, MemoryOwner::optimizer_state), 26 * 8);
}

TEST(Updates, AmsgradAndAnAverageAreStatesOfTheOptimiser) {
  TrainingOptions options = plain();
  options.update.optimizer = Adam{.amsgrad = true};
  options.update.average_decay = 0.5;
  for (const bool fused : {true, false}) {
    options.update.fused = fused;
    const TrainingGraph step = make_training_graph(two_layers().graph, options);
    verify(step);
    EXPECT_EQ(bytes_owned(step, MemoryOwner::parameters), 26 * 4);
    EXPECT_EQ(bytes_owned(step, MemoryOwner::optimizer_state), 26 * 16);
    EXPECT_EQ(count_ops(step.graph, "AverageUpdate", Phase::update), fused ? 4 : 0);
  }
  options.update.fused = true;
  const TrainingGraph step = make_training_graph(two_layers().graph, options);
  const Operator* average = find_op(step.graph, "AverageUpdate", Phase::update);
  ASSERT_NE(average, nullptr);
  EXPECT_EQ(average->nest.work.add, 1); // d*a + (1-d)*w
  EXPECT_EQ(average->nest.work.multiply, 2);
}

TEST(Updates, ClippingByValueIsTwoComparisonsOfTheUpdate) {
  TrainingOptions options = plain();
  const TrainingGraph without = make_training_graph(two_layers().graph, options);
  options.update.clip_value = 0.5;
  const TrainingGraph step = make_training_graph(two_layers().graph, options);
  ASSERT_EQ(step.graph.operators().size(), without.graph.operators().size());
  EXPECT_EQ(step.graph.operators().back().nest.work.compare,
            without.graph.operators().back().nest.work.compare + 2);
}

TEST(Losses, CrossEntropyTakesLogitsOfTwoOrThreeAxes) {
  for (const std::vector<std::int64_t>& shape :
       {std::vector<std::int64_t>{4, 5}, std::vector<std::int64_t>{2, 3, 5}}) {
    TinyNetwork n;
    n.output(n.op("Add", {n.input("x", shape), n.parameter("w", {5})}, shape));
    const TrainingGraph step = make_training_graph(n.graph, plain(CrossEntropy{}));
    verify(step);
    const Tensor& labels = step.graph.tensor(*step.graph.find_tensor("labels"));
    EXPECT_EQ(labels.kind, TensorKind::label);
    EXPECT_EQ(labels.type, ElementType::int64);
    EXPECT_EQ(labels.shape, std::vector<std::int64_t>(shape.begin(), shape.end() - 1));
    EXPECT_TRUE(step.graph.tensor(*step.loss).shape.empty());
    EXPECT_EQ(stored_names(step), (std::vector<std::string>{"labels", "log_probabilities"}));
  }
  TinyNetwork n;
  n.output(n.op("Relu", {n.parameter("w", {5})}, {5}));
  EXPECT_THROW(make_training_graph(n.graph, plain(CrossEntropy{})), InputError);
}

TEST(Losses, CrossEntropyOfImagesHasClassesInAxisOne) {
  TinyNetwork n;
  const std::vector<std::int64_t> shape{2, 5, 3, 4};
  n.output(n.op("Add", {n.input("x", shape), n.parameter("w", {4})}, shape));
  CrossEntropy loss{.ignore_index = 255};
  const TrainingGraph step = make_training_graph(n.graph, plain(loss));
  verify(step);
  EXPECT_EQ(step.graph.tensor(*step.graph.find_tensor("labels")).shape,
            (std::vector<std::int64_t>{2, 3, 4}));
  const Operator* gradient = find_op(step.graph, "SoftmaxCrossEntropyGrad", Phase::backward);
  ASSERT_NE(gradient, nullptr);
  EXPECT_EQ(gradient->attributes.integer("axis", 0), 1);
  EXPECT_EQ(gradient->inputs.size(), 3U); // divides by the labels that count
  loss.class_axis = 2;
  EXPECT_THROW(make_training_graph(n.graph, plain(loss)), InputError);
}

TEST(Losses, WeightsOfOnesFitTheLastAxis) {
  TinyNetwork n;
  n.output(n.op("Add", {n.input("x", {4, 3}), n.parameter("w", {3})}, {4, 3}));
  verify(make_training_graph(n.graph, plain(BceWithLogits{{1.0, 2.0, 3.0}})));
  EXPECT_THROW(make_training_graph(n.graph, plain(BceWithLogits{{1.0, 2.0}})), InputError);
}

TEST(Losses, NoneTakesTheGradientAsAnInput) {
  const TrainingGraph step = make_training_graph(two_layers().graph, plain(NoLoss{}));
  verify(step);
  EXPECT_FALSE(step.loss.has_value());
  ASSERT_EQ(step.graph.inputs.size(), 4U); // and the learning rate and the step of Adam
  const Tensor& fed = step.graph.tensor(step.graph.inputs[1]);
  EXPECT_EQ(fed.kind, TensorKind::gradient);
  EXPECT_EQ(fed.shape, (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(step.parameters.size(), 4U);
}

/// The gradient of a sum's second operand is the loss's own share, a constant.
TEST(Losses, OfOneElementMayBeTheGradientOfAParameter) {
  TinyNetwork n;
  const TensorId sum = n.op("Add", {n.input("x", {1, 1}), n.parameter("b", {1, 1})}, {1, 1});
  n.output(n.op("Add", {sum, n.parameter("c", {1, 1})}, {1, 1}));
  TrainingOptions options;
  options.loss = NetworkLoss{};
  const TrainingGraph step = make_training_graph(n.graph, options);
  verify(step);
  EXPECT_EQ(step.parameters.size(), 2U);
  verify(fold_views(step));
}

TinyNetwork regularised() {
  TinyNetwork n;
  const TensorId x = n.input("x", {2, 3, 4, 4});
  const TensorId y = n.op("BatchNormalization",
                          {x, n.parameter("scale", {3}), n.parameter("bias", {3}),
                           n.buffer("mean", {3}), n.buffer("var", {3})},
                          {2, 3, 4, 4}, with("training_mode", std::int64_t{1}));
  const TensorId d = n.op("Dropout", {y, n.number("ratio", 0.5)}, {2, 3, 4, 4});
  n.output(n.op("Dropout", {d, n.number("never", 0.0)}, {2, 3, 4, 4}));
  return n;
}

TEST(ForwardPart, TrainingKeepsMasksAndStatistics) {
  const TrainingGraph step = make_training_graph(regularised().graph, plain());
  verify(step);
  EXPECT_EQ(count_ops(step.graph, "Dropout", Phase::forward), 1);
  EXPECT_EQ(count_ops(step.graph, "Identity", Phase::forward), 1); // ratio 0 drops nothing
  const Operator* dropout = find_op(step.graph, "Dropout", Phase::forward);
  ASSERT_EQ(dropout->outputs.size(), 2U);
  EXPECT_EQ(step.graph.tensor(*dropout->outputs[1]).type, ElementType::bit);
  ASSERT_EQ(dropout->inputs.size(), 3U); // training_mode would be false when left out
  EXPECT_EQ(
      std::get<std::vector<std::int64_t>>(step.graph.tensor(*dropout->inputs[2]).values.value()),
      std::vector<std::int64_t>{1});
  EXPECT_EQ(count_ops(step.graph, "DropoutGrad", Phase::backward), 1);
}

/// What `monet graph -o` wrote, read as a network: its operators as they are, phases and all.
TEST(ForwardPart, InferenceOfATrainingStepKeepsItsPhases) {
  TrainingOptions options = plain();
  options.update.optimizer = {};
  TrainingGraph made = make_training_graph(two_layers().graph, options);
  const TrainingGraph step = make_inference_graph(made.graph);
  verify(step);
  EXPECT_EQ(count_macs(step.graph).backward_weight, count_macs(made.graph).backward_weight);
  EXPECT_EQ(count_ops(step.graph, "AdamUpdate", Phase::update), 4);

  made.graph.op(OpId(0)).phase = Phase::update; // a file may say what it likes
  EXPECT_THROW(make_inference_graph(made.graph), InputError);
}

/// Statistics of the batch, which update the running ones, and masks are a part of the step.
TEST(ForwardPart, InferenceOfATrainingStepNormalisesAndDropsAsTheStepDoes) {
  const TrainingGraph made = make_training_graph(regularised().graph, plain());
  const TrainingGraph step = make_inference_graph(made.graph);
  verify(step);
  ASSERT_EQ(step.graph.operators().size(), made.graph.operators().size());
  for (std::size_t i = 0; i < made.graph.operators().size(); ++i) {
    const Operator& wanted = made.graph.operators()[i];
    const Operator& op = step.graph.operators()[i];
    EXPECT_EQ(op.op_type, wanted.op_type);
    EXPECT_EQ(op.outputs.size(), wanted.outputs.size()) << wanted.name;
    EXPECT_EQ(op.nest.operands.size(), wanted.nest.operands.size()) << wanted.name;
  }
}

TEST(ForwardPart, InferenceHasRunningStatisticsAndNoDropout) {
  const TrainingGraph step = make_inference_graph(regularised().graph);
  verify(step);
  EXPECT_FALSE(step.training);
  EXPECT_TRUE(step.parameters.empty());
  EXPECT_TRUE(step.stored_activations.empty());
  EXPECT_EQ(count_ops(step.graph, "Dropout", Phase::forward), 0);
  const Operator* norm = find_op(step.graph, "BatchNormalization", Phase::forward);
  ASSERT_NE(norm, nullptr);
  EXPECT_EQ(norm->attributes.integer("training_mode", 1), 0);
  EXPECT_EQ(norm->outputs.size(), 1U);
  for (const Access& access : norm->nest.operands)
    EXPECT_EQ(access.passes, 1);
  for (const Tensor& tensor : step.graph.tensors())
    EXPECT_NE(tensor.kind, TensorKind::gradient);
}

/// ReLU6: its result, which the next layer stores anyway, tells where the gradient passes; PyTorch
/// keeps its input.
TEST(Storage, MinimalStoresLessThanPyTorchForClip) {
  TinyNetwork n;
  const TensorId a = n.op("Mul", {n.input("x", {2, 3}), n.parameter("v", {2, 3})}, {2, 3});
  const TensorId c = n.op("Clip", {a, n.number("low", 0.0), n.number("high", 6.0)}, {2, 3});
  n.output(n.op("MatMul", {c, n.parameter("w", {3, 3})}, {2, 3}));
  TrainingOptions options = plain(NoLoss{});
  EXPECT_EQ(stored_names(make_training_graph(n.graph, options)),
            (std::vector<std::string>{"x", "Clip_1"}));
  options.storage.policy = StorePolicy::pytorch_eager;
  EXPECT_EQ(stored_names(make_training_graph(n.graph, options)),
            (std::vector<std::string>{"x", "Mul_0", "Clip_1"}));
}

TEST(Storage, AStoredViewCountsAsWhatItViews) {
  TinyNetwork n;
  const TensorId x =
      n.op("Relu", {n.op("Mul", {n.input("x", {2, 6}), n.parameter("v", {6})}, {2, 6})}, {2, 6});
  const TensorId view = n.op("Reshape", {x, n.integers("shape", {4, 3})}, {4, 3});
  n.output(n.op("MatMul", {view, n.parameter("w", {3, 2})}, {4, 2}));
  const TrainingGraph step = make_training_graph(n.graph, plain(NoLoss{}));
  EXPECT_EQ(stored_names(step), (std::vector<std::string>{"x", "Relu_1"}));
}

} // namespace
} // namespace monet
