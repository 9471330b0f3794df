#include "cluster/ranks.hpp"

#include "monet/workload/onnx_reader.hpp"
#include "monet/workload/views.hpp"

#include <gtest/gtest.h>

#include <iostream>
#include <set>

namespace monet {

namespace {

TrainingGraph nano_step(TrainingOptions options = {}) {
  OnnxReadOptions read;
  read.batch = 4;
  const Graph network = read_onnx(MONET_SOURCE_DIR "/data/workload/gpt2_nano.onnx", read);
  return fold_views(make_training_graph(network, options));
}

void show(const RankStep& ranks) {
  for (const auto& [name, count] : test::collectives_of(ranks))
    std::cout << name << " x" << count << "\n";
  for (const Operator& op : ranks.step.graph.operators())
    if (is_collective(op) && getenv("SHOW"))
      std::cout << "   " << op.name << " " << name_of(op.phase) << " "
                << collective_bytes(ranks.step.graph, op) << "\n";
}

} // namespace

TEST(Partition, Nano) {
  const TrainingGraph step = nano_step();
  const std::vector<std::vector<MeshAxis>> meshes{
      {{.name = "data", .size = 2, .inputs = 0}},
      {{.name = "data", .size = 2, .inputs = 0, .zero = 1}},
      {{.name = "data", .size = 2, .inputs = 0, .zero = 3}},
      {{.name = "context", .size = 2, .inputs = 1}},
      {{.name = "tensor", .size = 2, .weights = true}},
      {{.name = "tensor", .size = 2, .inputs = 1, .weights = true, .between = true}},
      {{.name = "data", .size = 2, .inputs = 0, .zero = 1},
       {.name = "tensor", .size = 2, .inputs = 1, .weights = true, .between = true}},
      {{.name = "data", .size = 2, .inputs = 0, .zero = 3},
       {.name = "context", .size = 2, .inputs = 1},
       {.name = "tensor", .size = 2, .weights = true}},
  };
  for (const auto& mesh : meshes) {
    std::cout << "---\n";
    const RankStep ranks = partition_step(step, mesh);
    verify(ranks.step.graph);
    show(ranks);
    const auto found = test::differences(step, ranks, 2);
    for (std::size_t i = 0; i < 3; ++i)
      std::cout << found[i].tensor << " " << found[i].relative << "\n";
  }
}

} // namespace monet
