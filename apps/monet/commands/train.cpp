// monet train EXPERIMENT.yaml: trains a network with emulated arithmetic, for each variant and
// seed. Calls the fit stage and writes its results and checkpoints.
#include "commands/commands.hpp"
#include "options/formats_options.hpp"
#include "options/memory_budget.hpp"
#include "pipeline.hpp"
#include "report/shared/text.hpp"
#include "report/shared/train_result.hpp"

#include "monet/base/files.hpp"
#include "monet/base/stop.hpp"
#include "monet/fit/checkpoint.hpp"
#include "monet/fit/run.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <deque>
#include <filesystem>
#include <memory>

namespace monet::cli {

namespace {

struct TrainArguments {
  std::string experiment;
  std::string folder;
  std::string memory_limit = "80%";
  int jobs = 1;
  std::string instructions = "best";
  bool resume = false;

  std::string results_folder() const {
    return folder.empty()
               ? (std::filesystem::path("out") / std::filesystem::path(experiment).stem()).string()
               : folder;
  }
};

/// Runs all variants and seeds of a study in sequence.
class Training {
public:
  Training(const TrainArguments& arguments, Session& session)
      : arguments_(arguments), session_(session), folder_(arguments.results_folder()) {}

  int run() {
    prepare();
    session_.context.stop = {}; // from here on a step finishes before a stop
    go_through_runs();
    const auto [table, picture] = write();
    print_result(fmt::format("{}\ncurves: {}\n", table, printable(picture)));
    if (!interrupted_)
      return kExitOk;
    print_message("", "interrupted: the result has the steps so far; --resume continues");
    return kExitInterrupted;
  }

private:
  /// Reads and checks all inputs, so that errors are found before the first step.
  void prepare() {
    study_ = session_.stage("read files", [&] { return read_train_study(arguments_.experiment); });
    for (const DataOptions& options : study_.data)
      data_.push_back(
          session_.stage("read data", [&] { return load_data(options, arguments_.jobs); }));
    for (const TrainRecipe& recipe : study_.variants) {
      setups_.push_back(session_.stage(
          recipe.name + ": graph", [&] { return prepare_training(recipe, data_[recipe.data]); },
          [](const TrainSetup& setup) {
            verify(setup.step);
            verify(setup.test);
          }));
      trained_.push_back({&setups_.back(), &study_.data[recipe.data], {}});
    }
    options_.jobs = arguments_.jobs;
    options_.instructions = instructions_of(arguments_.instructions);
    options_.memory_limit_bytes =
        parse_budget(arguments_.memory_limit, machine_memory_bytes(), "--memory-limit");
    for (const TrainSetup& setup : setups_) { // checks memory and initial weights
      options_.seed = setup.recipe->seeds.front();
      session_.stage(setup.recipe->name + ": begin", [&] { return TrainRun(setup, options_); });
    }
  }

  /// Trains all runs. Every checkpoint is read, or removed, before the first step.
  void go_through_runs() {
    std::vector<std::optional<CheckpointFolder::Found>> found;
    for (const TrainSetup& setup : setups_) {
      for (const std::uint64_t seed : setup.recipe->seeds) {
        const CheckpointFolder folder = checkpoints(setup, seed);
        if (arguments_.resume)
          folder.remove_unfinished();
        else
          folder.clear();
        found.push_back(arguments_.resume ? folder.newest() : std::nullopt);
      }
    }
    std::size_t at = 0;
    for (std::size_t v = 0; v < setups_.size(); ++v) {
      for (const std::uint64_t seed : setups_[v].recipe->seeds) {
        if (interrupted_ && !found[at]) {
          ++at;
          continue;
        }
        options_.seed = seed;
        total_ = setups_[v].length.steps;
        phase_ = fmt::format("{}, seed {} (run {} of {})", setups_[v].recipe->name, seed, at + 1,
                             found.size());
        trained_[v].runs.push_back(train(setups_[v], std::move(found[at])));
        ++at;
      }
    }
  }

  CheckpointFolder checkpoints(const TrainSetup& setup, std::uint64_t seed) const {
    const std::filesystem::path path = std::filesystem::path(folder_) / "checkpoints" /
                                       setup.recipe->name / fmt::format("seed_{}", seed);
    return {path.string(), setup.identity};
  }

  bool is_stopped() const {
    return session_.interrupted != nullptr && session_.interrupted->load();
  }

  TrainedRun train(const TrainSetup& setup, std::optional<CheckpointFolder::Found> found) {
    const CheckpointFolder folder = checkpoints(setup, options_.seed);
    TrainRun run = found ? TrainRun(setup, options_, std::move(found->state), found->path)
                         : TrainRun(setup, options_);
    TrainedRun trained{options_.seed, {}, false, 0, 0};
    const std::int64_t every = setup.recipe->checkpoint.every *
                               (setup.recipe->checkpoint.epochs ? setup.length.steps_of_epoch : 1);
    std::int64_t written = found ? run.steps() : -1;
    while (!interrupted_) {
      if (run.test_is_due()) {
        interrupted_ = !test(run);
        written = run.is_over() ? -1 : written; // writes the checkpoint again with the last test
      } else if (run.is_over()) {
        break;
      } else if (is_stopped()) {
        interrupted_ = true;
      } else {
        step(run, trained);
      }
      if (every > 0 && run.steps() % every == 0 && run.steps() != written && !run.test_is_due()) {
        folder.write(run.state(), setup.recipe->checkpoint.keep);
        written = run.steps();
      }
    }
    if (run.steps() != written)
      folder.write(run.state(), setup.recipe->checkpoint.keep);
    trained.history = run.history();
    trained.is_over = run.is_over() && !run.test_is_due();
    return trained;
  }

  void step(TrainRun& run, TrainedRun& trained) {
    const auto begin = std::chrono::steady_clock::now();
    run.step();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    trained.seconds += took.count();
    ++trained.timed_steps;
    session_.progress.search({.phase = phase_, .done = run.steps(), .total = total_},
                             SearchControl{}.seconds_left());
  }

  /// Tests the network. Returns false if Ctrl-C interrupted the test, which then had no effect.
  bool test(TrainRun& run) {
    try {
      const StopScope scope(StopRequest{session_.interrupted});
      run.test();
      return true;
    } catch (const Stopped&) {
      return false;
    }
  }

  std::pair<std::string, std::string> write() {
    return session_.stage("write results", [&] {
      std::vector<std::string> files = study_.files;
      for (const TrainRecipe& recipe : study_.variants)
        files.push_back(recipe.network.value);
      const Json result = train_json(study_.name, trained_, provenance_of(files));
      const std::string picture = path_in(folder_, "curves.svg");
      write_json(path_in(folder_, "result.json"), result);
      write_file_atomically(path_in(folder_, "curves.csv"), curves_csv(trained_));
      write_file_atomically(picture, curves_svg(study_.name, trained_));
      return std::pair(train_table(result), picture);
    });
  }

  const TrainArguments& arguments_;
  Session& session_;
  std::string folder_;
  TrainStudy study_;
  std::deque<TrainingData> data_; ///< setups point into it, and into the study
  std::deque<TrainSetup> setups_; ///< runs point into it
  std::vector<TrainedVariant> trained_;
  TrainRunOptions options_;
  std::string phase_; ///< name of the current run, which has `total_` steps
  std::int64_t total_ = 0;
  bool interrupted_ = false;
};

} // namespace

void add_train_command(Command& monet) {
  auto arguments = std::make_shared<TrainArguments>();
  Command& command = monet.add_command("train", "Train a network numerically");
  command.add("experiment", &arguments->experiment, "Experiment file (YAML)",
              {.type = "EXPERIMENT.yaml", .required = true});
  command.add("-o,--output", &arguments->folder,
              "Folder for result.json, curves.csv, curves.svg and checkpoints; default: out/<name "
              "of the experiment file>",
              {.type = "DIR", .output = Output::folder});
  command.add("--resume", &arguments->resume,
              "Continue from the checkpoints in the folder; without this option they are removed");
  command.add("--jobs", &arguments->jobs,
              "Number of threads (0: all cores); results do not depend on it",
              {.range = Range{0, 4096}});
  add_instructions(command, arguments->instructions);
  command.add("--memory-limit", &arguments->memory_limit,
              "Limit of this machine's memory for the numbers of a step: bytes, MiB, GiB, or a "
              "share of all memory",
              {.type = "BYTES"});
  command.footer = "Example: monet train examples/numerics/study.yaml -o out/study";
  command.action = [arguments](Session& session) {
    session.outputs.folder(arguments->results_folder());
    return Training(*arguments, session).run();
  };
}

} // namespace monet::cli
