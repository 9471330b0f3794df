#include "optimise/bounds/read_again.hpp"

#include "monet/schedule/bounds.hpp"

#include <algorithm>

namespace monet {

namespace {

double elements_read(const Graph& graph, OpId op, const Access& access) {
  const std::vector<Interval> all = full_tile(graph.op(op).nest);
  return static_cast<double>(touched_elements(access, all, graph.tensor(access.tensor).shape));
}

} // namespace

ReadAgain::ReadAgain(const Graph& graph, double room) : graph_(graph), room_(room) {
  for (std::size_t o = 0; o < graph.operators().size(); ++o) {
    for (const auto& output : graph.operators()[o].outputs) {
      const auto root = output ? graph.tensor(*output).alias_of : std::nullopt;
      if (!root || graph.tensor(*root).producer)
        continue;
      Overwritten tensor;
      tensor.elements = static_cast<double>(element_count(graph.tensor(*root)));
      tensor.width = static_cast<double>(bits_of(graph.tensor(*root).type));
      bool updated = false; // all of it is read by the update, too
      for (const OpId op : graph.tensor(*root).consumers) {
        for (const Access& access : graph.op(op).nest.operands) {
          if (access.mode != AccessMode::read || access.tensor != *root || op > OpId(o))
            continue;
          const bool all = elements_read(graph, op, access) >= tensor.elements;
          updated = updated || (all && op == OpId(o));
          if (all && op != OpId(o))
            tensor.before.push_back({op, &access});
        }
      }
      if (updated && tensor.elements * tensor.width > room && !tensor.before.empty())
        tensors_.push_back(std::move(tensor));
    }
  }
}

double ReadAgain::bits(const StepCone* after) const {
  double sum = 0;
  for (const Overwritten& tensor : tensors_) {
    const bool twice = std::ranges::any_of(tensor.before, [&](const Reader& reader) {
      return after == nullptr || certain_volume(certain_reads(graph_, *after, reader.op,
                                                              *reader.access)) >= tensor.elements;
    });
    sum += twice ? tensor.elements * tensor.width - room_ : 0;
  }
  return sum;
}

} // namespace monet
