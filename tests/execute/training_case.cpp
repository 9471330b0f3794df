#include "execute/training_case.hpp"

#include "base/archive.hpp"

#include "monet/base/yaml.hpp"
#include "monet/training_graph/training.hpp"
#include "monet/workload/onnx_reader.hpp"

#include <algorithm>

namespace monet::test {

using nlohmann::json;

namespace {

struct Fixtures {
  std::map<std::string, std::vector<std::string>> families;
  std::map<std::string, json> cases;
};

const Fixtures& fixtures() {
  static const Fixtures all = [] {
    Fixtures found;
    for (const auto& entry : std::filesystem::directory_iterator(kTrainingFixtures)) {
      if (entry.path().extension() != ".json")
        continue;
      const json file = json::parse(read_file(entry.path().string()));
      for (const json& one : file.value("cases", json::array())) {
        found.families[file.at("family")].push_back(one.at("name"));
        found.cases.emplace(one.at("name"), one);
      }
    }
    for (auto& [family, names] : found.families)
      std::sort(names.begin(), names.end());
    return found;
  }();
  return all;
}

} // namespace

const std::map<std::string, std::vector<std::string>>& training_families() {
  return fixtures().families;
}

std::vector<std::string> training_family_names() {
  std::vector<std::string> names;
  for (const auto& [family, cases] : training_families())
    names.push_back(family);
  return names;
}

json read_training_case(const std::string& name) {
  return fixtures().cases.at(name);
}

TrainingGraph make_training_case(const std::string& name, const json& facts, const json& more) {
  json text = facts.at("options");
  text.update(more);
  const json& loss = facts.at("loss_kind");
  text["loss"] = loss == "in_graph" ? json("network") : loss;
  ProblemList problems;
  const TrainingOptions options =
      read_training_options(parse_yaml(text.dump(), "options.json"), problems);
  problems.throw_if_any();
  OnnxReadOptions reading;
  read_for(reading, options);
  return make_training_graph(read_onnx_bytes(training_network(name), name, reading), options);
}

void feed_training_case(Execution& execution, const TrainingGraph& step, const std::string& name,
                        const json& facts) {
  const std::uint64_t seed = facts.at("seed");
  std::vector<json> records = facts.at("inputs");
  const json& target = facts.at("target");
  if (target.is_array())
    records.insert(records.end(), target.begin(), target.end());
  else if (!target.is_null())
    records.push_back(target);
  for (const json& record : records) {
    const FillRule rule{record.value("offset", 0.0), record.value("scale", 1.0),
                        record.value("range", std::int64_t{0})};
    for (std::int64_t micro = 1; micro <= step.micro_batches; ++micro) {
      const std::string suffix = micro == 1 ? "" : ".micro_" + std::to_string(micro);
      const auto id = step.graph.find_tensor(record.at("name").get<std::string>() + suffix);
      if (!id || step.graph.tensor(*id).producer)
        continue;
      execution.set(*id, generate(step.graph.tensor(*id), rule, seed));
    }
  }
  for (const auto& [weight, values] : read_onnx_weights_bytes(training_network(name), name)) {
    const auto set = [&](const auto& list) {
      set_by_name(execution, step, weight, std::vector<double>(list.begin(), list.end()));
    };
    std::visit(set, values);
  }
  fill(execution, step, seed);
}

} // namespace monet::test
