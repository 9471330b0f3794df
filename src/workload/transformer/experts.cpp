// Adds a mixture of experts to a network; transformer.cpp calls it. Samples (g) are groups of
// tokens; s: tokens, e: experts, c: positions of an expert, h: hidden, f: inner size. The choice of
// experts is discrete; the gradient passes through the probabilities.
//
//   probabilities [g,s,e] = softmax(x router)
//   chosen        [g,s,e] = whether e is among the topk largest of the token
//   place         [g,s,e] = number of earlier tokens that chose e, if chosen
//   dispatch    [g,s,e,c] = 1 where c is the place
//   combine     [g,s,e,c] = dispatch * probabilities
//   result        [g,s,h] = combine * experts(dispatch * x)
#include "workload/shared/op_types.hpp"
#include "workload/transformer/writer.hpp"

#include <fmt/format.h>

#include <optional>

namespace monet::transformer {

namespace {

class ExpertsWriter {
public:
  ExpertsWriter(GraphWriter& writer, const TransformerShape& shape, const std::string& name)
      : writer_(writer), shape_(shape), name_(name), experts_(*shape.experts),
        capacity_(shape.capacity()) {}

  TensorId write(TensorId x) {
    const std::int64_t g = shape_.batch;
    const std::int64_t s = shape_.sequence;
    const TensorId weight = writer_.parameter(name_ + ".router.weight", {shape_.hidden, experts_});
    const TensorId scores =
        writer_.add({.name = name_ + ".router", .op_type = ops::MatMul, .inputs = {x, weight}},
                    {g, s, experts_});
    const TensorId probabilities = writer_.softmax(name_ + ".probabilities", scores);
    const TensorId dispatch = dispatch_of(choose(probabilities));
    const TensorId column =
        writer_.add({.name = name_ + ".weights",
                     .op_type = ops::Unsqueeze,
                     .inputs = {probabilities, writer_.shape_of("last of four axes", {3})}},
                    {g, s, experts_, 1});
    const TensorId combine = writer_.with(name_ + ".combine", ops::Mul, dispatch, column);
    const TensorId taken = writer_.einsum(name_ + ".dispatched", "gsec,gsh->egch", dispatch, x,
                                          {experts_, g, capacity_, shape_.hidden});
    const TensorId made =
        add_feed_forward(writer_, shape_, name_, taken,
                         [&](const std::string& part, TensorId rows, std::int64_t columns) {
                           return product(part, rows, columns);
                         });
    return writer_.einsum(name_ + ".combined", "gsec,egch->gsh", combine, made,
                          {g, s, shape_.hidden});
  }

private:
  /// Selects the largest probability, then the largest of the rest, topk times.
  TensorId choose(TensorId probabilities) {
    const Extents extents = writer_.shape(probabilities);
    std::optional<TensorId> chosen;
    TensorId left = probabilities;
    for (std::int64_t k = 0; k < shape_.topk; ++k) {
      const std::string name = fmt::format("{}.choice_{}", name_, k);
      if (chosen)
        left = writer_.add({.name = name + ".left",
                            .op_type = ops::Where,
                            .inputs = {*chosen, writer_.number("minus one", -1.0), probabilities}},
                           extents);
      const TensorId expert = writer_.add({.name = name + ".expert",
                                           .op_type = ops::ArgMax,
                                           .inputs = {left},
                                           .attributes = {{"axis", std::int64_t{-1}},
                                                          {"keepdims", std::int64_t{0}},
                                                          {"select_last_index", std::int64_t{0}}},
                                           .type = ElementType::int64},
                                          {extents[0], extents[1]});
      const TensorId one = one_hot(name, expert, experts_,
                                   writer_.integers("false, true", {0, 1}, ElementType::boolean),
                                   ElementType::boolean);
      chosen = chosen ? writer_.add({.name = name + ".chosen",
                                     .op_type = ops::Or,
                                     .inputs = {*chosen, one},
                                     .type = ElementType::boolean},
                                    extents)
                      : one;
    }
    return *chosen;
  }

  TensorId one_hot(const std::string& name, TensorId indices, std::int64_t depth, TensorId values,
                   ElementType type) {
    Extents extents = writer_.shape(indices);
    extents.push_back(depth);
    const TensorId of_depth =
        writer_.integer(fmt::format("depth {}", depth), depth, ElementType::int64);
    return writer_.add({.name = name,
                        .op_type = ops::OneHot,
                        .inputs = {indices, of_depth, values},
                        .attributes = {{"axis", std::int64_t{-1}}},
                        .type = type},
                       std::move(extents));
  }

  /// Dispatch of tokens to positions of experts; positions at or beyond the capacity are dropped.
  TensorId dispatch_of(TensorId chosen) {
    const Extents extents = writer_.shape(chosen);
    constexpr ElementType kPlaces = ElementType::int32;
    const TensorId counts = writer_.add({.name = name_ + ".counts",
                                         .op_type = ops::Cast,
                                         .inputs = {chosen},
                                         .attributes = {{"to", std::int64_t{6}}}, // INT32 of ONNX
                                         .type = kPlaces},
                                        extents);
    const TensorId before =
        writer_.add({.name = name_ + ".before",
                     .op_type = ops::CumSum,
                     .inputs = {counts, writer_.integer("axis of tokens", 1, ElementType::int64)},
                     .attributes = {{"exclusive", std::int64_t{1}}, {"reverse", std::int64_t{0}}},
                     .type = kPlaces},
                    extents);
    const TensorId none = writer_.integer(fmt::format("beyond {}", capacity_), capacity_, kPlaces);
    const TensorId place = writer_.add({.name = name_ + ".place",
                                        .op_type = ops::Where,
                                        .inputs = {chosen, before, none},
                                        .type = kPlaces},
                                       extents);
    return one_hot(name_ + ".dispatch", place, capacity_, writer_.numbers("zero, one", {0.0, 1.0}),
                   ElementType::fp32);
  }

  /// Multiplies the rows of every expert by its weight.
  TensorId product(const std::string& part, TensorId rows, std::int64_t columns) {
    const std::string name = name_ + "." + part;
    const Extents from = writer_.shape(rows);
    const TensorId weight = writer_.parameter(name + ".weight", {from[0], from[3], columns});
    const TensorId y =
        writer_.einsum(name, "egch,ehf->egcf", rows, weight, {from[0], from[1], from[2], columns});
    if (!shape_.biases)
      return y;
    return writer_.with(name + ".sum", ops::Add, y,
                        writer_.parameter(name + ".bias", {from[0], 1, 1, columns}));
  }

  GraphWriter& writer_;
  const TransformerShape& shape_;
  std::string name_;
  std::int64_t experts_;
  std::int64_t capacity_;
};

} // namespace

TensorId add_experts(GraphWriter& writer, const TransformerShape& shape, const std::string& name,
                     TensorId x) {
  return ExpertsWriter(writer, shape, name).write(x);
}

} // namespace monet::transformer
