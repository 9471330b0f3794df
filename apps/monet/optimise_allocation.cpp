// monet optimise allocation: which cores run which operator.
#include "optimise.hpp"

#include "monet/base/files.hpp"
#include "monet/optimise/allocation.hpp"
#include "monet/report/optimise_result.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <memory>
#include <optional>

namespace monet::cli {

namespace {

using Json = nlohmann::ordered_json;

struct Arguments {
  OptimiseArguments common;
  std::string objective = "latency";
  std::size_t evaluations = AllocationSearchOptions{}.evaluations;
  std::size_t population = AllocationSearchOptions{}.population;
  std::size_t generations = 0;
  std::size_t random = 0;
  std::string mapping_out;

  /// What the best is picked by; of a front, latency.
  AllocationObjective picked() const {
    return allocation_objective_named(objective).value_or(AllocationObjective::latency);
  }
  AllocationSearchOptions options() const {
    AllocationSearchOptions options;
    options.objective = picked();
    options.front = objective == "front";
    options.evaluations = evaluations;
    options.population = population;
    options.generations = generations;
    return options;
  }
};

Json cost_json(const AllocationCost& cost) {
  if (!cost.feasible)
    return {{"latency_cycles", nullptr}, {"energy_pj", nullptr}, {"peak_memory_bytes", nullptr}};
  return {{"latency_cycles", cost.latency.value},
          {"energy_pj", cost.energy.picojoules().value},
          {"peak_memory_bytes", cost.peak_bytes}};
}

Json front_json(const AllocationResult& result) {
  Json front = Json::array();
  for (const AllocationPoint& point : result.front) {
    Json row = cost_json(point.cost);
    if (point.cost == result.best.cost)
      row["chosen"] = true;
    front.push_back(std::move(row));
  }
  return front;
}

/// At most so many rows, the last one included.
Json trace_json(const AllocationResult& result, bool front) {
  constexpr std::size_t kMostRows = 200;
  Json rows = Json::array();
  const std::size_t count = result.trace.size();
  const std::size_t step = count / kMostRows + 1;
  for (std::size_t i = (count + step - 1) % step; i < count; i += step) {
    const AllocationTrace& line = result.trace[i];
    Json row{{"evaluations", line.evaluations},
             {"best", number_json(line.best)},
             {"bound", number_json(result.certificate.bound)}};
    if (front)
      row["hypervolume"] = line.hypervolume;
    rows.push_back(std::move(row));
  }
  return rows;
}

Json allocation_json(const CoreAllocation& allocation, const Graph& graph, const Chip& chip) {
  Json rows = Json::array();
  for (std::size_t op = 0; op < allocation.size(); ++op) {
    const Operator& of = graph.operators()[op];
    Json cores = Json::array();
    Json names = Json::array();
    for (const CoreId core : allocation[op].cores) {
      cores.push_back(core.value);
      names.push_back(chip.cores[core.index()].name);
    }
    Json splits = Json::array();
    for (const LoopCut& cut : allocation[op].cuts)
      splits.push_back({{"loop", of.nest.dims[cut.dim].name}, {"parts", cut.count}});
    rows.push_back({{"name", of.name},
                    {"op_type", of.op_type},
                    {"cores", std::move(cores)},
                    {"core_names", std::move(names)},
                    {"splits", std::move(splits)}});
  }
  return rows;
}

class Search {
public:
  Search(const Arguments& arguments, const SearchInputs& inputs, Session& session)
      : arguments_(arguments), inputs_(inputs), session_(session), step_(inputs.step),
        chip_(inputs.files.chip),
        evaluator_(step_, chip_, inputs.tiling_options(), inputs.schedule_options(1)) {
  } // plans are evaluated side by side

  int run() {
    const SearchControl control = search_control(arguments_.common, session_);
    result_ = search_allocation(evaluator_, arguments_.options(), control);
    if (arguments_.random > 0 && !control.interrupted())
      random_ = best_random_allocation(evaluator_, arguments_.picked(), arguments_.random, control);
    const Json json = json_of();
    write_mapping();
    return finish_search(arguments_.common, json, table(json), result_.certificate, session_);
  }

private:
  Json json_of() {
    Json json = search_json("allocation", inputs_.experiment.name, arguments_.objective,
                            result_.certificate, session_);
    json["exact"] = result_.exact;
    json["plans"] = number_json(evaluator_.plans());
    json["evaluations"] = result_.evaluations;
    json.update(cost_json(result_.best.cost));
    const ModelledStep before = modelled(result_.automatic);
    const ModelledStep best = modelled(result_.best);
    json["compared"] = Json::array({figures_json("automatic", before.result(), chip_),
                                    figures_json("best", best.result(), chip_)});
    if (random_ && random_->cost.feasible) {
      Json row{{"name", fmt::format("best of {} random", arguments_.random)}};
      row.update(cost_json(random_->cost));
      json["compared"].push_back(std::move(row));
    }
    json["front"] = front_json(result_);
    json["trace"] = trace_json(result_, arguments_.objective == "front");
    json["allocation"] =
        allocation_json(evaluator_.allocation(result_.best.plan), step_.graph, chip_);
    json["provenance"] = search_provenance(inputs_, arguments_.common);
    write_search_report(arguments_.common, inputs_, json, {before.result(), best.result()});
    return json;
  }

  ModelledStep modelled(const AllocationPoint& point) {
    ModelledStep made{step_, evaluator_.tiles(point.plan), {}};
    if (point.cost.feasible)
      made.timeline = evaluator_.timeline(made.tiles);
    return made;
  }

  void write_mapping() const {
    if (arguments_.mapping_out.empty())
      return;
    const MappingFile* base = inputs_.files.mapping ? &*inputs_.files.mapping : nullptr;
    write_file_atomically(
        arguments_.mapping_out,
        mapping_text(mapping_of(evaluator_.allocation(result_.best.plan), step_.graph, base)));
  }

  std::string table(const Json& json) const {
    std::string out = fmt::format("{} by {}\n\n", inputs_.experiment.name, arguments_.objective);
    out += fmt::format("{:<24}{:>18}{:>18}{:>18}\n", "", "latency (cycles)", "energy (mJ)",
                       "peak (MiB)");
    for (const Json& row : json["compared"]) {
      out += fmt::format("{:<24}{:>18}{:>18.4f}{:>18.2f}\n", row["name"].get<std::string>(),
                         row["latency_cycles"].get<std::int64_t>(),
                         row["energy_pj"].get<double>() / 1e9,
                         row["peak_memory_bytes"].get<double>() / (1 << 20));
    }
    out += fmt::format("\nbound {:.6g}, gap {}{}; {} plans scheduled", result_.certificate.bound,
                       gap_text(result_.certificate), result_.exact ? ", optimal" : "",
                       result_.evaluations);
    if (arguments_.objective == "front")
      out += fmt::format(", {} on the front", result_.front.size());
    return out + "\n";
  }

  const Arguments& arguments_;
  const SearchInputs& inputs_;
  Session& session_;
  const TrainingGraph& step_;
  const Chip& chip_;
  AllocationEvaluator evaluator_;
  AllocationResult result_;
  std::optional<AllocationPoint> random_;
};

void add_options(CLI::App& command, Arguments& own) {
  command.add_option("--objective", own.objective, "What is minimised")
      ->check(CLI::IsMember({"latency", "energy", "edp", "memory", "front"}))
      ->capture_default_str();
  command
      .add_option("--evaluations", own.evaluations,
                  "Allocations that are scheduled at most, where the space is not searched whole")
      ->check(CLI::Range(1, 100000000))
      ->capture_default_str();
  command.add_option("--population", own.population, "Of NSGA-II")
      ->check(CLI::Range(2, 100000))
      ->capture_default_str();
  command
      .add_option("--generations", own.generations,
                  "Of NSGA-II; 0: as many as take their share of the evaluations")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
  command
      .add_option("--random", own.random,
                  "Afterwards, compare with the best of so many random allocations")
      ->check(CLI::Range(0, 100000000));
  command
      .add_option("--mapping-out", own.mapping_out,
                  "Write the best as a mapping file that monet schedule takes")
      ->type_name("MAP.yaml");
}

} // namespace

Action add_optimise_allocation(CLI::App& optimise) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      optimise.add_subcommand("allocation", "Which cores run each operator, and in how many parts");
  arguments->common.add_to(*command);
  add_options(*command, *arguments);
  command->footer(
      "Example: monet optimise allocation --hardware data/hardware/tpu_like_quad_core.yaml "
      "--workload data/workload/resnet18_cifar.onnx --batch 1");
  return [arguments](Session& session) -> int {
    const SearchInputs inputs = prepare(arguments->common, arguments->objective, session);
    return Search(*arguments, inputs, session).run();
  };
}

} // namespace monet::cli
