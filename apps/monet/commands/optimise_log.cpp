// monet optimise checkpointing --log: searches for recomputation in a recorded step.
// optimise_checkpointing.cpp calls it.
#include "base/shared/amounts.hpp"
#include "commands/optimise.hpp"
#include "options/memory_budget.hpp"

#include "monet/base/errors.hpp"
#include "monet/report/result.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <filesystem>

namespace monet::cli {

namespace {

LogOptions log_options(const std::string& method) {
  LogOptions options;
  if (method == "automatic")
    return options;
  options.method = method == "search" ? LogMethod::search : LogMethod::heuristics;
  for (const RecomputeHeuristic heuristic : kRecomputeHeuristics)
    if (to_string(heuristic) == method)
      options.only = heuristic;
  return options;
}

/// Throws InfeasibleError with the reason if no plan was found.
void need_plan(const OperatorLog& log, const CheckpointingArguments& own,
               const std::vector<LogRow>& rows, const SearchControl& control) {
  if (rows.empty())
    throw InfeasibleError(
        fmt::format("{}: no plan found within {}, the largest budget", own.log,
                    both_bytes(log.recorded_peak_bytes / own.steps * (own.steps - 1))));
  const LogRow& row = rows.back();
  if (row.found.plan || control.interrupted())
    return;
  const std::string within = fmt::format("{} within {}", own.log, both_bytes(row.budget));
  const std::int64_t least = peak_bound(log.problem);
  if (row.found.infeasible && row.budget < least)
    throw InfeasibleError(
        fmt::format("{}: no plan exists: inputs and kept tensors, or the largest operator with its "
                    "operands and results, need {}, {} too many",
                    within, both_bytes(least), both_bytes(least - row.budget)));
  throw InfeasibleError(fmt::format("{}: {}; no plan needs less than {}", within,
                                    row.found.infeasible ? "no plan exists" : "no plan found",
                                    both_bytes(least)));
}

std::vector<LogRow> search(const OperatorLog& log, const CheckpointingArguments& own,
                           const SearchControl& control) {
  const LogOptions options = log_options(own.method);
  const std::int64_t whole = log.recorded_peak_bytes;
  if (!own.sweep)
    return {solve_log(log, parse_budget(own.budget, whole, "--budget"), options, control)};
  const std::int64_t least = own.least.empty() ? 0 : parse_budget(own.least, whole, "--least");
  return sweep_log(log, own.steps, least, options, control);
}

} // namespace

int optimise_log(const OptimiseArguments& common, const CheckpointingArguments& own,
                 Session& session) {
  if (own.method == "genetic" || own.method == "chain")
    throw UsageError("--method " + own.method + " cannot be used with --log");
  if (own.sweep != own.budget.empty())
    throw UsageError("--log needs either --budget or --sweep");
  if (!common.report.empty())
    throw UsageError("--report cannot be used with --log");
  if (!common.experiment.empty())
    throw UsageError("--log and an experiment file exclude each other");
  for (const Option* option : common.of_step)
    if (option->given)
      throw UsageError(option->name() + " cannot be used with --log");
  limit_time(common, session);
  const OperatorLog log = session.stage("read the log", [&] { return read_operator_log(own.log); });
  const SearchControl control = search_control(common, session);
  const std::vector<LogRow> rows = session.stage(
      "search", [&] { return search(log, own, control); },
      [&](const std::vector<LogRow>& found) {
        for (const LogRow& row : found)
          verify(log.problem, row.found);
      });
  need_plan(log, own, rows, control);
  Certificate found = rows.back().certificate();
  found.start = static_cast<double>(log.problem.base_cost());
  for (const LogRow& row : rows)
    found.interrupted = found.interrupted || row.certificate().interrupted;
  Json json =
      log_json({"optimise checkpointing-log", std::filesystem::path(own.log).filename().string(),
                "time_ns", found, session.progress.seconds()},
               log, rows, own.sweep);
  Provenance provenance = provenance_of({own.log});
  provenance.seed = common.seed;
  provenance.options["method"] = own.method;
  json["provenance"] = provenance_json(provenance);
  return finish_search(common, json, log_table(json, own.log, log, rows), found, session);
}

} // namespace monet::cli
