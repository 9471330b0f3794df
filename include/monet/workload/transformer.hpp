// make_transformer(): makes a transformer from its sizes, as the graph that read_onnx() would
// return for a GPT, without a file.
//
// The form is that of GPT-2 and Megatron (Radford et al. 2019; Shoeybi et al. 2019). Each branch
// starts with a normalisation: x + proj(attention(norm(x))), then x +
// down(activation(up(norm(x)))). A normalisation at the end follows, and the logits use the table
// of the embedding. With experts, the second branch is GShard's (Lepikhin et al. 2020); with one
// expert per token it is a Switch (Fedus et al. 2021).
// Example:
//   Graph make_gpt2() {
//     TransformerShape shape;
//     shape.layers = shape.heads = 12;
//     shape.hidden = 768;
//     shape.sequence = 1024;
//     shape.vocabulary = 50257;
//     return make_transformer(shape);
//   }
#pragma once

#include "monet/base/errors.hpp"
#include "monet/workload/graph.hpp"

#include <cstdint>
#include <optional>

namespace monet {

struct YamlNode;

/// Sizes of a transformer, in elements. Sizes that are omitted are derived from the others.
struct TransformerShape {
  /// Kind of normalisation.
  enum class Norm { layer, rms };
  /// Activation of the feed-forward part.
  enum class Activation {
    gelu, ///< tanh form, as in GPT-2
    relu,
    /// silu(x Wgate) * (x Wup), which replaces the first product and its activation.
    swiglu,
  };
  /// Kind of position encoding.
  enum class Positions {
    learned, ///< trained table [sequence, hidden], added to the embedding
    /// No position encoding. Rotary embeddings are also omitted, since they have no parameters or
    /// products.
    none,
  };

  std::int64_t layers = 1;
  std::int64_t hidden = 1;
  std::int64_t heads = 1; ///< number of heads of queries
  /// Number of heads of keys and values, each read by heads / kv_heads heads (Ainslie et al. 2023,
  /// "GQA"). nullopt: equal to `heads`.
  std::optional<std::int64_t> kv_heads;
  std::optional<std::int64_t> head_size; ///< nullopt: hidden / heads
  std::optional<std::int64_t> ffn;       ///< nullopt: 4 * hidden
  std::int64_t sequence = 1;             ///< tokens of a sample
  std::int64_t vocabulary = 1;
  std::int64_t batch = 1; ///< samples
  Norm norm = Norm::layer;
  Activation activation = Activation::gelu;
  Positions positions = Positions::learned;
  /// Whether products have biases; a layer normalisation has one in any case.
  bool biases = true;
  bool tied = true; ///< embedding and logits share their table
  /// Share of elements dropped from the embedding, the probabilities of attention and the results
  /// of both branches. 0: there are no dropout operators.
  double dropout = 0.0;
  /// Share dropped from the probabilities of attention; nullopt: `dropout`. Must be 0 for attention
  /// that runs as one kernel, since such kernels draw their random numbers again and store none.
  std::optional<double> attention_dropout;
  bool causal = true; ///< tokens attend only to earlier tokens and themselves
  /// Divisor of the table's number of rows, which is the smallest such multiple that holds the
  /// vocabulary. It is Megatron's make-vocab-size-divisible-by times its tensor parallel size.
  /// Logits have the same number of columns.
  std::int64_t vocabulary_multiple = 1;

  std::optional<std::int64_t> experts; ///< nullopt: every feed-forward part is dense
  std::int64_t topk = 2;               ///< number of experts per token
  double capacity_factor = 1.25;
  /// Interval of layers with experts: the last of every `expert_every` layers has experts, the
  /// others are dense.
  std::int64_t expert_every = 1;

  /// Number of heads of keys and values.
  std::int64_t heads_of_keys() const { return kv_heads.value_or(heads); }
  /// Size of a head.
  std::int64_t size_of_head() const { return head_size.value_or(hidden / heads); }
  /// Size of the feed-forward part.
  std::int64_t size_of_ffn() const { return ffn.value_or(4 * hidden); }
  /// Number of rows of the table: the vocabulary, rounded up to a multiple of vocabulary_multiple.
  std::int64_t padded_vocabulary() const;
  /// Whether a layer has experts; layers are numbered from 0.
  bool has_experts(std::int64_t layer) const;
  /// Maximum number of tokens of one sample per expert: ceil(capacity_factor * topk * sequence /
  /// experts), at most the number of tokens. 0 without experts.
  std::int64_t capacity() const;

  friend bool operator==(const TransformerShape&, const TransformerShape&) = default;
};

/// Makes the forward pass. The input is "tokens", int64 [batch, sequence]; the output is "logits",
/// fp32 [batch, sequence, padded vocabulary]. Every operator has its nest. Parameters have layers l
/// from 0 ("h.l.") and weights [in, out]:
///
///   wte.weight              [padded vocabulary, hidden]
///   wpe.weight              [sequence, hidden]
///   h.l.ln_1, h.l.ln_2      .weight, .bias [hidden]; ln_f, too
///   h.l.attn.qkv.weight     [hidden, columns], .bias [columns]
///   h.l.attn.proj.weight    [heads * head_size, hidden], .bias
///   h.l.mlp.fc.weight       [hidden, ffn], .bias; with swiglu gate and up
///   h.l.mlp.proj.weight     [ffn, hidden], .bias
///   h.l.moe.router.weight   [hidden, experts]
///   h.l.moe.fc.weight       [experts, hidden, ffn], .bias [experts, 1, 1, ffn]; or gate, up
///   h.l.moe.proj.weight     [experts, ffn, hidden], .bias [experts, 1, 1, hidden]
///   lm_head.weight          [hidden, padded vocabulary], where the table is not shared
///
/// Columns of attention are [kv_heads][queries of the group, key, value][head_size], so that a
/// range of columns has whole groups.
///
/// Experts: the probabilities are softmax(x Wrouter), and a token chooses the topk largest (of
/// equal ones, the first). Tokens of one sample form a group. Each expert accepts the first
/// capacity() tokens of a group that chose it, in the order of the sequence, and drops the others.
/// A token's result is the sum, over the experts that accepted it, of probability times expert
/// result; it is 0 if all dropped it. Probabilities are not normalised over the chosen experts.
/// There is no balancing loss.
///
/// The causal mask is a constant [sequence, sequence], true where attention is forbidden. Beyond
/// 2^21 elements it has no numbers, so that the graph can be modelled but not executed.
///
/// Throws InputError with all sizes that do not divide or are out of range, or with a tensor of
/// more than `max_elements`.
Graph make_transformer(const TransformerShape& shape,
                       std::int64_t max_elements = std::int64_t{1} << 42);

/// Reads the map of `transformer:`, whose keys are the names of the fields. layers, hidden, heads,
/// sequence and vocabulary are required. Unknown keys, sizes that do not divide, and settings of
/// experts without `experts` are located problems.
TransformerShape read_transformer_shape(const YamlNode& node, ProblemList& problems);

} // namespace monet
