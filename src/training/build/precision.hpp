// Which tensors are cast, and where. An operator rounds its own results to the type of their role,
// and element-wise operators, normalisations and reductions read any type as it is; a product
// takes its operands in one type. Where a weight or a gradient comes in another, a Cast stands
// before the product, once for all readers.
#pragma once

#include "monet/training/training.hpp"

namespace monet {

/// An array multiplies the two as they are: the same type; tf32 and fp32; formats of at most 8 bits
/// with the same kind of scale (fp8 of both forms, microscaling blocks of any).
bool multiplies_with(ElementType a, ElementType b);

/// A network of which every parameter is fp64 was written so for the sake of its numbers: the same
/// in fp32. Nullopt for all others, which keep the fp64 that they cast to.
std::optional<Graph> in_single_precision(const Graph& network);
/// Element type of a parameter: trained, or kept as it is; none: the file's.
std::optional<ElementType> weight_type(const Precision& precision, bool trained);

/// Some weights may need a Cast before a product takes them.
bool casts_weights(const Precision& precision);
/// The network with a Cast of every weight that a product takes in another type, to the type of
/// activations. Tensors of the network keep their ids. `trained` by TensorId.
Graph add_weight_casts(const Graph& network, const Precision& precision,
                       const std::vector<bool>& trained);

} // namespace monet
