// Description of a command line as data: only command_line.cpp depends on the library that parses
// it.
#pragma once

#include "monet/base/options.hpp"

#include <functional>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace monet::cli {

struct Session;

/// Runs a subcommand with parsed options. Returns the exit code; throws on failure.
using Action = std::function<int(Session&)>;

/// Variable that receives the values of an option. A bool makes a flag; the initial value of a
/// number or a word is displayed as the default.
using Target = OptionValue;
using Range = NumberRange;

/// Kind of the place for results that an option's value names.
enum class Output { none, file, folder };

/// Further properties of an option. Other options are named as on the command line.
struct OptionRules {
  std::string type;                 ///< type of the value in --help; empty: from the target
  std::vector<std::string> choices; ///< allowed values; empty: any
  std::optional<Range> range;       ///< allowed numbers
  /// Returns an error message, empty if valid.
  std::function<std::string(std::string& value)> rewrite;
  std::string rewritten; ///< values that `rewrite` accepts, in --help
  std::string needs;
  std::string excludes;
  std::string group;     ///< heading in --help
  int values = 0;        ///< values per use of a list; 0: any number
  char delimiter = '\0'; ///< between values of a list, in addition to blanks
  bool repeated = false; ///< a list receives one value per use
  bool required = false;
  bool hides_default = false;
  Output output = Output::none;
};

/// Names of the values in `list`, for OptionRules::choices.
template <class List>
std::vector<std::string> choice_names(const List& list) {
  std::vector<std::string> names;
  for (const auto value : list)
    names.emplace_back(name_of(value));
  return names;
}

struct Option {
  std::string names; ///< "-o,--output"; without dashes: a positional argument
  Target target;
  std::string help;
  OptionRules rules;
  std::string key;             ///< in files and Python; empty: from the long name
  std::function<void()> after; ///< called after the option has been set; may be empty
  bool given = false;          ///< present on the parsed command line

  std::string name() const; ///< long name
};

/// Program, or subcommand of a program. Options and subcommands keep their addresses.
struct Command {
  std::string name;
  std::string about;
  std::string footer;                ///< below the options in --help
  std::list<Option> options;         ///< in the order of --help
  std::list<Command> commands;       ///< one of them is required, if there are any
  Action action;                     ///< action of a command without subcommands
  bool action_tries_outputs = false; ///< the action calls try_outputs(); otherwise its caller does
  /// Returns the name of a required argument that is missing, or an empty string; for arguments
  /// that are required only in some cases.
  std::function<std::string()> missing;

  void add(std::string option_names, Target target, std::string help, OptionRules rules = {});
  /// Adds the options of an object that may be set on the command line.
  void add(const std::vector<BoundOption>& options);
  Command& add_command(std::string command_name, std::string what);
  bool given(std::string_view option) const;
};

/// Tests every place for results that the options name: folders first, since files may be in them.
void try_outputs(const Command& command, Session& session);

/// Parses arguments, fills the options of the subcommand that they name, and returns it. Throws
/// UsageError if they are invalid.
const Command& parse_arguments(Command& program, const std::vector<std::string>& arguments);
/// Tests the outputs, unless the action does so, and runs the subcommand.
int run_command(const Command& chosen, Session& session);

/// Runs the subcommand that the command line names, or prints --help, --version or an error.
/// Returns the exit code.
int run_program(Command& program, const std::string& version, int argc, const char* const* argv,
                int (*run)(const Action&));

} // namespace monet::cli
