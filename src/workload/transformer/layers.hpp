// The parts of a transformer that dense layers and layers with experts share.
#pragma once

#include "workload/transformer/writer.hpp"

#include "monet/workload/transformer.hpp"

#include <functional>
#include <string>

namespace monet::transformer {

/// Normalises over the last axis, with trained `name`.weight and, of a layer norm, `name`.bias.
TensorId add_norm(GraphWriter& writer, const TransformerShape& shape, const std::string& name,
                  TensorId x);
/// x, or x with a share of it dropped; `ratio` is the name of that number.
TensorId add_dropout(GraphWriter& writer, double share, const std::string& name, TensorId x,
                     const std::string& ratio = "dropout");

/// A product of x with weights of its own, to rows of `columns` numbers.
using Linear = std::function<TensorId(const std::string& part, TensorId x, std::int64_t columns)>;
/// proj(activation(fc(x))), or proj(silu(gate(x)) * up(x)): parts of `linear`.
TensorId add_feed_forward(GraphWriter& writer, const TransformerShape& shape,
                          const std::string& name, TensorId x, const Linear& linear);

/// The mixture of experts of x [batch, sequence, hidden], called `name`.
TensorId add_experts(GraphWriter& writer, const TransformerShape& shape, const std::string& name,
                     TensorId x);

} // namespace monet::transformer
