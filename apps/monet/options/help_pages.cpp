// Writes the manual page and the completions of bash, zsh and fish from the data of
// command_line.hpp. write_help_pages.cpp runs it when the tool is built.
#include "options/help_pages.hpp"

#include "base/shared/text.hpp"

#include <fmt/format.h>

#include <type_traits>

namespace monet::cli {

namespace {

/// Subcommand and the words that lead to it: {"optimise", "fusion"}.
struct Place {
  std::vector<std::string> path;
  const Command* command;
};

void add_places(const Command& command, std::vector<std::string> path, std::vector<Place>& places) {
  places.push_back({path, &command});
  for (const Command& one : command.commands) {
    path.push_back(one.name);
    add_places(one, path, places);
    path.pop_back();
  }
}

/// The program first, then each subcommand followed by its own.
std::vector<Place> all_places(const Command& program) {
  std::vector<Place> places;
  add_places(program, {}, places);
  return places;
}

std::string joined(const std::vector<std::string>& words, const std::string& separator) {
  return fmt::format("{}", fmt::join(words, separator));
}

/// `text` with `before` in front of each character of `special`.
std::string escaped(const std::string& text, std::string_view special, const std::string& before) {
  std::string result;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos)
      result += before;
    result += c;
  }
  return result;
}

/// Text for a single-quoted string of a POSIX shell.
std::string single_quoted(const std::string& text) {
  std::string result;
  for (const char c : text)
    result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result;
}

/// "-o,--output" as {"-o", "--output"}.
std::vector<std::string> spellings(const Option& option) {
  const auto parts = split(option.names, ',', option.names.size());
  return {parts.begin(), parts.end()};
}

bool is_positional(const Option& option) {
  return !option.names.starts_with('-');
}

bool is_flag(const Option& option) {
  return std::holds_alternative<bool*>(option.target);
}

std::string type_name(const Option& option) {
  return is_flag(option) ? "" : option.rules.type.empty() ? "VALUE" : option.rules.type;
}

std::string roff(const std::string& text) {
  const std::string result = escaped(text, "\\-", "\\");
  return result.starts_with('.') || result.starts_with('\'') ? "\\&" + result : result;
}

std::string man_option(const Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : spellings(option))
    names.push_back("\\fB" + roff(name) + "\\fR");
  std::string text = ".TP\n" + joined(names, ", ");
  if (const std::string type = type_name(option); !type.empty())
    text += " \\fI" + roff(type) + "\\fR";
  text += "\n" + roff(option.help) + ".";
  if (!option.rules.choices.empty())
    text += " Values: " + roff(joined(option.rules.choices, ", ")) + ".";
  if (const std::string value = default_text(option); !value.empty())
    text += " Default: " + roff(value) + ".";
  return text + "\n";
}

std::string man_command(const Place& place) {
  const Command& command = *place.command;
  std::string text = ".SS monet " + joined(place.path, " ") + "\n" + roff(command.about) + ".\n";
  for (const Option& option : command.options)
    text += man_option(option);
  if (!command.footer.empty())
    text += ".PP\n.nf\n" + escaped(command.footer, "\\", "\\") + "\n.fi\n";
  return text;
}

/// Path of a subcommand as a key of shell scripts: "/optimise/fusion".
std::string key(const std::vector<std::string>& path) {
  return path.empty() ? "" : "/" + joined(path, "/");
}

std::string option_words(const Command& command) {
  std::string words = "--help";
  for (const Option& option : command.options) {
    if (!is_positional(option))
      words += " " + joined(spellings(option), " ");
  }
  return words;
}

std::string zsh_option(const Option& option) {
  const std::string help = single_quoted(escaped(option.help, "[]:\\", "\\"));
  std::string value;
  if (!is_flag(option)) {
    value = ":" + escaped(type_name(option), ":\\", "\\");
    value +=
        option.rules.choices.empty() ? ":_files" : ":(" + joined(option.rules.choices, " ") + ")";
  }
  std::string text;
  for (const std::string& name : spellings(option))
    text += fmt::format("    '*{}[{}]{}' \\\n", name, help, single_quoted(value));
  return text;
}

std::string zsh_function(const Place& place) {
  std::string name = "_monet";
  for (const std::string& word : place.path)
    name += "__" + word;
  std::string text = name + "() {\n  local line state\n  _arguments -C \\\n"
                            "    '(- *)--help[print help and exit]' \\\n";
  for (const Option& option : place.command->options) {
    if (!is_positional(option))
      text += zsh_option(option);
  }
  if (place.command->commands.empty())
    return text + "    '*:file:_files'\n}\n";
  text += "    '1:command:->command' '*::argument:->argument'\n  case $state in\n  command)\n"
          "    local -a commands=(\n";
  for (const Command& one : place.command->commands)
    text +=
        fmt::format("      '{}:{}'\n", one.name, single_quoted(escaped(one.about, ":\\", "\\")));
  text += "    )\n    _describe command commands ;;\n  argument)\n    case $line[1] in\n";
  for (const Command& one : place.command->commands)
    text += fmt::format("    {0}) {1}__{0} ;;\n", one.name, name);
  return text + "    esac ;;\n  esac\n}\n";
}

/// Condition under which fish offers what belongs to a subcommand.
std::string fish_condition(const std::vector<std::string>& path) {
  return "__monet_at \"" + key(path) + "\"";
}

std::string fish_option(const Place& place, const Option& option) {
  std::string text = "complete -c monet -n '" + fish_condition(place.path) + "'";
  for (const std::string& name : spellings(option))
    text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  if (!is_flag(option))
    text +=
        option.rules.choices.empty() ? " -r" : " -x -a '" + joined(option.rules.choices, " ") + "'";
  return text + " -d '" + escaped(option.help, "\\'", "\\") + "'\n";
}

} // namespace

std::string default_text(const Option& option) {
  if (option.rules.hides_default)
    return "";
  return std::visit(
      []<class T>(const T& target) -> std::string {
        using Value = std::remove_pointer_t<T>;
        if constexpr (std::is_same_v<T, NamedValue>)
          return target.name();
        else if constexpr (!std::is_same_v<Value, bool> &&
                           (std::is_arithmetic_v<Value> || std::is_same_v<Value, std::string>))
          return fmt::format("{}", *target);
        else
          return "";
      },
      option.target);
}

std::string man_page(const Command& program, const std::string& version) {
  std::string text = ".TH MONET 1 \"\" \"monet " + version +
                     "\" \"User Commands\"\n.SH NAME\nmonet "
                     "\\- models and optimises the training of neural networks\n.SH SYNOPSIS\n"
                     ".B monet\n.I COMMAND\n[\\fIOPTIONS\\fR]\n.SH DESCRIPTION\n" +
                     roff(program.about) + "\n.PP\n.nf\n" + escaped(program.footer, "\\", "\\") +
                     "\n.fi\n.SH COMMANDS\n";
  for (const Place& place : all_places(program)) {
    if (!place.path.empty())
      text += man_command(place);
  }
  return text;
}

std::string bash_completion(const Command& program) {
  std::string paths, values, words;
  for (const Place& place : all_places(program)) {
    const std::string at = key(place.path);
    if (!place.path.empty())
      paths += (paths.empty() ? "" : " | ") + at;
    for (const Option& option : place.command->options) {
      if (option.rules.choices.empty())
        continue;
      for (const std::string& name : spellings(option))
        values +=
            fmt::format("  '{} {}') words='{}' ;;\n", at, name, joined(option.rules.choices, " "));
    }
    words +=
        fmt::format("  '{}') options='{}' commands='{}' ;;\n", at, option_words(*place.command),
                    joined(names_of(place.command->commands), " "));
  }
  return "# bash completion for monet. Made from the command line's description.\n"
         "_monet() {\n"
         "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} at= i words= "
         "options= commands=\n"
         "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
         "    case \"$at/${COMP_WORDS[i]}\" in\n    " +
         paths +
         ") at=$at/${COMP_WORDS[i]} ;;\n    esac\n  done\n"
         "  case \"$at $prev\" in\n" +
         values + "  esac\n  if [[ -z $words ]]; then\n    case $at in\n" + words +
         "    esac\n    if [[ $cur == -* ]]; then words=$options; else words=$commands; fi\n  fi\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\n"
         "complete -o default -F _monet monet\n";
}

std::string zsh_completion(const Command& program) {
  std::string text = "#compdef monet\n# Made from the command line's description.\n";
  for (const Place& place : all_places(program))
    text += zsh_function(place);
  return text + "_monet \"$@\"\n";
}

std::string fish_completion(const Command& program) {
  std::string names;
  const std::vector<Place> places = all_places(program);
  for (const Place& place : places) {
    if (!place.path.empty())
      names += " " + key(place.path);
  }
  std::string text = "# fish completion for monet. Made from the command line's description.\n"
                     "function __monet_at\n    set -l at\n"
                     "    for word in (commandline -opc)[2..-1]\n"
                     "        if contains -- $at/$word" +
                     names +
                     "\n            set at $at/$word\n        end\n    end\n"
                     "    test \"$at\" = \"$argv[1]\"\nend\n";
  for (const Place& place : places) {
    for (const Command& one : place.command->commands)
      text += fmt::format("complete -c monet -f -n '{}' -a {} -d '{}'\n",
                          fish_condition(place.path), one.name, escaped(one.about, "\\'", "\\"));
    for (const Option& option : place.command->options) {
      if (!is_positional(option))
        text += fish_option(place, option);
    }
  }
  return text;
}

} // namespace monet::cli
