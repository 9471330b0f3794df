// Transformers made from their sizes: the graph that read_onnx would give of a GPT, without a file.
//
// The form is that of GPT-2 and Megatron (Radford et al. 2019; Shoeybi et al. 2019): normalisation
// before each branch, x + proj(attention(norm(x))), then x + down(activation(up(norm(x)))), a
// normalisation at the end, logits by the table of the embedding. With experts, the second branch
// is GShard's (Lepikhin et al. 2020); one choice a token makes it a Switch (Fedus et al. 2021).
#pragma once

#include "monet/base/errors.hpp"
#include "monet/workload/graph.hpp"

#include <cstdint>
#include <optional>

namespace monet {

struct YamlNode;

/// Sizes count elements. What is left out follows from the rest.
struct TransformerShape {
  enum class Norm { layer, rms };
  enum class Activation {
    gelu, ///< its tanh form, as GPT-2 has it
    relu,
    swiglu, ///< silu(x Wgate) * (x Wup) in the place of the first product and its activation
  };
  enum class Positions {
    learned, ///< a trained table [sequence, hidden] that is added to the embedding
    none,    ///< rotary embeddings are left out, too: they have no parameters and no products
  };

  std::int64_t layers = 1;
  std::int64_t hidden = 1;
  std::int64_t heads = 1; ///< of queries
  /// Of keys and values, each read by heads / kv_heads heads (Ainslie et al. 2023, "GQA"). None: as
  /// many as heads.
  std::optional<std::int64_t> kv_heads;
  std::optional<std::int64_t> head_size; ///< none: hidden / heads
  std::optional<std::int64_t> ffn;       ///< none: 4 * hidden
  std::int64_t sequence = 1;             ///< tokens of a sample
  std::int64_t vocabulary = 1;
  std::int64_t batch = 1; ///< samples
  Norm norm = Norm::layer;
  Activation activation = Activation::gelu;
  Positions positions = Positions::learned;
  bool biases = true; ///< of products; a layer normalisation has its own in any case
  bool tied = true;   ///< embedding and logits share their table
  /// Share of what is dropped from the embedding, the probabilities of attention and the results of
  /// both branches. 0: there are no such operators.
  double dropout = 0.0;
  /// Of the probabilities alone; none: as `dropout`. Attention that is to run as one kernel has 0
  /// here: such kernels draw their numbers again and store nothing of them.
  std::optional<double> attention_dropout;
  bool causal = true; ///< tokens attend to those before them and to themselves only
  /// The table has the least multiple of this many rows that holds the vocabulary (Megatron's
  /// make-vocab-size-divisible-by times its tensor parallel size). Logits have as many.
  std::int64_t vocabulary_multiple = 1;

  std::optional<std::int64_t> experts; ///< none: every feed-forward part is dense
  std::int64_t topk = 2;               ///< experts that a token chooses
  double capacity_factor = 1.25;
  /// Every so many layers, the last of them has experts, the others are dense.
  std::int64_t expert_every = 1;

  std::int64_t heads_of_keys() const { return kv_heads.value_or(heads); }
  std::int64_t size_of_head() const { return head_size.value_or(hidden / heads); }
  std::int64_t size_of_ffn() const { return ffn.value_or(4 * hidden); }
  std::int64_t padded_vocabulary() const;
  bool has_experts(std::int64_t layer) const; ///< layers are counted from 0
  /// Tokens of one sample that an expert takes: ceil(capacity_factor * topk * sequence / experts),
  /// and no more than there are. Without experts 0.
  std::int64_t capacity() const;

  friend bool operator==(const TransformerShape&, const TransformerShape&) = default;
};

/// The forward pass. Input "tokens" int64 [batch, sequence], output "logits" fp32 [batch, sequence,
/// padded vocabulary]; every operator has its nest. Parameters, with layers l from 0 ("h.l.") and
/// weights [in, out]:
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
/// Columns of attention are [kv_heads][queries of the group, key, value][head_size], so that whole
/// groups can be cut off.
///
/// Experts: the probabilities are softmax(x Wrouter); a token chooses the topk largest (of equal
/// ones the first). Tokens of one sample are a group: its experts take the first capacity() tokens
/// that chose them, in the order of the sequence; the others are dropped by that expert. A token's
/// result is the sum over the experts that took it of probability times their result, nothing where
/// none did. Probabilities are not divided by the sum of those chosen; no loss balances the
/// experts.
///
/// The causal mask is a constant [sequence, sequence], true where attention is forbidden; beyond
/// 2^21 elements without numbers: such a graph can be costed, not executed.
///
/// InputError listing all that does not divide or is out of range, or naming a tensor of more than
/// `max_elements`.
Graph make_transformer(const TransformerShape& shape,
                       std::int64_t max_elements = std::int64_t{1} << 42);

/// The map behind `transformer:`; its keys are the fields' names. layers, hidden, heads, sequence
/// and vocabulary are required. Unknown keys, sizes that do not divide, and settings of experts
/// without `experts` are located problems.
TransformerShape read_transformer_shape(const YamlNode& node, ProblemList& problems);

} // namespace monet
