// Layers in ZigZag's conventions: YAML workloads, and ONNX networks against its published results.
#include "core_cost/cores.hpp"

#include "monet/core_cost/layers.hpp"
#include "monet/workload/onnx_reader.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <string>

namespace monet {
namespace {

const std::string kRoot = MONET_SOURCE_DIR;

CoreCostOptions zigzag() {
  CoreCostOptions options;
  options.model = ModelChoices::zigzag_3_8();
  options.fixed_dataflow = true;
  return options;
}

/// A convolution with everything that an entry may have.
const std::string kConvolution = R"(
- id: 7
  name: conv
  operator_type: Conv
  equation: O[b][g][k][oy][ox]+=W[g][k][c][fy][fx]*I[b][g][c][iy][ix]
  dimension_relations: [ix=2*ox+3*fx, iy=1*oy+1*fy]
  loop_dims: [B, K, G, OX, OY, C, FX, FY]
  loop_sizes: [1, 4, 2, 5, 6, 3, 3, 2]
  operand_precision: {W: 4, I: 6, O: 20, O_final: 8}
  operand_source: {I: 7, W: 7}
  pr_loop_dims: [IX, IY]
  padding: [[1, 2], [0, 1]]
)";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Layers, AnEntryBecomesAProblem) {
  const std::vector<Layer> layers = parse_layers(kConvolution, "l.yaml");
  ASSERT_EQ(layers.size(), 1U);
  const Layer& layer = layers[0];
  EXPECT_EQ(layer.name, "conv");
  EXPECT_EQ(layer.op_type, "Conv");
  EXPECT_EQ(layer.roles, (std::vector<std::string>{"O", "W", "I"}));
  EXPECT_EQ(layer.where.line, 2);
  const CoreProblem& p = layer.problem;
  ASSERT_EQ(p.dims.size(), 8U);
  EXPECT_EQ(p.dims[3], (LoopDim{"OX", 5}));
  ASSERT_EQ(p.operands.size(), 3U);
  EXPECT_EQ(p.operands[0].mode, AccessMode::write);
  EXPECT_EQ(p.operands[0].bits, 8);
  EXPECT_EQ(p.operands[0].partial_bits, 20);
  EXPECT_EQ(p.operands[0].memory, MemoryOperand::O);
  EXPECT_EQ(p.operands[1].bits, 4);
  EXPECT_EQ(p.operands[1].partial_bits, 4);
  EXPECT_EQ(p.operands[1].memory, MemoryOperand::I2);
  EXPECT_EQ(p.operands[1].extents, (std::vector<std::int64_t>{2, 4, 3, 2, 3}));
  // IX = 2*OX + 3*FX: the strides have no common divisor, so distinct indices are
  // 5*3 - (3-2)*(5-3) = 13, less three of padding. IY: 6*2 - (2-1)*(6-1) = 7 less one.
  EXPECT_EQ(p.operands[2].extents, (std::vector<std::int64_t>{1, 2, 3, 10, 6}));
  EXPECT_EQ(p.operands[2].axes[3].terms, (std::vector<AffineTerm>{{3, 2}, {6, 3}}));
  EXPECT_EQ(p.operands[2].axes[4].terms, (std::vector<AffineTerm>{{4, 1}, {7, 1}}));
}

TEST(Layers, TheEquationOrdersTheInputs) {
  const auto layers = parse_layers("- {id: 3, operator_type: Gemm, equation: 'O[d][k] = I[d][c] * "
                                   "W[c][k]', loop_dims: [C, D, K], loop_sizes: [4, 5, 6], "
                                   "operand_precision: {W: 8, I: 8, O: 16}}",
                                   "l.yaml");
  EXPECT_EQ(layers[0].name, "Layer3");
  EXPECT_EQ(layers[0].roles, (std::vector<std::string>{"O", "I", "W"}));
  CoreProblem expected = test::product(4, 5, 6, 8, 16);
  expected.operands[0].bits = 16; // there is no O_final
  EXPECT_EQ(layers[0].problem, expected);
}

TEST(Layers, GivenSizesOfRelationsCountAsTheyAre) {
  const auto layers = parse_layers(kConvolution + "  pr_loop_sizes: [9, 4]\n", "l.yaml");
  EXPECT_EQ(layers[0].problem.operands[2].extents, (std::vector<std::int64_t>{1, 2, 3, 9, 4}));
}

TEST(Layers, TermsKeepTheOrderOfTheRelation) {
  const auto layers = parse_layers(replaced(kConvolution, "ix=2*ox+3*fx", "ix = fx + 2*ox"), "l");
  EXPECT_EQ(layers[0].problem.operands[2].axes[3].terms, (std::vector<AffineTerm>{{6, 1}, {3, 2}}));
}

TEST(Layers, OtherNamesTakeTheMemoryOperandThatIsLeft) {
  const std::string add = "- {id: 0, operator_type: Add, equation: 'O[k]=A[k]+B[k]', "
                          "loop_dims: [K], loop_sizes: [8], operand_precision: {A: 8, B: 4, O: 8}}";
  const auto layers = parse_layers(add, "l.yaml");
  EXPECT_EQ(layers[0].problem.operands[1].memory, MemoryOperand::I1);
  EXPECT_EQ(layers[0].problem.operands[2].memory, MemoryOperand::I2);
}

TEST(Layers, ManyLayersAreRead) {
  std::string text;
  for (int i = 0; i < 100; ++i)
    text +=
        replaced(replaced(kConvolution, "id: 7", "id: " + std::to_string(i)), "{I: 7, W: 7}", "")
            .substr(1);
  EXPECT_EQ(parse_layers(text, "l.yaml").size(), 100U);
  EXPECT_THROW(parse_layers(kConvolution + kConvolution.substr(1), "l.yaml"), InputError)
      << "an id twice";
}

TEST(Layers, AreTakenGenerationByGeneration) {
  const auto layer = [](int id, int source) {
    const std::string at = std::to_string(id);
    return "- {id: " + at +
           ", operator_type: Gemm, equation: 'O[k]+=W[k][c]*I[c]', loop_dims: "
           "[K, C], loop_sizes: [2, 2], operand_precision: {W: 8, I: 8, O: 8}, operand_source: "
           "{W: " +
           at + ", I: " + std::to_string(source) + "}}\n";
  };
  // 1 and 2 follow 0; 3 reads constants only; 4 follows 3.
  std::string names;
  for (const Layer& l :
       parse_layers(layer(0, 0) + layer(1, 0) + layer(2, 0) + layer(3, 3) + layer(4, 3), "l.yaml"))
    names += l.name.back();
  EXPECT_EQ(names, "03124");
}

TEST(Layers, AnOperandWithoutBitsMovesNothing) {
  const std::string pooling = R"(
- id: 0
  operator_type: Pooling
  equation: O[b][g][oy][ox]+=W[fx][fy]*I[b][g][iy][ix]
  dimension_relations: [ix=2*ox+1*fx, iy=2*oy+1*fy]
  loop_dims: [B, G, OY, OX, FX, FY]
  loop_sizes: [1, 64, 8, 8, 3, 3]
  operand_precision: {W: 0, I: 8, O: 16, O_final: 8}
)";
  const auto layers = parse_layers(pooling, "l.yaml");
  Core core = test::tpu_like(true);
  core.dataflow = {{{"G", 32}}, {{"C", 1}}};
  const CoreCost cost = core_cost(layers[0].problem, core, zigzag());
  double others = 0;
  for (const LevelEnergy& level : cost.levels) {
    if (level.operand == 1) {
      EXPECT_EQ(level.energy.value, 0) << level.memory;
    } else {
      others += level.energy.value;
    }
  }
  EXPECT_GT(others, 0);
}

struct Wrong {
  std::string from;
  std::string to;
  std::string message;
};

TEST(Layers, ProblemsHaveAPlaceAndAHint) {
  const std::vector<Wrong> cases{
      {"loop_sizes", "loop_size", "l.yaml:8:3: unknown key 'loop_size'"},
      {"operator_type", "operator_typ",
       "unknown key 'operator_typ' (did you mean 'operator_type'?)"},
      {"O[b][g][k]", "P[b][g][k]", "the output must be called O, not 'P'"},
      {"+=W", "-=W", "l.yaml:5:13: expected an equation like"},
      {"*I[b]", "", "expected an equation like"},
      {"W[g]", "W[gg]", "index 'GG' is neither a loop dimension nor the left side"},
      {"*I[b]", "*W[b]", "operand 'W' is there twice"},
      {"iy=1*oy+1*fy", "iy=1*oy", "expected a relation like 'ix=2*ox+1*fx'"},
      {"iy=1*oy+1*fy", "iy=0*oy+1*fy", "expected a relation like 'ix=2*ox+1*fx'"},
      {"iy=1*oy+1*fy", "iy=1*oyy+1*fy", "'OYY' is not a loop dimension (did you mean 'OY'?)"},
      {"iy=1*oy+1*fy", "iy=1*oy+2*oy", "'OY' is on both sides of the sum"},
      {"iy=1*oy+1*fy", "ix=1*oy+1*fy", "'IX' is already defined"},
      {"iy=1*oy+1*fy", "iy=999999999999999999*oy+1*fy", "spans too much"},
      {"[B, K, G,", "[B, B, G,", "loop dimension 'B' is given twice"},
      {"[1, 4, 2,", "[1, 4,", "7 sizes for 8 loop dimensions"},
      {"[1, 4, 2,", "[0, 4, 2,", "0 iterations of 'B'; at least 1 is needed"},
      {"[1, 4, 2,", "[1000000000, 1000000000, 2,", "iterations in one layer"},
      {"W: 4", "V: 4", "no precision for operand 'W'"},
      {"W: 4", "W: -1", "a precision of -1 bits"},
      {"I: 7, W", "J: 7, W", "the equation has no operand 'J'"},
      {"I: 7, W", "I: 8, W", "no layer before this one has id 8"},
      {"[IX, IY]", "[IX, IZ]", "'IZ' is not the left side of a relation"},
      {"[IX, IY]", "[IX]", "'padding' has 2 entries, but 'pr_loop_dims' has 1"},
      {"[1, 2]", "[1]", "expected the padding before and after"},
      {"[1, 2]", "[10, 3]", "the axis of 'IX' has 0 elements"}};
  for (const Wrong& wrong : cases) {
    try {
      parse_layers(replaced(kConvolution, wrong.from, wrong.to), "l.yaml");
      ADD_FAILURE() << wrong.to << " was read";
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find(wrong.message), std::string::npos)
          << wrong.to << "\n"
          << error.what();
    }
  }
  EXPECT_THROW(parse_layers("{}", "l.yaml"), InputError);
  EXPECT_THROW(parse_layers("[]", "l.yaml"), InputError);
}

nlohmann::json fixture() {
  std::ifstream file(kRoot + "/tests/fixtures/zigzag/tpu_like_resnet18_latency_lpf6.json");
  return nlohmann::json::parse(file);
}

Graph resnet18() {
  OnnxReadOptions options;
  options.batch = 1;
  return read_onnx(kRoot + "/data/workload/resnet18.onnx", options);
}

TEST(Layers, ResNet18CostsWhatZigZagSays) {
  const nlohmann::json expected = fixture();
  const NetworkLayers network = zigzag_layers(resnet18());
  EXPECT_FALSE(network.skipped.empty());
  ASSERT_EQ(network.layers.size(), expected.at("layers").size());
  const Core core = test::tpu_like(true);
  double energy = 0;
  double latency = 0;
  for (const nlohmann::json& e : expected.at("layers")) { // sums depend on the order
    const auto name = e.at("name").get<std::string>();
    SCOPED_TRACE(name);
    const auto found = std::find_if(network.layers.begin(), network.layers.end(),
                                    [&](const Layer& l) { return l.name == name; });
    ASSERT_NE(found, network.layers.end());
    const Layer& layer = *found;
    const CoreCost cost = core_cost(layer.problem, core, zigzag());
    EXPECT_EQ(cost.energy().value, e.at("energy_pj").get<double>());
    const std::vector<double> parts{cost.parts.ideal_temporal, cost.parts.stall, cost.parts.onload,
                                    cost.parts.offload};
    EXPECT_EQ(parts, e.at("latency").get<std::vector<double>>());
    nlohmann::json order = nlohmann::json::array();
    for (const MappedLoop& loop : cost.temporal.order)
      order.push_back({layer.problem.dims[loop.dim].name, static_cast<int>(loop.size)});
    EXPECT_EQ(order, e.at("order"));
    for (std::size_t operand = 0; operand < layer.roles.size(); ++operand) {
      std::vector<std::size_t> loops;
      for (const auto& level : cost.temporal.by_operand[operand])
        loops.push_back(level.size());
      EXPECT_EQ(loops, e.at("loops").at(layer.roles[operand]).get<std::vector<std::size_t>>());
    }
    energy += cost.energy().value;
    latency += cost.parts.total();
  }
  EXPECT_EQ(energy, expected.at("energy_pj").get<double>());
  EXPECT_EQ(latency, 3703960.5);
}

/// A network of one operator.
struct OneOperator {
  Graph graph;
  Operator op;

  TensorId tensor(const std::string& name, std::vector<std::int64_t> shape, TensorKind kind) {
    Tensor t;
    t.name = name;
    t.shape = std::move(shape);
    t.kind = kind;
    return graph.add_tensor(t);
  }
  NetworkLayers layers() {
    graph.add_operator(op);
    return zigzag_layers(graph);
  }
};

OneOperator convolution(std::vector<std::int64_t> x, std::vector<std::int64_t> w,
                        std::vector<std::int64_t> y, std::int64_t groups) {
  OneOperator net;
  net.op.name = "node";
  net.op.op_type = "Conv";
  net.op.attributes.set("group", groups);
  net.op.inputs = {net.tensor("x", std::move(x), TensorKind::input),
                   net.tensor("w", std::move(w), TensorKind::parameter)};
  net.op.outputs = {net.tensor("y", std::move(y), TensorKind::activation)};
  return net;
}

std::vector<std::int64_t> sizes(const Layer& layer) {
  std::vector<std::int64_t> list;
  for (const LoopDim& dim : layer.problem.dims)
    list.push_back(dim.size);
  return list;
}

TEST(Layers, DepthwiseConvolutionsHaveOneChannelPerGroup) {
  OneOperator net = convolution({2, 16, 10, 8}, {16, 1, 3, 5}, {2, 16, 8, 4}, 16);
  net.op.attributes.set("weight_size", std::int64_t{4});
  net.op.attributes.set("act_size", std::int64_t{6});
  const NetworkLayers layers = net.layers();
  ASSERT_EQ(layers.layers.size(), 1U);
  // B K G OX OY C FX FY; FX is the kernel's first axis, as ZigZag has it.
  EXPECT_EQ(sizes(layers.layers[0]), (std::vector<std::int64_t>{2, 1, 16, 4, 8, 1, 3, 5}));
  const CoreProblem& p = layers.layers[0].problem;
  EXPECT_EQ(p.operands[0].bits, 6);
  EXPECT_EQ(p.operands[0].partial_bits, 12);
  EXPECT_EQ(p.operands[1].bits, 4);
  EXPECT_EQ(p.operands[2].bits, 6);
  EXPECT_EQ(p.operands[2].extents, (std::vector<std::int64_t>{2, 16, 1, 10, 8}));
}

TEST(Layers, PrecisionsThatAreNoneAreRefused) {
  OneOperator net = convolution({1, 1, 4, 4}, {1, 1, 1, 1}, {1, 1, 4, 4}, 1);
  net.op.attributes.set("output_size", std::int64_t{-2});
  EXPECT_THROW(net.layers(), InputError);
}

OneOperator product(std::vector<std::int64_t> a, std::vector<std::int64_t> b,
                    std::vector<std::int64_t> y, bool both_computed) {
  OneOperator net;
  std::vector<std::optional<TensorId>> inputs;
  for (auto& shape : {a, b}) {
    const std::string name = inputs.empty() ? "a" : "b";
    const TensorId given = net.tensor(name + "0", shape, TensorKind::input);
    if (!inputs.empty() && !both_computed) {
      inputs.emplace_back(given);
      continue;
    }
    Operator relu;
    relu.name = "make " + name;
    relu.op_type = "Relu";
    relu.inputs = {given};
    const TensorId made = net.tensor(name, shape, TensorKind::activation);
    relu.outputs = {made};
    net.graph.add_operator(relu);
    inputs.emplace_back(made);
  }
  net.op.name = "node";
  net.op.op_type = "MatMul";
  net.op.inputs = inputs;
  net.op.outputs = {net.tensor("y", std::move(y), TensorKind::activation)};
  return net;
}

TEST(Layers, ProductsOfTwoActivationsAreBatched) {
  const NetworkLayers layers =
      product({2, 12, 64, 32}, {2, 12, 32, 48}, {2, 12, 64, 48}, true).layers();
  ASSERT_EQ(layers.layers.size(), 1U);
  EXPECT_EQ(layers.skipped.size(), 2U);
  const Layer& layer = layers.layers[0];
  EXPECT_EQ(sizes(layer), (std::vector<std::int64_t>{32, 64, 48, 2, 12})); // C D K B H
  EXPECT_EQ(layer.roles, (std::vector<std::string>{"O", "I", "W"}));
  EXPECT_EQ(layer.problem.operands[2].extents, (std::vector<std::int64_t>{2, 12, 32, 48}));
}

TEST(Layers, ConstantWeightsHaveNoBatch) {
  const NetworkLayers layers = product({3, 64, 32}, {32, 48}, {3, 64, 48}, false).layers();
  ASSERT_EQ(layers.layers.size(), 1U);
  EXPECT_EQ(sizes(layers.layers[0]), (std::vector<std::int64_t>{32, 64, 48, 3})); // C D K B
  EXPECT_EQ(layers.layers[0].problem.operands[2].extents, (std::vector<std::int64_t>{32, 48}));
}

TEST(Layers, ProductsThatZigZagDoesNotReadAreNamed) {
  try {
    product({2, 2, 3, 64, 32}, {32, 48}, {2, 2, 3, 64, 48}, false).layers();
    ADD_FAILURE() << "five axes were read";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("node 'node' (MatMul)"), std::string::npos);
  }
}

} // namespace
} // namespace monet
