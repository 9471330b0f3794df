// Which tensors live from the forward to the backward phase, and who owns every byte; what is
// stored in part, packed, in the host, or not at all because it is computed again.
#pragma once

#include "monet/base/errors.hpp"
#include "monet/training_graph/training.hpp"
#include "monet/workload/graph.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace monet {

/// Per operator: whether it belongs to the backward part of its micro-batch. What is computed again
/// belongs to the part that it stands in front of.
std::vector<bool> in_backward_part(const Graph& graph);

struct StoredActivations {
  std::vector<TensorId> tensors; ///< sorted
  std::int64_t bytes = 0;        ///< see TrainingGraph::stored_bytes
};

/// Finds the activations that one micro-batch stores. `requires_grad`: see find_eager_storage().
/// `losses`: results of losses whose divisor has no separate tensor.
StoredActivations find_stored(const Graph& graph, StorePolicy policy,
                              const std::vector<bool>& requires_grad,
                              const std::vector<TensorId>& losses);

/// If backward operators read less than half of a forward result, through views, that part is
/// copied when it is made, and the copy is stored. Examples are one step of a sequence, or the
/// values among queries, keys and values. `any`: also if they read half or more but not all, and
/// for inputs and labels. Tensors keep their ids.
Graph keep_parts(const Graph& graph, bool any = false);

/// Gives what is stored for the backward part its smallest form:
/// - An activation whose derivative takes two values (Relu, LeakyRelu, Clip, HardSigmoid) writes
/// one
///   bit an element instead of keeping its input or output, if nothing else in the backward part
///   reads that: op_type stays, the domain becomes ai.monet, the mask is output 1. Its gradient
///   becomes MaskGrad.
/// - Masks of dropout and computed conditions are packed, one bit an element.
/// - Max-pooling's indices, places in a window, take the smallest integer that holds them.
void pack_stored(Graph& graph);

/// Offloads within one pass. A tensor that is stored, or read by the backward part, and matches a
/// pattern is copied to the host behind its last reader of the forward part (ai.monet.Offload) and
/// back in front of the first backward operator that needs it (ai.monet.Fetch), whose copy is read
/// from then on. Tensors keep their ids; in `stored` the copy in the host stands for its tensor.
/// `losses`, which the step gives back, stay. InputError when a pattern other than "*" matches
/// nothing that is stored.
Graph offload(const Graph& graph, const std::vector<std::string>& patterns,
              const std::vector<TensorId>& losses, std::vector<TensorId>& stored);

/// Before the first backward operator that reads a tensor whose name matches one of the patterns,
/// the forward operator that made it runs again (Phase::recompute) and its results are read
/// instead; its inputs are then stored, unless they match as well. Ids of tensors stay. Problems: a
/// pattern that matches nothing stored, an operator that would not compute the same again.
Graph recompute(const Graph& graph, const std::vector<std::string>& patterns,
                ProblemList& problems);

/// Recomputes tensors that are another stored tensor times, plus or over a number, for which what
/// is stored anyway is enough, and casts to wider types.
Graph recompute_scaled(const Graph& graph);
/// Computes every stored result of element-wise operators, sums and look-ups in tables again that
/// follow, a few operators on, from what is stored, too, or need not be made.
Graph recompute_cheap(const Graph& graph);

/// Makes stored copies again of what is stored, too, or need not be made; of a folded graph.
Graph recompute_copies(const Graph& graph);

/// Storages of forward tensors whose name matches; a problem for a pattern that matches none.
std::vector<TensorId> forward_tensors_matching(const Graph& graph,
                                               const std::vector<std::string>& patterns,
                                               std::string_view what, ProblemList& problems);

/// Memory that PyTorch's autograd keeps for the backward pass of the same network (version 1.13,
/// eager).
struct EagerStorage {
  std::vector<TensorId> tensors; ///< whose memory is kept; sorted
  std::int64_t bytes = 0;        ///< of all distinct storages, as saved_tensors_hooks see them
};

/// Finds the memory that autograd keeps. `requires_grad`: true for every tensor of the forward part
/// that depends on a trained parameter. Buffers and constants are counted, parameters are not.
/// Operators without a counterpart in PyTorch keep the tensors that their backward operators read.
EagerStorage find_eager_storage(const Graph& step, const std::vector<bool>& requires_grad);

/// PyTorch's dropout on a CPU, where 32-bit networks are measured, keeps what the result is
/// multiplied by, in its type; the fused operator of GPUs, where 16-bit networks run, one byte an
/// element. The masks of the graph become what is kept.
void widen_dropout_masks(Graph& step);

} // namespace monet
