// monet explore: the designs of a hardware space, evaluated by a strategy.
#include "commands/explore.hpp"

#include "commands/commands.hpp"
#include "report/shared/text.hpp"
#include "version.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/files.hpp"
#include "monet/explore/mpi_runner.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>

namespace monet::cli {

namespace {

/// The environment of a process that mpirun or srun started as one of several.
bool is_started_by_mpi() {
  const auto has = [](const char* name) { return std::getenv(name) != nullptr; };
  return has("OMPI_COMM_WORLD_SIZE") || (has("PMIX_RANK") && has("PMIX_NAMESPACE"));
}

void check(const ExploreArguments& arguments) {
  if (!arguments.compare.empty()) {
    if (!arguments.space.empty())
      throw UsageError("--compare takes two files, and no space");
    return;
  }
  if (!arguments.of.empty())
    throw UsageError("--of goes with --compare");
  if (arguments.space.empty())
    throw UsageError("a space's file is required");
  const std::string& strategy = arguments.strategy.name;
  if ((strategy == "random" || strategy == "lhs") && arguments.strategy.budget == 0)
    throw UsageError("--strategy " + strategy + " needs a --budget: how many designs to draw");
  if (arguments.resume && arguments.store.empty())
    throw UsageError("--resume goes on with a --store");
  if (!arguments.designs.empty() && arguments.folder.empty())
    throw UsageError("--design writes into the folder that -o names");
  if (!arguments.json.empty() && arguments.json != "-" && arguments.json == arguments.csv)
    throw UsageError("--json and --export-csv name the same file");
}

std::unique_ptr<DesignStore> store_of(const ExploreArguments& arguments, const Space& space) {
  if (arguments.store.empty())
    return memory_store();
  StoreOptions options;
  options.resume = arguments.resume;
  options.version = version();
  options.git_hash = git_hash();
  return open_store(arguments.store, space, options);
}

/// Ctrl-C, the seed and the progress line.
SearchControl control_of(const StrategyOptions& strategy, Session& session) {
  SearchControl control;
  control.seed = strategy.seed;
  control.jobs = strategy.jobs;
  control.stop = session.interrupted;
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

/// What a user wants to know besides the result: what was there before, and why it ended.
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
                          ? "interrupted: these are the designs so far"
                          : "interrupted: these are the designs so far; --resume goes on");
}

int exit_code(const ExplorationResult& result) {
  if (result.interrupted)
    return kExitInterrupted;
  const auto feasible = [](const DesignResult& design) { return design.feasible; };
  if (std::none_of(result.results.begin(), result.results.end(), feasible)) {
    throw InfeasibleError(result.results.empty()
                              ? "no design of the space keeps its constraints"
                              : fmt::format("none of {} designs can run; design {}: {}",
                                            result.results.size(), result.results.front().id,
                                            result.results.front().reason));
  }
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

/// What all processes of a job must have in common.
std::string identity_of(const Space& space) {
  return fmt::format("monet {} {}, space {}", version(), git_hash(), space.content_hash);
}

/// What the space, its evaluator and the strategy are, with what the caller brings.
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

/// This process chooses the designs, keeps the store and writes; it evaluates, too.
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
  session.context.stop = {}; // from here on Ctrl-C ends the exploration, with what it has
  DesignRunner& runner = processes ? *processes : *threads;
  exploration.result =
      explore(space, *strategy, *store, runner, control_of(arguments.strategy, session));
  exploration.ended_early = strategy->ended_early();
  if (processes)
    print_message("", communication_text(processes->end()));
  write_outputs(arguments, exploration, session);
  say_how_it_went(arguments, exploration);
  return exit_code(exploration.result);
}

/// The other processes of an MPI job: they say nothing, the first one says it for them.
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
    session.context.stop = {}; // the first process tells the others when to end
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
  names.emplace_back("halving"); // what racing was called
  return names;
}

std::string help_of_strategies() {
  std::string help = "Which designs are evaluated:";
  for (const auto& [name, line] : strategy_names())
    help += fmt::format("\n{}: {}", name, line);
  return help;
}

void add_choice_options(Command& command, ExploreArguments& arguments) {
  command.add("space", &arguments.space, "Space of hardware (YAML)", {.type = "SPACE.yaml"});
  command.add("--strategy", &arguments.strategy.name, help_of_strategies(),
              {.choices = names_of_strategies()});
  command.add("--budget", &arguments.strategy.budget,
              "Most evaluations; 0 = none (random and lhs need one)");
  command.add("--seed", &arguments.strategy.seed, "Of the strategy's random numbers");
  command.add("--jobs", &arguments.jobs,
              "Threads (0 = all cores, or 1 in each process under mpirun); results do not "
              "depend on it",
              {.range = Range{0, 4096}});
}

void add_output_options(Command& command, ExploreArguments& arguments) {
  command.add("--store", &arguments.store,
              "Keep every design in this SQLite file as soon as it is evaluated; several "
              "processes may share it",
              {.type = "FILE", .output = Output::file});
  command.add("--resume", &arguments.resume, "Go on with the designs that the store holds");
  command.add("--json", &arguments.json, "Write the result as JSON; - for standard output",
              {.type = "FILE", .output = Output::file});
  command.add("-o,--out", &arguments.folder,
              "Folder for explore.json, report.html and reports of the best designs",
              {.type = "DIR", .output = Output::folder});
  command.add("--export-csv", &arguments.csv, "Write a line per design",
              {.type = "FILE", .output = Output::file});
  command.add("--design", &arguments.designs, "With -o: a report of this design, too",
              {.type = "ID"});
  command.add("--compare", &arguments.compare,
              "Compare two explorations (explore.json files or stores)",
              {.type = "A B", .values = 2});
  command.add("--of", &arguments.of,
              "With --compare: the run of A and that of B; else runs that both have, or of one "
              "file both its runs",
              {.type = "RUN_A RUN_B", .values = 2});
}

} // namespace

void add_explore_command(Command& monet) {
  auto arguments = std::make_shared<ExploreArguments>();
  Command& command =
      monet.add_command("explore", "Evaluates the designs of a hardware space, and finds the best");
  add_choice_options(command, *arguments);
  add_output_options(command, *arguments);
  command.footer = "Ctrl-C ends it with the designs so far; --store and --resume go on later. "
                   "Processes of a cluster: mpirun -n N monet explore ...\n"
                   "Example: monet explore data/spaces/edge_study.yaml --strategy random --budget "
                   "100 --store edge.sqlite -o out/edge";
  command.action_tries_outputs = true;
  command.action = [arguments, &command](Session& session) {
    return run_explore(*arguments, command, session);
  };
}

} // namespace monet::cli
