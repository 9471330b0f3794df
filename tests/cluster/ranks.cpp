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

namespace {

std::vector<Difference> sorted(const std::map<std::string, double>& largest) {
  std::vector<Difference> list;
  for (const auto& [name, found] : largest)
    list.push_back({name, found});
  std::ranges::stable_sort(list, std::greater{}, &Difference::relative);
  return list;
}

} // namespace

std::vector<Difference> differences(const TrainingGraph& step, const RankStep& ranks, int steps,
                                    bool integers, std::span<const StageStep> stages) {
  Execution whole(step.graph);
  for (std::size_t i = 0; i < step.graph.tensors().size() && integers; ++i) {
    const Tensor& tensor = step.graph.tensors()[i];
    if (!tensor.producer && !tensor.values && !tensor.shape.empty())
      whole.set(TensorId(i), generate(tensor, {.range = 5}, i));
  }
  fill(whole, step, 7);
  RankExecution divided(step, ranks, stages);
  for (std::size_t i = 0; i < step.graph.tensors().size(); ++i) {
    const TensorId id(i);
    if (!step.graph.tensor(id).producer && whole.has(id))
      divided.set(id, whole.get(id));
  }
  std::map<std::string, double> largest;
  for (int count = 0; count < steps; ++count) {
    whole.run();
    divided.run();
    for (const TensorId id : answers(step)) {
      double& found = largest[step.graph.tensor(id).name];
      found = std::max(found, deviation(whole.get(id), divided.get(id)));
      if (step.graph.tensor(id).alias_of && !divided.ranks_agree(id))
        found = INFINITY;
    }
    whole.advance();
    divided.advance();
  }
  return sorted(largest);
}

std::vector<Difference> differences_of_micro_batches(const TrainingGraph& micro,
                                                     const TrainingGraph& whole,
                                                     const RankStep& ranks) {
  Execution one(micro.graph);
  fill(one, micro, 7);
  RankExecution divided(whole, ranks);
  const auto micro_called = [&](const std::string& name) { return micro.graph.find_tensor(name); };
  for (std::size_t i = 0; i < whole.graph.tensors().size(); ++i) {
    const Tensor& tensor = whole.graph.tensors()[i];
    const auto same = micro_called(tensor.name);
    if (tensor.producer || !same || tensor.values)
      continue;
    std::vector<double> numbers = one.get(*same);
    const bool fed = tensor.kind == TensorKind::input || tensor.kind == TensorKind::label;
    for (int part = 2; fed && numbers.size() < static_cast<std::size_t>(element_count(tensor));
         ++part) {
      const auto more = one.get(*micro_called(tensor.name + ".micro_" + std::to_string(part)));
      numbers.insert(numbers.end(), more.begin(), more.end());
    }
    divided.set(TensorId(i), numbers);
  }
  one.run();
  divided.run();
  std::map<std::string, double> largest;
  for (const ParameterRecord& record : whole.parameters) {
    for (const TensorId id : {record.gradient, record.updated}) {
      const std::string& name = whole.graph.tensor(id).name;
      largest[name] = deviation(one.get(micro_called(name).value()), divided.get(id));
    }
  }
  return sorted(largest);
}

} // namespace monet::test
