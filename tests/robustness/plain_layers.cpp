// Element by element, with everything that broadcasts; reductions, softmax, normalisation.
#include "robustness/network_grower.hpp"

namespace monet::testing {

namespace {

std::int64_t some_axis(Random& random, const Value& x) {
  const std::int64_t axis = random.between(0, x.rank() - 1);
  return random.chance(30) ? axis - x.rank() : axis;
}

void unary(NetworkGrower& network, Random& random) {
  static const std::vector<std::string> types{"Relu",
                                              "Sigmoid",
                                              "Tanh",
                                              "Exp",
                                              "Log",
                                              "Sqrt",
                                              "Neg",
                                              "Abs",
                                              "Softplus",
                                              "Erf",
                                              "Sin",
                                              "Cos",
                                              "Reciprocal",
                                              "LeakyRelu",
                                              "Elu",
                                              "Selu",
                                              "Softsign",
                                              "Sign",
                                              "Floor",
                                              "HardSwish",
                                              "HardSigmoid",
                                              "Celu",
                                              "Round",
                                              "Mish",
                                              "Identity",
                                              "Dropout",
                                              "Clip",
                                              "Shrink",
                                              "ThresholdedRelu",
                                              "Atan"};
  network.add(random.pick(types), {network.some(random).name});
}

/// Some sizes may be one, in either operand; axes may be missing or too many.
Shape fitting(NetworkGrower& network, Random& random, Shape shape) {
  for (std::int64_t& size : shape) {
    if (random.chance(30))
      size = size == 1 ? network.size(random) : 1;
  }
  if (!shape.empty() && random.chance(30))
    shape.erase(shape.begin(),
                shape.begin() + static_cast<std::ptrdiff_t>(random.index(shape.size() + 1)));
  if (random.chance(10))
    shape.insert(shape.begin(), network.size(random));
  return shape;
}

/// A weight or, by chance, another tensor of the network.
std::string operand_for(NetworkGrower& network, Random& random, const Value& x) {
  return random.chance(40) ? network.some(random).name
                           : network.weight(fitting(network, random, x.shape), x.type).name;
}

void binary(NetworkGrower& network, Random& random) {
  const Value x = network.with_axes(random);
  static const std::vector<std::string> types{"Add", "Sub", "Mul", "Div",  "Pow", "PRelu",
                                              "Max", "Min", "Sum", "Mean", "Add", "Mul"};
  const std::string type = random.pick(types);
  std::vector<std::string> inputs{x.name, operand_for(network, random, x)};
  if (type != "PRelu" && random.chance(25))
    std::swap(inputs[0], inputs[1]);
  if ((type == "Max" || type == "Sum" || type == "Mean") && random.chance(30))
    inputs.push_back(operand_for(network, random, x));
  network.add(type, inputs);
}

void choice(NetworkGrower& network, Random& random) {
  const Value x = network.with_axes(random);
  const Value condition =
      network.add(random.one_of<std::string>({"Greater", "LessOrEqual", "Equal"}),
                  {x.name, operand_for(network, random, x)});
  network.add("Where", {condition.name, x.name, operand_for(network, random, x)});
}

void reduction(NetworkGrower& network, Random& random) {
  const Value x = network.with_axes(random);
  static const std::vector<std::string> types{
      "ReduceSum", "ReduceMean", "ReduceMax",       "ReduceMin",       "ReduceProd",
      "ReduceL1",  "ReduceL2",   "ReduceSumSquare", "ReduceLogSumExp", "ReduceLogSum"};
  const std::string type = random.pick(types);
  Shape axes;
  for (std::int64_t axis = 0; axis < x.rank(); ++axis)
    if (random.chance(50))
      axes.push_back(random.chance(30) ? axis - x.rank() : axis);
  AttributeList attributes{{"keepdims", random.between(0, 1)}};
  std::vector<std::string> inputs{x.name};
  if (!axes.empty() && type == "ReduceSum")
    inputs.push_back(network.integers(axes));
  if (!axes.empty() && type != "ReduceSum")
    attributes.emplace_back("axes", axes);
  network.add(type, inputs, attributes);
}

void softmax(NetworkGrower& network, Random& random) {
  const Value x = network.with_axes(random);
  network.add(random.one_of<std::string>({"Softmax", "LogSoftmax", "Hardmax"}), {x.name},
              {{"axis", some_axis(random, x)}});
}

void running_sum(NetworkGrower& network, Random& random) {
  const Value x = network.with_axes(random);
  AttributeList attributes{{"exclusive", random.between(0, 1)}, {"reverse", random.between(0, 1)}};
  const std::int64_t axis = some_axis(random, x);
  if (random.chance(60)) {
    network.add("CumSum", {x.name, network.integers({axis})}, attributes);
  } else {
    network.add("LpNormalization", {x.name}, {{"axis", axis}, {"p", random.between(1, 2)}});
  }
}

void row_norm(NetworkGrower& network, Random& random) {
  const Value x = network.with_axes(random);
  const std::int64_t axis = random.between(0, x.rank() - 1);
  const Shape rows(x.shape.begin() + static_cast<std::ptrdiff_t>(axis), x.shape.end());
  std::vector<std::string> inputs{x.name, network.weight(rows, x.type).name};
  if (random.chance(60))
    inputs.push_back(network.weight(rows, x.type).name);
  network.add("LayerNormalization", inputs, {{"axis", random.chance(50) ? axis : axis - x.rank()}});
}

void channel_norm(NetworkGrower& network, Random& random) {
  const Value x = network.of_rank(random, random.between(2, 5));
  const auto channels = [&] { return network.weight({x.size(1)}, x.type).name; };
  if (random.chance(60)) {
    network.add("BatchNormalization", {x.name, channels(), channels(), channels(), channels()});
  } else {
    network.add("InstanceNormalization", {x.name, channels(), channels()});
  }
}

void neighbour_norm(NetworkGrower& network, Random& random) {
  const Value x = network.of_rank(random, random.between(3, 4));
  network.add("LRN", {x.name}, {{"size", 2 * random.between(0, 2) + 1}});
}

void cast(NetworkGrower& network, Random& random) {
  const Value x = network.with_axes(random);
  static const std::vector<int> floats{onnx::TensorProto::FLOAT, onnx::TensorProto::FLOAT16,
                                       onnx::TensorProto::BFLOAT16, onnx::TensorProto::DOUBLE};
  Value at = x;
  for (std::int64_t n = random.between(0, 2); n > 0; --n) {
    at = network.add("Cast", {at.name}, {{"to", std::int64_t{random.pick(floats)}}});
    if (random.chance(30)) // something in the other type
      at = network.add(random.one_of<std::string>({"Relu", "Neg", "Identity"}), {at.name});
    if (random.chance(30) && !at.shape.empty())
      at = network.reshape(at, {-1});
  }
  network.add("Cast", {at.name}, {{"to", std::int64_t{x.type}}});
}

void loss(NetworkGrower& network, Random& random) {
  const Value x = network.of_rank(random, 2);
  const Value labels = network.indices(random, {x.size(0)}, x.size(1), false);
  const AttributeList attributes{
      {"reduction", random.one_of<std::string>({"none", "mean", "sum"})}};
  if (random.chance(50)) {
    network.add("SoftmaxCrossEntropyLoss", {x.name, labels.name}, attributes);
  } else {
    network.add("NegativeLogLikelihoodLoss", {x.name, labels.name}, attributes);
  }
}

} // namespace

const std::vector<LayerFamily>& plain_layers() {
  static const std::vector<LayerFamily> families{
      {"unary", unary},
      {"unary", unary},
      {"binary", binary},
      {"binary", binary},
      {"Where", choice},
      {"reduction", reduction},
      {"softmax", softmax},
      {"CumSum, LpNormalization", running_sum},
      {"LayerNormalization", row_norm},
      {"normalisation of channels", channel_norm},
      {"LRN", neighbour_norm},
      {"Cast", cast},
      {"loss", loss},
  };
  return families;
}

} // namespace monet::testing
