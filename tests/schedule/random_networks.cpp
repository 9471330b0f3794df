#include "schedule/random_networks.hpp"

#include "training_graph/tiny_network.hpp"

#include <optional>

namespace monet::testing {

namespace {

using Shape = std::vector<std::int64_t>;

class Grower {
public:
  explicit Grower(Random& random) : random_(random) {}

protected:
  const Shape& shape(TensorId id) const { return net_.graph.tensor(id).shape; }
  TensorId parameter(Shape shape) {
    return net_.parameter(fmt::format("w{}", net_.graph.tensors().size()), std::move(shape));
  }
  TensorId integers(std::vector<std::int64_t> values) {
    return net_.integers(fmt::format("i{}", net_.graph.tensors().size()), std::move(values));
  }
  TensorId same(const std::string& type, std::vector<std::optional<TensorId>> inputs,
                Attributes attributes = {}) {
    Shape out = shape(*inputs.front());
    return net_.op(type, std::move(inputs), std::move(out), std::move(attributes));
  }
  /// Some tensor that is known: the last one more often than not.
  TensorId some() { return random_.chance(60) ? known_.back() : random_.pick(known_); }
  std::optional<TensorId> some_of(const Shape& wanted, TensorId other) {
    std::vector<TensorId> fitting;
    for (const TensorId id : known_) {
      if (id != other && shape(id) == wanted)
        fitting.push_back(id);
    }
    if (fitting.empty())
      return std::nullopt;
    return random_.pick(fitting);
  }
  TensorId sum(TensorId x) {
    const auto other = some_of(shape(x), x);
    if (!other)
      return same(random_.one_of({"Relu", "Sigmoid", "Tanh"}), {x});
    return same(random_.one_of({"Add", "Mul", "Add"}), {*other, x});
  }
  TensorId slice(TensorId x, std::size_t axis) {
    Shape out = shape(x);
    const std::int64_t size = out[axis];
    const std::int64_t begin = random_.between(0, size - 1);
    const std::int64_t end = random_.between(begin + 1, size);
    const std::int64_t step = random_.chance(25) ? 2 : 1;
    out[axis] = (end - begin + step - 1) / step;
    return net_.op("Slice",
                   {x, integers({begin}), integers({end}),
                    integers({static_cast<std::int64_t>(axis)}), integers({step})},
                   std::move(out));
  }
  TensorId reshape(TensorId x, Shape to) {
    const TensorId sizes = integers(to);
    return net_.op("Reshape", {x, sizes}, std::move(to));
  }
  TensorId reduce(TensorId x, std::size_t axis) {
    Shape out = shape(x);
    out[axis] = 1;
    Attributes attributes = with("axes", Shape{static_cast<std::int64_t>(axis)});
    attributes.set("keepdims", std::int64_t{1});
    return net_.op("ReduceMean", {x}, std::move(out), std::move(attributes));
  }
  TensorId transpose(TensorId x, std::size_t a, std::size_t b) {
    Shape out = shape(x);
    Shape order(out.size());
    for (std::size_t i = 0; i < order.size(); ++i)
      order[i] = static_cast<std::int64_t>(i);
    std::swap(out[a], out[b]);
    std::swap(order[a], order[b]);
    return net_.op("Transpose", {x}, std::move(out), with("perm", std::move(order)));
  }

  Random& random_;
  TinyNetwork net_;
  std::vector<TensorId> known_;
};

/// Tensors [N, C, H, W].
class Images : public Grower {
public:
  using Grower::Grower;

  Graph grow(int operators) {
    known_ = {net_.input("x", {random_.between(1, 3), random_.between(1, 6), random_.between(3, 9),
                               random_.between(3, 9)})};
    for (int i = 0; i < operators; ++i)
      known_.push_back(next(some()));
    TensorId last = known_.back();
    const Shape s = shape(last);
    if (random_.chance(40)) {
      last = reshape(last, {s[0], s[1] * s[2] * s[3]});
    } else {
      last = net_.op("GlobalAveragePool", {last}, {s[0], s[1], 1, 1});
      last = reshape(last, {s[0], s[1]});
    }
    const std::int64_t classes = random_.between(2, 6);
    net_.output(net_.op("Gemm", {last, parameter({shape(last)[1], classes}), parameter({classes})},
                        {s[0], classes}));
    return std::move(net_.graph);
  }

private:
  TensorId next(TensorId x) {
    switch (random_.between(0, 11)) {
    case 0:
    case 1:
    case 2:
    case 3:
      return convolution(x);
    case 4:
      return pool(x);
    case 5:
    case 6:
      return sum(x);
    case 7:
      return concat(x);
    case 8:
      return slice(x, static_cast<std::size_t>(random_.between(1, 3)));
    case 9:
      return transpose(x, 2, 3);
    case 10:
      return random_.chance(50) ? same("Softmax", {x}, with("axis", std::int64_t{1})) : norm(x);
    default:
      return same("Relu", {x});
    }
  }

  struct Window {
    std::int64_t kernel = 1;
    std::int64_t stride = 1;
    std::int64_t before = 0;
    std::int64_t after = 0;
    std::int64_t dilation = 1;

    std::int64_t reach() const { return dilation * (kernel - 1) + 1; }
    std::int64_t out(std::int64_t in) const { return (in + before + after - reach()) / stride + 1; }
  };

  Window window(std::int64_t in, std::int64_t min_kernel) {
    Window w;
    w.kernel = random_.between(min_kernel, 3);
    w.dilation = random_.chance(20) ? 2 : 1;
    w.before = random_.between(0, w.kernel - 1);
    w.after = random_.between(0, w.kernel - 1);
    if (in + w.before + w.after < w.reach())
      w = {};
    w.stride = random_.one_of<std::int64_t>({1, 1, 1, 2, 3});
    return w;
  }
  static Attributes geometry(const Window& h, const Window& w) {
    Attributes attributes = with("kernel_shape", Shape{h.kernel, w.kernel});
    attributes.set("strides", Shape{h.stride, w.stride});
    attributes.set("pads", Shape{h.before, w.before, h.after, w.after});
    attributes.set("dilations", Shape{h.dilation, w.dilation});
    return attributes;
  }

  TensorId convolution(TensorId x) {
    const Shape in = shape(x);
    const Window h = window(in[2], 1);
    const Window w = window(in[3], 1);
    std::int64_t groups = 1;
    if (random_.chance(30))
      groups = random_.chance(50) || in[1] % 2 != 0 ? in[1] : 2;
    const std::int64_t k = groups * random_.between(1, groups > 1 ? 2 : 8);
    Attributes attributes = geometry(h, w);
    attributes.set("group", groups);
    const TensorId weight = parameter({k, in[1] / groups, h.kernel, w.kernel});
    std::vector<std::optional<TensorId>> inputs{x, weight};
    if (random_.chance(40))
      inputs.emplace_back(parameter({k}));
    return net_.op("Conv", std::move(inputs), {in[0], k, h.out(in[2]), w.out(in[3])},
                   std::move(attributes));
  }

  TensorId pool(TensorId x) {
    const Shape in = shape(x);
    Window h = window(in[2], 2);
    Window w = window(in[3], 2);
    h.dilation = w.dilation = 1;
    // A window all in the padding has no maximum.
    h.before = std::min(h.before, h.kernel / 2);
    h.after = std::min(h.after, h.kernel / 2);
    w.before = std::min(w.before, w.kernel / 2);
    w.after = std::min(w.after, w.kernel / 2);
    if (in[2] + h.before + h.after < h.kernel || in[3] + w.before + w.after < w.kernel)
      return same("Relu", {x});
    return net_.op(random_.one_of({"MaxPool", "AveragePool"}), {x},
                   {in[0], in[1], h.out(in[2]), w.out(in[3])}, geometry(h, w));
  }

  TensorId concat(TensorId x) {
    std::vector<TensorId> fitting;
    const Shape& s = shape(x);
    for (const TensorId id : known_) {
      const Shape& t = shape(id);
      if (t[0] == s[0] && t[2] == s[2] && t[3] == s[3])
        fitting.push_back(id);
    }
    const TensorId other = random_.pick(fitting);
    Shape out = s;
    out[1] += shape(other)[1];
    if (out[1] > 12)
      return same("Relu", {x});
    return net_.op("Concat", {x, other}, std::move(out), with("axis", std::int64_t{1}));
  }

  TensorId norm(TensorId x) {
    const std::int64_t c = shape(x)[1];
    const auto buffer = [&] {
      return net_.buffer(fmt::format("b{}", net_.graph.tensors().size()), {c});
    };
    const TensorId scale = parameter({c});
    const TensorId shift = parameter({c});
    const TensorId mean = buffer();
    return same("BatchNormalization", {x, scale, shift, mean, buffer()});
  }
};

/// Tensors [B, S, D].
class Sequences : public Grower {
public:
  using Grower::Grower;

  Graph grow(int operators) {
    known_ = {
        net_.input("x", {random_.between(1, 3), random_.between(2, 8), random_.between(2, 8)})};
    for (int i = 0; i < operators; ++i)
      known_.push_back(next(some()));
    TensorId last = known_.back();
    const Shape s = shape(last);
    last = reshape(last, {s[0], s[1] * s[2]});
    const std::int64_t classes = random_.between(2, 6);
    net_.output(net_.op("MatMul", {last, parameter({s[1] * s[2], classes})}, {s[0], classes}));
    return std::move(net_.graph);
  }

private:
  TensorId next(TensorId x) {
    const Shape s = shape(x);
    switch (random_.between(0, 9)) {
    case 0:
    case 1:
    case 2: {
      const std::int64_t k = random_.between(1, 9);
      return net_.op("MatMul", {x, parameter({s[2], k})}, {s[0], s[1], k});
    }
    case 3: { // x times the transpose of something with as many columns
      std::vector<TensorId> fitting;
      for (const TensorId id : known_) {
        if (shape(id)[0] == s[0] && shape(id)[2] == s[2])
          fitting.push_back(id);
      }
      const TensorId other = random_.pick(fitting);
      const TensorId turned = transpose(other, 1, 2);
      return net_.op("MatMul", {x, turned}, {s[0], s[1], shape(other)[1]});
    }
    case 4:
      return same("Softmax", {x}, with("axis", std::int64_t{-1}));
    case 5:
      return sum(x);
    case 6:
      return transpose(x, 1, 2);
    case 7:
      return slice(x, static_cast<std::size_t>(random_.between(1, 2)));
    case 8:
      return random_.chance(50) ? reduce(x, static_cast<std::size_t>(random_.between(1, 2)))
                                : heads(x);
    default:
      return same("LayerNormalization", {x, parameter({s[2]}), parameter({s[2]})},
                  with("axis", std::int64_t{-1}));
    }
  }

  /// [B, S, 2 D] -> [B, 2 S, D], as attention splits its heads.
  TensorId heads(TensorId x) {
    const Shape s = shape(x);
    if (s[2] % 2 != 0)
      return same("Relu", {x});
    const TensorId apart = reshape(x, {s[0], s[1], 2, s[2] / 2});
    const TensorId turned = transpose(apart, 1, 2);
    return reshape(turned, {s[0], 2 * s[1], s[2] / 2});
  }
};

TrainingOptions random_training(Random& random, const NetworkShape& shape) {
  TrainingOptions options;
  if (shape.offload)
    options.storage.offload = {"*"};
  options.loss = random.one_of<Loss>({CrossEntropy{}, Mse{}});
  options.update.optimizer = random.one_of<Optimizer>({Sgd{}, Sgd{.momentum = 0.9}, Adam{}});
  options.update.fused = random.chance(80);
  return options;
}

} // namespace

TrainingGraph random_step(Random& random, const NetworkShape& shape) {
  const int operators = static_cast<int>(random.between(1, shape.operators));
  Graph network =
      random.chance(65) ? Images(random).grow(operators) : Sequences(random).grow(operators);
  verify(network);
  TrainingGraph step =
      fold_views(shape.training ? make_training_graph(network, random_training(random, shape))
                                : make_inference_graph(network));
  verify(step);
  return step;
}

} // namespace monet::testing
