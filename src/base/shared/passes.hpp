// A pipeline: passes that run in order on one draft, each with its part of the options.
#pragma once

#include "monet/base/stage.hpp"

#include <span>
#include <type_traits>

namespace monet {

/// One step of a pipeline. `run` returns whether the pass applied; it is not called if `when`
/// returns false.
template <class Draft, class Options>
struct Pass {
  std::string_view name;
  std::string_view needs;
  std::string_view makes;
  bool (*run)(Draft&, const Options&);
  bool (*when)(const Draft&) = nullptr; ///< nullptr: always
};

/// Pass::run of a function that reads only the parts `Part` of the options. The function returns
/// whether it applied, or nothing if it always does.
template <auto Function, auto... Part, class Draft, class Options>
bool over(Draft& draft, const Options& options) {
  if constexpr (std::is_void_v<decltype(Function(draft, options.*Part...))>) {
    Function(draft, options.*Part...);
    return true;
  } else {
    return Function(draft, options.*Part...);
  }
}

/// Runs each pass once, in order, and reports it to `observe`, which may be empty.
template <class Draft, class Options>
void run_passes(std::span<const Pass<Draft, Options>> passes, Draft& draft, const Options& options,
                const PassObserver& observe) {
  for (const Pass<Draft, Options>& pass : passes) {
    PassRecord record{pass.name, pass.needs, pass.makes, false, draft.size(), {}};
    record.skipped = (pass.when && !pass.when(draft)) || !pass.run(draft, options);
    record.after = draft.size();
    if (observe)
      observe(record);
  }
}

} // namespace monet
