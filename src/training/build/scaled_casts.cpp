#include "training/build/scaled_casts.hpp"

#include "training/build/precision.hpp"
#include "training/build/rebuild.hpp"

#include "monet/base/errors.hpp"
#include "monet/workload/operators.hpp"
#include "monet/workload/views.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <set>

namespace monet {

namespace {

constexpr std::array<std::string_view, 5> kProducts{"Conv", "ConvTranspose", "Einsum", "Gemm",
                                                    "MatMul"};
/// What adapters and sparse updates call the parts of a layer's weight.
constexpr std::array<std::string_view, 4> kParts{".lora_A", ".lora_B", ".trained", ".frozen"};

std::string layer_name(const std::string& weight) {
  for (const std::string_view part : kParts) {
    if (weight.ends_with(part))
      return weight.substr(0, weight.size() - part.size());
  }
  return weight;
}

/// A product of a layer: one operand is computed from parameters alone, the other is not.
struct LayerProduct {
  OpId op;
  std::size_t weight = 1;              ///< its input
  std::vector<std::string> parameters; ///< names of layers
};

class LayerProducts {
public:
  explicit LayerProducts(const Graph& network)
      : network_(network), data_(network.tensors().size()), trained_(network.tensors().size()) {
    for (std::size_t i = 0; i < data_.size(); ++i) {
      const TensorKind kind = network.tensors()[i].kind;
      data_[i] = kind == TensorKind::input || kind == TensorKind::label;
      trained_[i] = kind == TensorKind::parameter;
    }
    for (const Operator& op : network.operators())
      visit(op);
  }

  std::vector<LayerProduct> find() const {
    std::vector<LayerProduct> found;
    for (std::size_t i = 0; i < network_.operators().size(); ++i) {
      const Operator& op = network_.op(OpId(i));
      const bool listed = std::ranges::find(kProducts, op.op_type) != kProducts.end();
      if (!listed || !op.domain.empty() || op.nest.compute != ComputeKind::mac ||
          op.inputs.size() < 2 || !op.inputs[0] || !op.inputs[1])
        continue;
      for (const std::size_t weight : {1U, 0U}) {
        if (!is_weight(*op.inputs[weight]) || !is_data(*op.inputs[1 - weight]))
          continue;
        found.push_back({OpId(i), weight, parameters_of(*op.inputs[weight])});
        break;
      }
    }
    return found;
  }

private:
  void visit(const Operator& op) {
    const auto any = [&](const std::vector<bool>& property) {
      return std::ranges::any_of(present(op.inputs),
                                 [&](TensorId id) { return property[id.index()]; });
    };
    const bool data = any(data_);
    const bool trained = any(trained_);
    for (const TensorId id : present(op.outputs)) {
      data_[id.index()] = data;
      trained_[id.index()] = trained;
    }
  }

  bool is_real(TensorId id) const { return is_floating(network_.tensor(id).type); }
  bool is_weight(TensorId id) const {
    return is_real(id) && trained_[id.index()] && !data_[id.index()];
  }
  bool is_data(TensorId id) const { return is_real(id) && data_[id.index()]; }

  std::vector<std::string> parameters_of(TensorId weight) const {
    std::vector<std::string> names;
    std::set<TensorId> seen{weight};
    std::vector<TensorId> open{weight};
    while (!open.empty()) {
      const Tensor& tensor = network_.tensor(open.back());
      open.pop_back();
      if (tensor.kind == TensorKind::parameter)
        names.push_back(layer_name(tensor.name));
      if (!tensor.producer)
        continue;
      for (const TensorId input : present(network_.op(*tensor.producer).inputs)) {
        if (seen.insert(input).second)
          open.push_back(input);
      }
    }
    return names;
  }

  const Graph& network_;
  std::vector<bool> data_;    ///< depends on what is fed in
  std::vector<bool> trained_; ///< depends on a parameter
};

/// Those that the options choose.
std::vector<LayerProduct> chosen_products(const Graph& network, const ScaledProducts& options) {
  std::vector<LayerProduct> products = LayerProducts(network).find();
  Patterns patterns(options.layers);
  ProblemList problems;
  const auto kept = [&, first = products.empty() ? "" : products.front().parameters.front(),
                     last = products.empty() ? "" : products.back().parameters.front()](
                        const LayerProduct& product) {
    bool matches = options.layers.empty();
    for (const std::string& name : product.parameters)
      matches = patterns.match(name) || matches;
    const std::string& name = product.parameters.front();
    return !matches || (options.keep_first_and_last && (name == first || name == last));
  };
  std::erase_if(products, kept);
  patterns.report(network, "no weight of a product matches the pattern '{}' of 'products'",
                  problems);
  problems.throw_if_any();
  if (products.empty())
    throw InputError({network.origin, 0, 0, ""}, "there is no product of a layer to compute in fp8",
                     "'products' under 'precision' chooses products with a weight");
  return products;
}

/// How a cast gets into a graph under construction.
struct Sink {
  std::function<TensorId(Tensor)> add_tensor;
  std::function<void(Operator)> add_operator;
};

struct ScaledCast {
  TensorId from;
  ElementType type = ElementType::fp8_e4m3;
  Phase phase = Phase::forward;
  std::optional<OpId> forward_op;
  bool training = true;
  bool weight = false;
};

class CastEmitter {
public:
  CastEmitter(const Graph& graph, const ScaledProducts& options, Sink sink, const ScaledCast& cast)
      : options_(options), sink_(std::move(sink)), cast_(cast), source_(graph.tensor(cast.from)) {}

  /// The tensor in fp8. `scale`: the state of delayed scaling, made where there is none yet.
  TensorId run(std::optional<TensorId>& scale) {
    const bool delayed = options_.scaling == ScaledProducts::Scaling::delayed;
    if (delayed && !scale) {
      Tensor state = tensor(".fp8.scale", {}, ElementType::fp32);
      state.kind = cast_.training ? TensorKind::optimizer_state : TensorKind::buffer;
      scale = sink_.add_tensor(std::move(state));
    }
    const TensorId by = delayed ? *scale : current_scale();
    const TensorId result = sink_.add_tensor(tensor(".fp8", source_.shape, cast_.type));
    Operator op = named("ScaledCast", {cast_.from, by}, {result});
    if (cast_.weight)
      op.attributes.set("weight", std::int64_t{1});
    if (delayed && cast_.training)
      op.outputs.emplace_back(sink_.add_tensor(amax()));
    sink_.add_operator(std::move(op));
    return result;
  }

private:
  Tensor tensor(std::string_view suffix, std::vector<std::int64_t> shape, ElementType type) const {
    return {.name = source_.name + std::string(suffix),
            .shape = std::move(shape),
            .type = type,
            .kind = cast_.phase == Phase::forward ? TensorKind::activation : TensorKind::gradient};
  }
  /// A maximum for each index of the first two axes, where there are more.
  Tensor amax() const {
    const std::size_t rank = source_.shape.size();
    const std::size_t axes = std::min<std::size_t>(rank == 0 ? 0 : rank - 1, 2);
    return tensor(".fp8.amax", {source_.shape.begin(), source_.shape.begin() + axes},
                  ElementType::fp32);
  }
  Operator named(std::string_view op_type, std::vector<std::optional<TensorId>> inputs,
                 std::vector<std::optional<TensorId>> outputs) const {
    Operator op;
    op.name = fmt::format("{}.{}", source_.name, op_type);
    op.op_type = op_type;
    op.domain = kMonetDomain;
    op.inputs = std::move(inputs);
    op.outputs = std::move(outputs);
    op.phase = cast_.phase;
    op.forward_op = cast_.forward_op;
    return op;
  }

  TensorId current_scale() {
    const TensorId maxima = sink_.add_tensor(amax());
    sink_.add_operator(named("Amax", {cast_.from}, {maxima}));
    const TensorId scale = sink_.add_tensor(tensor(".fp8.scale", {}, ElementType::fp32));
    Operator op = named("AmaxScale", {maxima}, {scale});
    op.attributes.set("largest", largest_of(cast_.type));
    sink_.add_operator(std::move(op));
    return scale;
  }

  const ScaledProducts& options_;
  Sink sink_;
  ScaledCast cast_;
  Tensor source_; ///< a copy: tensors are added
};

class ProductScaler {
public:
  ProductScaler(const Graph& network, const Precision& precision, const std::vector<bool>& trained,
                bool training)
      : network_(network), precision_(precision), trained_(trained), training_(training),
        made_(network) {}

  Graph run() {
    const std::vector<LayerProduct> products = chosen_products(network_, *precision_.products);
    auto next = products.begin();
    for (std::size_t i = 0; i < network_.operators().size(); ++i) {
      Operator op = network_.op(OpId(i));
      if (next != products.end() && next->op == OpId(i)) {
        const TensorId weight = *op.inputs[next->weight];
        check_gradient(op);
        for (const bool is_weight : {false, true})
          replace(op, is_weight ? next->weight : 1 - next->weight, weight, is_weight);
        ++next;
      }
      made_.copy(OpId(i), std::move(op));
    }
    return made_.release();
  }

private:
  ElementType type_of(TensorId id, bool weight) const {
    const TensorId root = storage_root(network_, id);
    const Tensor& tensor = network_.tensor(root);
    if (weight && tensor.kind == TensorKind::parameter)
      return weight_type(precision_, trained_[root.index()]).value_or(tensor.type);
    return precision_.activations.value_or(tensor.type);
  }

  void check_width(const Operator& op, std::string_view what, ElementType type) const {
    if (bits_of(type) <= 8)
      throw InputError(location_of(network_, op),
                       fmt::format("'products' casts to fp8, but {} {} already", what,
                                   fmt::format("is {}", name_of(type))));
  }
  void check_gradient(const Operator& op) const {
    if (training_)
      check_width(op, "its gradient", precision_.gradient_type(type_of(*op.outputs[0], false)));
  }

  void replace(Operator& op, std::size_t input, TensorId weight, bool is_weight) {
    const TensorId before = *op.inputs[input];
    check_width(op, fmt::format("'{}'", network_.tensor(before).name), type_of(before, is_weight));
    const TensorId after = cast(before, weight, is_weight);
    op.inputs[input] = after;
    for (Access& access : op.nest.operands) {
      if (access.mode == AccessMode::read && access.tensor == before)
        access.tensor = after;
    }
  }

  TensorId cast(TensorId from, TensorId weight, bool is_weight) {
    if (const auto known = casts_.find(from); known != casts_.end())
      return known->second;
    const Sink sink{[&](Tensor tensor) { return made_.add_tensor(std::move(tensor)); },
                    [&](Operator op) { made_.add_operator(std::move(op)); }};
    const ScaledCast what{.from = from,
                          .type = precision_.products->forward,
                          .training = training_,
                          .weight = is_weight};
    std::optional<TensorId> of_weight;
    std::optional<TensorId>& scale =
        is_weight ? of_weight : input_scales_[storage_root(network_, weight)];
    const TensorId to = CastEmitter(made_.graph(), *precision_.products, sink, what).run(scale);
    casts_.emplace(from, to);
    return to;
  }

  const Graph& network_;
  const Precision& precision_;
  const std::vector<bool>& trained_;
  bool training_;
  GraphRewriter made_;
  std::map<TensorId, TensorId> casts_;
  std::map<TensorId, std::optional<TensorId>> input_scales_; ///< by the weight it is multiplied by
};

const Operator* scaling_cast(const Graph& graph, TensorId id) {
  const auto producer = graph.tensor(id).producer;
  const Operator* op = producer ? &graph.op(*producer) : nullptr;
  return op && op->op_type == "ScaledCast" && op->domain == kMonetDomain ? op : nullptr;
}

/// The weight in fp8 that a forward product reads.
std::optional<TensorId> scaled_weight(const Graph& graph, const Operator& product) {
  for (const TensorId input : present(product.inputs)) {
    const Operator* cast = scaling_cast(graph, input);
    if (cast && cast->attributes.integer("weight", 0) != 0)
      return input;
  }
  return std::nullopt;
}

} // namespace

double largest_of(ElementType type) {
  return type == ElementType::fp8_e5m2 ? 57344.0 : 448.0;
}

bool casts_scaled(const Operator& op) {
  constexpr std::array<std::string_view, 3> kCasts{"Amax", "AmaxScale", "ScaledCast"};
  return op.domain == kMonetDomain && std::ranges::find(kCasts, op.op_type) != kCasts.end();
}

std::vector<TensorId> delayed_scales(const Graph& graph) {
  std::vector<TensorId> found;
  for (const Operator& op : graph.operators()) {
    if (op.op_type == "ScaledCast" && casts_scaled(op) && !graph.tensor(*op.inputs.at(1)).producer)
      found.push_back(*op.inputs[1]);
  }
  std::ranges::sort(found);
  found.erase(std::ranges::unique(found).begin(), found.end());
  return found;
}

TensorId before_scaling(const Graph& graph, TensorId id) {
  const Operator* cast = scaling_cast(graph, id);
  return cast ? *cast->inputs.at(0) : id;
}

Graph add_scaled_casts(const Graph& network, const Precision& precision,
                       const std::vector<bool>& trained, bool training) {
  return ProductScaler(network, precision, trained, training).run();
}

TensorId scaled_gradient(StepBuilder& builder, TensorId dy, OpId product) {
  const auto& options = builder.precision().products;
  const auto weight = scaled_weight(builder.graph(), builder.graph().op(product));
  if (!options || !weight)
    return dy;
  ScaledGradients& made = builder.scaled_gradients();
  if (const auto known = made.casts.find(dy); known != made.casts.end())
    return known->second;
  const Sink sink{[&](Tensor tensor) {
                    return builder.add_tensor(std::move(tensor.name), std::move(tensor.shape),
                                              tensor.type, tensor.kind);
                  },
                  [&](Operator op) {
                    builder.add_operator({.name = op.name,
                                          .op_type = op.op_type,
                                          .domain = op.domain,
                                          .inputs = op.inputs,
                                          .outputs = op.outputs,
                                          .attributes = op.attributes,
                                          .phase = op.phase,
                                          .forward_op = op.forward_op});
                  }};
  const ScaledCast what{
      .from = dy, .type = options->backward, .phase = Phase::backward, .forward_op = product};
  std::optional<TensorId>& scale = made.scales[before_scaling(builder.graph(), *weight)];
  const TensorId to = CastEmitter(builder.graph(), *options, sink, what).run(scale);
  made.casts.emplace(dy, to);
  return to;
}

} // namespace monet
