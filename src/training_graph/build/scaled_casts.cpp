// Adds scaled casts to fp8 before chosen products, when the forward graph is built.
#include "training_graph/build/scaled_casts.hpp"

#include "base/shared/checked.hpp"
#include "training_graph/build/rebuild.hpp"
#include "workload/shared/operators.hpp"
#include "workload/shared/views.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

namespace monet {

namespace {

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
  bool rows = true;     ///< of blocks: the copy along the last axis is wanted
  bool columns = false; ///< the one along all others is
};

/// A tensor in fp8; in blocks, two of them.
struct ScaledCopies {
  std::optional<TensorId> rows;    ///< of the tensor's shape
  std::optional<TensorId> columns; ///< [last axis, the others as one]
};

ElementType block_type(ElementType type, bool square) {
  if (type == ElementType::fp8_e5m2)
    return square ? ElementType::fp8_e5m2_128x128 : ElementType::fp8_e5m2_1x128;
  return square ? ElementType::fp8_e4m3_128x128 : ElementType::fp8_e4m3_1x128;
}

class CastEmitter {
public:
  CastEmitter(const Graph& graph, const ScaledProducts& options, Sink sink, const ScaledCast& cast)
      : options_(options), sink_(std::move(sink)), cast_(cast), source_(graph.tensor(cast.from)) {}

  /// `scale`: the state of delayed scaling, created if missing.
  ScaledCopies run(std::optional<TensorId>& scale) {
    if (options_.scaling == ScaledProducts::Scaling::block)
      return in_blocks();
    const bool delayed = options_.scaling == ScaledProducts::Scaling::delayed;
    if (delayed && !scale) {
      Tensor state = tensor(".fp8.scale", {}, ElementType::fp32);
      state.kind = cast_.training ? TensorKind::optimizer_state : TensorKind::buffer;
      scale = sink_.add_tensor(std::move(state));
    }
    const TensorId by = delayed ? *scale : current_scale();
    const TensorId result = sink_.add_tensor(tensor(".fp8", source_.shape, cast_.type));
    Operator op = named(ops::ScaledCast, {cast_.from, by}, {result});
    if (cast_.weight)
      op.attributes.set("weight", std::int64_t{1});
    if (delayed && cast_.training)
      op.outputs.emplace_back(sink_.add_tensor(amax()));
    sink_.add_operator(std::move(op));
    return {result, std::nullopt};
  }

private:
  Tensor tensor(std::string_view suffix, Integers shape, ElementType type) const {
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
  Operator named(OpType op_type, std::vector<std::optional<TensorId>> inputs,
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

  /// Blocks of a weight are squares: they lie as well along either axis.
  ScaledCopies in_blocks() {
    const ElementType type = block_type(cast_.type, cast_.weight);
    ScaledCopies copies;
    if (cast_.rows)
      copies.rows = sink_.add_tensor(tensor(".fp8", source_.shape, type));
    if (cast_.columns) {
      const std::int64_t last = source_.shape.back();
      const Integers rows(source_.shape.begin(), source_.shape.end() - 1);
      copies.columns =
          sink_.add_tensor(tensor(".fp8.columns", {last, checked_product(rows)}, type));
    }
    Operator op = named(ops::BlockCast, {cast_.from}, {copies.rows});
    if (copies.columns)
      op.outputs.emplace_back(copies.columns);
    op.attributes.set("largest", largest_of(cast_.type));
    if (cast_.weight)
      op.attributes.set("weight", std::int64_t{1});
    sink_.add_operator(std::move(op));
    return copies;
  }

  TensorId current_scale() {
    const TensorId maxima = sink_.add_tensor(amax());
    sink_.add_operator(named(ops::Amax, {cast_.from}, {maxima}));
    const TensorId scale = sink_.add_tensor(tensor(".fp8.scale", {}, ElementType::fp32));
    Operator op = named(ops::AmaxScale, {maxima}, {scale});
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
    for (const LayerProduct& product : products) {
      const bool trains = training_ && std::ranges::any_of(product.parameters, [&](TensorId id) {
                            return trained_[id.index()];
                          });
      if (trains)
        for_weights_.insert(*network_.op(product.op).inputs[1 - product.weight]);
    }
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
                          .weight = is_weight,
                          .columns = !is_weight && for_weights_.contains(from)};
    std::optional<TensorId> of_weight;
    std::optional<TensorId>& scale =
        is_weight ? of_weight : input_scales_[storage_root(network_, weight)];
    const ScaledCopies to = CastEmitter(made_.graph(), *precision_.products, sink, what).run(scale);
    casts_.emplace(from, *to.rows);
    return *to.rows;
  }

  const Graph& network_;
  const Precision& precision_;
  const std::vector<bool>& trained_;
  bool training_;
  GraphRewriter made_;
  std::set<TensorId> for_weights_; ///< read by a gradient of a weight too
  std::map<TensorId, TensorId> casts_;
  std::map<TensorId, std::optional<TensorId>> input_scales_; ///< by the weight it is multiplied by
};

const Operator* scaling_cast(const Graph& graph, TensorId id) {
  const auto producer = graph.tensor(id).producer;
  const Operator* op = producer ? &graph.op(*producer) : nullptr;
  const bool casts = op && op->domain == kMonetDomain &&
                     (op->op_type == ops::ScaledCast || op->op_type == ops::BlockCast);
  return casts ? op : nullptr;
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
  return op.domain == kMonetDomain &&
         op.op_type.is_one_of({ops::Amax, ops::AmaxScale, ops::BlockCast, ops::ScaledCast});
}

std::vector<TensorId> delayed_scales(const Graph& graph) {
  std::vector<TensorId> found;
  for (const Operator& op : graph.operators()) {
    if (op.op_type == ops::ScaledCast && casts_scaled(op) &&
        !graph.tensor(*op.inputs.at(1)).producer)
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

TensorId copy_for_weight(const Graph& graph, TensorId id) {
  const Operator* cast = scaling_cast(graph, id);
  const bool both = cast && cast->op_type == ops::BlockCast && cast->outputs.size() > 1 &&
                    cast->outputs[1] && cast->outputs[0] == id;
  return both ? *cast->outputs[1] : id;
}

namespace {

Sink sink_of(StepBuilder& builder) {
  return {[&](Tensor tensor) {
            return builder.add_tensor(std::move(tensor.name), std::move(tensor.shape), tensor.type,
                                      tensor.kind);
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
}

/// The copy along columns as the tensor that was cast, through views.
TensorId as_it_was(StepBuilder& builder, TensorId columns, const Integers& shape, OpId product) {
  ScaledGradients& made = builder.scaled_gradients();
  if (const auto known = made.views.find(columns); known != made.views.end())
    return known->second;
  const Tensor source = builder.graph().tensor(columns);
  const TensorId rows =
      builder.add_tensor(source.name + ".transposed", {source.shape.at(1), source.shape.at(0)},
                         source.type, source.kind);
  builder.add_operator({.name = source.name + ".Transpose",
                        .op_type = ops::Transpose,
                        .inputs = {columns},
                        .outputs = {rows},
                        .attributes = {{"perm", Integers{1, 0}}},
                        .forward_op = product});
  const TensorId whole =
      builder.reshape(rows, shape, {.name = source.name + ".Reshape", .forward_op = product});
  made.views.emplace(columns, whole);
  return whole;
}

} // namespace

ProductOperands backward_operands(StepBuilder& builder, TensorId dy, OpId product, bool wants_input,
                                  bool wants_weight) {
  const Operator& op = builder.graph().op(product);
  ProductOperands operands{op.inputs.at(0).value(), dy, dy};
  const TensorId forward = operands.x;
  const auto& options = builder.precision().products;
  const auto weight = scaled_weight(builder.graph(), op);
  if (!options || !weight || !(wants_input || wants_weight))
    return operands;
  const bool blocks = options->scaling == ScaledProducts::Scaling::block;
  ScaledGradients& made = builder.scaled_gradients();
  auto& [rows, columns] = made.casts[dy];
  const bool add_rows = !rows && (wants_input || !blocks);
  const bool add_columns = blocks && !columns && wants_weight;
  if (add_rows || add_columns) {
    const ScaledCast what{.from = dy,
                          .type = options->backward,
                          .phase = Phase::backward,
                          .forward_op = product,
                          .rows = add_rows,
                          .columns = add_columns};
    std::optional<TensorId>& scale = made.scales[before_scaling(builder.graph(), *weight)];
    const ScaledCopies to =
        CastEmitter(builder.graph(), *options, sink_of(builder), what).run(scale);
    rows = add_rows ? to.rows : rows;
    columns = add_columns ? to.columns : columns;
  }
  operands.dy_for_input = rows.value_or(dy);
  operands.dy_for_weight = operands.dy_for_input;
  if (blocks && wants_weight) {
    operands.dy_for_weight = as_it_was(builder, *columns, builder.shape(dy), product);
    operands.x = as_it_was(builder, copy_for_weight(builder.graph(), forward),
                           builder.shape(forward), product);
  }
  return operands;
}

} // namespace monet
