// Parses command lines that are described as data (command_line.hpp) with CLI11, and runs the
// chosen subcommand.
#include "options/command_line.hpp"

#include "base/shared/text.hpp"
#include "console.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
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

/// Error text if the words lack a subcommand or misspell one; otherwise an empty string.
std::string subcommand_problem(const Command& program, const std::vector<std::string>& words) {
  const Command* at = &program;
  std::string path = program.name;
  for (const std::string& word : words) {
    if (at->commands.empty() || word.starts_with('-'))
      return "";
    const auto found =
        std::ranges::find_if(at->commands, [&](const Command& one) { return one.name == word; });
    if (found == at->commands.end()) {
      const std::string of = at == &program ? "" : " of " + path;
      return "'" + word + "' is not a subcommand" + of + command_hint(*at, word);
    }
    at = &*found;
    path += " " + word;
  }
  if (at->commands.empty())
    return "";
  return fmt::format("a subcommand is required: {} {}; see --help", path,
                     fmt::join(names_of(at->commands), ", "));
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
    throw UsageError(error.what());
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
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::string problem;
    if (error.get_name() == "RequiredError")
      problem = subcommand_problem(program, {argv + 1, argv + argc});
    std::ostringstream asked, complaint;
    const bool good = app.exit(error, asked, complaint) == 0;
    if (!good) {
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
