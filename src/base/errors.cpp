// Error types with source locations, and lists of problems that readers of input files report
// together.
#include "monet/base/errors.hpp"

#include <fmt/core.h>

namespace monet {

std::string SourceLoc::to_string() const {
  std::string text = origin;
  if (line > 0)
    text += fmt::format(":{}", line);
  if (line > 0 && column > 0)
    text += fmt::format(":{}", column);
  if (!element.empty())
    text += (text.empty() ? "[" : " [") + element + "]";
  return text;
}

std::string InputProblem::to_string() const {
  std::string text = where.to_string();
  if (!text.empty())
    text += ": ";
  text += what;
  if (!hint.empty())
    text += " (" + hint + ")";
  return text;
}

namespace {

std::string list_of(const std::vector<InputProblem>& problems) {
  std::string text;
  for (const InputProblem& problem : problems) {
    if (!text.empty())
      text += '\n';
    text += problem.to_string();
  }
  return text;
}

std::string bug_report(std::string_view what, const std::source_location& at) {
  return fmt::format("internal error at {}:{}: {}; please report it with the input that caused it",
                     at.file_name(), at.line(), what);
}

} // namespace

InputError::InputError(SourceLoc where, std::string_view what, std::string_view hint)
    : InputError({InputProblem{std::move(where), std::string(what), std::string(hint)}}) {}

InputError::InputError(std::vector<InputProblem> problems)
    : std::runtime_error(list_of(problems)), problems_(std::move(problems)) {}

OutputError::OutputError(const std::string& place, std::string_view what)
    : std::runtime_error(fmt::format("{}: {}", place, what)) {}

InternalError::InternalError(std::string_view what, std::source_location at)
    : std::logic_error(bug_report(what, at)) {}

void internal_check(bool condition, std::string_view what, std::source_location at) {
  if (!condition)
    throw InternalError(what, at);
}

void ProblemList::add(SourceLoc where, std::string_view what, std::string_view hint) {
  problems_.push_back({std::move(where), std::string(what), std::string(hint)});
}

void ProblemList::add(const std::vector<InputProblem>& problems) {
  problems_.insert(problems_.end(), problems.begin(), problems.end());
}

void ProblemList::throw_if_any() const {
  if (!problems_.empty())
    throw InputError(problems_);
}

} // namespace monet
