// Products of any two tensors, attention, recurrent layers.
#include "robustness/network_grower.hpp"

#include <algorithm>

namespace monet::testing {

namespace {

/// The shape with some sizes, and some of its first axes, gone: it broadcasts to the whole.
Shape broadcast(Random& random, Shape shape) {
  if (random.chance(30))
    shape.erase(shape.begin(),
                shape.begin() + static_cast<std::ptrdiff_t>(random.index(shape.size() + 1)));
  for (std::int64_t& size : shape)
    if (random.chance(25))
      size = 1;
  return shape;
}

void product(NetworkGrower& network, Random& random) {
  const Value x = network.with_axes(random);
  const std::int64_t depth = x.shape.empty() ? 1 : x.shape.back();
  Shape shape;
  if (x.rank() > 2 && random.chance(40))
    shape = broadcast(random, {x.shape.begin(), x.shape.end() - 2});
  shape.push_back(depth);
  if (random.chance(90))
    shape.push_back(network.size(random));
  if (random.chance(15)) {
    std::swap(shape.front(), shape.back());
    network.add("MatMul",
                {network.weight({network.size(random), x.shape.front()}, x.type).name, x.name});
    return;
  }
  network.add("MatMul", {x.name, network.weight(shape, x.type).name});
}

void product_with_itself(NetworkGrower& network, Random& random) {
  const Value x = network.of_rank(random, random.between(2, 4));
  Shape order(x.shape.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    order[i] = static_cast<std::int64_t>(i);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  const Value turned = network.add("Transpose", {x.name}, {{"perm", order}});
  if (random.chance(50)) {
    network.add("MatMul", {x.name, turned.name});
  } else {
    network.add("MatMul", {turned.name, x.name});
  }
}

void gemm(NetworkGrower& network, Random& random) {
  const Value x = network.of_rank(random, 2);
  const bool turned = random.chance(30);
  const bool turned_weight = random.chance(30);
  const std::int64_t k = network.size(random);
  const std::int64_t depth = x.size(turned ? 0 : 1);
  const Shape weight = turned_weight ? Shape{k, depth} : Shape{depth, k};
  std::vector<std::string> inputs{x.name, network.weight(weight, x.type).name};
  if (random.chance(60))
    inputs.push_back(network.weight(broadcast(random, {x.size(turned ? 1 : 0), k}), x.type).name);
  AttributeList attributes{{"transA", std::int64_t{turned}},
                           {"transB", std::int64_t{turned_weight}}};
  if (random.chance(20))
    attributes.emplace_back("alpha", 0.5);
  if (random.chance(20))
    attributes.emplace_back("beta", 2.0);
  network.add("Gemm", inputs, attributes);
}

/// Letters of the first operand, some of them again or others in the second, any of them in the
/// result.
void einsum(NetworkGrower& network, Random& random) {
  const Value x = network.of_rank(random, random.between(1, 4));
  std::string first = "abcd";
  first.resize(x.shape.size());
  std::string second;
  Shape shape;
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (!random.chance(50))
      continue;
    second += first[i];
    shape.push_back(random.chance(10) ? 1 : x.shape[i]);
  }
  for (char letter = 'e'; letter < 'g' && second.size() < 4; ++letter) {
    if (!random.chance(60))
      continue;
    const std::size_t at = random.index(second.size() + 1);
    second.insert(second.begin() + static_cast<std::ptrdiff_t>(at), letter);
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(at), network.size(random));
  }
  std::string result;
  for (const char letter : std::string("abcdefg")) {
    const bool there =
        first.find(letter) != std::string::npos || second.find(letter) != std::string::npos;
    if (there && random.chance(65))
      result.insert(result.begin() + static_cast<std::ptrdiff_t>(random.index(result.size() + 1)),
                    letter);
  }
  if (random.chance(10)) { // one operand: a sum, a diagonal
    network.add("Einsum", {x.name}, {{"equation", first + "->" + first.substr(0, 1)}});
    return;
  }
  std::vector<std::string> inputs{x.name, network.weight(shape, x.type).name};
  std::string equation = first + "," + second;
  if (random.chance(10)) { // a third operand, contracted in pairs
    equation += "," + first.substr(0, 1);
    inputs.push_back(network.weight({x.shape[0]}, x.type).name);
  }
  if (random.chance(8)) {
    equation = "..." + first.substr(first.size() - 1) + "," + first.substr(first.size() - 1) + "z";
    result = "...z";
    inputs[1] = network.weight({x.shape.back(), network.size(random)}, x.type).name;
    inputs.resize(2);
  }
  network.add("Einsum", inputs, {{"equation", equation + "->" + result}});
}

Value projected(NetworkGrower& network, const Value& x, std::int64_t width) {
  return network.add("MatMul", {x.name, network.weight({x.shape.back(), width}, x.type).name});
}

/// softmax(q k^T * scale + mask) v, of one head or more.
void attention(NetworkGrower& network, Random& random) {
  const Value x = network.of_rank(random, 3);
  const std::int64_t heads = random.between(1, 2);
  const std::int64_t width = heads * random.between(1, 3);
  const auto of_heads = [&](const Value& v, const Shape& order) {
    const Value apart = network.reshape(v, {x.size(0), x.size(1), heads, width / heads});
    return network.add("Transpose", {apart.name}, {{"perm", order}});
  };
  const Value q = of_heads(projected(network, x, width), {0, 2, 1, 3});
  const Value k = of_heads(projected(network, x, width), {0, 2, 3, 1});
  const Value v = of_heads(projected(network, x, width), {0, 2, 1, 3});
  Value scores = network.add("MatMul", {q.name, k.name});
  if (random.chance(60))
    scores = network.add("Mul", {scores.name, network.weight({}, x.type).name});
  if (random.chance(40))
    scores = network.add("Add", {scores.name, network.weight({x.size(1), x.size(1)}, x.type).name});
  const Value weights = network.add("Softmax", {scores.name}, {{"axis", std::int64_t{-1}}});
  const Value mixed = network.add("MatMul", {weights.name, v.name});
  const Value back = network.add("Transpose", {mixed.name}, {{"perm", Shape{0, 2, 1, 3}}});
  network.reshape(back, {x.size(0), x.size(1), width});
}

void recurrent(NetworkGrower& network, Random& random) {
  const Value x = network.of_rank(random, 3);
  const std::vector<std::pair<std::string, std::int64_t>> kinds{
      {"LSTM", 4}, {"GRU", 3}, {"RNN", 1}};
  const auto& [type, gates] = random.pick(kinds);
  const auto direction = random.one_of<std::string>({"forward", "reverse", "bidirectional"});
  const std::int64_t ways = direction == "bidirectional" ? 2 : 1;
  const std::int64_t hidden = random.between(1, 3);
  const auto weight = [&](const Shape& shape) { return network.weight(shape, x.type).name; };
  std::vector<std::string> inputs{x.name, weight({ways, gates * hidden, x.size(2)}),
                                  weight({ways, gates * hidden, hidden})};
  if (random.chance(60))
    inputs.push_back(weight({ways, 2 * gates * hidden}));
  if (random.chance(40)) {
    inputs.resize(5);
    inputs.push_back(weight({ways, x.size(1), hidden}));
    if (type == "LSTM")
      inputs.push_back(weight({ways, x.size(1), hidden}));
  }
  AttributeList attributes{{"hidden_size", hidden}, {"direction", direction}};
  if (type == "GRU" && random.chance(50))
    attributes.emplace_back("linear_before_reset", std::int64_t{1});
  network.add_all(type, inputs, attributes, static_cast<std::size_t>(random.between(1, 2)));
}

} // namespace

const std::vector<LayerFamily>& product_layers() {
  static const std::vector<LayerFamily> families{
      {"MatMul", product},      {"MatMul of one tensor", product_with_itself},
      {"Gemm", gemm},           {"Einsum", einsum},
      {"Einsum", einsum},       {"attention", attention},
      {"recurrent", recurrent},
  };
  return families;
}

} // namespace monet::testing
