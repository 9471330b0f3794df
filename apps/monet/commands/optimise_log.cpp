// monet optimise checkpointing --log: recomputation in a recorded step.
#include "commands/optimise.hpp"
#include "options/memory_budget.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/text.hpp"
#include "monet/optimise/operator_log.hpp"
#include "monet/optimise/recompute_exact.hpp"
#include "monet/optimise/recompute_heuristics.hpp"
#include "monet/optimise/recompute_search.hpp"
#include "monet/optimise/window_bound.hpp"
#include "monet/report/result.hpp"
#include "monet/report/text.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

namespace monet::cli {

namespace {

/// What one budget came to.
struct Row {
  std::int64_t budget = 0;
  RecomputeResult found;
  std::vector<HeuristicPlan> heuristics; ///< in the order of kRecomputeHeuristics
  double seconds = 0;

  Certificate certificate() const {
    Certificate result;
    if (found.plan)
      result.best = static_cast<double>(found.outcome.cost);
    result.bound = found.bound;
    result.interrupted = found.interrupted;
    return result;
  }
};

class LogSearch {
public:
  LogSearch(const OptimiseArguments& common, const CheckpointingArguments& own, Session& session)
      : common_(common), own_(own), session_(session),
        log_(session.stage("read the log", [&] { return read_operator_log(own.log); })),
        stored_peak_(replay(log_.problem, store_everything(log_.problem)).peak_bytes),
        control_(search_control(common, session)) {}

  int run() {
    rows_ = own_.sweep ? sweep() : std::vector<Row>{solve_one()};
    return finish_search(common_, json(), table(), rows_.back().certificate(), session_);
  }

private:
  const RecomputeProblem& problem() const { return log_.problem; }
  double overhead(std::int64_t cost) const {
    const auto base = static_cast<double>(std::max<std::int64_t>(problem().base_cost(), 1));
    return static_cast<double>(cost) / base - 1;
  }

  void run_heuristics(Row& row) const {
    for (const RecomputeHeuristic heuristic : kRecomputeHeuristics)
      row.heuristics.push_back(
          run_heuristic(problem(), row.budget, heuristic, control_, log_.released));
  }
  /// `parts`: budgets that share what is left of the time.
  Row solve(std::int64_t budget, const std::vector<RecomputePlan>& starts, int parts) const {
    const double begin = session_.progress.seconds();
    Row row;
    row.budget = budget;
    run_heuristics(row);
    RecomputeSearchOptions options;
    options.starts = starts;
    const WindowBound quick = window_bound(problem(), budget, control_);
    if (quick.infeasible) {
      row.found.infeasible = true;
      row.found.bound = std::numeric_limits<double>::infinity();
      return row;
    }
    options.bound = static_cast<double>(quick.cost);
    if (own_.method == "automatic" || own_.method == "search") {
      for (const HeuristicPlan& plan : row.heuristics)
        if (plan.plan)
          options.starts.push_back(*plan.plan);
      const bool alone = own_.method == "search";
      row.found =
          search_recompute(problem(), budget, options, control_.share(alone ? parts : 2 * parts));
    } else {
      take_heuristic(row);
    }
    row.seconds = session_.progress.seconds() - begin;
    return row;
  }

  /// Bounds what was found, and betters it where it can be.
  void prove(Row& row, int parts) const {
    if (own_.method != "automatic" || row.certificate().gap() <= 0)
      return;
    const double begin = session_.progress.seconds();
    RecomputeExactOptions options;
    if (row.found.plan)
      options.starts.push_back(*row.found.plan);
    RecomputeResult exact = solve_recompute(problem(), row.budget, control_.share(parts), options);
    exact.bound = std::max(exact.bound, row.found.bound);
    if (!exact.plan || (row.found.plan && exact.outcome.cost >= row.found.outcome.cost)) {
      exact.plan = std::move(row.found.plan);
      exact.outcome = std::move(row.found.outcome);
      exact.method = std::move(row.found.method);
    }
    row.found = std::move(exact);
    row.seconds += session_.progress.seconds() - begin;
  }
  /// The heuristic that was asked for, or the best.
  void take_heuristic(Row& row) const {
    row.found.bound = static_cast<double>(problem().base_cost());
    row.found.infeasible = row.budget < peak_bound(problem());
    for (std::size_t i = 0; i < row.heuristics.size(); ++i) {
      const HeuristicPlan& plan = row.heuristics[i];
      const std::string_view name = to_string(kRecomputeHeuristics[i]);
      if (!plan.plan || (own_.method != "heuristics" && own_.method != name) ||
          (row.found.plan && plan.outcome.cost >= row.found.outcome.cost))
        continue;
      row.found.plan = plan.plan;
      row.found.outcome = plan.outcome;
      row.found.method = name;
    }
  }

  Row solve_one() const {
    const std::int64_t budget = parse_budget(own_.budget, log_.recorded_peak_bytes, "--budget");
    Row row = solve(budget, {}, 1);
    prove(row, 1);
    if (row.found.plan || control_.interrupted())
      return row;
    const std::string within = fmt::format("{} within {} bytes", own_.log, budget);
    const std::int64_t least = peak_bound(problem());
    if (row.found.infeasible && budget < least)
      throw InfeasibleError(fmt::format(
          "{}: no plan exists: what is given and kept, or the largest operator with what it reads "
          "and writes, needs {} bytes, {} more",
          within, least, least - budget));
    throw InfeasibleError(fmt::format("{}: {}; no plan needs less than {} bytes", within,
                                      row.found.infeasible ? "no plan exists" : "no plan found",
                                      least));
  }

  /// Down from the unconstrained peak while plans are found, then the least that is.
  std::vector<Row> sweep() const {
    const std::int64_t whole = log_.recorded_peak_bytes;
    const std::int64_t least = own_.least.empty() ? 0 : parse_budget(own_.least, whole, "--least");
    std::vector<Row> rows;
    std::vector<RecomputePlan> starts;
    std::int64_t too_small = peak_bound(problem()) - 1;
    for (int step = own_.steps - 1; step > 0; --step) {
      const std::int64_t budget =
          whole / own_.steps * step + whole % own_.steps * step / own_.steps;
      if (budget + 1 < least) // percentages are rounded
        break;
      Row row = solve(budget, starts, step + 1);
      if (!row.found.plan) {
        too_small = std::max(too_small, budget);
        if (rows.empty() && control_.interrupted())
          rows.push_back(std::move(row)); // to say that nothing was found yet
        break;
      }
      starts.assign(1, *row.found.plan);
      rows.push_back(std::move(row));
    }
    if (rows.empty())
      throw InfeasibleError(fmt::format("{}: no plan found within {} bytes, the largest budget",
                                        own_.log, whole / own_.steps * (own_.steps - 1)));
    if (!rows.back().found.plan)
      return rows;
    if (least == 0)
      find_least(rows, too_small);
    make_monotone(rows);
    // Every budget has its plan before the first proof, which may take whatever time there is.
    for (std::size_t i = 0; i < rows.size(); ++i)
      prove(rows[i], static_cast<int>(rows.size() - i));
    make_monotone(rows);
    return rows;
  }
  /// The least budget that a plan is found for with little effort, solved with all of it.
  void find_least(std::vector<Row>& rows, std::int64_t too_small) const {
    const RecomputePlan plan = least_plan(problem(), *rows.back().found.plan, too_small, control_);
    const std::int64_t enough = replay(problem(), plan).peak_bytes;
    if (enough == rows.back().found.outcome.peak_bytes || control_.interrupted())
      return;
    constexpr int kParts = 4; // leaves time for proofs
    Row row = solve(enough, {plan}, kParts);
    if (row.found.plan)
      rows.push_back(std::move(row));
  }
  /// A plan for less memory is one for more, and a bound for more is one for less.
  static void make_monotone(std::vector<Row>& rows) {
    for (std::size_t i = rows.size() - 1; i > 0; --i) {
      if (rows[i].found.outcome.cost >= rows[i - 1].found.outcome.cost)
        continue;
      rows[i - 1].found.plan = rows[i].found.plan;
      rows[i - 1].found.outcome = rows[i].found.outcome;
      rows[i - 1].found.method = rows[i].found.method;
    }
    for (std::size_t i = 1; i < rows.size(); ++i)
      rows[i].found.bound = std::max(rows[i].found.bound, rows[i - 1].found.bound);
  }

  Json json_of(const Row& row) const {
    const Certificate certificate = row.certificate();
    Json json = {{"budget_bytes", row.budget},
                 {"best", number_json(certificate.best)},
                 {"bound", number_json(certificate.bound)},
                 {"gap", number_json(certificate.gap())},
                 {"seconds", row.seconds},
                 {"interrupted", row.found.interrupted},
                 {"method", row.found.method}};
    if (row.found.plan) {
      json["peak_bytes"] = row.found.outcome.peak_bytes;
      json["overhead"] = overhead(row.found.outcome.cost);
      json["runs"] = row.found.plan->runs.size();
    }
    Json compared = Json::array();
    for (std::size_t i = 0; i < row.heuristics.size(); ++i) {
      const HeuristicPlan& plan = row.heuristics[i];
      Json one = {{"name", to_string(kRecomputeHeuristics[i])}, {"best", nullptr}};
      if (plan.plan) {
        one["best"] = plan.outcome.cost;
        one["overhead"] = overhead(plan.outcome.cost);
        one["peak_bytes"] = plan.outcome.peak_bytes;
      } else {
        one["why_not"] = valid_utf8(plan.why_not);
      }
      compared.push_back(std::move(one));
    }
    json["compared"] = std::move(compared);
    return json;
  }
  Json json() const {
    const Row& last = rows_.back();
    Json json = search_json({"optimise checkpointing-log",
                             std::filesystem::path(own_.log).filename().string(), "time_ns",
                             last.certificate(), session_.progress.seconds()});
    json["operators"] = problem().ops.size();
    json["base_ns"] = problem().base_cost();
    json["unconstrained_peak_bytes"] = log_.recorded_peak_bytes;
    json["freed_early_peak_bytes"] = stored_peak_;
    json["least_bytes_bound"] = peak_bound(problem());
    const Json row = json_of(last);
    for (const char* key : {"budget_bytes", "peak_bytes", "overhead", "method", "compared"})
      if (row.contains(key))
        json[key] = row.at(key);
    if (own_.sweep) {
      json["budgets"] = Json::array();
      for (const Row& each : rows_)
        json["budgets"].push_back(json_of(each));
    } else if (last.found.plan) {
      json["plan"] = last.found.plan->runs;
    }
    Provenance provenance = provenance_of({own_.log});
    provenance.seed = common_.seed;
    provenance.options["method"] = own_.method;
    json["provenance"] = provenance_json(provenance);
    return json;
  }

  std::string table() const {
    const auto share_text = [](double value) { return fmt::format("{:.2f} %", 100 * value); };
    std::string text = fmt::format(
        "{}: {} operators, {:.1f} ms, peak {} as recorded, {} with buffers freed after their last "
        "use\n\n",
        own_.log, group_digits(static_cast<std::int64_t>(problem().ops.size())),
        static_cast<double>(problem().base_cost()) / 1e6, human_bytes(log_.recorded_peak_bytes),
        human_bytes(stored_peak_));
    text += fmt::format("{:>8} {:>10} {:>10} {:>9} {:>9} {:>8} {:>8}", "budget", "", "peak",
                        "overhead", "at least", "gap", "s");
    for (const RecomputeHeuristic heuristic : kRecomputeHeuristics)
      text += fmt::format(" {:>9}", to_string(heuristic));
    text += "\n";
    for (const Row& row : rows_) {
      const Certificate certificate = row.certificate();
      text += fmt::format(
          "{:>8} {:>10} {:>10} {:>9} {:>9} {:>8} {:>8.1f}",
          fmt::format("{:.1f} %",
                      100.0 * static_cast<double>(row.budget) /
                          static_cast<double>(std::max<std::int64_t>(log_.recorded_peak_bytes, 1))),
          human_bytes(row.budget), row.found.plan ? human_bytes(row.found.outcome.peak_bytes) : "-",
          row.found.plan ? share_text(overhead(row.found.outcome.cost)) : "-",
          share_text(overhead(static_cast<std::int64_t>(std::ceil(row.found.bound)))),
          gap_text(certificate), row.seconds);
      for (const HeuristicPlan& plan : row.heuristics)
        text += fmt::format(" {:>9}", plan.plan ? share_text(overhead(plan.outcome.cost)) : "-");
      text += "\n";
    }
    return text;
  }

  const OptimiseArguments& common_;
  const CheckpointingArguments& own_;
  Session& session_;
  OperatorLog log_;
  std::int64_t stored_peak_;
  SearchControl control_;
  std::vector<Row> rows_;
};

} // namespace

int optimise_log(const OptimiseArguments& common, const CheckpointingArguments& own,
                 Session& session) {
  if (own.method == "genetic" || own.method == "chain")
    throw UsageError("--method " + own.method + " is of no use with --log");
  if (own.sweep != own.budget.empty())
    throw UsageError("--log needs either --budget or --sweep");
  if (!common.report.empty())
    throw UsageError("--report is of no use with --log");
  if (!common.experiment.empty())
    throw UsageError("--log takes the place of an experiment file");
  for (const Option* option : common.of_step)
    if (option->given)
      throw UsageError(option->name() + " is of no use with --log");
  return LogSearch(common, own, session).run();
}

} // namespace monet::cli
