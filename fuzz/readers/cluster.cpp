// Cluster files and kernel tables: what is read has costs. What experiments of clusters say.
#include "base/shared/text.hpp"
#include "cluster/shared/collectives.hpp"
#include "readers/readers.hpp"

#include "monet/base/yaml.hpp"
#include "monet/cluster/kernel_table.hpp"
#include "monet/cluster/strategy.hpp"
#include "monet/workload/transformer.hpp"

namespace monet::fuzz {

namespace {

/// Files that an input names are its second part, behind a line of three dashes and a dot.
FileOpener opener_of(std::string_view rest) {
  return [rest](const std::string& name, const SourceLoc& where) {
    if (name.empty() || rest.empty())
      throw InputError(where, "no such file");
    return FileText{name, std::string(rest)};
  };
}

std::pair<std::string_view, std::string_view> parts_of(std::string_view text) {
  constexpr std::string_view kBetween = "---.\n";
  const std::size_t at = text.find(kBetween);
  if (at == std::string_view::npos)
    return {text, {}};
  return {text.substr(0, at), text.substr(at + kBetween.size())};
}

} // namespace

void read_cluster_file(std::string_view text) {
  const auto [main, rest] = parts_of(text);
  const Cluster cluster = parse_cluster(main, "fuzz.yaml", opener_of(rest));
  const GroupAxis all{1, cluster.devices};
  const GroupPlacement placement = place(cluster, {&all, 1});
  for (std::size_t c = 0; c < kCollectives; ++c) {
    for (std::size_t a = 0; a < kAlgorithms; ++a) {
      const auto algorithm = static_cast<CollectiveAlgorithm>(a);
      if (does(placement, static_cast<Collective>(c), algorithm))
        collective_cost(placement, static_cast<Collective>(c), 1, {algorithm, 0});
    }
  }
}

void read_kernel_file(std::string_view text) {
  const auto [main, rest] = parts_of(text);
  const KernelTable table = parse_kernel_table(main, "fuzz.yaml", opener_of(rest));
  for (std::size_t t = 0; t < kKernelTypes; ++t) {
    if (table.has(static_cast<KernelType>(t)))
      table.matmul_ns(100, 200, 300, 2, static_cast<KernelType>(t));
  }
  table.vector_ns(VectorKernel::softmax, 100, 200, KernelType::fp16);
}

void read_parallel(std::string_view text) {
  ProblemList problems;
  const YamlNode root = parse_yaml(text, "fuzz.yaml");
  YamlMap map(root, problems);
  if (const YamlNode* node = map.find("transformer"))
    read_transformer_shape(*node, problems);
  if (const YamlNode* node = map.find("parallel")) {
    const ParallelStrategy strategy = read_strategy(*node, problems);
    to_string(strategy);
    find_misfits(strategy, 1024);
  }
  if (const YamlNode* node = map.find("space"))
    read_strategy_space(*node, problems);
  map.finish();
  problems.throw_if_any();
}

} // namespace monet::fuzz
