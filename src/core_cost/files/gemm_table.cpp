// GEMM tables: a network as a list of products, see monet/core_cost/backward.hpp.

#include "base/shared/file_kind.hpp"

#include "monet/base/files.hpp"
#include "monet/base/yaml.hpp"
#include "monet/core_cost/backward.hpp"

#include <fmt/core.h>

#include <filesystem>
#include <map>

namespace monet {

namespace {

constexpr std::size_t kMaxGemmTableBytes = std::size_t{1} << 24;

bool layer_is_within_limits(const GemmLayer& layer, std::int64_t batch) {
  return layer.m <= kMaxGemmDimension / batch &&
         gemm_is_within_limits(layer.m * batch, layer.k, layer.n, layer.repeats);
}

class GemmReader {
public:
  explicit GemmReader(ProblemList& problems) : problems_(problems) {}

  void read_layer(const YamlNode& node, GemmTable& table) {
    const std::size_t before = problems_.size();
    YamlMap map(node, problems_);
    GemmLayer layer;
    layer.where = node.where;
    layer.name = map.string_or("name", fmt::format("layer{}", table.layers.size()));
    layer.m = size(map.require("m"), "m", 1);
    layer.k = size(map.require("k"), "k", 1);
    layer.n = size(map.require("n"), "n", 1);
    layer.input = size(map.find("input"), "input", 0);
    layer.repeats = size(map.find("repeats"), "repeats", 1);
    layer.first = map.boolean_or("first", false);
    map.finish();
    if (problems_.size() != before)
      return;
    check(layer);
    table.layers.push_back(std::move(layer));
  }

private:
  std::int64_t size(const YamlNode* node, const char* key, std::int64_t fallback) {
    const auto value = node != nullptr ? as_integer(*node, problems_) : std::nullopt;
    if (value && (*value < 1 || *value > kMaxGemmDimension)) {
      problems_.add(node->where, fmt::format("'{}' is {}; it must be 1 to 2^40", key, *value));
      return 1;
    }
    return value.value_or(fallback);
  }

  void check(const GemmLayer& layer) {
    if (!names_.emplace(layer.name, layer.where).second) {
      problems_.add(layer.where, fmt::format("a layer '{}' is there already, in line {}",
                                             layer.name, names_.at(layer.name).line));
    }
    if (!layer_is_within_limits(layer, 1))
      problems_.add(layer.where, "the layer has more than 2^45 multiplications");
    else if (layer.input > layer.m * layer.k)
      problems_.add(layer.where, fmt::format("'input' is {}, more than the {} elements of m x k",
                                             layer.input, layer.m * layer.k));
  }

  ProblemList& problems_;
  std::map<std::string, SourceLoc> names_;
};

} // namespace

GemmTable parse_gemm_table(std::string_view text, const std::string& origin) {
  const YamlNode root = parse_yaml(text, origin);
  require_kind(root, {FileKind::products});
  ProblemList problems;
  GemmTable table;
  YamlMap map(root, problems);
  table.name = map.string_or("name", std::filesystem::path(origin).stem().string());
  const YamlNode* layers = map.require("layers");
  map.finish();
  if (layers != nullptr && (layers->kind != YamlNode::Kind::sequence || layers->items.empty())) {
    problems.add(layers->where, "'layers' must be a list of at least one layer");
  } else if (layers != nullptr) {
    GemmReader reader(problems);
    for (const YamlNode& layer : layers->items)
      reader.read_layer(layer, table);
  }
  problems.throw_if_any();
  return table;
}

GemmTable read_gemm_table(const std::string& path) {
  return parse_gemm_table(read_file(path, kMaxGemmTableBytes), path);
}

GemmNetwork gemm_pairs(const GemmTable& table, std::int64_t batch) {
  internal_check(batch >= 1, "a batch of at least one sample");
  ProblemList problems;
  GemmNetwork network;
  network.name = table.name;
  for (const GemmLayer& layer : table.layers) {
    if (!layer_is_within_limits(layer, batch)) {
      problems.add(layer.where,
                   fmt::format("with a batch of {} the layer '{}' has more than 2^40 rows or 2^45 "
                               "multiplications",
                               batch, layer.name));
      continue;
    }
    GemmPair pair;
    pair.name = layer.name;
    pair.m = layer.m * batch;
    pair.k = layer.k;
    pair.n = layer.n;
    pair.repeats = layer.repeats;
    pair.has_dx = !layer.first;
    pair.raw_elements = layer.input * batch; // at most m * k
    network.pairs.push_back(std::move(pair));
  }
  problems.throw_if_any();
  return network;
}

} // namespace monet
