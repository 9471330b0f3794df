// Parses command lines that are described as data (command_line.hpp) with CLI11, and runs the
// chosen subcommand.
#include "options/command_line.hpp"

#include "base/shared/text.hpp"
#include "console.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <sstream>

namespace monet::cli {

namespace {

/// Adds an option whose value is one of several names.
CLI::Option* add_named(CLI::App& app, const Option& option, const NamedValue& target) {
  return app
      .add_option(
          option.names,
          [target](const CLI::results_t& texts) { return target.assign(texts.back()); },
          option.help, true, [target] { return target.name(); })
      ->type_name("TEXT");
}

CLI::Option* add_target(CLI::App& app, const Option& option) {
  if (const auto* named = std::get_if<NamedValue>(&option.target))
    return add_named(app, option, *named);
  return std::visit(
      [&]<class T>(T target) -> CLI::Option* {
        if constexpr (std::is_same_v<T, NamedValue>) {
          return nullptr;
        } else if constexpr (std::is_same_v<T, bool*>) {
          return app.add_flag(option.names, *target, option.help);
        } else {
          CLI::Option* made = app.add_option(option.names, *target, option.help);
          using Value = std::remove_pointer_t<T>;
          if constexpr (std::is_arithmetic_v<Value> || std::is_same_v<Value, std::string>) {
            if (!option.rules.hides_default)
              made->capture_default_str();
          }
          return made;
        }
      },
      option.target);
}

CLI::Range checked_range(const Range& range, const Target& target) {
  if (range.most == std::numeric_limits<double>::infinity())
    return range.least > 0 ? CLI::PositiveNumber : CLI::NonNegativeNumber;
  if (std::holds_alternative<double*>(target))
    return {range.least, range.most};
  return {static_cast<std::int64_t>(range.least), static_cast<std::int64_t>(range.most)};
}

void add_option(CLI::App& app, const Option& option) {
  const OptionRules& rules = option.rules;
  CLI::Option* made = add_target(app, option);
  if (!rules.type.empty())
    made->type_name(rules.type);
  if (!rules.choices.empty())
    made->check(CLI::IsMember(rules.choices));
  if (rules.range)
    made->check(checked_range(*rules.range, option.target));
  if (rules.rewrite)
    made->transform(CLI::Validator(rules.rewrite, rules.rewritten));
  if (!rules.needs.empty())
    made->needs(app.get_option(rules.needs));
  if (!rules.excludes.empty())
    made->excludes(app.get_option(rules.excludes));
  if (!rules.group.empty())
    made->group(rules.group);
  if (rules.values > 0)
    made->expected(rules.values);
  if (rules.delimiter != '\0')
    made->delimiter(rules.delimiter);
  if (rules.repeated)
    made->allow_extra_args(false);
  made->required(rules.required);
}

/// Adds a command with its options and subcommands to `app`. `chosen` is set when the command line
/// is parsed.
void describe(CLI::App& app, Command& command, const Command*& chosen) {
  for (const Option& option : command.options)
    add_option(app, option);
  for (Command& one : command.commands)
    describe(*app.add_subcommand(one.name, one.about), one, chosen);
  if (!command.commands.empty())
    app.require_subcommand(1);
  app.footer(command.footer);
  app.final_callback([&app, &command, &chosen] {
    for (Option& option : command.options) {
      option.given = app.count(option.name()) > 0;
      if (option.given && option.after)
        option.after();
    }
    if (const std::string missing = command.missing ? command.missing() : ""; !missing.empty())
      throw CLI::RequiredError(missing);
    if (command.action)
      chosen = &command;
  });
}

/// Hint for a word that is not a subcommand of `command`: the nearest name, also one level below.
std::string command_hint(const Command& command, const std::string& word) {
  if (const std::string hint = nearest_name_hint(word, names_of(command.commands)); !hint.empty())
    return ": " + hint;
  for (const Command& one : command.commands) {
    for (const Command& below : one.commands) {
      if (below.name == word)
        return ": did you mean '" + one.name + " " + word + "'?";
    }
  }
  return "; see --help";
}

/// Command that words name, as far as they do.
struct NamedCommand {
  const Command* command = nullptr;
  std::string path;  ///< "monet optimise"
  std::string wrong; ///< first word in the place of a subcommand that is not one
};

NamedCommand find_command(const Command& program, const std::vector<std::string>& words) {
  NamedCommand at{&program, program.name, {}};
  for (const std::string& word : words) {
    if (at.command->commands.empty() || word.starts_with('-'))
      break;
    const auto found = std::ranges::find(at.command->commands, word, &Command::name);
    if (found == at.command->commands.end()) {
      at.wrong = word;
      break;
    }
    at.command = &*found;
    at.path += " " + word;
  }
  return at;
}

/// Error text if the words misspell a subcommand; otherwise an empty string.
std::string misspelt_command(const Command& program, const NamedCommand& named) {
  if (named.wrong.empty())
    return "";
  const std::string of = named.command == &program ? "" : " of " + named.path;
  return "'" + named.wrong + "' is not a subcommand" + of +
         command_hint(*named.command, named.wrong);
}

/// Error text if the words lack a subcommand or misspell one; otherwise an empty string.
std::string subcommand_problem(const Command& program, const NamedCommand& named) {
  if (!named.wrong.empty() || named.command->commands.empty())
    return misspelt_command(program, named);
  return fmt::format("a subcommand is required: {} {}; see --help", named.path,
                     fmt::join(names_of(named.command->commands), ", "));
}

/// Names of the options of a command that begin with a dash.
std::vector<std::string> option_names(const Command& command, bool is_program) {
  std::vector<std::string> names{"--help", "-h"};
  if (is_program)
    names.emplace_back("--version");
  for (const Option& option : command.options) {
    for (const std::string_view name : split(option.names, ',', 8)) {
      if (name.starts_with('-'))
        names.emplace_back(name);
    }
  }
  return names;
}

/// Error text for the first word in the form of an option that the command does not have;
/// otherwise an empty string. Called only after a failed parse: a value may look like an option.
std::string option_problem(const Command& program, const NamedCommand& named,
                           const std::vector<std::string>& words) {
  const std::vector<std::string> known = option_names(*named.command, named.command == &program);
  for (const std::string& word : words) {
    if (word == "--")
      break;
    const std::string name = word.substr(0, word.find('='));
    const bool is_long = name.size() > 2 && name.starts_with("--");
    const bool is_short = name.size() == 2 && name[0] == '-' && std::isalpha(name[1]) != 0;
    if ((!is_long && !is_short) || std::ranges::find(known, name) != known.end())
      continue;
    const std::string hint = is_long ? nearest_name_hint(name, known) : "";
    return fmt::format("unknown option '{}'{}", name,
                       hint.empty() ? fmt::format("; see {} --help", named.path)
                                    : fmt::format(" ({})", hint));
  }
  return "";
}

/// Error text for a command line that CLI11 refuses with `error`.
std::string problem_of(const Command& program, const std::vector<std::string>& words,
                       const CLI::ParseError& error) {
  const NamedCommand named = find_command(program, words);
  const bool lacks = error.get_name() == "RequiredError";
  std::string problem = lacks ? misspelt_command(program, named) : "";
  if (problem.empty())
    problem = option_problem(program, named, words);
  if (problem.empty() && lacks)
    problem = subcommand_problem(program, named);
  return problem;
}

/// Words of a command line, with `help X` written as `X --help`. Throws UsageError if X is not a
/// command.
std::vector<std::string> without_help_command(const Command& program,
                                              std::vector<std::string> words) {
  if (words.empty() || words.front() != "help")
    return words;
  words.erase(words.begin());
  const std::string problem = misspelt_command(program, find_command(program, words));
  if (!problem.empty())
    throw UsageError(problem);
  words.emplace_back("--help");
  return words;
}

/// Rewrites "none" to 0. Returns an error message, empty for a number in the range.
std::string rewrite_none(std::string& text, const NumberRange& range) {
  const auto value = number_in<int>(text);
  if (text == "none")
    text = "0";
  else if (!value || *value < range.least || *value > range.most)
    return fmt::format("'{}' is neither {} to {} nor none", text, range.least, range.most);
  return {};
}

} // namespace

std::string Option::name() const {
  return names.substr(names.find(',') + 1); // npos + 1 = 0
}

void Command::add(std::string option_names, Target target, std::string help, OptionRules rules) {
  if (const auto* named = std::get_if<NamedValue>(&target))
    rules.choices = named->names();
  options.push_back({std::move(option_names), target, std::move(help), std::move(rules), {}, {}});
}

void Command::add(const std::vector<BoundOption>& given) {
  for (const BoundOption& one : given) {
    if (one.details.place == OptionPlace::file)
      continue;
    OptionRules rules{.type = std::string(one.details.type),
                      .range = one.details.range,
                      .repeated = one.details.repeated,
                      .hides_default = one.details.hides_default};
    if (one.details.names != nullptr)
      rules.choices = *one.details.names;
    if (one.details.zero_is_none) {
      const NumberRange range = *one.details.range;
      rules.range.reset();
      rules.rewrite = [range](std::string& text) { return rewrite_none(text, range); };
      rules.rewritten = fmt::format("{}..{} or none", range.least, range.most);
    }
    add(one.name(), one.value, std::string(one.text), std::move(rules));
    options.back().key = one.key;
    options.back().after = one.after;
  }
}

Command& Command::add_command(std::string command_name, std::string what) {
  commands.push_back({std::move(command_name), std::move(what)});
  return commands.back();
}

bool Command::given(std::string_view option) const {
  return std::ranges::any_of(options,
                             [&](const Option& one) { return one.given && one.name() == option; });
}

void try_outputs(const Command& command, Session& session) {
  check_standard_output();
  const auto each = [&](Output kind, void (Outputs::*attempt)(const std::string&)) {
    for (const Option& option : command.options) {
      if (option.rules.output == kind)
        (session.outputs.*attempt)(*std::get<std::string*>(option.target));
    }
  };
  each(Output::folder, &Outputs::folder);
  each(Output::file, &Outputs::file);
}

const Command& parse_arguments(Command& program, const std::vector<std::string>& arguments) {
  CLI::App app{program.about, program.name};
  const Command* chosen = nullptr;
  describe(app, program, chosen);
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    const std::string problem = problem_of(program, arguments, error);
    throw UsageError(problem.empty() ? error.what() : problem);
  }
  if (chosen == nullptr)
    throw UsageError("no command is named");
  return *chosen;
}

int run_command(const Command& chosen, Session& session) {
  if (!chosen.action_tries_outputs)
    try_outputs(chosen, session);
  return chosen.action(session);
}

int run_program(Command& program, const std::string& version, int argc, const char* const* argv,
                int (*run)(const Action&)) {
  CLI::App app{program.about, program.name};
  app.set_version_flag("--version", version);
  const Command* chosen = nullptr;
  describe(app, program, chosen);
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  try {
    words = without_help_command(program, std::move(words));
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const UsageError& error) {
    print_message("error: ", error.what());
    return kExitUsage;
  } catch (const CLI::ParseError& error) {
    std::ostringstream asked, complaint;
    const bool good = app.exit(error, asked, complaint) == 0;
    if (!good) {
      const std::string problem = problem_of(program, words, error);
      const std::string text = complaint.str(); // its second line names --help
      print_message("error: ",
                    problem.empty() ? text.substr(0, text.find('\n')) + "; see --help" : problem);
      return kExitUsage;
    }
    return run([text = asked.str()](Session&) {
      print_result(text);
      return kExitOk;
    });
  }
  return run([chosen](Session& session) { return run_command(*chosen, session); });
}

} // namespace monet::cli
