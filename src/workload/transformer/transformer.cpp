// Builds a transformer network: embedding, layers, logits. Axes: b samples, s tokens, k groups of
// heads that share keys and values, r queries per group, d elements per head.
#include "monet/workload/transformer.hpp"

#include "workload/shared/op_types.hpp"
#include "workload/transformer/writer.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace monet {

namespace transformer {

namespace {

/// Maximum elements of a mask with stored numbers.
constexpr std::int64_t kMaxKnownNumbers = std::int64_t{1} << 21;

/// Operands of attention's two products, as parts of one tensor without copies.
struct Heads {
  TensorId queries;         ///< [b,k,r,s,d]
  TensorId keys_transposed; ///< [b,k,1,d,s]
  TensorId values;          ///< [b,k,1,s,d]
};

class TransformerWriter {
public:
  TransformerWriter(const TransformerShape& shape, Graph& graph, std::int64_t max_elements)
      : shape_(shape),
        writer_(graph, max_elements), rows_{shape.batch, shape.sequence, shape.hidden} {}

  void write() {
    const TensorId tokens =
        writer_.input("tokens", {shape_.batch, shape_.sequence}, ElementType::int64);
    const TensorId table =
        writer_.parameter("wte.weight", {shape_.padded_vocabulary(), shape_.hidden});
    TensorId x = embed(tokens, table);
    for (std::int64_t layer = 0; layer < shape_.layers; ++layer)
      x = add_layer(layer, x);
    writer_.output(logits(add_norm(writer_, shape_, "ln_f", x), table));
  }

private:
  TensorId embed(TensorId tokens, TensorId table) {
    TensorId x = writer_.add({.name = "wte",
                              .op_type = ops::Gather,
                              .inputs = {table, tokens},
                              .attributes = {{"axis", std::int64_t{0}}}},
                             rows_);
    if (shape_.positions == TransformerShape::Positions::learned)
      x = writer_.with("embedding", ops::Add, x,
                       writer_.parameter("wpe.weight", {shape_.sequence, shape_.hidden}));
    return add_dropout(writer_, shape_.dropout, "embedding.dropout", x);
  }

  TensorId add_layer(std::int64_t layer, TensorId x) {
    const std::string name = fmt::format("h.{}", layer);
    const TensorId first = add_norm(writer_, shape_, name + ".ln_1", x);
    x = add_branch(name + ".attn", x, attention(name + ".attn", first));
    const TensorId second = add_norm(writer_, shape_, name + ".ln_2", x);
    if (shape_.has_experts(layer))
      return add_branch(name + ".moe", x, add_experts(writer_, shape_, name + ".moe", second));
    const std::string dense = name + ".mlp";
    const TensorId y =
        add_feed_forward(writer_, shape_, dense, second,
                         [&](const std::string& part, TensorId in, std::int64_t columns) {
                           return linear(dense + "." + part, in, columns);
                         });
    return add_branch(dense, x, y);
  }

  TensorId add_branch(const std::string& name, TensorId x, TensorId branch) {
    const TensorId kept = add_dropout(writer_, shape_.dropout, name + ".dropout", branch);
    return writer_.with(name + ".residual", ops::Add, x, kept);
  }

  TensorId linear(const std::string& name, TensorId x, std::int64_t columns) {
    Extents to = writer_.shape(x);
    const TensorId weight = writer_.parameter(name + ".weight", {to.back(), columns});
    to.back() = columns;
    const TensorId y =
        writer_.add({.name = name, .op_type = ops::MatMul, .inputs = {x, weight}}, std::move(to));
    if (!shape_.biases)
      return y;
    return writer_.with(name + ".sum", ops::Add, y, writer_.parameter(name + ".bias", {columns}));
  }

  TensorId attention(const std::string& name, TensorId x) {
    const Heads heads = split_heads(name, x);
    Extents scores_shape = writer_.shape(heads.queries);
    scores_shape.back() = shape_.sequence;
    TensorId scores = writer_.add({.name = name + ".scores",
                                   .op_type = ops::MatMul,
                                   .inputs = {heads.queries, heads.keys_transposed}},
                                  scores_shape);
    const double scale = 1.0 / std::sqrt(static_cast<double>(shape_.size_of_head()));
    scores = writer_.with(name + ".scaled", ops::Mul, scores, writer_.number("scale", scale));
    if (shape_.causal)
      scores = writer_.add(
          {.name = name + ".masked",
           .op_type = ops::Where,
           .inputs = {mask(), writer_.number("forbidden", -std::numeric_limits<double>::infinity()),
                      scores}},
          scores_shape);
    TensorId probabilities = writer_.softmax(name + ".probabilities", scores);
    const bool own = shape_.attention_dropout.has_value();
    probabilities = add_dropout(writer_, own ? *shape_.attention_dropout : shape_.dropout,
                                name + ".probabilities.dropout", probabilities,
                                own ? "attention_dropout" : "dropout");
    const TensorId context = writer_.add({.name = name + ".context",
                                          .op_type = ops::MatMul,
                                          .inputs = {probabilities, heads.values}},
                                         writer_.shape(heads.queries));
    return linear(name + ".proj", join_heads(name, context), shape_.hidden);
  }

  std::int64_t groups() const { return shape_.heads_of_keys(); }
  std::int64_t queries_of_group() const { return shape_.heads / groups(); }

  /// Splits the columns of one product into queries, keys and values, group by group.
  Heads split_heads(const std::string& name, TensorId x) {
    const std::int64_t r = queries_of_group();
    const std::int64_t d = shape_.size_of_head();
    const TensorId product = linear(name + ".qkv", x, groups() * (r + 2) * d);
    const TensorId grouped = writer_.reshape(name + ".groups", product,
                                             {shape_.batch, shape_.sequence, groups(), r + 2, d});
    const auto part = [&](std::int64_t count) {
      return Extents{shape_.batch, shape_.sequence, groups(), count, d};
    };
    const std::vector<TensorId> parts =
        writer_.add_all({.name = name + ".split",
                         .op_type = ops::Split,
                         .inputs = {grouped, writer_.shape_of("parts of a group", {r, 1, 1})},
                         .attributes = {{"axis", std::int64_t{3}}}},
                        {part(r), part(1), part(1)});
    return {writer_.transpose(name + ".q", parts[0], {0, 2, 3, 1, 4}),
            writer_.transpose(name + ".k", parts[1], {0, 2, 3, 4, 1}),
            writer_.transpose(name + ".v", parts[2], {0, 2, 3, 1, 4})};
  }

  TensorId join_heads(const std::string& name, TensorId context) {
    const TensorId turned = writer_.transpose(name + ".context.turned", context, {0, 3, 1, 2, 4});
    return writer_.reshape(name + ".context.joined", turned,
                           {shape_.batch, shape_.sequence, shape_.heads * shape_.size_of_head()});
  }

  /// Mask that is true where a token would attend to a later one.
  TensorId mask() {
    const std::int64_t s = shape_.sequence;
    Tensor mask{.name = "mask", .shape = {s, s}, .type = ElementType::boolean};
    if (s * s <= kMaxKnownNumbers && !mask_) {
      Integers forbidden;
      for (std::int64_t i = 0; i < s * s; ++i)
        forbidden.push_back(i % s > i / s ? 1 : 0);
      mask.values = std::move(forbidden);
    }
    if (!mask_)
      mask_ = writer_.constant(std::move(mask));
    return *mask_;
  }

  TensorId logits(TensorId x, TensorId table) {
    const std::int64_t columns = shape_.padded_vocabulary();
    const TensorId weight = shape_.tied
                                ? writer_.transpose("wte.transposed", table, {1, 0})
                                : writer_.parameter("lm_head.weight", {shape_.hidden, columns});
    return writer_.add({.name = "logits", .op_type = ops::MatMul, .inputs = {x, weight}},
                       {shape_.batch, shape_.sequence, columns});
  }

  const TransformerShape& shape_;
  GraphWriter writer_;
  Extents rows_;
  std::optional<TensorId> mask_;
};

} // namespace

} // namespace transformer

Graph make_transformer(const TransformerShape& shape, std::int64_t max_elements) {
  Graph graph;
  graph.name = "transformer";
  graph.origin = "transformer";
  ProblemList problems;
  const auto place_of = [&](std::string_view key) {
    return SourceLoc{graph.origin, 0, 0, std::string(key)};
  };
  transformer::check_shape(shape, place_of, problems);
  problems.throw_if_any();
  transformer::TransformerWriter(shape, graph, max_elements).write();
  return graph;
}

} // namespace monet
