// YAML and JSON as lines and tokens: keys and values exchanged, numbers at their edges, entries
// removed, doubled and nested.
#include "structured/mutator.hpp"
#include "structured/words.hpp"

#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

namespace monet::fuzz {

namespace {

struct Token {
  std::size_t begin = 0, end = 0;
};

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-' ||
         c == '+';
}

/// Quoted texts, words and numbers; every other character but blanks by itself.
std::vector<Token> tokens_of(std::string_view text) {
  std::vector<Token> tokens;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at + 1;
    if (text[at] == '"') {
      while (end < text.size() && text[end] != '"')
        end += text[end] == '\\' ? 2 : 1;
      end = std::min(end + 1, text.size());
    } else if (is_word(text[at])) {
      while (end < text.size() && is_word(text[end]))
        ++end;
    }
    if (std::isspace(static_cast<unsigned char>(text[at])) == 0)
      tokens.push_back({at, end});
    at = end;
  }
  return tokens;
}

std::string_view text_of(std::string_view text, Token token) {
  return text.substr(token.begin, token.end - token.begin);
}

bool is_value(std::string_view token) {
  return token.front() == '"' || is_word(token.front());
}

std::string replaced(std::string_view text, Token token, std::string_view by) {
  return std::string(text.substr(0, token.begin)) + std::string(by) +
         std::string(text.substr(token.end));
}

std::string some_number(Random& random) {
  constexpr const char* kNumbers[]{"1e400",
                                   "-1e400",
                                   "1e-400",
                                   ".inf",
                                   "-.inf",
                                   ".nan",
                                   "NaN",
                                   "9223372036854775807",
                                   "9223372036854775808",
                                   "-9223372036854775809",
                                   "18446744073709551616",
                                   "1e18",
                                   "1e19",
                                   "0x10",
                                   "010",
                                   "1_000",
                                   "-0",
                                   "0.1",
                                   "1.5e3",
                                   "4294967296"};
  return random.one_in(2) ? random.pick(kNumbers) : std::to_string(random.integer());
}

/// Any text that a value may be, in either language.
std::string some_value(Random& random, bool json) {
  constexpr const char* kOdd[]{"true", "false", "null", "[]", "{}", "\"\"", "[[]]", "\"\\u0000\""};
  switch (random.below(4)) {
  case 0:
    return random.pick(kOdd);
  case 1: {
    const std::string word(random.pick(text_words()));
    return json ? '"' + word + '"' : word;
  }
  default:
    return some_number(random);
  }
}

Token some_value_token(std::string_view text, const std::vector<Token>& tokens, Random& random) {
  Token found = random.pick(tokens);
  for (int i = 0; i < 8 && !is_value(text_of(text, found)); ++i)
    found = random.pick(tokens);
  return found;
}

/// From the bracket that opens at or after `from` to the one that closes it.
std::optional<Token> brackets(std::string_view text, const std::vector<Token>& tokens,
                              std::size_t from) {
  const auto opens = [&](Token t) { return text[t.begin] == '[' || text[t.begin] == '{'; };
  const auto closes = [&](Token t) { return text[t.begin] == ']' || text[t.begin] == '}'; };
  while (from < tokens.size() && !opens(tokens[from]))
    ++from;
  int depth = 0;
  for (std::size_t i = from; i < tokens.size(); ++i) {
    depth += opens(tokens[i]) ? 1 : closes(tokens[i]) ? -1 : 0;
    if (depth == 0)
      return Token{tokens[from].begin, tokens[i].end};
  }
  return std::nullopt;
}

/// A value in as many brackets as it takes to be too deep, or in a few.
std::string nested(std::string_view value, Random& random, bool json) {
  const std::size_t depth = random.one_in(8) ? 50 + random.below(4000) : 1 + random.below(3);
  std::string open, close;
  for (std::size_t i = 0; i < depth; ++i) {
    const bool list = random.one_in(2);
    open += list ? "[" : json ? "{\"a\":" : "{a: ";
    close.insert(close.begin(), list ? ']' : '}');
  }
  return open + std::string(value) + close;
}

std::string change_tokens(std::string_view text, Random& random, bool json) {
  const std::vector<Token> tokens = tokens_of(text);
  if (tokens.empty())
    return some_value(random, json);
  const Token token = some_value_token(text, tokens, random);
  const Token other = some_value_token(text, tokens, random);
  switch (random.below(8)) {
  case 0:
  case 1:
    return replaced(text, token, some_value(random, json));
  case 2:
    return replaced(text, token, text_of(text, other));
  case 3:
    return replaced(text, token, nested(text_of(text, token), random, json));
  case 4: // a whole list or map in place of a value, or nothing in place of it
    if (const auto whole = brackets(text, tokens, random.below(tokens.size()))) {
      const std::string part(text_of(text, *whole));
      return random.one_in(2) ? replaced(text, token, part)
                              : replaced(text, *whole, some_value(random, json));
    }
    return replaced(text, token, "");
  case 5: // an entry twice, or a list that is longer
    if (const auto whole = brackets(text, tokens, random.below(tokens.size())))
      return replaced(text, *whole,
                      std::string(text_of(text, *whole)) + "," +
                          std::string(text_of(text, *whole)));
    return replaced(text, token, some_number(random));
  case 6: { // exchanged
    if (token.end > other.begin)
      return replaced(text, token, some_number(random));
    const std::string later = replaced(text, other, text_of(text, token));
    return replaced(later, token, text_of(text, other));
  }
  default:
    return replaced(text, random.pick(tokens), "");
  }
}

/// Up to the next comma of the same list or map.
std::string change_entry(std::string_view text, Random& random) {
  const std::vector<Token> tokens = tokens_of(text);
  std::vector<std::size_t> commas;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (text[tokens[i].begin] == ',')
      commas.push_back(i);
  }
  if (commas.empty())
    return change_tokens(text, random, true);
  const std::size_t first = random.pick(commas);
  std::size_t last = first + 1;
  for (int depth = 0; last < tokens.size(); ++last) {
    const char c = text[tokens[last].begin];
    depth += c == '[' || c == '{' ? 1 : c == ']' || c == '}' ? -1 : 0;
    if (depth < 0 || (depth == 0 && c == ','))
      break;
  }
  const Token entry{tokens[first].begin, last < tokens.size() ? tokens[last].begin : text.size()};
  return random.one_in(2) ? replaced(text, entry, "")
                          : replaced(text, {entry.end, entry.end}, text_of(text, entry));
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return lines;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines)
    text += line;
  return text;
}

std::string change_lines(std::string_view text, Random& random) {
  std::vector<std::string> lines = lines_of(text);
  if (lines.empty())
    return some_value(random, false);
  const auto at = lines.begin() + static_cast<std::ptrdiff_t>(random.below(lines.size()));
  const std::string indent(std::min(at->find_first_not_of(' '), at->size()), ' ');
  switch (random.below(6)) {
  case 0:
    lines.erase(at);
    break;
  case 1: {
    const std::string copy = *at;
    lines.insert(at, copy);
    break;
  }
  case 2:
    std::swap(*at, lines[random.below(lines.size())]);
    break;
  case 3:
    *at = random.one_in(2) ? "  " + *at : at->substr(std::min<std::size_t>(2, indent.size()));
    break;
  case 4: {
    const std::string key(random.pick(text_words()));
    lines.insert(at, indent + key + ": " + some_value(random, false) + "\n");
    break;
  }
  default: { // another key, or another value
    const std::size_t colon = at->find(':');
    if (colon == std::string::npos)
      *at = indent + "- " + some_value(random, false) + "\n";
    else if (random.one_in(2))
      *at = indent + std::string(random.pick(text_words())) + at->substr(colon);
    else
      *at = at->substr(0, colon) + ": " + some_value(random, false) + "\n";
    break;
  }
  }
  return joined(lines);
}

/// What YAML has beyond JSON.
std::string change_style(std::string_view text, Random& random) {
  const std::vector<Token> tokens = tokens_of(text);
  if (tokens.empty())
    return "&a [*a]";
  const Token token = some_value_token(text, tokens, random);
  constexpr const char* kBefore[]{"&a ", "!!str ", "!x ", "- ", "? ", "'", "| ", "> ", "--- "};
  if (random.one_in(3))
    return replaced(text, token, "*a");
  return replaced(text, {token.begin, token.begin}, random.pick(kBefore));
}

} // namespace

std::string mutate_yaml(std::string_view text, Random& random) {
  std::string changed(text);
  do {
    switch (random.below(8)) {
    case 0:
      changed = change_style(changed, random);
      break;
    case 1:
    case 2:
    case 3:
      changed = change_tokens(changed, random, false);
      break;
    default:
      changed = change_lines(changed, random);
      break;
    }
  } while (random.one_in(3));
  return changed;
}

std::string mutate_json(std::string_view text, Random& random) {
  std::string changed(text);
  do {
    changed =
        random.one_in(3) ? change_entry(changed, random) : change_tokens(changed, random, true);
  } while (random.one_in(3));
  return changed;
}

std::string cross_text(std::string_view a, std::string_view b, Random& random) {
  std::vector<std::string> lines = lines_of(a);
  const std::vector<std::string> others = lines_of(b);
  if (others.empty())
    return std::string(a);
  const std::size_t first = random.below(others.size());
  const std::size_t last = std::min(others.size(), first + 1 + random.below(8));
  lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(random.below(lines.size() + 1)),
               others.begin() + static_cast<std::ptrdiff_t>(first),
               others.begin() + static_cast<std::ptrdiff_t>(last));
  return joined(lines);
}

} // namespace monet::fuzz
