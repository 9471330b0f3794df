// Transformers made from their sizes, executed: against the network of a file, against difference
// quotients, and against what the mixture of experts promises.
#include "workload/shared/views.hpp"

#include "monet/execute/execute.hpp"
#include "monet/workload/onnx_reader.hpp"
#include "monet/workload/transformer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace monet {
namespace MONET_TEST_FILE {

using Shape = TransformerShape;
using Values = std::vector<double>;

const Shape kSmall{
    .layers = 1, .hidden = 6, .heads = 2, .sequence = 5, .vocabulary = 7, .batch = 2};

TrainingGraph step_of(const Graph& network) {
  TrainingOptions options;
  options.loss = CrossEntropy{};
  options.update.optimizer = Sgd{};
  TrainingGraph step = make_training_graph(network, options);
  verify(step);
  return step;
}

// --- the network of a file ---

constexpr std::int64_t kHidden = 64;
constexpr std::int64_t kHeads = 2;

/// [rows, columns] to [columns, rows].
Values transposed(const Values& matrix, std::int64_t columns) {
  const std::int64_t rows = static_cast<std::int64_t>(matrix.size()) / columns;
  Values result;
  for (std::int64_t c = 0; c < columns; ++c) {
    for (std::int64_t r = 0; r < rows; ++r)
      result.push_back(matrix[static_cast<std::size_t>(r * columns + c)]);
  }
  return result;
}

/// Rows of all queries, keys and values to rows by head.
Values by_heads(const Values& matrix, std::int64_t row) {
  Values result;
  for (std::int64_t head = 0; head < kHeads; ++head) {
    for (std::int64_t part = 0; part < 3; ++part) {
      const std::int64_t from = (part * kHidden + head * kHidden / kHeads) * row;
      const auto begin = matrix.begin() + from;
      result.insert(result.end(), begin, begin + kHidden / kHeads * row);
    }
  }
  return result;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  if (const auto at = text.find(from); at != std::string::npos)
    text.replace(at, from.size(), to);
  return text;
}

/// What the file calls a parameter, and its numbers, as ours has them: weights of the file are
/// [out, in].
std::pair<std::string, Values> as_ours(const std::string& name, const Values& numbers) {
  const bool attention = name.find("c_attn") != std::string::npos;
  std::string ours = replaced(replaced(name, "c_attn", "qkv"), "c_proj", "proj");
  ours = replaced(ours, "c_fc", "fc");
  if (ours == name) // embeddings, norms
    return {ours, numbers};
  if (name.ends_with(".bias"))
    return {ours, attention ? by_heads(numbers, 1) : numbers};
  const std::int64_t in = name.find("mlp.c_proj") != std::string::npos ? 4 * kHidden : kHidden;
  return {ours, transposed(attention ? by_heads(numbers, in) : numbers, in)};
}

TEST(TransformerNumbers, AreThoseOfTheNetworkInAFile) {
  OnnxReadOptions read;
  read.batch = 3;
  const TrainingGraph file =
      step_of(read_onnx(MONET_SOURCE_DIR "/data/workload/gpt2_nano.onnx", read));
  Graph network = make_transformer({.layers = 2,
                                    .hidden = kHidden,
                                    .heads = kHeads,
                                    .sequence = 64,
                                    .vocabulary = 256,
                                    .batch = 3});
  // The file divides by a root in single precision.
  const auto root = static_cast<double>(std::sqrt(static_cast<float>(kHidden / kHeads)));
  network.tensor(network.find_tensor("scale").value()).values = Values{1.0 / root};
  const TrainingGraph made = step_of(network);
  ASSERT_EQ(file.parameters.size(), made.parameters.size());
  Execution theirs(file.graph);
  fill(theirs, file, 5);
  theirs.run();
  Execution ours(made.graph);
  for (const ParameterRecord& record : file.parameters) {
    const auto [name, numbers] =
        as_ours(file.graph.tensor(record.weight).name, theirs.get(record.weight));
    EXPECT_EQ(set_by_name(ours, made, name, numbers), 1) << name;
  }
  const auto tokens = [](const TrainingGraph& step) { return step.graph.inputs.at(0); };
  ours.set(tokens(made), theirs.get(tokens(file)));
  set_by_name(ours, made, "labels", theirs.get(file.graph.find_tensor("labels").value()));
  fill(ours, made, 5);
  ours.run();
  const double loss = theirs.get(*file.loss)[0];
  EXPECT_GT(loss, 1.0);
  EXPECT_NEAR(ours.get(*made.loss)[0], loss, 1e-11 * loss);
  std::map<std::string, Values> gradients;
  for (const ParameterRecord& record : made.parameters)
    gradients[made.graph.tensor(record.weight).name] = ours.get(record.gradient);
  for (const ParameterRecord& record : file.parameters) {
    const auto [name, expected] =
        as_ours(file.graph.tensor(record.weight).name, theirs.get(record.gradient));
    const Values& gradient = gradients.at(name);
    ASSERT_EQ(gradient.size(), expected.size()) << name;
    double largest = 0.0;
    for (const double number : expected)
      largest = std::max(largest, std::abs(number));
    EXPECT_GT(largest, 0.0) << name;
    for (std::size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(gradient[i], expected[i], 1e-11 * largest) << name << " " << i;
  }
}

TEST(TransformerNumbers, AreTheSameWithViewsFolded) {
  Shape shape = kSmall;
  shape.kv_heads = 1;
  shape.experts = 2;
  const TrainingGraph step = step_of(make_transformer(shape));
  const TrainingGraph folded = fold_views(step);
  verify(folded);
  Execution before(step.graph);
  Execution after(folded.graph);
  fill(before, step, 3);
  for (const Tensor& tensor : folded.graph.tensors()) {
    if (!tensor.producer && !tensor.values)
      set_by_name(after, folded, tensor.name,
                  before.get(step.graph.find_tensor(tensor.name).value()));
  }
  before.run();
  after.run();
  for (const ParameterRecord& record : folded.parameters) {
    const std::string& name = folded.graph.tensor(record.updated).name;
    const Values expected = before.get(step.graph.find_tensor(name).value());
    const Values updated = after.get(record.updated);
    for (std::size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(updated[i], expected[i], 1e-12) << name << " " << i;
  }
}

// --- difference quotients ---

constexpr double kStep = 1e-6;

/// Every so many elements of each parameter.
int compare_with_quotients(const Shape& shape, std::size_t stride) {
  const TrainingGraph step = step_of(make_transformer(shape));
  Execution execution(step.graph);
  fill(execution, step, 7);
  execution.run();
  int compared = 0;
  for (const ParameterRecord& record : step.parameters) {
    const Values gradient = execution.get(record.gradient);
    const Values weight = execution.get(record.weight);
    for (std::size_t i = 0; i < weight.size(); i += stride) {
      const auto loss_at = [&](double value) {
        Values changed = weight;
        changed[i] = value;
        execution.set(record.weight, changed);
        execution.run();
        return execution.get(*step.loss)[0];
      };
      const double quotient =
          (loss_at(weight[i] + kStep) - loss_at(weight[i] - kStep)) / (2 * kStep);
      EXPECT_NEAR(gradient[i], quotient, 1e-7 * std::max(1.0, std::abs(quotient)))
          << step.graph.tensor(record.weight).name << " " << i;
      ++compared;
    }
    execution.set(record.weight, weight);
    execution.run();
  }
  return compared;
}

TEST(TransformerNumbers, GradientsOfSharedKeysAreDifferenceQuotients) {
  Shape shape = kSmall;
  shape.heads = 4;
  shape.kv_heads = 2;
  shape.head_size = 3;
  shape.norm = Shape::Norm::rms;
  shape.activation = Shape::Activation::swiglu;
  shape.biases = shape.tied = false;
  EXPECT_GT(compare_with_quotients(shape, 3), 100);
}

TEST(TransformerNumbers, FusedAttentionOfSharedKeysHasTheSameGradients) {
  for (const std::int64_t kv_heads : {4, 2, 1}) {
    SCOPED_TRACE(kv_heads);
    Shape shape = kSmall;
    shape.heads = 4;
    shape.kv_heads = kv_heads;
    shape.head_size = 3;
    const Graph network = make_transformer(shape);
    const TrainingGraph exported = step_of(network);
    TrainingOptions options;
    options.loss = CrossEntropy{};
    options.update.optimizer = Sgd{};
    options.attention = AttentionForm::fused;
    const TrainingGraph one = make_training_graph(network, options);
    for (const TrainingGraph& fused : {one, fold_views(one)}) {
      verify(fused);
      Execution expected(exported.graph);
      fill(expected, exported, 3);
      expected.run();
      Execution found(fused.graph);
      for (const Tensor& tensor : exported.graph.tensors()) {
        const auto id = exported.graph.find_tensor(tensor.name);
        if (!tensor.producer && tensor.kind != TensorKind::constant)
          set_by_name(found, fused, tensor.name, expected.get(*id));
      }
      fill(found, fused, 3);
      found.run();
      ASSERT_EQ(fused.parameters.size(), exported.parameters.size());
      EXPECT_NEAR(found.get(*fused.loss)[0], expected.get(*exported.loss)[0], 1e-12);
      for (std::size_t i = 0; i < fused.parameters.size(); ++i) {
        const Values a = expected.get(exported.parameters[i].gradient);
        const Values b = found.get(fused.parameters[i].gradient);
        ASSERT_EQ(a.size(), b.size());
        for (std::size_t k = 0; k < a.size(); ++k)
          ASSERT_NEAR(a[k], b[k], 1e-12)
              << exported.graph.tensor(exported.parameters[i].weight).name;
      }
    }
  }
}

TEST(TransformerNumbers, GradientsThroughDroppedNumbersAreDifferenceQuotients) {
  Shape shape = kSmall;
  shape.dropout = 0.3;
  EXPECT_GT(compare_with_quotients(shape, 3), 100);
}

TEST(TransformerNumbers, GradientsOfExpertsAreDifferenceQuotients) {
  for (const std::int64_t topk : {1, 2}) {
    for (const double capacity : {0.5, 4.0}) {
      Shape shape = kSmall;
      shape.experts = 3;
      shape.topk = topk;
      shape.capacity_factor = capacity;
      EXPECT_GT(compare_with_quotients(shape, 7), 80) << topk << " " << capacity;
    }
  }
}

TEST(TransformerNumbers, GradientsOfGatedExpertsAreDifferenceQuotients) {
  Shape shape = kSmall;
  shape.experts = 2;
  shape.activation = Shape::Activation::swiglu;
  shape.biases = false;
  EXPECT_GT(compare_with_quotients(shape, 7), 60);
}

// --- experts ---

/// The forward pass of one layer with experts, and its tensors by name.
class ExpertsRun {
public:
  explicit ExpertsRun(const Shape& shape)
      : shape_(shape), step_(make_inference_graph(make_transformer(shape))),
        execution_(step_.graph) {
    fill(execution_, step_, 11);
    execution_.run();
  }
  Values get(const std::string& name) const {
    return execution_.get(step_.graph.find_tensor(name).value());
  }
  const Shape& shape() const { return shape_; }

private:
  Shape shape_;
  TrainingGraph step_;
  Execution execution_;
};

/// Expert and place of every choice of the tokens of each sample, as they should be, one loop after
/// the other.
Values dispatch_by_hand(const ExpertsRun& run) {
  const Shape& shape = run.shape();
  const auto experts = static_cast<std::size_t>(*shape.experts);
  const auto capacity = static_cast<std::size_t>(shape.capacity());
  const auto sequence = static_cast<std::size_t>(shape.sequence);
  const Values probabilities = run.get("h.0.moe.probabilities");
  Values dispatch(static_cast<std::size_t>(shape.batch) * sequence * experts * capacity, 0.0);
  for (std::size_t g = 0; g < static_cast<std::size_t>(shape.batch); ++g) {
    std::vector<std::size_t> taken(experts, 0);
    for (std::size_t s = 0; s < sequence; ++s) {
      const std::size_t token = g * sequence + s;
      std::vector<bool> chosen(experts, false);
      for (std::int64_t k = 0; k < shape.topk; ++k) {
        std::size_t best = experts;
        for (std::size_t e = 0; e < experts; ++e) {
          const bool more = best == experts || probabilities[token * experts + e] >
                                                   probabilities[token * experts + best];
          if (!chosen[e] && more)
            best = e;
        }
        chosen[best] = true;
        if (taken[best] < capacity)
          dispatch[(token * experts + best) * capacity + taken[best]] = 1.0;
        ++taken[best];
      }
    }
  }
  return dispatch;
}

Shape experts_shape(std::int64_t topk, double capacity_factor) {
  return {.layers = 1,
          .hidden = 8,
          .heads = 2,
          .sequence = 12,
          .vocabulary = 7,
          .batch = 3,
          .experts = 4,
          .topk = topk,
          .capacity_factor = capacity_factor};
}

TEST(Experts, TokensGoWhereTheirProbabilitiesSay) {
  for (const std::int64_t topk : {1, 2, 3}) {
    for (const double capacity : {0.4, 1.0, 4.0}) {
      const ExpertsRun run(experts_shape(topk, capacity));
      EXPECT_EQ(run.get("h.0.moe.dispatch"), dispatch_by_hand(run)) << topk << " " << capacity;
    }
  }
}

/// Sums of `size` numbers each.
Values sums_of(const Values& numbers, std::size_t size) {
  Values sums(numbers.size() / size, 0.0);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    sums[i / size] += numbers[i];
  return sums;
}

/// What experts give back is weighted by all of the probabilities that were chosen.
TEST(Experts, WeightsAddUpToTheProbabilitiesChosen) {
  const ExpertsRun run(experts_shape(2, 4.0));
  Values probabilities = run.get("h.0.moe.probabilities");
  const Values sums = sums_of(run.get("h.0.moe.combine"), 4 * 12);
  ASSERT_EQ(sums.size(), 36U);
  for (std::size_t token = 0; token < sums.size(); ++token) {
    const auto begin = probabilities.begin() + static_cast<std::ptrdiff_t>(4 * token);
    std::sort(begin, begin + 4, std::greater<>());
    EXPECT_NEAR(sums[token], begin[0] + begin[1], 1e-15);
  }
}

TEST(Experts, DroppedTokensPassThroughTheResidualOnly) {
  const ExpertsRun run(experts_shape(1, 0.4));
  ASSERT_EQ(run.shape().capacity(), 2);
  const Values taken = sums_of(run.get("h.0.moe.dispatch"), 4 * 2);
  const Values before = run.get("h.0.attn.residual");
  const Values after = run.get("h.0.moe.residual");
  int dropped = 0;
  for (std::size_t i = 0; i < after.size(); ++i) {
    if (taken[i / 8] == 0.0) {
      EXPECT_EQ(after[i], before[i]);
      ++dropped;
    } else {
      EXPECT_NE(after[i], before[i]);
    }
  }
  EXPECT_GE(dropped, 8 * 3 * (12 - 8)); // at most two tokens for each of four experts
}

/// With one expert that takes all, the mixture is the dense layer.
TEST(Experts, OneExpertIsADenseLayer) {
  Shape shape = experts_shape(1, 1.0);
  shape.experts = 1;
  const ExpertsRun mixed(shape);
  shape.experts.reset();
  const TrainingGraph dense = make_inference_graph(make_transformer(shape));
  Execution execution(dense.graph);
  for (const Tensor& tensor : dense.graph.tensors()) {
    if (tensor.kind == TensorKind::parameter)
      set_by_name(execution, dense, tensor.name, mixed.get(replaced(tensor.name, "mlp", "moe")));
  }
  execution.set(dense.graph.inputs[0], mixed.get("tokens"));
  fill(execution, dense, 11);
  execution.run();
  const Values expected = execution.get(dense.graph.outputs[0]);
  const Values logits = mixed.get("logits");
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(logits[i], expected[i], 1e-13);
}

} // namespace MONET_TEST_FILE
} // namespace monet
