// monet optimise allocation: searches for the cores that run each operator. Calls the allocation
// search and writes its result.
#include "commands/optimise.hpp"

#include "monet/base/files.hpp"
#include "monet/optimise/allocation.hpp"
#include "monet/tiling/allocation.hpp"
#include "monet/tiling/stacks_file.hpp"

#include <nlohmann/json.hpp>

#include <memory>

namespace monet::cli {

namespace {

struct AllocationArguments {
  OptimiseArguments common;
  AllocationSearchOptions search;
  std::size_t random = 0;
  std::string mapping_out;
  std::string stacks_out;

  std::string objective() const { return std::string(search.objective_name()); }
};

/// Allocation search with the tiling that `monet schedule` chooses.
class AllocationRun {
public:
  AllocationRun(const AllocationArguments& arguments, const SearchInputs& inputs, Session& session)
      : arguments_(arguments), inputs_(inputs), session_(session), step_(inputs.step),
        chip_(inputs.files.chip), control_(search_control(arguments.common, session)),
        evaluator_(step_, chip_, chosen_tiling(), inputs.schedule_options(1)) {
  } // plans are evaluated in parallel

  int run() {
    found_.result = session_.stage(
        "search", [&] { return search_allocation(evaluator_, arguments_.search, control_); },
        [&](const AllocationResult& result) { check(result); });
    if (arguments_.random > 0) {
      if (!control_.interrupted())
        found_.random = best_random_allocation(evaluator_, arguments_.search.objective,
                                               arguments_.random, control_);
      found_.result.certificate.interrupted |= control_.interrupted();
    }
    const AllocationResult& result = found_.result;
    const ModelledStep before = modelled(result.automatic);
    const ModelledStep best = modelled(result.best);
    found_.plans = evaluator_.plans();
    found_.automatic = before.figures;
    found_.best = best.figures;
    found_.random_plans = arguments_.random;
    found_.allocation = evaluator_.allocation(result.best.plan);
    found_.front = arguments_.search.front;
    Json json = allocation_json({"allocation", inputs_.experiment.name, arguments_.objective(),
                                 result.certificate, session_.progress.seconds()},
                                found_, step_.graph, chip_);
    json["provenance"] = search_provenance(inputs_, arguments_.common);
    write_search_report(arguments_.common, inputs_, json,
                        {result_of(step_, before), result_of(step_, best)});
    write_mapping();
    write_stacks();
    return finish_search(arguments_.common, json, allocation_table(json, found_),
                         result.certificate, session_);
  }

private:
  TilingOptions chosen_tiling() {
    const StopScope scope(StopRequest{control_.stop_at_once});
    const StepOptions options{
        inputs_.tiling_options(), inputs_.schedule_options(session_.context.jobs), {}};
    return choose_step(inputs_.experiment, chip_, step_, options, costs_, session_).tiling;
  }

  /// Checks that the best plan has its claimed figures and does not beat the bound.
  void check(const AllocationResult& result) const {
    const CoreAllocation allocation = evaluator_.allocation(result.best.plan);
    StepOptions options{evaluator_.tiling(), inputs_.schedule_options(1), {}};
    options.tiling.allocation = &allocation;
    check_answer(inputs_, step_, options, result.best.figures, result.certificate);
  }

  ModelledStep modelled(const AllocationPoint& point) {
    if (point.figures.feasible)
      return evaluator_.model(point.plan);
    return {evaluator_.tiles(point.plan), {}, point.figures};
  }

  void write_mapping() const {
    if (arguments_.mapping_out.empty())
      return;
    const MappingFile* base = inputs_.files.mapping ? &*inputs_.files.mapping : nullptr;
    write_file_atomically(arguments_.mapping_out,
                          mapping_text(mapping_of(found_.allocation, step_.graph, base)));
  }

  void write_stacks() const {
    if (arguments_.stacks_out.empty())
      return;
    write_file_atomically(arguments_.stacks_out,
                          stacks_yaml(fusion_of(step_, chip_, evaluator_.tiling()), step_.graph));
  }

  const AllocationArguments& arguments_;
  const SearchInputs& inputs_;
  Session& session_;
  const TrainingGraph& step_;
  const Chip& chip_;
  SearchControl control_;
  CoreCostCache costs_;
  AllocationEvaluator evaluator_;
  AllocationOutcome found_;
};

void add_allocation_options(Command& command, AllocationArguments& own) {
  command.add(bind(kAllocationOptions, own.search));
  command.add("--random", &own.random, "Compare the result with the best of N random allocations",
              {.range = Range{0, 100000000}, .hides_default = true});
  command.add("--mapping-out", &own.mapping_out,
              "Write the best allocation as a mapping file for monet schedule",
              {.type = "MAP.yaml", .output = Output::file});
  command.add("--stacks-out", &own.stacks_out,
              "Write the stacks of the allocation, for monet schedule --stacks",
              {.type = "S.yaml", .output = Output::file});
}

} // namespace

void add_optimise_allocation(Command& optimise) {
  auto arguments = std::make_shared<AllocationArguments>();
  Command& command = optimise.add_command(
      "allocation", "Search the cores that run each operator, and its number of parts");
  arguments->common.add_to(command);
  add_allocation_options(command, *arguments);
  command.footer =
      "Example: monet optimise allocation --hardware data/hardware/tpu_like_quad_core.yaml "
      "--workload data/workload/resnet18_cifar.onnx --batch 1";
  command.action = [arguments](Session& session) -> int {
    const SearchInputs inputs = prepare(arguments->common, arguments->objective(), session);
    return AllocationRun(*arguments, inputs, session).run();
  };
}

} // namespace monet::cli
