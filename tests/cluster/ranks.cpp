#include "cluster/ranks.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace monet::test {

namespace {

std::set<TensorId> answers(const TrainingGraph& step) {
  std::set<TensorId> ids;
  if (step.loss)
    ids.insert(*step.loss);
  for (const ParameterRecord& record : step.parameters)
    ids.insert(record.gradient);
  for (std::size_t i = 0; i < step.graph.tensors().size(); ++i) {
    if (step.graph.tensors()[i].alias_of)
      ids.insert(TensorId(i));
  }
  return ids;
}

double deviation(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0;
  double difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(a[i]));
    difference = std::isfinite(b[i]) ? std::max(difference, std::abs(a[i] - b[i])) : INFINITY;
  }
  return difference / std::max(largest, 1e-3);
}

} // namespace

std::vector<Difference> differences(const TrainingGraph& step, const RankStep& ranks, int steps) {
  Execution whole(step.graph);
  fill(whole, step, 7);
  RankExecution divided(step, ranks);
  for (std::size_t i = 0; i < step.graph.tensors().size(); ++i) {
    const TensorId id(i);
    if (!step.graph.tensor(id).producer && whole.has(id))
      divided.set(id, whole.get(id));
  }
  std::map<TensorId, double> largest;
  for (int count = 0; count < steps; ++count) {
    whole.run();
    divided.run();
    for (const TensorId id : answers(step)) {
      const double found = deviation(whole.get(id), divided.get(id));
      largest[id] = std::max(largest[id], found);
    }
    whole.advance();
    divided.advance();
  }
  std::vector<Difference> sorted;
  for (const auto& [id, found] : largest)
    sorted.push_back({step.graph.tensor(id).name, found});
  std::ranges::stable_sort(sorted, std::greater{}, &Difference::relative);
  return sorted;
}

std::vector<std::pair<std::string, int>> collectives_of(const RankStep& ranks) {
  std::map<std::string, int> counts;
  for (const Operator& op : ranks.step.graph.operators()) {
    if (is_collective(op))
      ++counts[op.op_type + " " + op.attributes.text("mesh_axis", "")];
  }
  return {counts.begin(), counts.end()};
}

} // namespace monet::test
