// Collects warnings per thread in nested scopes; commands print them after a stage.
#include "monet/base/warnings.hpp"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

namespace monet {

namespace {

thread_local WarningScope* innermost_scope = nullptr;

auto key_of(const InputProblem& warning) {
  return std::tie(warning.where.origin, warning.where.line, warning.where.column,
                  warning.where.element, warning.what, warning.hint);
}

} // namespace

WarningScope::WarningScope(Listener listener)
    : listener_(std::move(listener)), before_(innermost_scope) {
  innermost_scope = this;
}

WarningScope::~WarningScope() {
  innermost_scope = before_;
}

WarningScope* WarningScope::current() {
  return innermost_scope;
}

WarningScope::Adopt::Adopt(WarningScope* of_starter) : before_(innermost_scope) {
  innermost_scope = of_starter;
}

WarningScope::Adopt::~Adopt() {
  innermost_scope = before_;
}

void WarningScope::add(InputProblem warning) {
  const std::lock_guard lock(mutex_);
  const auto place = std::ranges::lower_bound(warnings_, key_of(warning), {}, key_of);
  if (place != warnings_.end() && key_of(*place) == key_of(warning))
    return;
  if (listener_)
    listener_(warning);
  warnings_.insert(place, std::move(warning));
}

std::vector<InputProblem> WarningScope::warnings() const {
  const std::lock_guard lock(mutex_);
  return warnings_;
}

void warn(SourceLoc where, std::string_view what, std::string_view hint) {
  if (innermost_scope != nullptr)
    innermost_scope->add({std::move(where), std::string(what), std::string(hint)});
}

} // namespace monet
