// Small chains of operators of all kinds, divided along an axis drawn at random.
#include "cluster/networks.hpp"
#include "cluster/ranks.hpp"
#include "workload/shared/operators.hpp"
#include "workload/shared/views.hpp"

#include "monet/base/errors.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace monet {

namespace {

using Extents = std::vector<std::int64_t>;

/// Appends operators to x [4, 8, 12], whose axes they keep apart: the rank of a tensor stays 3.
class ChainWriter {
public:
  explicit ChainWriter(test::Random& random) : random_(random) {
    graph_.name = "chain";
    x_ = graph_.add_tensor({.name = "x", .shape = {4, 8, 12}, .kind = TensorKind::input});
    graph_.inputs = {x_};
  }

  Graph run(int operators) {
    product(); // something to train
    for (int i = 0; i < operators; ++i)
      append();
    graph_.outputs = {x_};
    return std::move(graph_);
  }
  const std::string& words() const { return words_; }

private:
  const Extents& shape() const { return graph_.tensor(x_).shape; }
  std::size_t some_axis() { return random_() % 3; }

  void append() {
    switch (random_() % 9) {
    case 0:
      return unary();
    case 1:
      return product();
    case 2:
      return add("Softmax", {x_}, shape(), {{"axis", static_cast<std::int64_t>(some_axis())}});
    case 3:
      return normalisation();
    case 4:
      return reduction();
    case 5:
      return transpose();
    case 6:
      return reshape();
    case 7:
      return concat();
    default:
      return slice();
    }
  }

  void add(const std::string& type, std::vector<std::optional<TensorId>> inputs, Extents to,
           Attributes attributes = {}) {
    const std::string name = fmt::format("{}_{}", type, graph_.operators().size());
    words_ += fmt::format("{} [{}] ", type, fmt::join(to, ","));
    const TensorId made = graph_.add_tensor({.name = name + ".y", .shape = std::move(to)});
    const OpId id = graph_.add_operator({.name = name,
                                         .op_type = type,
                                         .attributes = std::move(attributes),
                                         .inputs = std::move(inputs),
                                         .outputs = {made}});
    if (!has_view_rule(graph_.op(id)))
      build_nest(graph_, id);
    x_ = made;
  }

  TensorId parameter(Extents extents) {
    return graph_.add_tensor({.name = fmt::format("w{}", graph_.tensors().size()),
                              .shape = std::move(extents),
                              .kind = TensorKind::parameter});
  }
  TensorId integers(std::vector<std::int64_t> values) {
    return graph_.add_tensor({.name = fmt::format("c{}", graph_.tensors().size()),
                              .shape = {static_cast<std::int64_t>(values.size())},
                              .type = ElementType::int64,
                              .kind = TensorKind::constant,
                              .values = std::move(values)});
  }

  void unary() {
    constexpr std::array<const char*, 4> kTypes{"Relu", "Tanh", "Sigmoid", "Gelu"};
    add(kTypes.at(random_() % kTypes.size()), {x_}, shape());
  }
  void product() {
    const Extents from = shape();
    const std::int64_t columns = test::pick(random_, {4, 8, 12});
    add("MatMul", {x_, parameter({from[2], columns})}, {from[0], from[1], columns});
    if (random_() % 2 == 0)
      add("Add", {x_, parameter({columns})}, {from[0], from[1], columns});
  }
  void normalisation() {
    const std::int64_t last = shape()[2];
    add("LayerNormalization", {x_, parameter({last}), parameter({last})}, shape(),
        {{"axis", std::int64_t{-1}}, {"epsilon", 1e-3}});
  }
  /// Subtracts what is summed or averaged along an axis.
  void reduction() {
    const TensorId before = x_;
    const Extents from = shape();
    Extents to = from;
    const std::size_t axis = some_axis();
    to[axis] = 1;
    add(random_() % 2 == 0 ? "ReduceSum" : "ReduceMean",
        {x_, integers({static_cast<std::int64_t>(axis)})}, to, {{"keepdims", std::int64_t{1}}});
    add("Sub", {before, x_}, from);
  }
  void transpose() {
    Extents order{0, 1, 2};
    std::ranges::shuffle(order, random_);
    Extents to;
    for (const std::int64_t axis : order)
      to.push_back(shape()[static_cast<std::size_t>(axis)]);
    add("Transpose", {x_}, to, {{"perm", order}});
  }
  /// Moves a factor of 2 from one axis to the next.
  void reshape() {
    Extents to = shape();
    const std::size_t from = random_() % 2;
    if (to[from] % 2 != 0)
      return;
    to[from] /= 2;
    to[from + 1] *= 2;
    add("Reshape", {x_, integers(to)}, to);
  }
  void concat() {
    const TensorId before = x_;
    Extents to = shape();
    const std::size_t axis = some_axis();
    if (to[axis] > 24)
      return;
    unary();
    to[axis] *= 2;
    add("Concat", {before, x_}, to, {{"axis", static_cast<std::int64_t>(axis)}});
  }
  void slice() {
    Extents to = shape();
    const std::size_t axis = some_axis();
    if (to[axis] < 4)
      return;
    const auto begin = static_cast<std::int64_t>(random_() % 3);
    to[axis] = std::max<std::int64_t>(to[axis] / 2, 1);
    add("Slice",
        {x_, integers({begin}), integers({begin + to[axis]}),
         integers({static_cast<std::int64_t>(axis)})},
        to);
  }

  test::Random& random_;
  Graph graph_;
  TensorId x_;
  std::string words_;
};

MeshAxis some_axis_of_mesh(test::Random& random) {
  MeshAxis axis{.name = "axis", .size = test::pick(random, {2, 2, 4})};
  axis.zero = static_cast<int>(random() % 4);
  switch (random() % 4) {
  case 0:
    axis.inputs = random() % 3;
    break;
  case 1:
    axis.weights = true;
    break;
  case 2:
    axis.inputs = random() % 2;
    axis.weights = true;
    axis.between = true;
    break;
  default:
    axis.inputs = 0;
    axis.experts = true;
  }
  return axis;
}

} // namespace

TEST(Chains, OfOperatorsOnRanksComputeWhatOneDeviceComputes) {
  test::Random random(21);
  int divided = 0;
  for (int i = 0; i < 250; ++i) {
    ChainWriter writer(random);
    const Graph chain = writer.run(1 + static_cast<int>(random() % 5));
    TrainingOptions options;
    options.loss = Mse{.reduction = Reduction::mean};
    options.update.optimizer = Sgd{.learning_rate = 0.1, .momentum = 0.9};
    const TrainingGraph step = fold_views(make_training_graph(chain, options));
    const std::vector<MeshAxis> mesh{some_axis_of_mesh(random)};
    SCOPED_TRACE(fmt::format("{}: {}on {}", i, writer.words(), test::words(mesh)));
    try {
      const RankStep ranks = partition_step(step, mesh);
      verify(ranks.step);
      const auto found = test::differences(step, ranks, 2);
      EXPECT_LE(found.front().relative, 1e-11) << found.front().tensor;
      ++divided;
    } catch (const InfeasibleError& error) {
      EXPECT_NE(std::string(error.what()).find("divi"), std::string::npos) << error.what();
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
  EXPECT_GE(divided, 200);
}

} // namespace monet
