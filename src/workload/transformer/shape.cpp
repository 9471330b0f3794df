// Reads and checks the sizes of a transformer (TransformerShape) from YAML; transformer.cpp builds
// the network from them.
#include "base/shared/checked.hpp"
#include "base/shared/text.hpp"
#include "workload/transformer/writer.hpp"

#include "monet/base/yaml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace monet {

std::int64_t TransformerShape::padded_vocabulary() const {
  return checked_multiply(ceil_div(vocabulary, vocabulary_multiple), vocabulary_multiple);
}

bool TransformerShape::has_experts(std::int64_t layer) const {
  return experts && (layer + 1) % expert_every == 0;
}

std::int64_t TransformerShape::capacity() const {
  if (!experts)
    return 0;
  const double share = capacity_factor * static_cast<double>(topk) * static_cast<double>(sequence) /
                       static_cast<double>(*experts);
  constexpr double kRounding = 1e-12; // avoids rounding up: 1.1 * 10 is 11
  return std::clamp<std::int64_t>(saturated_integer(std::ceil(share * (1.0 - kRounding))), 1,
                                  sequence);
}

namespace transformer {

namespace {

// Limits on counts, since operators are written one by one.
constexpr std::int64_t kMaxLayers = 2'000;
constexpr std::int64_t kMaxChoices = 64;
constexpr std::int64_t kMaxExperts = 65'536;
constexpr std::int64_t kLargestSize = std::int64_t{1} << 31;

class ShapeCheck {
public:
  ShapeCheck(const TransformerShape& shape, const PlaceOf& place_of, ProblemList& problems)
      : shape_(shape), place_of_(place_of), problems_(problems) {}

  void run() {
    const std::size_t before = problems_.size();
    sizes();
    if (!(shape_.dropout >= 0.0 && shape_.dropout < 1.0))
      report("dropout", fmt::format("'dropout' is {}, outside [0, 1)", shape_.dropout));
    const double attention = shape_.attention_dropout.value_or(0.0);
    if (!(attention >= 0.0 && attention < 1.0))
      report("attention_dropout",
             fmt::format("'attention_dropout' is {}, outside [0, 1)", attention));
    of_experts();
    if (problems_.size() == before)
      divisions();
  }

private:
  void report(std::string_view key, const std::string& what) {
    problems_.add(place_of_(key), what);
  }

  void size(std::string_view key, std::int64_t value, std::int64_t most = kLargestSize) {
    if (value < 1 || value > most)
      report(key, fmt::format("'{}' is {}, outside [1, {}]", key, value, most));
  }

  void sizes() {
    size("layers", shape_.layers, kMaxLayers);
    size("hidden", shape_.hidden);
    size("heads", shape_.heads);
    size("kv_heads", shape_.kv_heads.value_or(1));
    size("head_size", shape_.head_size.value_or(1));
    size("ffn", shape_.ffn.value_or(1));
    size("sequence", shape_.sequence);
    size("vocabulary", shape_.vocabulary);
    size("vocabulary_multiple", shape_.vocabulary_multiple);
    size("batch", shape_.batch);
  }

  void of_experts() {
    if (!shape_.experts)
      return;
    size("experts", *shape_.experts, kMaxExperts);
    size("topk", shape_.topk, std::clamp<std::int64_t>(*shape_.experts, 1, kMaxChoices));
    size("expert_every", shape_.expert_every, kMaxLayers);
    if (!(shape_.capacity_factor > 0.0 && shape_.capacity_factor < 1e9))
      report("capacity_factor",
             fmt::format("'capacity_factor' is {}, outside (0, 1e9)", shape_.capacity_factor));
  }

  void divisions() {
    if (!shape_.head_size && shape_.hidden % shape_.heads != 0)
      report("heads", fmt::format("{} of 'hidden' are not divisible by {} heads: {} are left; set "
                                  "'head_size' if heads have another size",
                                  shape_.hidden, shape_.heads, shape_.hidden % shape_.heads));
    const std::int64_t groups = shape_.heads_of_keys();
    if (shape_.heads % groups != 0)
      report("kv_heads", fmt::format("{} heads are not divisible by {} 'kv_heads': {} are left",
                                     shape_.heads, groups, shape_.heads % groups));
  }

  const TransformerShape& shape_;
  const PlaceOf& place_of_;
  ProblemList& problems_;
};

} // namespace

void check_shape(const TransformerShape& shape, const PlaceOf& place_of, ProblemList& problems) {
  ShapeCheck(shape, place_of, problems).run();
}

} // namespace transformer

namespace {

template <class T>
struct NamedChoice {
  std::string_view name;
  T value;
};

constexpr NamedChoice<TransformerShape::Norm> kNorms[]{{"layer", TransformerShape::Norm::layer},
                                                       {"rms", TransformerShape::Norm::rms}};
constexpr NamedChoice<TransformerShape::Activation> kActivations[]{
    {"gelu", TransformerShape::Activation::gelu},
    {"relu", TransformerShape::Activation::relu},
    {"swiglu", TransformerShape::Activation::swiglu}};
constexpr NamedChoice<TransformerShape::Positions> kPositions[]{
    {"learned", TransformerShape::Positions::learned}, {"none", TransformerShape::Positions::none}};

/// Reads one map of sizes.
class ShapeReader {
public:
  ShapeReader(const YamlNode& node, ProblemList& problems)
      : map_(node, problems), problems_(problems) {}

  TransformerShape read() {
    const std::size_t before = problems_.size();
    read_sizes();
    read_form();
    read_experts();
    map_.finish();
    if (problems_.size() == before)
      transformer::check_shape(
          shape_, [&](std::string_view key) { return place_of(key); }, problems_);
    return shape_;
  }

private:
  void optional_size(std::string_view key, std::optional<std::int64_t>& field) {
    if (const YamlNode* value = map_.find(key))
      field = as_integer(*value, problems_);
  }

  void read_sizes() {
    shape_.layers = map_.require_integer("layers", shape_.layers);
    shape_.hidden = map_.require_integer("hidden", shape_.hidden);
    shape_.heads = map_.require_integer("heads", shape_.heads);
    optional_size("kv_heads", shape_.kv_heads);
    optional_size("head_size", shape_.head_size);
    optional_size("ffn", shape_.ffn);
    shape_.sequence = map_.require_integer("sequence", shape_.sequence);
    shape_.vocabulary = map_.require_integer("vocabulary", shape_.vocabulary);
    shape_.vocabulary_multiple = map_.integer_or("vocabulary_multiple", shape_.vocabulary_multiple);
    shape_.batch = map_.integer_or("batch", shape_.batch);
  }

  void read_form() {
    choice("norm", kNorms, shape_.norm);
    choice("activation", kActivations, shape_.activation);
    choice("positions", kPositions, shape_.positions);
    shape_.biases = map_.boolean_or("biases", shape_.biases);
    shape_.tied = map_.boolean_or("tied", shape_.tied);
    shape_.dropout = map_.number_or("dropout", shape_.dropout);
    if (map_.has("attention_dropout"))
      shape_.attention_dropout = map_.number_or("attention_dropout", 0.0);
    shape_.causal = map_.boolean_or("causal", shape_.causal);
  }

  void read_experts() {
    optional_size("experts", shape_.experts);
    for (const std::string_view key : {"topk", "capacity_factor", "expert_every"}) {
      const YamlNode* value = map_.find(key);
      if (value && !shape_.experts)
        problems_.add(value->where, fmt::format("'{}' is a setting of 'experts'", key));
    }
    shape_.topk = map_.integer_or("topk", shape_.topk);
    shape_.capacity_factor = map_.number_or("capacity_factor", shape_.capacity_factor);
    shape_.expert_every = map_.integer_or("expert_every", shape_.expert_every);
  }

  template <class T, std::size_t kCount>
  void choice(std::string_view key, const NamedChoice<T> (&choices)[kCount], T& field) {
    const YamlNode* value = map_.find(key);
    const auto text = value ? as_string(*value, problems_) : std::nullopt;
    if (!text)
      return;
    std::vector<std::string> names;
    for (const NamedChoice<T>& known : choices) {
      if (known.name == *text) {
        field = known.value;
        return;
      }
      names.emplace_back(known.name);
    }
    const std::string near = nearest_name_hint(*text, names);
    problems_.add(value->where, fmt::format("'{}' is not known here", *text),
                  near.empty() ? fmt::format("one of: {}", fmt::join(names, ", ")) : near);
  }

  /// Location of a key's value, or of the map if the key is missing.
  SourceLoc place_of(std::string_view key) {
    const YamlNode* value = map_.find(key);
    return value ? value->where : map_.node().where;
  }

  YamlMap map_;
  ProblemList& problems_;
  TransformerShape shape_;
};

} // namespace

TransformerShape read_transformer_shape(const YamlNode& node, ProblemList& problems) {
  return ShapeReader(node, problems).read();
}

} // namespace monet
