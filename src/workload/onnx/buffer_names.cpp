// Classifies initialisers as buffers by their names; kinds.cpp calls it.
#include "workload/onnx/model.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace monet::onnx_file {

namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

/// Last part of a name: "h.0.attn._mask" -> "mask".
std::string leaf_of(std::string_view name) {
  const std::size_t dot = name.find_last_of("./");
  std::string_view leaf = dot == name.npos ? name : name.substr(dot + 1);
  while (leaf.starts_with('_'))
    leaf.remove_prefix(1);
  while (leaf.ends_with('_'))
    leaf.remove_suffix(1);
  return lower(leaf);
}

template <std::size_t N>
bool is_among(std::string_view word, const std::array<std::string_view, N>& words) {
  return std::ranges::find(words, word) != words.end();
}

/// Names that are used only for buffers.
constexpr auto kCertainNames = std::to_array<std::string_view>({"alphas_cumprod",
                                                                "anchor_grid",
                                                                "attn_mask",
                                                                "blur_kernel",
                                                                "causal_mask",
                                                                "class_weight",
                                                                "class_weights",
                                                                "cluster_size",
                                                                "cos_cache",
                                                                "cos_cached",
                                                                "dct",
                                                                "embed_avg",
                                                                "eye",
                                                                "freqs_cis",
                                                                "freqs_cos",
                                                                "freqs_sin",
                                                                "hamming_window",
                                                                "hann_window",
                                                                "idct",
                                                                "image_mean",
                                                                "image_std",
                                                                "inv_freq",
                                                                "inv_freqs",
                                                                "laplacian",
                                                                "masked_bias",
                                                                "mel_basis",
                                                                "num_batches_tracked",
                                                                "pixel_mean",
                                                                "pixel_std",
                                                                "pos_weight",
                                                                "position_ids",
                                                                "posterior_variance",
                                                                "rope_cache",
                                                                "running_mean",
                                                                "running_std",
                                                                "running_var",
                                                                "sin_cache",
                                                                "sin_cached",
                                                                "tril",
                                                                "triu"});

/// Names mostly used for buffers, but also for parameters in learned variants.
constexpr auto kProbableNames = std::to_array<std::string_view>({"alibi",
                                                                 "alibi_slopes",
                                                                 "alphas",
                                                                 "anchors",
                                                                 "anchors_wh",
                                                                 "betas",
                                                                 "class_prior",
                                                                 "coords",
                                                                 "count",
                                                                 "freq_bands",
                                                                 "freqs",
                                                                 "frequencies",
                                                                 "levels",
                                                                 "log_prior",
                                                                 "loss_weight",
                                                                 "loss_weights",
                                                                 "lut",
                                                                 "mean",
                                                                 "projection_matrix",
                                                                 "queue",
                                                                 "sigmas",
                                                                 "slopes",
                                                                 "std",
                                                                 "strides",
                                                                 "target_mean",
                                                                 "target_std",
                                                                 "time_scale",
                                                                 "x_coords",
                                                                 "y_coords"});

/// Names also used for parameters; they count if the numbers are unknown, or if only two numbers
/// occur.
constexpr auto kPossibleNames =
    std::to_array<std::string_view>({"adj", "adjacency", "bands", "cos", "fbank", "filter_bank",
                                     "frozen", "grid", "mask", "pe", "pos_table", "sin", "window"});

/// Prefixes used only for buffers.
constexpr std::array<std::string_view, 3> kCertainBeginnings{"ema_", "sqrt_alphas",
                                                             "sqrt_one_minus"};

/// Words in names of statistics and constants, whose values resemble those of parameters.
constexpr auto kSuspectWords = std::to_array<std::string_view>(
    {"adjustment", "average", "avg",        "buffer", "codebook", "const", "counts",
     "decay",      "ema",     "fixed",      "frozen", "mask",     "mean",  "prior",
     "priors",     "running", "statistics", "stats",  "std",      "var",   "variance"});

} // namespace

BufferSign buffer_by_name(std::string_view name, std::optional<bool> has_two_numbers) {
  using Strength = BufferSign::Strength;
  const std::string leaf = leaf_of(name);
  const bool begins = std::ranges::any_of(
      kCertainBeginnings, [&](std::string_view beginning) { return leaf.starts_with(beginning); });
  if (is_among(leaf, kCertainNames) || begins || leaf.ends_with("_mask"))
    return {"its name", Strength::certain};
  if (is_among(leaf, kProbableNames))
    return {"its name", Strength::strong};
  if (is_among(leaf, kPossibleNames) && has_two_numbers.value_or(true))
    return {"its name", has_two_numbers ? Strength::certain : Strength::strong};
  return {};
}

bool is_suspect_name(std::string_view name) {
  const std::string leaf = leaf_of(name);
  std::string_view rest = leaf;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('_'), rest.size());
    if (is_among(rest.substr(0, end), kSuspectWords) && !leaf.ends_with("_token"))
      return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

bool is_layer_name(std::string_view name) {
  return name.find('.') != name.npos && (leaf_of(name) == "weight" || leaf_of(name) == "bias");
}

bool is_constant_name(std::string_view name) {
  const auto plain = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '.'; };
  const auto digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  if (std::ranges::all_of(name, digit) || !std::ranges::all_of(name, plain))
    return true;
  const std::string leaf = leaf_of(name);
  return leaf.starts_with("val_") || leaf.starts_with("scalar_tensor") || leaf.starts_with("const");
}

bool is_named_number(std::string_view name, double value) {
  const std::string leaf = leaf_of(name);
  const bool small = value > 0.0 && value <= 1e-2;
  return ((leaf == "eps" || leaf == "epsilon") && small) || (leaf == "one" && value == 1.0) ||
         (leaf == "two" && value == 2.0) || (leaf == "half" && value == 0.5) ||
         (leaf == "zero" && value == 0.0);
}

} // namespace monet::onnx_file
