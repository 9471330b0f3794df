// monet explore: evaluates the designs of a hardware space that a strategy chooses. Calls the
// explore stage, alone or as a process of an MPI job.
#include "commands/explore.hpp"

#include "base/shared/text.hpp"
#include "commands/commands.hpp"
#include "explore/shared/invalid_design.hpp"
#include "report/shared/text.hpp"
#include "version.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/files.hpp"
#include "monet/explore/mpi_runner.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <map>

namespace monet::cli {

namespace {

/// Whether mpirun or srun started this process as one of several.
bool is_started_by_mpi() {
  const auto has = [](const char* name) { return std::getenv(name) != nullptr; };
  return has("OMPI_COMM_WORLD_SIZE") || (has("PMIX_RANK") && has("PMIX_NAMESPACE"));
}

void check(const ExploreArguments& arguments) {
  if (!arguments.compare.empty()) {
    if (!arguments.space.empty())
      throw UsageError("--compare requires two files and excludes a space");
    return;
  }
  if (!arguments.of.empty())
    throw UsageError("--of requires --compare");
  if (arguments.space.empty())
    throw UsageError("a space's file is required");
  const std::string& strategy = arguments.strategy.name;
  if ((strategy == "random" || strategy == "lhs") && arguments.strategy.budget == 0)
    throw UsageError("--strategy " + strategy +
                     " requires --budget, the number of designs to draw");
  if (arguments.resume && arguments.store.empty())
    throw UsageError("--resume requires --store");
  if (!arguments.designs.empty() && arguments.folder.empty())
    throw UsageError("--design requires -o, the folder of its report");
  if (!arguments.json.empty() && arguments.json != "-" && arguments.json == arguments.csv)
    throw UsageError("--json and --export-csv name the same file");
}

std::unique_ptr<DesignStore> store_of(const ExploreArguments& arguments, const Space& space) {
  if (arguments.store.empty())
    return memory_store();
  StoreOptions options{.resume = arguments.resume, .version = version(), .git_hash = git_hash()};
  return open_store(arguments.store, space, options);
}

/// Search control with stop flag, seed and progress display.
SearchControl control_of(const StrategyOptions& strategy, Session& session) {
  SearchControl control{.seed = strategy.seed, .jobs = strategy.jobs, .stop = session.interrupted};
  control.progress =
      [&session, budget = static_cast<std::int64_t>(strategy.budget)](const SearchProgress& state) {
        SearchProgress shown = state;
        if (budget > 0)
          shown.total = std::max(shown.done, std::min(shown.total, budget));
        session.progress.search(shown);
      };
  return control;
}

std::string communication_text(const MpiFigures& figures) {
  return fmt::format("{} processes, {} messages; {:.3g} s of communication in {:.3g} s of "
                     "evaluation ({:.2f} %)",
                     figures.processes, figures.messages, figures.communication_seconds,
                     figures.evaluation_seconds, 100 * figures.communication_share());
}

/// Reports how many designs were evaluated or stored before, and why the exploration ended.
void say_how_it_went(const ExploreArguments& arguments, const Exploration& exploration) {
  const ExplorationResult& result = exploration.result;
  const std::uint64_t before = result.results.size() - result.evaluated_now;
  if (!arguments.store.empty())
    print_message("", fmt::format("{} designs evaluated now, {} from {}", result.evaluated_now,
                                  before, printable(arguments.store)));
  if (!exploration.ended_early.empty())
    print_message("", exploration.ended_early);
  if (result.interrupted)
    print_message("", arguments.store.empty()
                          ? "interrupted: the result has the designs so far"
                          : "interrupted: the result has the designs so far; --resume continues");
}

/// Reason why no design of a space was evaluated: how many each constraint excludes, of the first
/// `kMaxCounted`.
std::string why_none(const Space& space) {
  constexpr DesignId kMaxCounted = 1'000'000;
  const DesignId counted = std::min(space.size(), kMaxCounted);
  std::map<std::string, std::int64_t> excluded;
  for (DesignId id = 0; id < counted; ++id) {
    if (std::string broken = space.broken_constraint(id); !broken.empty())
      ++excluded[std::move(broken)];
  }
  std::string text = "no design of the space satisfies its constraints";
  const char* separator = ": ";
  for (const auto& [constraint, designs] : excluded) {
    text += fmt::format("{}'{}' excludes {}", separator, constraint, group_digits(designs));
    separator = ", ";
  }
  return text + fmt::format(" of {}{} designs", counted < space.size() ? "the first " : "",
                            group_digits(static_cast<std::int64_t>(counted)));
}

/// Throws InputError or InfeasibleError if no design is feasible.
void require_feasible(const ExplorationResult& result, const Space& space) {
  const auto& designs = result.results;
  if (std::ranges::any_of(designs, &DesignResult::feasible))
    return;
  if (designs.empty())
    throw InfeasibleError(why_none(space));
  const DesignResult& first = designs.front();
  const auto is_invalid = [](const DesignResult& design) {
    return design.reason.starts_with(kInvalidDesign);
  };
  if (std::ranges::all_of(designs, is_invalid))
    throw InputError({space.origin}, fmt::format("none of {} designs is valid; design {}: {}",
                                                 designs.size(), first.id, first.reason));
  throw InfeasibleError(fmt::format("none of {} designs can run; design {}: {}", designs.size(),
                                    first.id, first.reason));
}

int exit_code(const ExplorationResult& result, const Space& space) {
  if (result.interrupted)
    return kExitInterrupted;
  require_feasible(result, space);
  return kExitOk;
}

void write_outputs(const ExploreArguments& arguments, const Exploration& exploration,
                   Session& session) {
  session.progress.stage("write results");
  write_exploration(arguments, exploration, session);
  if (!arguments.csv.empty())
    write_file_atomically(arguments.csv,
                          designs_csv(exploration.result.results, exploration.space));
}

/// Identity that all processes of a job must share: version and space.
std::string identity_of(const Space& space) {
  return fmt::format("monet {} {}, space {}", version(), git_hash(), space.content_hash);
}

/// Design space of the arguments, with changes by the caller (OwnParts).
Space explored_space(const ExploreArguments& arguments, const Session& session) {
  Space space = read_space(arguments.space);
  if (session.own != nullptr && session.own->adapt)
    session.own->adapt(space);
  return space;
}

std::unique_ptr<DesignEvaluator> evaluator_of(const Space& space, DesignStore& store,
                                              const Session& session) {
  std::unique_ptr<DesignEvaluator> evaluator = make_evaluator(space, &store);
  if (session.own != nullptr && session.own->evaluator)
    evaluator = session.own->evaluator(space, std::move(evaluator));
  return evaluator;
}

std::unique_ptr<Strategy> strategy_of(const Exploration& exploration, DesignEvaluator& evaluator,
                                      const Session& session) {
  if (session.own != nullptr && session.own->strategy)
    return session.own->strategy(exploration.space, evaluator);
  return make_strategy(exploration.space, evaluator, exploration.strategy);
}

/// Runs the process that chooses the designs, keeps the store and writes the results; it also
/// evaluates designs.
int coordinate(const ExploreArguments& arguments, MpiSession* mpi, Session& session) {
  Exploration exploration;
  exploration.strategy = arguments.strategy;
  if (session.own != nullptr && session.own->strategy)
    exploration.strategy.name = session.own->strategy_name;
  exploration.space =
      session.stage("read space", [&] { return explored_space(arguments, session); });
  check_designs(exploration.space, arguments.designs);
  const Space& space = exploration.space;
  const std::unique_ptr<DesignStore> store =
      session.stage("open store", [&] { return store_of(arguments, space); });
  MpiWorker own{identity_of(space), nullptr, nullptr};
  own.evaluator =
      session.stage("read network", [&] { return evaluator_of(space, *store, session); });
  DesignEvaluator* const evaluator = own.evaluator.get();
  std::unique_ptr<MpiRunner> processes;
  std::unique_ptr<DesignRunner> threads;
  if (mpi != nullptr)
    processes = mpi_runner(*mpi, own, arguments.strategy.jobs);
  else
    threads = thread_runner(*evaluator, arguments.strategy.jobs);
  const std::unique_ptr<Strategy> strategy =
      session.stage("strategy", [&] { return strategy_of(exploration, *evaluator, session); });
  session.progress.stage("explore");
  session.context.stop = {}; // from here on Ctrl-C ends the exploration, which keeps its results
  DesignRunner& runner = processes ? *processes : *threads;
  exploration.result =
      explore(space, *strategy, *store, runner, control_of(arguments.strategy, session));
  exploration.ended_early = strategy->ended_early();
  if (processes)
    print_message("", communication_text(processes->end()));
  write_outputs(arguments, exploration, session);
  say_how_it_went(arguments, exploration);
  return exit_code(exploration.result, space);
}

/// Runs another process of an MPI job, which evaluates designs and prints nothing.
int serve(const ExploreArguments& arguments, MpiSession& mpi) {
  serve_mpi(mpi, arguments.strategy.jobs, [&] {
    const auto space = std::make_shared<const Space>(read_space(arguments.space));
    return MpiWorker{identity_of(*space), space, make_evaluator(*space)};
  });
  return kExitOk;
}

int run_explore(ExploreArguments arguments, const Command& command, Session& session) {
  check(arguments);
  if (!arguments.compare.empty()) {
    try_outputs(command, session);
    return compare_explorations(arguments, session);
  }
  const bool in_job = is_started_by_mpi();
  const std::unique_ptr<MpiSession> mpi = in_job ? mpi_session() : nullptr;
  if (in_job && !mpi)
    throw UsageError("this build lacks MPI: configure it with -DMONET_MPI=ON, or start one process "
                     "without mpirun");
  if (mpi)
    session.context.stop = {}; // the first process ends the others
  arguments.strategy.jobs = arguments.jobs == 0 && mpi ? 1 : arguments.jobs;
  if (mpi && mpi->rank() > 0)
    return serve(arguments, *mpi); // writes nothing
  try_outputs(command, session);
  return coordinate(arguments, mpi.get(), session);
}

std::vector<std::string> names_of_strategies() {
  std::vector<std::string> names;
  for (const auto& [name, line] : strategy_names())
    names.emplace_back(name);
  names.emplace_back("halving"); // former name of racing
  return names;
}

std::string help_of_strategies() {
  std::string help = "Strategy that chooses the designs to evaluate:";
  for (const auto& [name, line] : strategy_names())
    help += fmt::format("\n{}: {}", name, line);
  return help;
}

void add_choice_options(Command& command, ExploreArguments& arguments) {
  command.add("space", &arguments.space, "Space file of hardware designs (YAML)",
              {.type = "SPACE.yaml"});
  command.add("--strategy", &arguments.strategy.name, help_of_strategies(),
              {.choices = names_of_strategies()});
  command.add("--budget", &arguments.strategy.budget,
              "Maximum number of evaluations; 0: no limit (random and lhs need a limit)");
  command.add("--seed", &arguments.strategy.seed, "Seed of the strategy's random numbers");
  command.add("--jobs", &arguments.jobs,
              "Number of threads (0: all cores, or 1 in each process under mpirun); results do not "
              "depend on it",
              {.range = Range{0, 4096}});
}

void add_output_options(Command& command, ExploreArguments& arguments) {
  command.add(
      "--store", &arguments.store,
      "SQLite file that receives every design once it is evaluated; several processes may share it",
      {.type = "FILE", .output = Output::file});
  command.add("--resume", &arguments.resume, "Continue with the designs in the store");
  command.add("--json", &arguments.json, "Write the result as JSON; -: standard output",
              {.type = "FILE", .output = Output::file});
  command.add("-o,--out", &arguments.folder,
              "Folder for explore.json, report.html and reports of the best designs",
              {.type = "DIR", .output = Output::folder});
  command.add("--export-csv", &arguments.csv, "Write one line per design as CSV",
              {.type = "FILE", .output = Output::file});
  command.add("--design", &arguments.designs, "Write a report of this design, too; needs -o",
              {.type = "ID"});
  command.add("--compare", &arguments.compare,
              "Compare two explorations (explore.json files or stores)",
              {.type = "A B", .values = 2});
  command.add("--of", &arguments.of,
              "Runs of A and B that --compare compares; default: the runs in both, or both runs of "
              "one file",
              {.type = "RUN_A RUN_B", .values = 2});
}

} // namespace

void add_explore_command(Command& monet) {
  auto arguments = std::make_shared<ExploreArguments>();
  Command& command =
      monet.add_command("explore", "Evaluate the designs of a hardware space and find the best");
  add_choice_options(command, *arguments);
  add_output_options(command, *arguments);
  command.footer =
      "Ctrl-C ends the search with the designs so far; --store and --resume continue it. On a "
      "cluster: mpirun -n N monet explore ...\nExample: monet explore data/spaces/edge_study.yaml "
      "--strategy random --budget 100 --store edge.sqlite -o out/edge";
  command.action_tries_outputs = true;
  command.action = [arguments, &command](Session& session) {
    return run_explore(*arguments, command, session);
  };
}

} // namespace monet::cli
