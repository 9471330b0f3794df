// What the searches of `monet optimise` share: their options, their inputs made ready, and how
// they end.
#pragma once

#include "console.hpp"
#include "options/network_options.hpp"
#include "pipeline.hpp"

#include "monet/optimise/fusion.hpp"
#include "monet/optimise/search.hpp"
#include "monet/report/search_result.hpp"

#include <nlohmann/json_fwd.hpp>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace monet::cli {

struct Command;
struct Option;

/// Options of every search.
struct OptimiseArguments {
  std::string experiment; ///< file in place of the options of the step; empty: none
  StepArguments step;
  std::uint64_t seed = 1;
  double time_limit = 0; ///< seconds; 0: none
  int jobs = 1;
  std::string json;
  std::string report; ///< folder; empty: none
  bool verify = false;
  std::vector<const Option*> of_step;     ///< those that an experiment file replaces
  std::function<void(Experiment&)> adapt; ///< what the search changes before files are read

  void add_to(Command& command);
  /// Time limit, threads and JSON alone.
  void add_limits_to(Command& command);
  /// UsageError when there is neither an experiment nor a chip with a network, or something of
  /// both.
  Experiment read() const;
};

/// One step on one chip, read and checked.
struct SearchInputs {
  Experiment experiment;
  ModelInputs files;
  TrainingGraph graph; ///< training, or inference without training options; with its views
  TrainingGraph step;  ///< the same with views folded: what is tiled and scheduled

  /// The experiment's mapping, mode, stacks and halo; points into this object.
  TilingOptions tiling_options() const;
  ScheduleOptions schedule_options(int jobs) const;
};

/// Reads everything. `objective` is the search's: what a mapping on a core minimises follows it
/// when it is latency, energy or edp and neither --core-objective nor an experiment say otherwise.
SearchInputs prepare(const OptimiseArguments& arguments, const std::string& objective,
                     Session& session);

/// The same for an experiment that is read.
SearchInputs prepare(Experiment experiment, Session& session);

/// What a report compares.
struct SearchSteps {
  StepResult before;
  StepResult best;
  const Graph* graph = nullptr; ///< of the best, with its views; null: nothing runs again
};

/// From here on stages end with the time limit; counted from the beginning of the command.
void limit_time(const OptimiseArguments& arguments, Session& session);
/// Seed, threads, time limit (since the command began) and progress for a search, which Ctrl-C ends
/// from now on in place of the command.
SearchControl search_control(const OptimiseArguments& arguments, Session& session);

/// Schedules of the whole step that a search for groups makes, and 20 times as many of groups;
/// none: the search's default, and more as long as they have 6,000,000 tiles together.
void set_effort(FusionOptions& options, std::optional<std::int64_t> evaluations);

/// Provenance of a search: files and options of the step, seed and limits.
nlohmann::ordered_json search_provenance(const SearchInputs& inputs,
                                         const OptimiseArguments& arguments);

/// For a stage that searches: the best answer, modelled again, is what the search says it is, every
/// invariant of it holds, and it does not beat its bound. InternalError where not.
void check_answer(const SearchInputs& inputs, const TrainingGraph& step, const StepOptions& options,
                  const StepFigures& claimed, const Certificate& found);

/// With --report: what `monet run` writes, of the best step, with the search's result in it and the
/// step that the search began with to compare. `graph` is the best step with its views.
void write_search_report(const OptimiseArguments& arguments, const SearchInputs& inputs,
                         const nlohmann::ordered_json& search, const SearchSteps& steps);

/// Writes the JSON where it was asked for and the table to standard output, says whether the search
/// was cut short, and returns the exit code: 130 after Ctrl-C, else 0.
int finish_search(const OptimiseArguments& arguments, const nlohmann::ordered_json& result,
                  const std::string& table, const Certificate& found, Session& session);

} // namespace monet::cli
