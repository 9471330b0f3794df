// What a command line may hold, as data: only command_line.cpp sees the library that parses it.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace monet::cli {

struct Session;

/// Runs a subcommand whose options have been parsed; returns the exit code, throws for failures.
using Action = std::function<int(Session&)>;

/// Where the values of an option go. A bool makes a flag; a number or a word that is set beforehand
/// is shown as the default.
using Target =
    std::variant<bool*, int*, std::int64_t*, std::uint64_t*, double*, std::string*,
                 std::optional<int>*, std::optional<std::int64_t>*, std::vector<std::int64_t>*,
                 std::vector<std::uint64_t>*, std::vector<std::string>*>;

/// Both ends are allowed.
struct Range {
  double least = 0;
  double most = std::numeric_limits<double>::infinity();
};

/// What an option names that results are written to.
enum class Output { none, file, folder };

/// What else there is to say of an option. Other options are named as on the command line.
struct OptionRules {
  std::string type;                 ///< of the value, in --help; empty: the target's
  std::vector<std::string> choices; ///< the only values; empty: any
  std::optional<Range> range;       ///< with or without a largest number
  std::string (*rewrite)(std::string& value) =
      nullptr;           ///< returns what is wrong with it, empty if nothing
  std::string rewritten; ///< what `rewrite` takes, in --help
  std::string needs;
  std::string excludes;
  std::string group;     ///< heading in --help
  int values = 0;        ///< of a list, each time; 0: as many as follow
  char delimiter = '\0'; ///< between the values of a list, beside blanks
  bool repeated = false; ///< a list takes one value each time
  bool required = false;
  bool hides_default = false;
  Output output = Output::none;
};

/// For OptionRules::choices.
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
  bool given = false; ///< on the command line that was parsed

  std::string name() const; ///< the long one
};

/// A program, or a subcommand of one. Options and subcommands keep their places in memory.
struct Command {
  std::string name;
  std::string about;
  std::string footer;                ///< below the options in --help
  std::list<Option> options;         ///< in the order of --help
  std::list<Command> commands;       ///< one of them must be given, if there are any
  Action action;                     ///< of a command without subcommands
  bool action_tries_outputs = false; ///< it calls try_outputs(); else that comes before it
  /// The name of what this command line lacks; empty: nothing. For what is not always required.
  std::function<std::string()> missing;

  void add(std::string option_names, Target target, std::string help, OptionRules rules = {});
  Command& add_command(std::string command_name, std::string what);
  bool given(std::string_view option) const;
};

/// Tries every place that the options name for results: folders first, which files may lie in.
void try_outputs(const Command& command, Session& session);

/// The subcommand that these arguments name, its options filled. UsageError with what is wrong.
const Command& parse_arguments(Command& program, const std::vector<std::string>& arguments);
/// Tries its outputs, unless it does so itself, and runs it.
int run_command(const Command& chosen, Session& session);

/// Runs the subcommand that the command line names, or tells the user what there is to tell:
/// --help,
/// --version, what is wrong. Returns the exit code.
int run_program(Command& program, const std::string& version, int argc, const char* const* argv,
                int (*run)(const Action&));

} // namespace monet::cli
