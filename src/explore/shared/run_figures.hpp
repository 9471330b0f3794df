// Figures of a run that explorations compare, store, send and write: those that
// docs/explore.schema.json marks with `x-run`.
#pragma once

#include "monet/model/model_step.hpp"

#include <array>

namespace monet {

#define MONET_RUN_FIGURE(name) #name,
/// Keys of the figures of a run.
inline constexpr std::array kRunFigures = std::to_array<const char*>({
#include "explore/shared/run_figures.inc"
});
#undef MONET_RUN_FIGURE

/// Calls f(key, figure) for each figure of a run, in the order of `kRunFigures`.
template <class Figures, class F>
void for_each_run_figure(Figures&& figures, F f) {
#define MONET_RUN_FIGURE(name) f(#name, figures.name);
#include "explore/shared/run_figures.inc"
#undef MONET_RUN_FIGURE
}

} // namespace monet
