// Parts shared by the searches of `monet optimise`: their options, the preparation of their inputs,
// and the output of their results.
#pragma once

#include "console.hpp"
#include "options/network_options.hpp"
#include "options/search_options.hpp"
#include "pipeline.hpp"
#include "report/shared/search_result.hpp"

#include "monet/optimise/fusion.hpp"
#include "monet/optimise/search.hpp"

#include <nlohmann/json_fwd.hpp>

#include <functional>
#include <string>
#include <vector>

namespace monet::cli {

struct Command;
struct Option;

/// Options that every search has.
struct OptimiseArguments : SearchLimits {
  std::string experiment; ///< file in place of the options of the step; may be empty
  StepArguments step;
  std::string core_objective = "auto"; ///< of mappings on cores; auto: that of the search
  int jobs = 1;
  std::string json;
  std::string report; ///< folder; may be empty
  bool verify = false;
  std::vector<const Option*> of_step;     ///< options that an experiment file replaces
  std::function<void(Experiment&)> adapt; ///< changes by the search before files are read

  void add_to(Command& command);
  /// Adds only the options for time limit, threads and JSON, and the seed if `seeded`.
  void add_limits_to(Command& command, bool seeded);
  /// Experiment from its file or from the options. Throws UsageError if neither an experiment nor a
  /// chip with a network is given, or parts of both.
  Experiment read() const;
};

/// One step on one chip, read and checked.
struct SearchInputs {
  Experiment experiment;
  ModelInputs files;
  TrainingGraph graph; ///< with views; inference without training options
  TrainingGraph step;  ///< the same step with views folded, for tiling and scheduling

  /// Tiling options with the experiment's mapping, mode, stacks and halo. They point into this
  /// object.
  TilingOptions tiling_options() const;
  ScheduleOptions schedule_options(int jobs) const;
};

/// Reads and checks all inputs of a search with this objective. Mappings on cores minimise the same
/// objective if it is latency, energy or edp, unless --core-objective or an experiment specifies
/// another.
SearchInputs prepare(const OptimiseArguments& arguments, const std::string& objective,
                     Session& session);

/// Reads and checks the files of an experiment that is already read.
SearchInputs prepare(Experiment experiment, Session& session);

/// Steps that a report compares.
struct SearchSteps {
  StepResult before;
  StepResult best;
  const Graph* graph = nullptr; ///< graph of the best step, with views; null without recomputation
};

/// Limits the following stages by the time limit, which is counted from the start of the command.
void limit_time(const OptimiseArguments& arguments, Session& session);
/// Seed, threads, time limit (from the start of the command) and progress display for a search.
/// After this call, Ctrl-C ends the search instead of the command.
SearchControl search_control(const OptimiseArguments& arguments, Session& session);

/// Total number of tiles up to which a search for groups makes more schedules than its default
/// number, unless their number is given.
inline constexpr double kTilesOfDefaultEffort = 6e6;

/// Provenance of a search: files and options of the step, seed and limits.
nlohmann::ordered_json search_provenance(const SearchInputs& inputs,
                                         const OptimiseArguments& arguments);

/// Checks the result of a search: the best answer, modelled again, must have the claimed figures,
/// satisfy every invariant, and not beat its bound. Throws InternalError otherwise.
void check_answer(const SearchInputs& inputs, const TrainingGraph& step, const StepOptions& options,
                  const StepFigures& claimed, const Certificate& found);

/// Writes the folder of --report: the results that `monet run` writes for the best step, with the
/// search's result and a comparison with the step before the search.
void write_search_report(const OptimiseArguments& arguments, const SearchInputs& inputs,
                         const nlohmann::ordered_json& search, const SearchSteps& steps);

/// Writes the JSON if requested and the table to standard output, and reports whether the search
/// was cut short. Returns the exit code: 130 after Ctrl-C, else 0.
int finish_search(const OptimiseArguments& arguments, const nlohmann::ordered_json& result,
                  const std::string& table, const Certificate& found, Session& session);

} // namespace monet::cli
