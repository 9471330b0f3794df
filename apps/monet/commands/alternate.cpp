#include "commands/alternate.hpp"

#include "pipeline.hpp"

#include "monet/base/text.hpp"
#include "monet/report/text.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <map>

namespace monet::cli {

namespace {

/// What of a step stays in memory while others have their turns: bytes by name. Weights and buffers
/// are the network's, states of the optimiser the step's own.
std::map<std::string, std::int64_t> permanent_bytes(const TrainingGraph& step,
                                                    const std::string& name) {
  std::map<std::string, std::int64_t> bytes;
  for (const Tensor& tensor : step.graph.tensors()) {
    const bool state = tensor.kind == TensorKind::optimizer_state;
    const bool weight = tensor.kind == TensorKind::parameter || tensor.kind == TensorKind::buffer;
    if (tensor.producer || tensor.alias_of || (!state && !weight) || tensor.consumers.empty())
      continue;
    bytes.emplace(state ? name + '\n' + tensor.name : tensor.name, bytes_of(size_of(tensor)));
  }
  return bytes;
}

struct Turn {
  std::string name;
  std::int64_t repeat = 1;
  StepFigures figures;
  std::map<std::string, std::int64_t> permanent;
};

Turn model_turn(const Experiment& experiment, const AlternateStep& step, const std::string& folder,
                Session& session) {
  Experiment one = experiment;
  one.alternate.clear();
  one.training = step.options;
  one.name = fmt::format("{}: {}", experiment.name, step.name);
  const Model model = make_model(one, session);
  session.stage(step.name + ": write results", [&] {
    return write_results((std::filesystem::path(folder) / step.name).string(), model.json(one.name),
                         model.training_graph->graph);
  });
  return {step.name, step.repeat, model.step.modelled.figures,
          permanent_bytes(model.step.graph, step.name)};
}

/// The most that lives in a turn, with what the other steps leave in memory.
std::int64_t peak_of(const Turn& turn, const std::vector<Turn>& all) {
  std::map<std::string, std::int64_t> others;
  for (const Turn& other : all)
    others.insert(other.permanent.begin(), other.permanent.end());
  std::int64_t peak = turn.figures.peak_memory_bytes;
  for (const auto& [name, bytes] : others)
    peak += turn.permanent.count(name) != 0 ? 0 : bytes;
  return peak;
}

Json iteration_json(const std::string& name, const std::vector<Turn>& turns) {
  Json steps = Json::array();
  std::int64_t cycles = 0;
  std::int64_t peak = 0;
  double energy = 0;
  for (const Turn& turn : turns) {
    const std::int64_t own_peak = peak_of(turn, turns);
    steps.push_back({{"name", valid_utf8(turn.name)},
                     {"repeat", turn.repeat},
                     {"latency_cycles", turn.figures.latency_cycles},
                     {"energy_pj", turn.figures.energy_pj},
                     {"peak_memory_bytes", own_peak},
                     {"result", valid_utf8(turn.name) + "/result.json"}});
    cycles += turn.repeat * turn.figures.latency_cycles;
    energy += static_cast<double>(turn.repeat) * turn.figures.energy_pj;
    peak = std::max(peak, own_peak);
  }
  return {{"schema_version", 1}, {"name", valid_utf8(name)},  {"latency_cycles", cycles},
          {"energy_pj", energy}, {"peak_memory_bytes", peak}, {"steps", std::move(steps)}};
}

std::string iteration_table(const Json& iteration) {
  std::vector<std::vector<std::string>> rows{
      {"step", "in a row", "latency (cycles)", "energy", "peak memory"}};
  const auto row = [&](const std::string& name, const std::string& times, const Json& of) {
    rows.push_back({name, times, group_digits(of.at("latency_cycles").get<std::int64_t>()),
                    human_energy(of.at("energy_pj").get<double>()),
                    human_bytes(of.at("peak_memory_bytes").get<std::int64_t>())});
  };
  for (const Json& step : iteration.at("steps"))
    row(printable(step.at("name").get_ref<const std::string&>()),
        group_digits(step.at("repeat").get<std::int64_t>()), step);
  row("an iteration", "", iteration);
  return aligned_table(rows);
}

} // namespace

int run_alternating(const Experiment& experiment, const std::string& folder, Session& session) {
  std::vector<Turn> turns;
  for (const AlternateStep& step : experiment.alternate)
    turns.push_back(model_turn(experiment, step, folder, session));
  const Json iteration = iteration_json(experiment.name, turns);
  write_json(path_in(folder, "iteration.json"), iteration);
  print_result(fmt::format("{}\n\n{}\niteration: {}\n", printable(experiment.name),
                           iteration_table(iteration),
                           printable(path_in(folder, "iteration.json"))));
  return kExitOk;
}

} // namespace monet::cli
