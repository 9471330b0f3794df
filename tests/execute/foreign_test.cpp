// Gradients of convolutions that other tools spell out: what is fused computes the same numbers
// where the file computes a gradient, and a gradient where it does not.
#include "execute/shared/generator.hpp"
#include "workload/models.hpp"

#include "monet/execute/execute.hpp"
#include "monet/workload/imported_steps.hpp"
#include "monet/workload/onnx_reader.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ostream>

namespace monet {
namespace {

using test::ModelMaker;
using test::Shape;

struct Convolution {
  std::int64_t batch = 2, channels = 3, kernels = 4, size = 6, kernel = 3, stride = 1, pad = 1,
               dilation = 1;
  friend std::ostream& operator<<(std::ostream& out, const Convolution& c) {
    return out << "size " << c.size << " kernel " << c.kernel << " stride " << c.stride << " pad "
               << c.pad << " dilation " << c.dilation;
  }
  std::int64_t reach() const { return dilation * (kernel - 1) + 1; }
  std::int64_t out() const { return (size + 2 * pad - reach()) / stride + 1; }
};

enum class Fault { none, one_window, order, shifted };

/// The step of a network of one convolution, a layer before it and one after, in which the second
/// convolution's gradients are a ConvTranspose and patches.
class StepMaker {
public:
  StepMaker(const Convolution& c, Fault fault) : c_(c), fault_(fault) {
    model_.import("com.microsoft", 1);
    forward();
    backward();
  }

  Graph read() const { return read_onnx_bytes(model_.bytes(), "foreign.onnx"); }

private:
  void forward() {
    const std::int64_t features = c_.kernels * c_.out() * c_.out();
    model_.input("x", {c_.batch, c_.channels, c_.size, c_.size});
    model_.input("labels", {c_.batch}, onnx::TensorProto::INT64);
    model_.input("w0", {c_.channels, c_.channels, 1, 1});
    model_.input("w", {c_.kernels, c_.channels, c_.kernel, c_.kernel});
    model_.input("fc", {features, 5});
    model_.input("dloss", {}).input("rate", {1});
    model_.integers("flat", {c_.batch, features});
    model_.integers("back", {c_.batch, c_.kernels, c_.out(), c_.out()});
    model_.node("Conv", {"x", "w0"}, {"h0"});
    model_.node("Relu", {"h0"}, {"h"});
    geometry(model_.node("Conv", {"h", "w"}, {"y"}));
    model_.node("Reshape", {"y", "flat"}, {"yf"});
    model_.node("MatMul", {"yf", "fc"}, {"scores"});
    ModelMaker::set(model_.node("LogSoftmax", {"scores"}, {"logp"}), "axis", std::int64_t{-1});
  }

  void backward() {
    model_.node("SoftmaxCrossEntropyLossGrad", {"dloss", "logp", "labels"}, {"dscores"},
                "com.microsoft");
    ModelMaker::set(model_.node("Transpose", {"fc"}, {"fcT"}), "perm", Shape{1, 0});
    model_.node("MatMul", {"dscores", "fcT"}, {"dyf"});
    model_.node("Reshape", {"dyf", "back"}, {"dy"});
    auto& transposed = model_.node("ConvTranspose", {"dy", "w"}, {"dh"});
    geometry(transposed);
    const std::int64_t open = c_.size - ((c_.out() - 1) * c_.stride - 2 * c_.pad + c_.reach());
    ModelMaker::set(transposed, "output_padding", Shape{open, open});
    model_.node("ReluGrad", {"dh", "h"}, {"dh0"}, "com.microsoft");
    patches();
    for (const auto& [weight, gradient] : {std::pair("w", "dw")}) {
      model_.node("Mul", {gradient, "rate"}, {std::string(gradient) + ".step"});
      model_.node("Sub", {weight, std::string(gradient) + ".step"},
                  {std::string(weight) + "_optimizer_end"});
      model_.output(std::string(weight) + "_optimizer_end").output(gradient);
    }
    model_.output("dh0");
  }

  void patches() {
    model_.integers("pads", {0, 0, c_.pad, c_.pad, 0, 0, c_.pad, c_.pad});
    model_.integers("dy.shape", {c_.batch, c_.kernels, c_.out() * c_.out()});
    model_.integers("patches.shape",
                    {c_.batch, c_.out() * c_.out(), c_.channels * c_.kernel * c_.kernel});
    model_.integers("dw.shape", {c_.kernels, c_.channels, c_.kernel, c_.kernel});
    model_.integers("batch", {0});
    table("rows", Fault::none);
    table("columns", fault_);
    model_.node("Reshape", {"dy", "dy.shape"}, {"dyr"});
    std::string input = "h";
    if (c_.pad > 0) {
      model_.node("Pad", {"h", "pads"}, {"hp"});
      input = "hp";
    }
    ModelMaker::set(model_.node("Gather", {input, "rows"}, {"g1"}), "axis", std::int64_t{2});
    ModelMaker::set(model_.node("Gather", {"g1", "columns"}, {"g2"}), "axis", std::int64_t{4});
    ModelMaker::set(model_.node("Transpose", {"g2"}, {"gt"}), "perm",
                    fault_ == Fault::order ? Shape{0, 3, 5, 4, 1, 2} : Shape{0, 3, 5, 1, 2, 4});
    model_.node("Reshape", {"gt", "patches.shape"}, {"gr"});
    model_.node("MatMul", {"dyr", "gr"}, {"dwb"});
    ModelMaker::set(model_.node("ReduceSum", {"dwb", "batch"}, {"dws"}), "keepdims",
                    std::int64_t{0});
    model_.node("Reshape", {"dws", "dw.shape"}, {"dw"});
  }

  void geometry(onnx::NodeProto& node) const {
    ModelMaker::set(node, "strides", Shape{c_.stride, c_.stride});
    ModelMaker::set(node, "dilations", Shape{c_.dilation, c_.dilation});
    ModelMaker::set(node, "pads", Shape{c_.pad, c_.pad, c_.pad, c_.pad});
    ModelMaker::set(node, "kernel_shape", Shape{c_.kernel, c_.kernel});
  }

  /// [kernel, out]: where the window at o has its element f.
  void table(const std::string& name, Fault fault) {
    std::vector<std::int64_t> values;
    for (std::int64_t f = 0; f < c_.kernel; ++f) {
      for (std::int64_t o = 0; o < c_.out(); ++o) {
        const std::int64_t window = fault == Fault::one_window ? c_.out() - 1 : o;
        const bool off = fault == Fault::shifted && o == 1;
        values.push_back(window * c_.stride + f * c_.dilation - (off ? 1 : 0));
      }
    }
    model_.integers(name, values);
    auto& tensor = *model_.graph().mutable_initializer(model_.graph().initializer_size() - 1);
    tensor.set_dims(0, c_.kernel);
    tensor.add_dims(c_.out());
  }

  Convolution c_;
  Fault fault_;
  ModelMaker model_;
};

const Operator* find(const Graph& graph, std::string_view op_type) {
  for (const Operator& op : graph.operators()) {
    if (op.op_type == op_type)
      return &op;
  }
  return nullptr;
}

std::vector<double> compute(const Graph& graph, const std::string& name) {
  Execution execution(graph);
  for (std::size_t i = 0; i < graph.tensors().size(); ++i) {
    const Tensor& tensor = graph.tensors()[i];
    if (tensor.producer || tensor.values)
      continue;
    std::vector<double> numbers(static_cast<std::size_t>(element_count(tensor)));
    for (std::size_t k = 0; k < numbers.size(); ++k) {
      numbers[k] = tensor.type == ElementType::int64
                       ? static_cast<double>((3 * k + 1) % 5)
                       : std::sin(1.0 + 0.7 * static_cast<double>(k) +
                                  static_cast<double>(tensor.name.size() + tensor.name.back()));
    }
    execution.set(TensorId(i), numbers);
  }
  execution.run();
  return execution.get(*graph.find_tensor(name));
}

void expect_equal(const std::vector<double>& a, const std::vector<double>& b) {
  ASSERT_EQ(a.size(), b.size());
  double largest = 0;
  for (const double value : a)
    largest = std::max(largest, std::abs(value));
  EXPECT_GT(largest, 1e-3);
  for (std::size_t i = 0; i < a.size(); ++i)
    EXPECT_NEAR(a[i], b[i], 1e-12 * largest) << i;
}

class ForeignGradients : public testing::TestWithParam<Convolution> {};

TEST_P(ForeignGradients, AreFusedAndComputeTheSameNumbers) {
  const Graph file = StepMaker(GetParam(), Fault::none).read();
  ForeignReport report;
  const Graph step = recognise_training_step(file, report);
  verify(step);
  EXPECT_TRUE(report.is_training_step);
  ASSERT_EQ(report.recognised.size(), 2U);
  for (const RecognisedGradient& gradient : report.recognised)
    EXPECT_EQ(gradient.deviation, "");
  EXPECT_TRUE(report.kept.empty());
  EXPECT_EQ(find(step, "Gather"), nullptr);
  EXPECT_EQ(find(step, "ConvTranspose"), nullptr);
  EXPECT_EQ(find(step, "ConvGradWeight")->gradient_of, GradientOf::weight);
  EXPECT_EQ(find(step, "ConvGradInput")->gradient_of, GradientOf::input);
  for (const char* name : {"dw", "dh0", "w_optimizer_end"})
    expect_equal(compute(file, name), compute(step, name));
}

INSTANTIATE_TEST_SUITE_P(
    Geometries, ForeignGradients,
    testing::Values(Convolution{}, Convolution{2, 3, 4, 8, 3, 2, 1, 1},
                    Convolution{2, 3, 4, 7, 3, 2, 1, 1}, Convolution{1, 2, 3, 9, 3, 1, 2, 2},
                    Convolution{2, 3, 4, 6, 1, 1, 0, 1}, Convolution{2, 3, 4, 6, 1, 2, 0, 1},
                    Convolution{1, 1, 2, 5, 5, 1, 0, 1}, Convolution{3, 2, 2, 12, 5, 3, 2, 1}));

// As in the published graphs: every window is the last one, and the patch is out of order. The
// numbers of such a file are no gradient; what stands for them is.
TEST(ForeignFaults, OfThePublishedGraphsAreReportedAndMended) {
  for (const Fault fault : {Fault::one_window, Fault::order}) {
    ForeignReport report;
    const Graph step = recognise_training_step(StepMaker({}, fault).read(), report);
    ASSERT_EQ(report.recognised.size(), 2U);
    EXPECT_EQ(report.recognised[1].deviation,
              fault == Fault::order ? "the patches' order is not that of the weight"
                                    : "all indices along axis 3 name the last window");
    const Graph right = StepMaker({}, Fault::none).read();
    expect_equal(compute(step, "dw"), compute(right, "dw"));
  }
}

TEST(ForeignFaults, TablesOfNoConvolutionAreCostedAsTheyStand) {
  ForeignReport report;
  const Graph step = recognise_training_step(StepMaker({}, Fault::shifted).read(), report);
  EXPECT_EQ(report.recognised.size(), 1U); // the gradient of the input
  ASSERT_EQ(report.kept.size(), 1U);
  EXPECT_EQ(report.kept[0].why, "the indices are those of no convolution");
  EXPECT_NE(find(step, "Gather"), nullptr);
  EXPECT_EQ(find(step, "ConvGradWeight"), nullptr);
}

TEST(ForeignSteps, HavePhasesInOrderAndUpdatesInPlace) {
  ForeignReport report;
  const Graph file = StepMaker({}, Fault::none).read();
  const Graph step = recognise_training_step(file, report);
  Phase last = Phase::forward;
  for (const Operator& op : step.operators()) {
    EXPECT_GE(op.phase, last) << op.name;
    last = op.phase;
  }
  EXPECT_EQ(find(step, "LogSoftmax")->phase, Phase::loss);
  EXPECT_EQ(find(step, "Sub")->phase, Phase::update);
  EXPECT_EQ(find(step, "Mul")->phase, Phase::update);
  const TensorId updated = *step.find_tensor("w_optimizer_end");
  EXPECT_EQ(step.tensor(updated).alias_of, step.find_tensor("w"));
  EXPECT_EQ(step.tensor(*step.find_tensor("rate")).kind, TensorKind::input);
  EXPECT_EQ(step.tensor(*step.find_tensor("dw")).kind, TensorKind::parameter_gradient);
  EXPECT_EQ(count_macs(step).backward_weight, macs(find(step, "ConvGradWeight")->nest));
  EXPECT_EQ(count_macs(step).forward + count_macs(step).backward_input +
                count_macs(step).backward_weight,
            count_macs(file).forward);
}

TEST(ForeignSteps, ANetworkIsNone) {
  ModelMaker model;
  model.input("x", {1, 3, 8, 8}).weight("w", {4, 3, 3, 3}).output("y");
  model.node("Conv", {"x", "w"}, {"y"});
  ForeignReport report;
  const Graph network = read_onnx_bytes(model.bytes(), "net.onnx");
  EXPECT_EQ(recognise_training_step(network, report).operators().size(), 1U);
  EXPECT_FALSE(report.is_training_step);
}

} // namespace
} // namespace monet
