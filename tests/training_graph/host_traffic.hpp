// What a step moves between the device and the host, counted from its operators.
#pragma once

#include "workload/shared/views.hpp"

#include "monet/workload/graph.hpp"

#include <cstdint>
#include <set>

namespace monet::test {

struct HostTraffic {
  std::int64_t out = 0; ///< bytes
  std::int64_t in = 0;
  int late_readers = 0; ///< of what was made, has gone out, and is not what came back
};

inline HostTraffic host_traffic(const Graph& graph) {
  HostTraffic traffic;
  std::set<TensorId> gone;
  std::set<TensorId> back; // copies in the host that have been read
  for (const Operator& op : graph.operators()) {
    const bool out = op.op_type == "Offload";
    const bool in = op.op_type == "Fetch";
    for (const auto& input : op.inputs)
      traffic.late_readers += input && gone.contains(storage_root(graph, *input)) ? 1 : 0;
    if (out) {
      const TensorId root = storage_root(graph, *op.inputs[0]);
      traffic.out += bytes_of(size_of(graph.tensor(*op.outputs[0])));
      if (graph.tensor(root).producer) // a second pass reads the same inputs
        gone.insert(root);
    }
    if (in && back.insert(*op.inputs[0]).second)
      traffic.in += bytes_of(size_of(graph.tensor(*op.outputs[0])));
  }
  return traffic;
}

} // namespace monet::test
